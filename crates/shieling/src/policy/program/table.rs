//! The language in which known programs are described, and its reader.
//!
//! What a program does with its arguments is data. Each `tables/*.prog` file describes a family of
//! programs, one block each; an entry carries its own examples, which the tests judge under the
//! readonly meaning.
//!
//! ```text
//! # a comment, from a `#` at the start of a line or after a blank, to the end of the line
//! program sort                          one or more names, separated by blanks
//!   operands read...                    what its operands are, see below
//!   -b -d -f -g -i -M -h -n -R -r -V -c -C -m -s -u -z
//!   --reverse --unique --numeric-sort
//!   -k --key = text                     an option with a value: spellings, `=`, the value's role
//!   --parallel = text
//!   --color [=] text                    the value is optional and must be attached
//!   -o --output = write
//!   -T --temporary-directory = text
//!   --files0-from = read
//!   --compress-program = launch
//!   --help --version ! stops
//!   allow: sort -u -k 2,2 a.txt         examples: this command's verdict under readonly
//!   deny:  sort -o b.txt a.txt
//!   ask:   sort --no-such-option a
//! ```
//!
//! **Roles** say what a value or an operand is:
//!
//! | role | meaning | under readonly |
//! |---|---|---|
//! | `text` | data, whatever it is | allow |
//! | `pattern` | as `text`; absent once an option marked `! pattern` was given (grep's `-e`) | allow |
//! | `read` | a path that is read, a directory also recursively | allow |
//! | `write` | a path that is written, made, removed or changed in any way | deny (`/dev/null` and its like: allow) |
//! | `command` | with `...`, as the last operand: it and all after it are a command that is started | that command's |
//! | `launch` | one string that names a program, perhaps with arguments, started without a shell | that command's |
//! | `shell` | text that a shell runs | that text's |
//! | `code` | a program text in another language (`python -c`), or a file of one | ask |
//! | `sed` `awk` | a sed or an awk program, which is analysed | its own |
//! | `var` | the name of a shell variable that is assigned | allow unless the name changes what runs |
//! | `host` | a host, URL or address to talk to | deny |
//! | `rev` | git's revision syntax, which may name a path: `HEAD:file` | allow |
//! | `path` | a path that is only named (`basename`, a pathspec) | allow |
//! | `unknown` | nothing can be said | ask |
//!
//! A role may carry a prefix that must match: `role:LITERAL` is not supported; write options instead.
//!
//! **`operands`** is a list of roles in order. The role with `...` repeats, and roles after it bind
//! from the end: `operands read... write` is `cp`'s. An operand in excess of a list without `...` is
//! `unknown`. `operands none` means: any operand is `unknown`.
//! A role with `?` is optional, which matters only for roles behind it (`operands read? write?` is
//! `uniq`'s; plain order is used, so `?` is documentation).
//!
//! **Effects** stand after `!`, on an option line or as `always ! …` for the program itself:
//!
//! | effect | meaning | under readonly |
//! |---|---|---|
//! | `! writes WHAT` | changes something that is not a path on the line: `! writes processes`, `! writes the clock` | deny |
//! | `! runs WHAT` | runs code that the line does not show: a build file, a hook, a configured helper | ask |
//! | `! network WHAT` | talks to the network | deny |
//! | `! unknown WHY` | cannot be judged | ask |
//! | `! pattern` | the program's `pattern` operand is absent | |
//! | `! operands ROLES` | the operands are these instead (`sed -i`, `gzip -c`, `tar -c`) | |
//! | `! stops` | it prints and ends (`--help`): nothing else on the line takes effect | allow |
//! | `! harmless` | takes back the `always` effects (`--dry-run`, `date` without `-s`) | |
//! | `! nonet` | takes back only network effects | |
//!
//! Several effects on one option: repeat `! …`.
//!
//! **Attributes**, one a line:
//!
//! | attribute | meaning |
//! |---|---|
//! | `options first` | options end at the first operand (`env`, `timeout`, `xargs`, `sudo`); default: they may stand anywhere |
//! | `options none` | nothing is an option (`echo`, `test`): all is operands |
//! | `options single` | long options are spelled with one dash (`-name`); no clusters |
//! | `options bare` | a first word without a dash is a cluster of options (`tar xf`, `ps aux`) |
//! | `options exact` | long options may not be abbreviated; default: any unambiguous prefix is the option |
//! | `digits` | `-NUMBER` is an option (`head -5`, `git log -3`) |
//! | `plus` | a word that starts with `+` is an option and harmless (`sort +1`, `date +%F`) |
//! | `always ! EFFECT` | an effect of every call |
//! | `builtin` | a builtin of bash that starts no process and changes nothing outside the shell |
//! | `prints number` | its output, when it has no unknown option, is a number; `prints name` = words without blank that cannot start with a dash (hashes, absolute paths) |
//! | `pager` | it runs a pager, but only on a terminal |
//! | `assignments` | leading operands `NAME=VALUE` are environment variables for what it starts (`env`, `sudo`) |
//! | `special NAME` | the arguments are read by a function of that name in Rust instead (`find`, `dd`, `test`) |
//!
//! **Subcommands.** `sub NAME …` starts a block that belongs to the program above it and lasts until
//! the next `sub` or `program`; it has operands, options, attributes and examples of its own. The
//! lines before the first `sub` are the program's global options, which stand before the
//! subcommand. A subcommand may have two words (`sub remote show`, `sub stash list`): the longest
//! match wins. An unknown subcommand is `unknown`; an abbreviated one too. A program with `sub`
//! blocks and no subcommand on the line uses its own operands (write `operands none`).
//! `include NAME` copies the option lines of the block `options NAME` (a block that is no program,
//! started by `options NAME` at the left margin), so that shared options are written once.
//!
//! An option that is not listed is `unknown`: list every option of the newest release that you know,
//! also the harmless ones. Where an option could ever make the program write, start something or
//! talk to the network, say so; when in doubt, `! unknown WHY`.
