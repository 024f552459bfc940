//! The variables of a text: which values it can give them, and which of them change what runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::definitions::Definitions;
use crate::word::{Atom, Hidden, Word, holds_names};

/// Stands for the home directory, wherever it is: an absolute path that no text can hold.
pub const HOME: &str = "/\u{1}home";

/// The variable by which git is told to write nothing where it only looks.
pub(crate) const OPTIONAL_LOCKS: &str = "GIT_OPTIONAL_LOCKS";

/// How many different values of one variable are told apart.
const MAX_VALUES: usize = 24;

/// What the text assigns, in whatever order: every value a variable can have at any time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Variables {
    values: BTreeMap<String, Vec<Vec<Atom>>>,
    /// How often each is assigned.
    times: BTreeMap<String, usize>,
    /// The elements of arrays that are assigned as a whole, in order, each one word.
    lists: BTreeMap<String, Vec<Vec<Atom>>>,
    /// The variables that are given a number which may be negative.
    computed: BTreeSet<String>,
    /// Whether any array may have been declared so.
    pub(crate) any_associative: bool,
    /// The names of the functions that the text defines, certain or not.
    pub(crate) functions: BTreeSet<String>,
    /// What later texts run of what this one and earlier ones define.
    pub(crate) definitions: Definitions,
    /// The names whose function or array may be gone, or be of another kind, at some time: what is unset, and what is
    /// declared once more.
    undefined: BTreeSet<String>,
    /// Whether these may be any names.
    any_undefined: bool,
    /// Whether any assignment or wildcard may end the line that it stands on: for a variable that is read-only, or
    /// under `failglob`.
    pub(crate) may_abort: bool,
    /// Whether a wildcard that matches nothing may become no word.
    pub(crate) nullglob: bool,
    /// Whether a trap may run between commands (`DEBUG`, `ERR`), so that it prints where they do.
    pub(crate) traps_between: bool,
    /// Whether the way in which words are split is changed.
    pub(crate) splits_otherwise: bool,
    /// Whether `*` also matches names that start with a dot.
    pub(crate) dotglob: bool,
    /// Whether `!(…)` and its kind may be patterns where a command begins.
    pub(crate) extglob: bool,
    /// The variables that may have been declared so that whatever is assigned to them is arithmetic.
    pub(crate) integers: BTreeSet<String>,
    /// Whether any variable can have any value.
    any_value: bool,
    /// What redirections open for reading alone, or copy, by the number of the descriptor.
    attached: Vec<(u32, Attached)>,
}

/// What a descriptor stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Attached {
    /// A file that is opened for reading.
    File(Word),
    /// What another descriptor stands for.
    Descriptor(u32),
    /// What any other descriptor stands for.
    Any,
}

/// How many such redirections are told apart.
const MAX_ATTACHED: usize = 256;

impl Variables {
    /// Adds a value that the variable can have.
    pub(crate) fn assign(&mut self, name: &str, value: Vec<Atom>) {
        match name {
            "IFS" => self.splits_otherwise = true,
            "GLOBIGNORE" => self.dotglob = true,
            "BASHOPTS" => (self.dotglob, self.extglob) = (true, true),
            _ => {}
        }
        if value == [Atom::Hidden(Hidden::Number)] {
            self.computed.insert(name.to_owned());
        }
        *self.times.entry(name.to_owned()).or_default() += 1;
        let values = self.values.entry(name.to_owned()).or_default();
        if values.contains(&value) {
            return;
        }
        if values.len() >= MAX_VALUES {
            *values = vec![vec![Atom::Hidden(Hidden::Anything)]];
        } else if !values
            .iter()
            .any(|known| matches!(known.as_slice(), [Atom::Hidden(Hidden::Anything)]))
        {
            values.push(value);
        }
    }

    /// Records the elements of an array that was assigned as a whole, one after the other.
    pub(crate) fn assign_list(&mut self, name: &str, elements: Vec<Vec<Atom>>) {
        self.lists.insert(name.to_owned(), elements);
    }

    /// The elements of an array, in order, if they were assigned once, as a whole, and nothing else was done with it.
    pub(crate) fn list(&self, name: &str) -> Option<&[Vec<Atom>]> {
        let elements = self.lists.get(name)?;
        let is_gone = self.any_undefined || self.undefined.contains(name) || self.any_value || self.any_associative;
        // Once as an empty list, and once for each element.
        let is_all = self.times.get(name) == Some(&(elements.len() + 1));
        (is_all && !is_gone).then_some(elements)
    }

    /// Takes back that a variable may be given a negative number: what it was given is a descriptor.
    pub(crate) fn given_descriptor(&mut self, name: &str) {
        self.computed.remove(name);
    }

    /// Whether a variable may be given a negative number.
    pub(crate) fn is_computed(&self, name: &str) -> bool {
        self.any_value || self.computed.contains(name)
    }

    /// Whether a function or an alias of this name may stand for a command.
    pub(crate) fn may_define(&self, name: &str) -> bool {
        self.functions.contains(name) || self.definitions.has_alias(name)
    }

    /// The values that the text can give to this variable; none if it assigns it nowhere.
    pub(crate) fn values(&self, name: &str) -> Option<&[Vec<Atom>]> {
        self.values.get(name).map(Vec::as_slice)
    }

    /// Whether a value can be names of files that wildcards matched or a program found.
    pub(crate) fn hold_names(&self) -> bool {
        self.values.values().flatten().any(|value| holds_names(value))
    }

    /// Whether everything that a walk found was among what it went by.
    pub(crate) fn cover(&self, found: &Self) -> bool {
        let unknown = [Atom::Hidden(Hidden::Anything)];
        found.values.iter().all(|(name, values)| {
            self.values.get(name).is_some_and(|known| {
                known.iter().any(|value| value.as_slice() == unknown)
                    || values.iter().all(|value| known.contains(value))
            })
        }) && self.lists == found.lists
            && (self.lists.is_empty() || self.times == found.times)
            && found.functions.is_subset(&self.functions)
            && found.computed.is_subset(&self.computed)
            && self.definitions.cover_aliases(&found.definitions)
            && (self.any_undefined || !found.any_undefined && found.undefined.is_subset(&self.undefined))
            && (self.any_associative || !found.any_associative)
            && (self.may_abort || !found.may_abort)
            && (self.nullglob || !found.nullglob)
            && (self.traps_between || !found.traps_between)
            && (self.splits_otherwise || !found.splits_otherwise)
            && (self.dotglob || !found.dotglob)
            && (self.extglob || !found.extglob)
            && found.integers.is_subset(&self.integers)
            && (self.any_value || !found.any_value)
    }

    /// Whether `IFS` may hold a digit or a sign, so that numbers are split.
    pub(crate) fn splits_numbers(&self) -> bool {
        let no_digits = |value: &Vec<Atom>| {
            crate::word::known(value)
                .is_some_and(|text| !text.contains(|letter: char| letter.is_ascii_digit() || letter == '-'))
        };
        self.splits_otherwise && !self.values("IFS").is_some_and(|values| values.iter().all(no_digits))
    }

    /// Whether any variable can have any value.
    pub(crate) fn can_be_anything(&self) -> bool {
        self.any_value
    }

    /// Records that a function or array of this name, or of any, may be gone or be of another kind.
    pub(crate) fn undefine(&mut self, name: Option<&str>) {
        match name {
            Some(name) => {
                self.undefined.insert(name.to_owned());
            }
            None => self.any_undefined = true,
        }
    }

    /// Whether a function or array stays what it was defined as, for all that the text does.
    pub(crate) fn keep(&self, name: &str) -> bool {
        !self.any_undefined && !self.undefined.contains(name)
    }

    /// Records what a redirection lets a descriptor stand for.
    pub(crate) fn attach(&mut self, descriptor: u32, to: Attached) {
        let to = if self.attached.len() < MAX_ATTACHED {
            to
        } else {
            Attached::Any
        };
        let entry = (descriptor, to);
        if !self.attached.contains(&entry) {
            self.attached.push(entry);
        }
    }

    /// The files, opened for reading, that a descriptor can stand for.
    pub(crate) fn files_of(&self, descriptor: u32) -> Vec<&Word> {
        let (mut seen, mut left) = (BTreeSet::new(), vec![descriptor]);
        while let Some(next) = left.pop() {
            if !seen.insert(next) {
                continue;
            }
            for (_, to) in self.attached.iter().filter(|(of, _)| *of == next) {
                match to {
                    Attached::File(_) => {}
                    Attached::Descriptor(other) => left.push(*other),
                    Attached::Any => left.extend(self.attached.iter().map(|(of, _)| *of)),
                }
            }
        }
        let files = self.attached.iter().filter(|(of, _)| seen.contains(of));
        files
            .filter_map(|(_, to)| match to {
                Attached::File(word) => Some(word),
                Attached::Descriptor(_) | Attached::Any => None,
            })
            .collect()
    }

    /// Gives up on telling variables apart.
    pub(crate) fn forget_names(&mut self) {
        self.values.clear();
        self.any_value = true;
    }

    /// How many names there are, and how many bytes of values.
    pub(crate) fn weight(&self) -> (usize, usize) {
        let values = self.values.values().flatten();
        let names = self.values.len() + self.functions.len() + self.integers.len();
        (names, values.map(|value| weight(value)).sum())
    }

    /// Gives up on knowing any value.
    pub(crate) fn forget_values(&mut self) {
        for values in self.values.values_mut() {
            *values = vec![vec![Atom::Hidden(Hidden::Anything)]];
        }
    }
}

/// How large a value is, in bytes and pieces.
pub(crate) fn weight(value: &[Atom]) -> usize {
    let atom = |atom: &Atom| match atom {
        Atom::Text(text) => 1 + text.len(),
        Atom::OneOf(values) => 1 + values.iter().map(|value| weight(value)).sum::<usize>(),
        Atom::One | Atom::Star | Atom::Found | Atom::Hidden(_) | Atom::Here => 1,
    };
    value.iter().map(atom).sum()
}

/// What setting a variable does to the commands that run afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Influence {
    /// Nothing that matters.
    None,
    /// Nothing in the shell. Programs that it is exported to may use it for anything.
    Unknown,
    /// Its value is run as shell text, or as a program with arguments.
    Command,
    /// Its value is expanded by the shell, substitutions included.
    Prompt,
    /// It is configuration that can name commands in ways that are not followed.
    Configuration,
    /// It changes which programs, libraries or settings are used.
    Search,
    /// It changes where programs are found.
    Path,
    /// It has any program run code that it names.
    Code,
    /// It changes what interpreters, compilers and build tools load, which run the project's code in any case.
    Loading,
}

/// Variables whose value is a command. Source: the manuals of bash, git, man, less, rsync, sudo,
/// and the lists of variables that `sudo` removes.
const COMMANDS: &[&str] = &[
    "AR",
    "BROWSER",
    "CARGO",
    "CMAKE",
    "LD",
    "MAKE",
    "PKG_CONFIG",
    "RUSTFMT",
    "CC",
    "CXX",
    "AUTOM4TE",
    "CONFIG_SHELL",
    "M4",
    "MAILER",
    "PERL",
    "PYTHON",
    "SHELL",
    "CVS_RSH",
    "DIFFPROG",
    "EDITOR",
    "FCEDIT",
    "FZF_DEFAULT_COMMAND",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXTERNAL_DIFF",
    "GIT_MERGE_TOOL",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "LESSCLOSE",
    "LESSOPEN",
    "MANPAGER",
    "MANROFFOPT",
    "MANOPT",
    "PAGER",
    "PROMPT_COMMAND",
    "RSYNC_RSH",
    "RSYNC_CONNECT_PROG",
    "RUSTC",
    "RUSTC_WRAPPER",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTDOC",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "SUDO_EDITOR",
    "SYSTEMD_EDITOR",
    "SYSTEMD_PAGER",
    "TAR_RSH",
    "VISUAL",
    "XMLLINT_INDENT_CMD",
];

/// What the names of such variables of other programs end with (`KUBE_EDITOR`, `SVN_SSH`).
const COMMAND_ENDINGS: &[&str] = &[
    "_BROWSER",
    "_COMPILER_LAUNCHER",
    "_EDITOR",
    "_EXTERNAL_DIFF",
    "_LINKER_LAUNCHER",
    "_PAGER",
    "_RSH",
    "_SSH",
    "_SSH_COMMAND",
];

/// Such variables that other words end.
const OTHER_COMMANDS: &[&str] = &["CCACHE_COMPILER", "CCACHE_PREFIX", "HGEDITOR", "HGMERGE"];

/// Variables with options for a program, which it takes as if they stood on its line.
const OPTIONS: &[(&str, &str)] = &[
    ("CFLAGS", "gcc"),
    ("CGO_CFLAGS", "gcc"),
    ("CGO_CPPFLAGS", "gcc"),
    ("CGO_CXXFLAGS", "gcc"),
    ("CGO_LDFLAGS", "gcc"),
    ("CPPFLAGS", "gcc"),
    ("CXXFLAGS", "gcc"),
    ("ELIXIR_ERL_OPTIONS", "erl"),
    ("ERL_AFLAGS", "erl"),
    ("ERL_FLAGS", "erl"),
    ("ERL_ZFLAGS", "erl"),
    ("FZF_DEFAULT_OPTS", "fzf"),
    ("GNUMAKEFLAGS", "make"),
    ("GOFLAGS", "go build"),
    ("GRADLE_OPTS", "java"),
    ("JAVA_OPTS", "java"),
    ("JAVA_TOOL_OPTIONS", "java"),
    ("JDK_JAVA_OPTIONS", "java"),
    ("LDFLAGS", "gcc"),
    ("MAVEN_OPTS", "java"),
    ("NODE_OPTIONS", "node"),
    ("SBT_OPTS", "java"),
    ("TAR_OPTIONS", "tar"),
    ("_JAVA_OPTIONS", "java"),
    ("npm_config_node_options", "node"),
];

/// The program, with its subcommand, whose options this variable holds.
pub(crate) fn options_of(name: &str) -> Option<&'static str> {
    OPTIONS
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, program)| *program)
}

/// Variables that change what is found, loaded or configured.
const SEARCH: &[&str] = &[
    "BASHOPTS",
    "BASH_LOADABLES_PATH",
    "BASH_XTRACEFD",
    "EMACSLOADPATH",
    "FPATH",
    "GETCONF_DIR",
    "GREP_OPTIONS",
    "HOME",
    "HISTFILE",
    "HOSTALIASES",
    "HOSTFILE",
    "INPUTRC",
    "LOCPATH",
    "MANPATH",
    "MORE",
    "NLSPATH",
    "POSIXLY_CORRECT",
    "RESOLV_HOST_CONF",
    "RES_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "SHELLOPTS",
    "TAR_OPTIONS",
    "TERMCAP",
    "TERMINFO",
    "TERMINFO_DIRS",
    "XDG_CONFIG_DIRS",
    "XDG_CONFIG_HOME",
    "XDG_DATA_DIRS",
    "XDG_DATA_HOME",
    "ZDOTDIR",
    "FZF_DEFAULT_OPTS",
    "GZIP",
    "BZIP2",
    "XZ_OPT",
    "XZ_DEFAULTS",
    "ZSTD_NBTHREADS",
    "UNZIP",
    "ZIPOPT",
];

/// Beginnings of names of such variables, whole families of them.
const SEARCH_FAMILIES: &[&str] = &["BASH_FUNC_", "DYLD_", "GIT_", "LD_", "LESS"];

/// Variables that name code which programs load that have nothing to do with it.
const CODE: &[&str] = &[
    "BASH_ENV",
    "CCC_OVERRIDE_OPTIONS",
    "COMPILER_PATH",
    "DYLD_INSERT_LIBRARIES",
    "ENV",
    "EXINIT",
    "GCC_EXEC_PREFIX",
    "GCONV_PATH",
    "LD_AUDIT",
    "LD_PRELOAD",
    "LUA_INIT",
    "PERL5DB",
    "PERL5OPT",
    "RUBYOPT",
    "VIMINIT",
];

/// Variables that change what interpreters, compilers and build tools load.
const LOADING: &[&str] = &[
    "CLASSPATH",
    "GEM_HOME",
    "GEM_PATH",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "KUBECONFIG",
    "LUA_CPATH",
    "LUA_PATH",
    "MAKEFILES",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PERLLIB",
    "PHPRC",
    "PHP_INI_SCAN_DIR",
    "RUSTDOCFLAGS",
    "RUSTFLAGS",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "_JAVA_OPTIONS",
];

/// Beginnings of their names.
const LOADING_FAMILIES: &[&str] = &["CARGO_", "NPM_CONFIG_", "PERL5", "PYTHON", "RUBY", "npm_config_"];

/// Whether flags for `make` say no more than how many jobs there are and what is told of them (`-j8 -k -s`).
fn is_of_jobs(flags: &str) -> bool {
    flags
        .bytes()
        .all(|byte| byte.is_ascii_digit() || b" -jkls".contains(&byte))
}

/// Whether the variable is a setting of npm's or cargo's whose value is a program.
fn is_command_of_tool(name: &str) -> bool {
    const OF_NPM: [&str; 5] = ["browser", "editor", "git", "shell", "viewer"];
    const OF_CARGO: [&str; 5] = ["LINKER", "RUNNER", "RUSTC", "RUSTDOC", "WRAPPER"];
    let last = name.rsplit(['_', '-']).next().unwrap_or_default();
    let of_npm = name
        .get(..11)
        .is_some_and(|start| start.eq_ignore_ascii_case("npm_config_"));
    of_npm && OF_NPM.contains(&last.to_ascii_lowercase().as_str())
        || name.starts_with("CARGO_") && OF_CARGO.contains(&last)
}

/// Variables that change no program that runs and no file that is read or written: language, time zone, colours,
/// amount of output. A variable that is in no table of this module is unknown, so that a program's variable has to be
/// read about before it is added here.
const HARMLESS: &[&str] = &[
    "CARGO_BUILD_JOBS",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "CARGO_TARGET_DIR",
    "CGO_ENABLED",
    "CI",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "COLUMNS",
    "DEBUG",
    "FORCE_COLOR",
    "GIT_ADVICE",
    "GIT_AUTHOR_DATE",
    "GIT_AUTHOR_EMAIL",
    "GIT_AUTHOR_NAME",
    "GIT_COMMITTER_DATE",
    "GIT_COMMITTER_EMAIL",
    "GIT_COMMITTER_NAME",
    "GIT_LITERAL_PATHSPECS",
    "GIT_NO_REPLACE_OBJECTS",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "GOARCH",
    "GOOS",
    "GREP_COLOR",
    "GREP_COLORS",
    // Shells ignore it in their environment; how it splits words is followed.
    "IFS",
    "LANG",
    "LANGUAGE",
    "LESSCHARDEF",
    "LESSCHARSET",
    "LESSUTFBINFMT",
    "LESSUTFCHARDEF",
    "LINES",
    "LS_COLORS",
    "MANWIDTH",
    "NODE_ENV",
    "NO_COLOR",
    "PORT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONHASHSEED",
    "PYTHONIOENCODING",
    "PYTHONUNBUFFERED",
    "PYTHONUTF8",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "SOURCE_DATE_EPOCH",
    "TERM",
    "TZ",
    // Names of examples, which no program reads.
    "BAR",
    "BAZ",
    "FOO",
    "QUX",
];

/// Beginnings of names of such variables.
const HARMLESS_FAMILIES: &[&str] = &["CARGO_TERM_", "LC_"];

/// Variables that name a pager.
const PAGERS: [&str; 7] = [
    "GH_PAGER",
    "GIT_PAGER",
    "MANPAGER",
    "PAGER",
    "SYSTEMD_PAGER",
    "BAT_PAGER",
    "DELTA_PAGER",
];

/// Whether this variable names a file that a program reads by itself.
pub(crate) fn names_a_file(name: &str) -> bool {
    matches!(
        name,
        "MAGIC" | "NETRC" | "SCREENRC" | "WGETRC" | "PIP_CONSTRAINT" | "PIP_REQUIREMENT"
    ) || ["_CONFIG", "_ENV_FILE", "_CONFIG_FILE", "_CONFIG_PATH", "_RC_FILE"]
        .iter()
        .any(|end| name.ends_with(end))
}

/// Whether the value of this variable is a file that compilers or `pkg-config` write to.
pub(crate) fn is_written(name: &str) -> bool {
    matches!(name, "DEPENDENCIES_OUTPUT" | "PKG_CONFIG_LOG" | "SUNPRO_DEPENDENCIES")
}

/// What setting this variable to this value does.
pub(crate) fn influence(name: &str, value: &[Atom]) -> Influence {
    if matches!(name, "RUSTFLAGS" | "RUSTDOCFLAGS")
        && crate::word::known(value).is_some_and(|flags| {
            !["link", "plugin", "-Z", "@", "sysroot", "ar=", "codegen-backend"]
                .iter()
                .any(|part| flags.contains(part))
        })
    {
        // Lints, features of the processor and the like.
        return Influence::None;
    }
    // A dot is part of the name of a class, whose module Python imports.
    if name == "PYTHONWARNINGS" && crate::word::known(value).is_some_and(|filters| !filters.contains('.')) {
        return Influence::None;
    }
    // To all of these it means that there is no pager.
    let shown = crate::word::known(value).is_some_and(|pager| matches!(pager.as_ref(), "" | "cat"));
    if HARMLESS.contains(&name)
        || HARMLESS_FAMILIES.iter().any(|family| name.starts_with(family))
        || shown && PAGERS.contains(&name)
    {
        Influence::None
    } else if name.starts_with("GIT_CONFIG_")
        || name.starts_with("BASH_FUNC_")
        || matches!(name, "BASH_ALIASES" | "BASH_CMDS")
    {
        Influence::Configuration
    } else if COMMANDS.contains(&name)
        || OTHER_COMMANDS.contains(&name)
        || COMMAND_ENDINGS.iter().any(|end| name.ends_with(end))
        || is_command_of_tool(name)
        || ["HOST_", "TARGET_", "CC_", "CXX_", "AR_"]
            .iter()
            .any(|start| name.starts_with(start))
    {
        Influence::Command
    } else if matches!(name, "PS0" | "PS1" | "PS2" | "PS4") {
        Influence::Prompt
    } else if name == "MAKEFLAGS" && crate::word::known(value).is_some_and(|flags| is_of_jobs(&flags)) {
        Influence::None
    } else if CODE.contains(&name) || name == "MAKEFLAGS" {
        Influence::Code
    } else if name == "PATH" {
        Influence::Path
    } else if LOADING.contains(&name) || LOADING_FAMILIES.iter().any(|family| name.starts_with(family)) {
        Influence::Loading
    } else if SEARCH.contains(&name) || SEARCH_FAMILIES.iter().any(|family| name.starts_with(family)) {
        Influence::Search
    } else {
        Influence::Unknown
    }
}

/// Directories of programs that only root can write.
const OF_THE_SYSTEM: &[&str] = &[
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/sbin",
    "/usr/local/bin",
    "/usr/local/go/bin",
    "/usr/local/sbin",
];

/// Whether an assignment to `PATH`, as it is written, adds directories of the system alone to what it was. Whatever
/// else gave it a value is judged where it did.
pub(crate) fn searches_the_system(assignment: &str) -> bool {
    let Some(value) = assignment.strip_prefix("PATH=") else {
        return false;
    };
    let inner = value.strip_prefix('"').and_then(|value| value.strip_suffix('"'));
    let mut parts = inner.unwrap_or(value).split(':');
    parts.all(|part| matches!(part, "$PATH" | "${PATH}") || OF_THE_SYSTEM.contains(&part))
}

/// Whether bash evaluates what is assigned to this variable as arithmetic, whoever assigns it.
pub(crate) fn is_integer(name: &str) -> bool {
    matches!(
        name,
        "RANDOM"
            | "SRANDOM"
            | "OPTIND"
            | "HISTCMD"
            | "SECONDS"
            | "LINENO"
            | "BASHPID"
            | "EPOCHSECONDS"
            | "EPOCHREALTIME"
            | "BASH_SUBSHELL"
            | "FUNCNEST"
    )
}

/// Whether bash refuses to assign this variable.
pub(crate) fn is_readonly(name: &str) -> bool {
    matches!(
        name,
        "BASHOPTS" | "BASH_VERSINFO" | "EUID" | "PPID" | "SHELLOPTS" | "UID"
    )
}

/// Whether the shell may give this variable a value by itself, or by a builtin that does not name it.
pub(crate) fn may_be_set_by_the_shell(name: &str) -> bool {
    set_by_the_shell(name)
        || name.starts_with("BASH")
        || name.starts_with("COMP")
        || matches!(name, "OPTIND" | "PWD" | "OLDPWD" | "REPLY" | "COPROC")
}

/// Whether bash by itself gives this variable values that can be any text: words of commands, what matched, names.
pub(crate) fn set_by_the_shell(name: &str) -> bool {
    matches!(
        name,
        "_" | "BASH_ALIASES"
            | "BASH_ARGV"
            | "BASH_ARGV0"
            | "BASH_CMDS"
            | "BASH_COMMAND"
            | "BASH_EXECUTION_STRING"
            | "BASH_REMATCH"
            | "BASH_SOURCE"
            | "COMP_KEY"
            | "COMP_LINE"
            | "COMP_TYPE"
            | "COMP_WORDBREAKS"
            | "COMP_WORDS"
            | "COMPREPLY"
            | "DIRSTACK"
            | "FUNCNAME"
            | "MAPFILE"
            | "OPTARG"
            | "READLINE_LINE"
    )
}

/// What a variable can be where the text has perhaps not assigned it yet.
pub(crate) fn as_found(name: &str) -> Option<Vec<Atom>> {
    match name {
        // Arguments of the shell, or of another call of a function, which may have fewer.
        _ if name.starts_with(|first: char| first.is_ascii_digit()) => Some(Vec::new()),
        _ if name.starts_with(|first: char| !first.is_alphabetic() && first != '_') => None,
        // What environments set, and what shells set by themselves, is in capitals.
        _ if name.contains(|letter: char| letter.is_lowercase()) => Some(Vec::new()),
        _ => Some(ambient(name)),
    }
}

/// What is known of a variable that the text does not assign: those of the shell itself, and the
/// few that every environment sets.
pub(crate) fn ambient(name: &str) -> Vec<Atom> {
    match name {
        // Relative to where the command stands, which is what the present directory is.
        "PWD" => vec![Atom::Here],
        "HOME" => vec![Atom::Text(HOME.to_owned())],
        // Where it is not set, it is nothing.
        "TMPDIR" => vec![Atom::OneOf(vec![vec![Atom::Text("/tmp".to_owned())], Vec::new()])],
        "BASHPID" | "COLUMNS" | "EPOCHSECONDS" | "EUID" | "LINENO" | "LINES" | "OPTIND" | "PPID" | "RANDOM"
        | "SECONDS" | "SHLVL" | "SRANDOM" | "UID" | "PIPESTATUS" | "BASH_SUBSHELL" | "HISTCMD" => {
            vec![Atom::Hidden(Hidden::Number)]
        }
        "BASH_VERSION" | "EPOCHREALTIME" | "HOSTNAME" | "HOSTTYPE" | "LANG" | "LOGNAME" | "MACHTYPE" | "OSTYPE"
        | "SHELL" | "TERM" | "USER" => vec![Atom::Hidden(Hidden::Name)],
        "OLDPWD" => vec![Atom::Hidden(Hidden::Path)],
        _ => vec![Atom::Hidden(Hidden::Anything)],
    }
}
