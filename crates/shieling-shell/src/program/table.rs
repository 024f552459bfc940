//! The language in which known programs are described, and its reader.
//!
//! What a program does with its arguments is data. Each `tables/*.prog` file describes a family of
//! programs, one block each; an entry carries its own examples ([`examples`]), which the tests of the policy judge under its
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
//! | `gitconfig` | `KEY=VALUE` of git's configuration | by its key |
//! | `state` | what is changed where that is no path: a branch, a key, a process | deny |
//! | `glob` | a pattern for names that the program finds by itself (`grep --include`) | allow |
//! | `header` | as `at`, with the `@` at its beginning alone (`curl -H`) | allow |
//! | `at` | data, or behind an `@` a file of it that is read (`curl -d`) | allow |
//! | `list` | a file that names further files, all of which are read (`wc --files0-from`) | allow |
//! | `moved` | as `write`; what lies below it, if it is a directory, goes on under another name | deny |
//! | `piped` | as `write`; behind a `|` or a `!` it is text that a shell runs instead (`strace -o`) | deny |
//! | `removed` | as `write`; it is removed, with what lies below it | deny |
//! | `linked` | as `read`; what lies below it, if it is a directory, gets another name | allow |
//! | `repository` | a repository of git that the text chooses, whose settings can run programs | ask, unless it is the `.git` here |
//! | `mounted` | a directory, up to a colon, that is read as a whole (`docker run -v`) | allow |
//! | `only` | as `glob`: a program that `walks` looks at no file whose name does not match | allow |
//! | `except` | a pattern for names of files that a program that `walks` leaves out | allow |
//! | `except-dirs` | the same for directories, with what is in them | allow |
//! | `left-out` | a pattern for names of files and directories that it leaves out | allow |
//! | `left-out-each` | several of those, with a `|` between them (`tree -I`) | allow |
//! | `picked` | `only`, or behind a `!` both kinds of `except` (`rg -g`) | allow |
//! | `ending` | `only` what ends with a dot and this (`fd -e`) | allow |
//! | `depth` | how many levels of directories a program that `walks` goes down | allow |
//! | `kind` | `only` files of this language (`rg -t`) | allow |
//! | `query` | text in a language of the program's own, in which paths and commands are looked for (`psql -c`) | allow |
//! | `expression` | as `query`, where paths are only what functions of the language open (`jq`, `yq`): see `opens` | allow |
//! | `below` | as `read`; with an option by which the program `walks`, with what is below (`kubectl apply -R -f`) | allow |
//! | `besides` | as `read`; one more directory that a program which `walks` looks into (`diff --from-file`) | allow |
//! | `read-url` | as `read`; with `://` in it, an address that is fetched | allow, an address: deny |
//! | `setting` | the name of a setting, or `NAME=VALUE`; where it names a program, the value is launched (`npm config set editor`) | ask |
//! | `unknown` | nothing can be said | ask |
//!
//! A role may carry a prefix that must match: `role:LITERAL` is not supported; write options instead.
//!
//! **A table** may say of all its programs, in lines of their own before the first of them:
//!
//! | line | meaning |
//! |---|---|
//! | `table rough` | they are described by what they change and where they send it, and not word by word: a word that is said to be text may be the path of a file that they read |
//! | `table for projects` | with them a project is built, tested or checked |
//!
//! **`operands`** is a list of roles in order. The role with `...` repeats, and roles after it bind
//! from the end: `operands read... write` is `cp`'s. An operand in excess of a list without `...` is
//! `unknown`. `operands none` means: any operand is `unknown`.
//! A role with `?` is optional, which matters only for roles behind it (`operands read? write?` is
//! `uniq`'s; plain order is used, so `?` is documentation). `operands rev... pathspecs` is a list whose operands may be
//! pathspecs of git as well, of which some only leave files out.
//!
//! **Effects** stand after `!`, on an option line or as `always ! …` for the program itself:
//!
//! | effect | meaning | under readonly |
//! |---|---|---|
//! | `! writes WHAT` | changes something that is not a path on the line: `! writes processes`, `! writes the clock` | deny |
//! | `! runs WHAT` | runs code that the line does not show: a build file, a hook, a configured helper | ask |
//! | `! network WHAT` | talks to the network | deny |
//! | `! unknown WHY` | cannot be judged | ask |
//! | `! reads WHAT` | reads files that the line does not name: `! reads what its input names` | allow |
//! | `! renames` | what is in the current directory, or is stored for it, gets another name | allow |
//! | `! settings INSTEAD` | the repository's settings are written after something else has been changed; what does without that | allow |
//! | `! pattern` | the program's `pattern` operand is absent | |
//! | `! operands ROLES` | the operands are these instead (`sed -i`, `gzip -c`, `tar -c`) | |
//! | `! stops` | it prints and ends (`--help`): nothing behind it on the line takes effect. Behind an operand it counts for nothing, since many programs do not see it there. `! stops alone`: only if there is nothing else on the line | allow |
//! | `! harmless` | takes back the `always` effects (`--dry-run`, `date` without `-s`) | |
//! | `! nonet` | takes back only network effects | |
//!
//! A line with exactly one long, or exactly one short, spelling beside others lists the spellings of
//! one option (`-f --force`). Any other line lists several options that are alike.
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
//! | `responses` | a word `@FILE` stands for the arguments in that file (`nm @list`) |
//! | `digits` | `-NUMBER` is an option (`head -5`, `git log -3`) |
//! | `plus` | a word that starts with `+` is an option and harmless (`sort +1`, `date +%F`) |
//! | `plus toolchain` | the same, and it names a toolchain of rustup; one that is no channel may be installed first, or be a directory whose programs run |
//! | `always ! EFFECT` | an effect of every call |
//! | `builtin` | a builtin of bash that starts no process and changes nothing outside the shell |
//! | `prints number` | its output, when it has no unknown option, is a number; `prints name` = words without blank that cannot start with a dash (hashes, absolute paths) |
//! | `pager` | it runs a pager, but only on a terminal |
//! | `assignments` | leading operands `NAME=VALUE` are environment variables for what it starts (`env`, `sudo`) |
//! | `walks` | it reads the directories below its operands, or below the current one; `walks with -r -R` only with one of these options, `walks unless --stat` not with one of these, but for those of a `walks with` |
//! | `whole with -F` | with one of these options, what other options leave out may be read all the same |
//! | `walks ordered` | what an option leaves out is left out of the operands behind it alone (`tar`) |
//! | `undotted unless -a` | when it walks it skips names that start with a dot, but with one of these options |
//! | `ignoring unless -u` | when it walks it skips those, and what `.gitignore` and the like tell it to skip, but with one of these options |
//! | `tracked unless --no-index` | it walks through files that git tracks alone, but with one of these options |
//! | `lists` | when it walks it shows the names of files and nothing of what is in them; `lists with --files` with one of these options |
//! | `files` | of a directory that is named to it, it reads nothing, unless it walks; `files with -d` with one of these options |
//! | `passes-on` | without options it prints its standard input as it is |
//! | `lines` | it prints some lines of its standard input, each as it is; `lines with -r -u` only with no other options than these |
//! | `names with -l` | with one of these options it prints the names of files that it found, and nothing else; `names unless -c` not with one of these, `names only -1 -t` only if all its options are among these |
//! | `named` | whatever it changes is named on the line: nothing comes into being under names that are not |
//! | `opens NAME …` | functions and words of its own language (`query`, `expression`) behind which a path stands that is opened |
//! | `loads NAME …` | those that start programs or load code which the text does not show |
//! | `fed` | its standard input is code in its own language |
//! | `no-input` | it does not read its standard input, unless a word names it (`-`); `no-input with -f` with one of these options, `no-input unless -i` not with one of these |
//! | `reads-input` | it may read its standard input although files are given to it, as no other program is taken to |
//! | `shell` | without a command on its line it starts a shell, which reads the standard input; `shell with -s` with one of these options; `shell unless -c` whatever its operands are (a user), but with one of these |
//! | `joined -B -Wl,` | options whose value stands behind their name in the same word, where `options single` |
//! | `interpreter` | it runs code of another language than the shell's: in an option, in a file, or from its standard input |
//! | `scripts` | it runs a file that is named among its arguments, or else what it is fed |
//! | `project-files NAME …` | it runs what files of these names in its directory tell it |
//! | `helpers NAME …` | programs that it starts by itself |
//! | `helpers-in DIRECTORY …` | directories of programs of its own, absolute or below the prefix that its `bin` stands in |
//! | `special NAME` | the arguments are read by a function of that name in Rust instead (`find`, `dd`, `test`) |
//!
//! Of these, `interpreter`, `scripts`, `helpers` and `helpers-in` may end with `of NAME …`: they hold for these names of
//! the block alone.
//!
//! **Subcommands.** `sub NAME …` starts a block that belongs to the program above it and lasts until
//! the next `sub` or `program`; it has operands, options, attributes and examples of its own. The
//! lines before the first `sub` are the program's global options, which stand before the
//! subcommand. A subcommand may have two words (`sub remote show`, `sub stash list`): the longest
//! match wins. Subcommands that are alike share a block: `sub start | stop`. `sub *` is any other. Without it an unknown
//! subcommand is `unknown`; an abbreviated one too. A program with `sub`
//! blocks and no known subcommand on the line brings about its own `always` effects.
//! `same OTHER | ANOTHER = NAME`, among the program's own lines: other names of a subcommand, also where they have blocks
//! of their own. `abbreviates`: so is what only one of all these names begins with. `subs of docker compose`: the program
//! also has all subcommands of `compose`, a subcommand of `docker`.
//! `include NAME` copies the option lines of the block `options NAME` (a block that is no program,
//! started by `options NAME` at the left margin), so that shared options are written once.
//!
//! An option that is not listed is `unknown`: list every option of the newest release that you know,
//! also the harmless ones. Where an option could ever make the program write, start something or
//! talk to the network, say so; when in doubt, `! unknown WHY`.

use std::sync::OnceLock;

use crate::word::Hidden;

/// What a value or an operand is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    Text,
    Pattern,
    Read,
    Write,
    Command,
    Launch,
    Shell,
    Code,
    Sed,
    Awk,
    Var,
    Host,
    Rev,
    Path,
    GitConfig,
    /// What git prints of a commit or a tag, which can be what gpg says of it.
    GitFormat,
    /// What is changed, where that is no path: a branch, a key.
    State,
    /// A pattern for names that the program finds by itself.
    Glob,
    /// Data, or behind an `@` a file of it.
    At,
    /// The same, with the `@` at its beginning alone.
    Header,
    /// A file that is read, and names further files that are read.
    List,
    /// A path that is changed, and whose content goes on under another name.
    Moved,
    /// A path that is changed, or behind a `|` or a `!` text that a shell runs.
    Piped,
    /// A path that is removed, with what lies below it.
    Removed,
    /// A path that is read, and whose content gets another name.
    Linked,
    /// A repository of git that the text chooses.
    Repository,
    /// A directory, up to a colon, that a container is shown.
    Mounted,
    /// A pattern of the names that a program that walks looks at.
    Only,
    /// A pattern of names of files that it leaves out.
    Except,
    /// A pattern of names of directories that it leaves out.
    ExceptDirs,
    /// A pattern of names of files and directories that it leaves out.
    LeftOut,
    /// Several of those, with a `|` between them.
    LeftOutEach,
    /// A pattern of the names that it looks at, or behind a `!` leaves out.
    Picked,
    /// The ending of the names that it looks at.
    Ending,
    /// The language of the files that it looks at.
    Kind,
    /// How many levels of directories it goes down.
    Depth,
    /// Text in a language of the program's own, in which paths and commands are looked for.
    Query,
    /// The same, where only what its functions open is a path.
    Expression,
    /// A directory that is read as a whole by a program that walks.
    Below,
    /// A directory that it walks besides those that its operands name.
    Besides,
    /// A path that is read, or an address that is fetched.
    ReadUrl,
    /// The name of a setting, or `NAME=VALUE`; the next word is the value.
    Setting,
    Unknown,
}

impl Role {
    /// Whether a word in this role can start a program.
    fn launches(self) -> bool {
        matches!(
            self,
            Self::Command
                | Self::Launch
                | Self::Shell
                | Self::Code
                | Self::Sed
                | Self::Awk
                | Self::GitConfig
                | Self::Repository
                | Self::Unknown
        )
    }

    /// Whether a word in this role cannot change, start or send anything.
    pub(crate) fn is_harmless(self) -> bool {
        match self {
            Self::Text
            | Self::Pattern
            | Self::Read
            | Self::Rev
            | Self::Path
            | Self::Glob
            | Self::At
            | Self::Header
            | Self::List
            | Self::Linked
            | Self::Mounted
            | Self::Only
            | Self::Except
            | Self::ExceptDirs
            | Self::LeftOut
            | Self::LeftOutEach
            | Self::Picked
            | Self::Ending
            | Self::Kind
            | Self::Depth
            | Self::Query
            | Self::Expression
            | Self::Below
            | Self::Besides => true,
            Self::Write
            | Self::Command
            | Self::Launch
            | Self::Shell
            | Self::Code
            | Self::Sed
            | Self::Awk
            | Self::Var
            | Self::Host
            | Self::GitConfig
            | Self::GitFormat
            | Self::State
            | Self::Moved
            | Self::Piped
            | Self::Removed
            | Self::Repository
            | Self::Setting
            | Self::ReadUrl
            | Self::Unknown => false,
        }
    }

    fn parse(text: &str) -> Result<Self, String> {
        Ok(match text {
            "text" => Self::Text,
            "pattern" => Self::Pattern,
            "read" => Self::Read,
            "write" => Self::Write,
            "command" => Self::Command,
            "launch" => Self::Launch,
            "shell" => Self::Shell,
            "code" => Self::Code,
            "sed" => Self::Sed,
            "awk" => Self::Awk,
            "var" => Self::Var,
            "host" => Self::Host,
            "rev" => Self::Rev,
            "path" => Self::Path,
            "gitconfig" => Self::GitConfig,
            "format" => Self::GitFormat,
            "state" => Self::State,
            "glob" => Self::Glob,
            "at" => Self::At,
            "header" => Self::Header,
            "list" => Self::List,
            "moved" => Self::Moved,
            "piped" => Self::Piped,
            "removed" => Self::Removed,
            "linked" => Self::Linked,
            "repository" => Self::Repository,
            "mounted" => Self::Mounted,
            "only" => Self::Only,
            "except" => Self::Except,
            "except-dirs" => Self::ExceptDirs,
            "left-out" => Self::LeftOut,
            "left-out-each" => Self::LeftOutEach,
            "picked" => Self::Picked,
            "ending" => Self::Ending,
            "kind" => Self::Kind,
            "depth" => Self::Depth,
            "query" => Self::Query,
            "expression" => Self::Expression,
            "below" => Self::Below,
            "besides" => Self::Besides,
            "read-url" => Self::ReadUrl,
            "setting" => Self::Setting,
            "unknown" => Self::Unknown,
            other => return Err(format!("no role is called `{other}`")),
        })
    }
}

/// The roles of a program's operands, in order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Operands {
    /// Those that bind from the start.
    pub(crate) head: Vec<Role>,
    /// The one that repeats, if any does.
    pub(crate) rest: Option<Role>,
    /// Those that bind from the end.
    pub(crate) tail: Vec<Role>,
    /// Whether any of them may be a pathspec of git, which can also leave files out.
    pub(crate) pathspecs: bool,
}

impl Operands {
    fn parse(text: &str) -> Result<Self, String> {
        let mut operands = Self::default();
        for word in text.split_whitespace().filter(|word| *word != "none") {
            if word == "pathspecs" {
                operands.pathspecs = true;
            } else if let Some(name) = word.strip_suffix("...") {
                if operands.rest.is_some() {
                    return Err("two operands repeat".to_owned());
                }
                operands.rest = Some(Role::parse(name)?);
            } else {
                let role = Role::parse(word.trim_end_matches('?'))?;
                if operands.rest.is_some() {
                    operands.tail.push(role)
                } else {
                    operands.head.push(role)
                }
            }
        }
        Ok(operands)
    }
}

/// What an option, or every call of a program, brings about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bring {
    Writes(String),
    Runs(String),
    Network(String),
    Reads(String),
    /// The content of the current directory gets another name.
    Renames,
    /// The repository's settings are written after something else.
    Settings(String),
    Unknown(String),
    Pattern,
    Operands(Operands),
    /// It prints something and ends; `alone`, if nothing else is given.
    Stops {
        alone: bool,
    },
    Harmless,
    NoNetwork,
}

impl Bring {
    fn parse(text: &str) -> Result<Self, String> {
        let (word, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
        let rest = rest.trim().to_owned();
        Ok(match word {
            "writes" => Self::Writes(rest),
            "runs" => Self::Runs(rest),
            "network" => Self::Network(rest),
            "reads" => Self::Reads(rest),
            "renames" => Self::Renames,
            "settings" => Self::Settings(rest),
            "unknown" => Self::Unknown(rest),
            "pattern" => Self::Pattern,
            "operands" => Self::Operands(Operands::parse(&rest)?),
            "stops" if rest == "alone" => Self::Stops { alone: true },
            "stops" => Self::Stops { alone: false },
            "harmless" => Self::Harmless,
            "nonet" => Self::NoNetwork,
            other => return Err(format!("no effect is called `{other}`")),
        })
    }

    /// Whether it can change, start or send anything.
    pub(crate) fn is_harmless(&self) -> bool {
        match self {
            Self::Writes(_) | Self::Runs(_) | Self::Network(_) | Self::Unknown(_) => false,
            Self::Operands(operands) => operands
                .head
                .iter()
                .chain(&operands.rest)
                .chain(&operands.tail)
                .all(|role| role.is_harmless()),
            Self::Reads(_)
            | Self::Renames
            | Self::Settings(_)
            | Self::Pattern
            | Self::Stops { .. }
            | Self::Harmless
            | Self::NoNetwork => true,
        }
    }
}

/// Whether an option takes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value {
    None,
    /// Attached or the next word.
    Required(Role),
    /// Attached only.
    Optional(Role),
}

/// An option with its spellings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) spellings: Vec<String>,
    pub(crate) value: Value,
    pub(crate) brings: Vec<Bring>,
}

impl Choice {
    /// Whether using it cannot change, start or send anything.
    pub(crate) fn is_harmless(&self) -> bool {
        let value = match self.value {
            Value::None => true,
            Value::Required(role) | Value::Optional(role) => role.is_harmless(),
        };
        value && self.brings.iter().all(Bring::is_harmless)
    }

    /// Whether using it can start a program.
    pub(super) fn launches(&self) -> bool {
        let value = match self.value {
            Value::None => false,
            Value::Required(role) | Value::Optional(role) => role.launches(),
        };
        value
            || self
                .brings
                .iter()
                .any(|bring| matches!(bring, Bring::Runs(_) | Bring::Unknown(_)))
    }

    fn parse(line: &str) -> Result<Self, String> {
        let mut parts = line.split(" ! ");
        let spelled = parts.next().unwrap_or_default();
        let brings = parts.map(|part| Bring::parse(part.trim())).collect::<Result<_, _>>()?;
        let (spelled, value) = match spelled.split_once(" [=] ") {
            Some((spelled, role)) => (spelled, Value::Optional(Role::parse(role.trim())?)),
            None => match spelled.split_once(" = ") {
                Some((spelled, role)) => (spelled, Value::Required(Role::parse(role.trim())?)),
                None => (spelled, Value::None),
            },
        };
        let spellings: Vec<String> = spelled.split_whitespace().map(str::to_owned).collect();
        if spellings.is_empty() || spellings.iter().any(|word| !word.starts_with(['-', '+'])) {
            return Err(format!("`{line}` is no option line"));
        }
        Ok(Self {
            spellings,
            value,
            brings,
        })
    }
}

/// When a program reads whole directories. Options are given by their spellings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Walks {
    /// It does so only with one of these; in any case if there are none.
    pub(crate) with: Vec<String>,
    /// It does not with one of these.
    pub(crate) unless: Vec<String>,
    /// It skips names that start with a dot, but with one of these.
    pub(crate) undotted_unless: Option<Vec<String>>,
    /// It skips those and what is ignored, but with one of these.
    pub(crate) ignoring_unless: Option<Vec<String>>,
    /// It looks at what git tracks alone, but with one of these.
    pub(crate) tracked_unless: Option<Vec<String>>,
    /// It shows names alone, with one of these if there are any.
    pub(crate) lists: Option<Vec<String>>,
    /// With one of these, what its other options leave out can be looked at all the same.
    pub(crate) whole_with: Vec<String>,
    /// What an option leaves out is left out of the operands behind it alone.
    pub(crate) ordered: bool,
}

/// When a program starts a shell by itself. Options are given by their spellings.
#[derive(Debug, Clone, Default)]
pub(crate) struct Shell {
    /// Only with one of these, and without a command; without a command if there are none.
    pub(crate) with: Vec<String>,
    /// Whatever its operands are, but with one of these.
    pub(crate) unless: Vec<String>,
}

/// What holds for all names of a program, or for these alone if there are any.
#[derive(Debug, Clone, Default)]
pub(crate) struct Named<T> {
    names: Vec<String>,
    pub(crate) what: T,
}

impl<T> Named<T> {
    pub(crate) fn holds_for(&self, name: &str) -> bool {
        self.names.is_empty() || self.names.iter().any(|own| own == name)
    }
}

/// With which options a program prints names of files alone.
#[derive(Debug, Clone, Default)]
pub(crate) struct NamesAlone {
    /// One of these is given, if there are any.
    pub(crate) with: Vec<String>,
    /// None of these is.
    pub(crate) unless: Vec<String>,
    /// None but these is.
    pub(crate) only: Option<Vec<String>>,
}

/// A program, or a subcommand of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Program {
    pub(crate) operands: Operands,
    pub(crate) options: Vec<Choice>,
    pub(crate) always: Vec<Bring>,
    pub(crate) subs: Vec<Sub>,
    /// A subcommand of another program, whose own are subcommands of this one, too.
    pub(crate) subs_of: Option<(String, String)>,
    /// Other names of subcommands, with the one that they stand for.
    pub(crate) same: Vec<(String, String)>,
    /// Whether subcommands may be abbreviated.
    pub(crate) abbreviates: bool,
    pub(crate) special: Option<String>,
    pub(crate) prints: Option<Hidden>,
    pub(crate) options_first: bool,
    pub(crate) options_none: bool,
    pub(crate) single_dash: bool,
    pub(crate) bare: bool,
    pub(crate) exact: bool,
    pub(crate) digits: bool,
    /// Whether `@FILE` stands for the arguments in that file.
    pub(crate) responses: bool,
    pub(crate) plus: bool,
    pub(crate) toolchain: bool,
    pub(crate) builtin: bool,
    pub(crate) pager: bool,
    pub(crate) assignments: bool,
    pub(crate) walks: Option<Walks>,
    /// Without which options whatever it changes is named on the line.
    pub(crate) named: Option<Vec<String>>,
    /// What opens paths in its own language.
    pub(crate) opens: Vec<String>,
    /// What starts programs in its own language, or loads code.
    pub(crate) loads: Vec<String>,
    /// Whether its standard input is code.
    pub(crate) fed: bool,
    /// With which options, in any case if there are none, and without which it does not read its standard input, if that is
    /// not named to it.
    pub(crate) no_input: Option<(Vec<String>, Vec<String>)>,
    /// Whether it may read it although files are given to it.
    pub(crate) reads_input: bool,
    /// When it starts a shell that reads its standard input.
    pub(crate) shell: Option<Shell>,
    /// The spellings of options to which their value is attached as it stands.
    pub(crate) joined: Vec<String>,
    /// With which options it reads nothing of directories that are named to it; in any case if there are none.
    pub(crate) files: Option<Vec<String>>,
    /// When it prints names of files that it found, and nothing else.
    pub(crate) names_alone: Option<NamesAlone>,
    /// With which options, and no others, it prints some lines of its standard input, each as it is.
    pub(crate) lines: Option<Vec<String>>,
    /// Whether without options it prints all of its standard input as it is.
    pub(crate) passes_on: bool,
    /// Whether it runs code of another language than the shell's.
    pub(crate) interpreter: Option<Named<()>>,
    /// Whether it runs a file that is named among its arguments.
    pub(crate) scripts: Option<Named<()>>,
    /// The names of files in its directory that tell it what to run.
    pub(crate) project_files: Vec<String>,
    /// Programs that it starts by itself.
    pub(crate) helpers: Vec<Named<Vec<String>>>,
    /// Directories of programs of its own.
    pub(crate) helpers_in: Vec<Named<Vec<String>>>,
    /// Whether a word that is said to be text may be a path all the same.
    pub(crate) is_rough: bool,
    /// Whether a project is built, tested or checked with it.
    pub(crate) is_for_projects: bool,
    /// Whether any option of it could change, start or send something.
    pub(crate) has_risky_options: bool,
    /// Whether an operand can change, start or send anything.
    pub(crate) has_acting_operands: bool,
    pub(crate) has_launching_operands: bool,
    /// Whether it is not known what an operand is.
    pub(crate) has_unknown_operands: bool,
    /// Whether any option of it could start something.
    pub(crate) has_launching_options: bool,
}

/// A subcommand, read when it is first asked for: some programs have hundreds.
#[derive(Debug, Clone)]
pub(crate) struct Sub {
    pub(crate) names: Vec<&'static str>,
    block: &'static str,
    parsed: OnceLock<Program>,
}

impl Sub {
    /// What is known of it.
    pub(crate) fn program(&self) -> &Program {
        self.parsed.get_or_init(|| self.read().0)
    }

    fn read(&self) -> (Program, Vec<String>) {
        parse(self.block)
    }
}

impl Program {
    /// Whether it is not known what it does with what it is given.
    pub(crate) fn takes_anything(&self) -> bool {
        self.operands.rest == Some(Role::Unknown)
    }

    /// Whether the program runs, by this name, code of another language than the shell's.
    pub(crate) fn is_interpreter(&self, name: &str) -> bool {
        self.interpreter
            .as_ref()
            .is_some_and(|interpreter| interpreter.holds_for(name))
    }

    /// Reads one line that is neither a heading nor an example.
    fn line(&mut self, line: &str, shared: &dyn Fn(&str) -> Option<Vec<Choice>>) -> Result<(), String> {
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        match word {
            "operands" => self.operands = Operands::parse(rest)?,
            "always" => {
                for part in format!(" {rest}").split(" ! ").skip(1) {
                    self.always.push(Bring::parse(part.trim())?);
                }
            }
            "options" => match rest {
                "first" => self.options_first = true,
                "none" => self.options_none = true,
                "single" => self.single_dash = true,
                "bare" => self.bare = true,
                "exact" => self.exact = true,
                other => return Err(format!("`options {other}` means nothing")),
            },
            "digits" => self.digits = true,
            "responses" => self.responses = true,
            "abbreviates" => self.abbreviates = true,
            "same" => {
                let (others, name) = rest.split_once(" = ").ok_or("`same` has no ` = `")?;
                let others = others.split(" | ").map(|other| (other.to_owned(), name.to_owned()));
                self.same.extend(others);
            }
            "plus" => {
                self.plus = true;
                self.toolchain = match rest {
                    "" => false,
                    "toolchain" => true,
                    other => return Err(format!("`plus {other}` means nothing")),
                };
            }
            "builtin" => self.builtin = true,
            "pager" => self.pager = true,
            "assignments" => self.assignments = true,
            "named" => {
                let mut words = rest.split_whitespace();
                if !matches!(words.next(), None | Some("unless")) {
                    return Err(format!("`{line}` is not understood"));
                }
                self.named = Some(words.map(str::to_owned).collect());
            }
            "fed" => self.fed = true,
            "no-input" => {
                let no_input = self.no_input.get_or_insert_default();
                let mut words = rest.split_whitespace();
                let spellings = match words.next() {
                    None | Some("unless") => &mut no_input.1,
                    Some("with") => &mut no_input.0,
                    Some(_) => return Err(format!("`{line}` is not understood")),
                };
                spellings.extend(words.map(str::to_owned));
            }
            "reads-input" => self.reads_input = true,
            "joined" => self.joined.extend(rest.split_whitespace().map(str::to_owned)),
            "shell" => {
                let shell = self.shell.get_or_insert_default();
                let mut words = rest.split_whitespace();
                let spellings = match words.next() {
                    None => return Ok(()),
                    Some("with") => &mut shell.with,
                    Some("unless") => &mut shell.unless,
                    Some(_) => return Err(format!("`{line}` is not understood")),
                };
                spellings.extend(words.map(str::to_owned));
            }
            "opens" => self.opens.extend(rest.split_whitespace().map(str::to_owned)),
            "loads" => self.loads.extend(rest.split_whitespace().map(str::to_owned)),
            "files" => {
                let mut words = rest.split_whitespace();
                if !matches!(words.next(), None | Some("with")) {
                    return Err(format!("`{line}` is not understood"));
                }
                self.files = Some(words.map(str::to_owned).collect());
            }
            "names" => {
                let names = self.names_alone.get_or_insert_default();
                let mut words = rest.split_whitespace();
                let spellings = match words.next() {
                    Some("with") => &mut names.with,
                    Some("unless") => &mut names.unless,
                    Some("only") => names.only.get_or_insert_default(),
                    Some(_) | None => return Err(format!("`{line}` is not understood")),
                };
                spellings.extend(words.map(str::to_owned));
            }
            "passes-on" => self.passes_on = true,
            "lines" => {
                let mut words = rest.split_whitespace();
                if !matches!(words.next(), None | Some("with")) {
                    return Err(format!("`{line}` is not understood"));
                }
                self.lines = Some(words.map(str::to_owned).collect());
            }
            "walks" | "undotted" | "ignoring" | "tracked" | "lists" | "whole" => {
                let walks = self.walks.get_or_insert_default();
                let mut words = rest.split_whitespace();
                let spellings = match (word, words.next()) {
                    ("walks", None) => return Ok(()),
                    ("lists", None) => walks.lists.get_or_insert_default(),
                    ("lists", Some("with")) => walks.lists.get_or_insert_default(),
                    ("walks", Some("with")) => &mut walks.with,
                    ("walks", Some("unless")) => &mut walks.unless,
                    ("whole", Some("with")) => &mut walks.whole_with,
                    ("walks", Some("ordered")) => {
                        walks.ordered = true;
                        return Ok(());
                    }
                    ("undotted", Some("unless")) => walks.undotted_unless.get_or_insert_default(),
                    ("ignoring", Some("unless")) => walks.ignoring_unless.get_or_insert_default(),
                    ("tracked", Some("unless")) => walks.tracked_unless.get_or_insert_default(),
                    _ => return Err(format!("`{line}` is not understood")),
                };
                spellings.extend(words.map(str::to_owned));
            }
            "interpreter" | "scripts" => {
                let (what, names) = named(line);
                if what != word {
                    return Err(format!("`{line}` is not understood"));
                }
                let named = Some(Named { names, what: () });
                match word {
                    "interpreter" => self.interpreter = named,
                    _ => self.scripts = named,
                }
            }
            "project-files" => self.project_files.extend(words(rest)),
            "helpers" | "helpers-in" => {
                let (what, names) = named(rest);
                let what = words(what);
                match word {
                    "helpers" => self.helpers.push(Named { names, what }),
                    _ => self.helpers_in.push(Named { names, what }),
                }
            }
            "special" => self.special = Some(rest.to_owned()),
            "prints" => {
                self.prints = Some(match rest {
                    "number" => Hidden::Number,
                    "name" => Hidden::Name,
                    other => return Err(format!("`prints {other}` means nothing")),
                });
            }
            "subs" => {
                let (other, above) = rest
                    .strip_prefix("of ")
                    .and_then(|of| of.split_once(' '))
                    .filter(|(other, _)| number_of(other).is_some())
                    .ok_or_else(|| format!("`{line}` is not understood"))?;
                self.subs_of = Some((other.to_owned(), above.to_owned()));
            }
            "include" => self
                .options
                .extend(shared(rest).ok_or_else(|| format!("no options are called `{rest}`"))?),
            _ if line.starts_with(['-', '+']) => {
                let choice = Choice::parse(line)?;
                let long = choice.spellings.iter().filter(|word| word.starts_with("--")).count();
                let short = choice.spellings.len() - long;
                if (long == 1 && short > 0) || (short == 1 && long > 0) {
                    self.options.push(choice);
                } else {
                    self.options.extend(choice.spellings.iter().map(|own| Choice {
                        spellings: vec![own.clone()],
                        ..choice.clone()
                    }));
                }
            }
            _ => return Err(format!("`{line}` is not understood")),
        }
        Ok(())
    }
}

/// A list of names.
fn words(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

/// The text of an attribute, and the names that it holds for.
fn named(line: &str) -> (&str, Vec<String>) {
    let (text, names) = line.split_once(" of ").unwrap_or((line, ""));
    (text, words(names))
}

/// The text of a table, and what it says of all its programs.
struct Table {
    /// The name of its file.
    name: &'static str,
    text: &'static str,
    is_rough: bool,
    is_for_projects: bool,
}

/// Where a program's block stands in its table.
struct Block {
    table: usize,
    /// Its own lines, without those of its subcommands.
    own: (usize, usize),
    /// The names of each subcommand, and where its lines begin and end.
    subs: &'static [(&'static [&'static str], usize, usize)],
}

impl Block {
    /// The block of this program, with where its subcommands are.
    fn read(&self) -> (Program, Vec<String>) {
        let table = &TABLES[self.table];
        let (mut program, faults) = parse(&table.text[self.own.0..self.own.1]);
        program.subs = self.subs_below("");
        if let Some((other, above)) = &program.subs_of
            && let Some(number) = number_of(other)
        {
            program.subs.extend(BLOCKS[number].subs_below(&format!("{above} ")));
        }
        program.is_rough = table.is_rough;
        program.is_for_projects = table.is_for_projects;
        (program, faults)
    }

    /// The subcommands whose names begin so, by what follows.
    fn subs_below(&self, above: &str) -> Vec<Sub> {
        let text = TABLES[self.table].text;
        let sub = |(names, start, end): &(&'static [&'static str], usize, usize)| {
            let names: Vec<_> = names.iter().filter_map(|name| name.strip_prefix(above)).collect();
            (!names.is_empty()).then(|| Sub {
                names,
                block: &text[*start..*end],
                parsed: OnceLock::new(),
            })
        };
        self.subs.iter().filter_map(sub).collect()
    }
}

// The tables, in the order in which a name is looked up, and what stands where in them: `TABLES`, `BLOCKS`, and
// `NAMES` and `SHARED`, which are sorted. Made by the build script from the tables themselves.
include!(concat!(env!("OUT_DIR"), "/programs.rs"));

static READ: [OnceLock<Program>; BLOCKS.len()] = [const { OnceLock::new() }; BLOCKS.len()];

/// The options of a shared block; an unreadable line in it is found by the tests.
fn shared(name: &str) -> Option<Vec<Choice>> {
    let place = SHARED.binary_search_by_key(&name, |(known, _)| known).ok()?;
    let mut program = Program::default();
    for line in lines(shared_block(place)) {
        program
            .line(line, &|inner| if inner == name { None } else { shared(inner) })
            .ok()?;
    }
    Some(program.options)
}

/// The lines of a shared block, by its place among them.
fn shared_block(place: usize) -> &'static str {
    let (table, start, end) = SHARED[place].1;
    &TABLES[table].text[start..end]
}

/// The lines of a block without comments and blank ones.
fn lines(block: &'static str) -> impl Iterator<Item = &'static str> {
    block.lines().filter_map(|line| {
        let line = line.trim();
        let line = if line.starts_with('#') {
            ""
        } else if example(line).is_some() {
            line
        } else {
            line.split(" #").next().unwrap_or_default().trim()
        };
        (!line.is_empty()).then_some(line)
    })
}

/// Reads the lines of a program or a subcommand; every line that cannot be read is reported.
fn parse(block: &'static str) -> (Program, Vec<String>) {
    let mut program = Program::default();
    let mut faults = Vec::new();
    for line in lines(block).filter(|line| example(line).is_none()) {
        faults.extend(program.line(line, &shared).err());
    }
    let usable = |program: &Program, is: fn(&Choice) -> bool| !program.options_none && program.options.iter().any(is);
    program.has_risky_options = usable(&program, |choice| !choice.is_harmless());
    program.has_launching_options = usable(&program, Choice::launches);
    let operands = &program.operands;
    let roles = || operands.head.iter().chain(&operands.rest).chain(&operands.tail);
    program.has_acting_operands = !roles().all(|role| role.is_harmless());
    program.has_launching_operands = roles().any(|role| role.launches());
    program.has_unknown_operands = roles().any(|role| *role == Role::Unknown);
    (program, faults)
}

/// What is known of a program, by its name without directories. An interpreter is known with a version in its name, too.
pub(crate) fn find(name: &str) -> Option<&'static Program> {
    exactly(name).or_else(|| {
        let bare = Some(without_version(name)).filter(|bare| bare.len() < name.len())?;
        exactly(bare).filter(|program| program.is_interpreter(bare))
    })
}

/// A name without the version at its end: `python` of `python3.12`.
pub(super) fn without_version(name: &str) -> &str {
    let platform = name.strip_suffix("-x86_64-linux-gnu").unwrap_or(name);
    platform.trim_end_matches(|last: char| last.is_ascii_digit() || last == '.' || last == '-')
}

fn exactly(name: &str) -> Option<&'static Program> {
    let number = number_of(name)?;
    Some(READ[number].get_or_init(|| BLOCKS[number].read().0))
}

/// The number of the block of a program.
fn number_of(name: &str) -> Option<usize> {
    let place = NAMES.binary_search_by_key(&name, |(known, _)| known).ok()?;
    Some(NAMES[place].1)
}

/// Whether a table describes a program, by its name without directories.
pub fn is_described(name: &str) -> bool {
    find(name).is_some()
}

/// A command that a table gives as an example, with what a policy that lets nothing change must say of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Example {
    /// The name of the table's file.
    pub table: &'static str,
    /// `allow`, `ask` or `deny`.
    pub verdict: &'static str,
    /// The command.
    pub command: &'static str,
}

/// The verdict and the command of a line that is an example.
fn example(line: &'static str) -> Option<(&'static str, &'static str)> {
    let (verdict, command) = line.split_once(':')?;
    matches!(verdict, "allow" | "ask" | "deny").then_some((verdict, command.trim()))
}

/// Every example of every table.
pub fn examples() -> impl Iterator<Item = Example> {
    TABLES.iter().flat_map(|table| {
        let all = lines(table.text).filter_map(example);
        all.map(|(verdict, command)| Example {
            table: table.name,
            verdict,
            command,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;

    #[test]
    fn every_line_of_every_table_is_understood() {
        let mut faults = Vec::new();
        for block in &BLOCKS {
            let (program, mut found) = block.read();
            found.extend(program.subs.iter().flat_map(|sub| sub.read().1));
            let file = TABLES[block.table].name;
            faults.extend(found.into_iter().map(|fault| format!("{file}: {fault}")));
        }
        for (place, (name, _)) in SHARED.iter().enumerate() {
            let mut program = Program::default();
            for line in lines(shared_block(place)) {
                faults.extend(
                    program
                        .line(line, &shared)
                        .err()
                        .map(|fault| format!("options {name}: {fault}")),
                );
            }
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }

    #[test]
    fn no_program_is_described_twice() {
        let mut seen = HashMap::new();
        let mut twice = Vec::new();
        for Table { name: file, text, .. } in TABLES {
            for line in text.lines().filter_map(|line| line.strip_prefix("program ")) {
                for name in line.split(" #").next().unwrap_or_default().split_whitespace() {
                    if let Some(first) = seen.insert(name, file) {
                        twice.push(format!("{name}: {first} and {file}"));
                    }
                }
            }
        }
        assert!(twice.is_empty(), "{}", twice.join("\n"));
    }
}
