//! The parts of a memory, which its other modules share.

use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::sync::Arc;

use rustix::pipe::PipeFlags;

use super::bash::BashConfig;
use super::running::RunningTexts;
use super::tree::Tree;

/// Files and a bash in memory.
///
/// Clones share the memory; [`Self::fork`] copies it. Closing an environment interrupts what was started by this clone.
///
/// # The bash in memory
/// It supports the scripting language of bash 5: variables, arrays, arithmetic, expansions, functions, loops, `case`,
/// `[[ ]]`, pipes, redirections, here-documents, substitutions, subshells, `set -euo pipefail`, traps, background
/// jobs; and the usual programs for text and files (`grep`, `sed`, `awk`, `find`, `sort`, `tar` and so on; a text
/// that needs another program ends with the status 127 and lists them). Where it would differ from bash, it refuses
/// the text with a message as far as it can tell; use `sandbox` for such texts:
///
/// - There are no programs of a host, no network, no terminal and no processes: `ps`, `curl`, `git` and `python3` do
///   not exist.
/// - Standard input is read whole before a text begins, if the text may read it. A running command accepts no input
///   ([`SpawnError::NoInput`](shieling::process::SpawnError::NoInput)).
/// - If several commands share an input, `read` takes lines, and one program takes the rest, outside of loops: `{
///   read first; sort; } < f`. Other such texts are refused before they run (125): `{ head -n 1; sort; } < f`.
///   Scripts in files are not checked for this.
/// - A text that makes a name readonly and contains arithmetic or a loop that may assign to it is refused (125), as
///   are two streams that are swapped (`3>&1 1>&2 2>&3`), and braces that expand to more than 10,000 words.
/// - In double quotes, `${v/…}`, `${v#…}` and `${v%…}` with `\\\\` are refused, and so is `&` in a replacement; an `&`
///   or a backslash that comes from a variable stands for itself. A replacement that would yield more than 10 MiB
///   changes nothing.
/// - `.` in a pattern of `=~` matches no line break, and the first alternative that matches wins.
/// - An arithmetic expression of more than 64 KiB is 0.
/// - The umask is 0022 (`umask 077` is refused).
/// - Options that bashkit would ignore are refused: `sha256sum --tag`, `cut -f0`, `stat` without `-c` and others.
///   `chmod`, `cp`, `ls`, `mkdir`, `mv`, `realpath` and `rm` have their usual options, never prompt, and refuse other
///   options.
/// - `[[ -o x ]]`, `[[ -R x ]]`, `-ef`, `export -f` and `substr` from below 1 are refused. `tar xv` lists files on
///   standard error.
/// - `seq` supports whole numbers only. `yes` prints at most 10,000 lines, `awk` 10 MB, `find` 1 MiB; `dd` copies at
///   most 64 MiB; and `printf` and `awk` write fields of at most 10,000 characters. Beyond these bounds they fail
///   with a message. `printf %f` rounds halves up.
/// - `sed` makes at most 1,000 steps between two lines that it reads. Beyond that its output is cut, and the text ends
///   with the status 125 if the warning of `sed` is seen on standard error.
/// - Loops have at most 100 million iterations (125). A loop of `awk` without a body (`while (1);`) is refused.
/// - Bytes that are not UTF-8 are kept in files and pipes by `cat`, `cp`, `head`, `tail`, `tr`, `grep`, `gzip`, `tar`,
///   `base64`, `dd` and the like. `sort`, `sed`, `awk`, `cut` and other programs for text fail where they would change
///   them, and so do commands that get them from a variable; here-strings and `exec 3< f` are not checked. `xxd -r`,
///   `tar -O` and `$'\xff'` are refused.
/// - `$BASH_COMMAND` is empty. `set -u` ignores missing elements of arrays.
/// - An EXIT trap runs at the end of its text, also in a session. With a DEBUG trap, the next text of a session
///   begins with the status 0.
/// - A text ends with its background jobs.
/// - `xargs` returns the status of what it ran instead of 123. `awk` and `cut -c` count characters.
/// - Functions, sourced files and nested shells call each other at most 16 deep, subshells and substitutions at most
///   32. Beyond that, and where `eval`, aliases, `command` or `xargs` call each other too deep, the text ends with the
///   status 125 and a message. `test`, `find` and `expr` have at most 500 operators, a text at most 1,000 `time`.
/// - File names are UTF-8. Files whose names contain line breaks, control or invisible characters are accessible to
///   the file tools, but not to commands.
/// - There are no hard links, pipes or devices, except for `/dev/null` and similar ones.
/// - `cd x/..` and `cat x/../y` drop `x/..` from the path, even if `x` is a link.
///
/// # Examples
/// ```
/// use shieling::environment::Environment as _;
/// use shieling_memory::Memory;
///
/// let memory = Memory::builder("/workspace")
///     .seed([("notes.txt", "remember the milk\n")])
///     .build()?;
/// assert_eq!(memory.name(), "memory");
/// assert_eq!(memory.read("notes.txt")?, b"remember the milk\n");
///
/// let before = memory.snapshot();
/// memory.write("notes.txt", b"")?;
/// memory.restore(&before);
/// assert_eq!(memory.read("notes.txt")?, b"remember the milk\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Memory {
    pub(crate) inner: Arc<Inner>,
    /// What this clone has started.
    pub(crate) texts: RunningTexts,
}

impl Clone for Memory {
    fn clone(&self) -> Self {
        Self::new(Arc::clone(&self.inner))
    }
}

impl Memory {
    pub(crate) fn new(inner: Arc<Inner>) -> Self {
        Self {
            inner,
            texts: RunningTexts::default(),
        }
    }
}

pub(crate) struct Inner {
    pub(crate) workspace: PathBuf,
    pub(crate) tree: Arc<Tree>,
    pub(crate) config: BashConfig,
}

/// Creates a pipe, and returns its read end and its write end.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?)
}
