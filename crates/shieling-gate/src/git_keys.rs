//! Which of git's settings run code, by key and value: a table, with examples that the tests judge.
//!
//! Rows are tried in order, and the first whose key fits decides. A setting that no row names is held back: a later git may
//! run code by it.

use std::path::{Component, Path};

use crate::settings::Setting;
use crate::text::{is_plain_name, shown};

/// What is asked of the value of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Value {
    /// Nothing: git runs nothing by it.
    Any,
    /// That it is true or false, or is left out.
    Bool,
    /// That it is one of these.
    One(&'static [&'static str]),
    /// That it names no file: a word of letters, digits, `-`, `_` and `.`.
    Word,
    /// That it is the address of a repository which git reaches by itself.
    Address,
    /// That it names such addresses, with blanks between them.
    Addresses,
    /// That its subsection is such an address.
    AddressBefore,
    /// That it is a path in the workspace, relative to the git directory.
    InTree,
    /// That it is a file in the workspace, relative to the top of a working tree.
    File,
    /// That it is a command of git's own without options that run something.
    Alias,
    /// That it holds no option that names a strategy or a program.
    MergeOptions,
    /// That it does not begin with `!`.
    NoCommand,
    /// Nothing lets it pass.
    Never,
}

/// One row: keys as `section.key`, or `section.*.key` with a subsection; a key `*` is any.
struct Row {
    keys: &'static [&'static str],
    value: Value,
    /// What git does by it.
    does: &'static str,
}

const fn row(keys: &'static [&'static str], value: Value, does: &'static str) -> Row {
    Row { keys, value, does }
}

const RUNS: &str = "git runs its value as a program";

/// Programs of the system without options, which nothing in the workspace can stand for: `PATH` leads out of it.
const PAGERS: &[&str] = &[
    "",
    "cat",
    "less",
    "more",
    "true",
    "false",
    "less -R",
    "less -F",
    "less -FX",
    "less -FRX",
];
const EDITORS: &[&str] = &[
    "",
    ":",
    "true",
    "vi",
    "vim",
    "nvim",
    "nano",
    "emacs",
    "ed",
    "pico",
    "joe",
    "micro",
    "hx",
    "kak",
    "vim -f",
    "gvim -f",
    "emacs -nw",
    "emacsclient -t",
    "emacsclient -nw",
    "code --wait",
    "code -w",
    "code -nw",
    "code -n -w",
    "code --new-window --wait",
    "codium --wait",
    "codium -w",
    "cursor --wait",
    "cursor -w",
    "windsurf --wait",
    "zed --wait",
    "zed -w",
    "subl -w",
    "subl -n -w",
    "subl --wait",
    "mate -w",
    "atom --wait",
    "idea --wait",
];
const LARGE_FILES: &[&str] = &[
    "git-lfs clean -- %f",
    "git-lfs smudge -- %f",
    "git-lfs smudge --skip -- %f",
    "git-lfs filter-process",
    "git-lfs filter-process --skip",
];
const STRATEGIES: &[&str] = &["ort", "recursive", "resolve", "octopus", "ours", "subtree"];

const TABLE: &[Row] = &[
    // Of `core`, what runs something, and then what is known to run nothing.
    row(&["core.fsmonitor"], Value::Bool, RUNS),
    row(
        &["core.hookspath"],
        Value::One(&["/dev/null"]),
        "git runs hooks from that directory",
    ),
    row(&["core.pager"], Value::One(PAGERS), RUNS),
    row(&["core.editor", "sequence.editor"], Value::One(EDITORS), RUNS),
    row(
        &[
            "core.sshcommand",
            "core.askpass",
            "core.gitproxy",
            "core.alternaterefscommand",
        ],
        Value::Never,
        RUNS,
    ),
    row(
        &["core.worktree"],
        Value::InTree,
        "git takes that directory for the working tree, and writes to it",
    ),
    row(
        &[
            "core.repositoryformatversion",
            "core.filemode",
            "core.bare",
            "core.logallrefupdates",
            "core.ignorecase",
            "core.precomposeunicode",
            "core.symlinks",
            "core.autocrlf",
            "core.eol",
            "core.safecrlf",
            "core.whitespace",
            "core.quotepath",
            "core.abbrev",
            "core.compression",
            "core.loosecompression",
            "core.bigfilethreshold",
            "core.packedgitwindowsize",
            "core.packedgitlimit",
            "core.deltabasecachelimit",
            "core.sharedrepository",
            "core.checkstat",
            "core.trustctime",
            "core.untrackedcache",
            "core.splitindex",
            "core.preloadindex",
            "core.fscache",
            "core.longpaths",
            "core.protecthfs",
            "core.protectntfs",
            "core.hidedotfiles",
            "core.sparsecheckout",
            "core.sparsecheckoutcone",
            "core.commentchar",
            "core.commentstring",
            "core.notesref",
            "core.createobject",
            "core.fsync",
            "core.fsyncmethod",
            "core.fsyncobjectfiles",
            "core.multipackindex",
            "core.commitgraph",
            "core.usereplacerefs",
            "core.maxtreedepth",
            "core.checkroundtripencoding",
            "core.warnambiguousrefs",
            "core.disambiguate",
            "core.packedrefstimeout",
            "core.filesreflocktimeout",
            "core.attributesfile",
            "core.excludesfile",
            "core.alternaterefsprefixes",
            "core.lockfilepid",
        ],
        Value::Any,
        "",
    ),
    // Who, where to, and how.
    row(
        &[
            "user.name",
            "user.email",
            "user.signingkey",
            "user.useconfigonly",
            "author.name",
            "author.email",
            "committer.name",
            "committer.email",
        ],
        Value::Any,
        "",
    ),
    row(
        &["init.templatedir"],
        Value::Never,
        "git copies hooks from that directory",
    ),
    row(&["init.*"], Value::Any, ""),
    row(
        &["branch.*.remote", "branch.*.pushremote", "remote.pushdefault"],
        Value::Address,
        "git runs a program to reach it",
    ),
    row(
        &["branch.*.mergeoptions"],
        Value::MergeOptions,
        "git runs the strategy that it names",
    ),
    row(&["branch.*", "branch.*.*"], Value::Any, ""),
    row(
        &["remotes.*"],
        Value::Addresses,
        "git runs programs to reach what it names",
    ),
    row(
        &["extensions.partialclone"],
        Value::Address,
        "git runs a program to reach it",
    ),
    row(
        &["extensions.refstorage"],
        Value::Word,
        "git keeps references in the place that it names",
    ),
    row(
        &["rebase.instructionformat"],
        Value::Never,
        "git executes lines of it in a rebase",
    ),
    row(&["mergetool.vimdiff.layout", "mergetool.*.layout"], Value::Word, RUNS),
    row(
        &["remote.*.url", "remote.*.pushurl", "remote.*.lfsurl"],
        Value::Address,
        "git runs a program to reach it",
    ),
    row(
        &[
            "remote.*.fetch",
            "remote.*.push",
            "remote.*.tagopt",
            "remote.*.prune",
            "remote.*.prunetags",
            "remote.*.skipdefaultupdate",
            "remote.*.skipfetchall",
            "remote.*.mirror",
            "remote.*.promisor",
            "remote.*.partialclonefilter",
            "remote.*.followremotehead",
            "remote.*.gh-resolved",
            "remote.*.serveroption",
            "remote.*.proxyauthmethod",
        ],
        Value::Any,
        "",
    ),
    row(
        &["remote.*.uploadpack", "remote.*.receivepack", "remote.*.vcs"],
        Value::Never,
        RUNS,
    ),
    row(
        &["remote.*.proxy"],
        Value::Never,
        "git sends everything through that proxy",
    ),
    row(
        &["url.*.insteadof", "url.*.pushinsteadof"],
        Value::AddressBefore,
        "git runs a program to reach that address",
    ),
    row(&["submodule.*.url"], Value::Address, "git runs a program to reach it"),
    row(&["submodule.*.update"], Value::NoCommand, RUNS),
    row(
        &["submodule.*.gitdir"],
        Value::File,
        "git takes the submodule's settings from that directory",
    ),
    row(&["submodule.*", "submodule.*.*"], Value::Any, ""),
    // Commands of the user.
    row(&["alias.*"], Value::Alias, "git runs it when the user types that name"),
    row(&["pager.*"], Value::Bool, RUNS),
    row(
        &["diff.external", "diff.*.command", "diff.*.textconv"],
        Value::Never,
        RUNS,
    ),
    row(
        &["diff.tool", "diff.guitool", "merge.tool", "merge.guitool"],
        Value::Word,
        RUNS,
    ),
    row(&["diff.*", "diff.*.*"], Value::Any, ""),
    row(&["merge.*.driver"], Value::Never, RUNS),
    row(&["merge.*", "merge.*.*"], Value::Any, ""),
    row(
        &[
            "mergetool.*.cmd",
            "mergetool.*.path",
            "difftool.*.cmd",
            "difftool.*.path",
        ],
        Value::Never,
        RUNS,
    ),
    row(
        &["mergetool.*", "mergetool.*.*", "difftool.*", "difftool.*.*"],
        Value::Any,
        "",
    ),
    row(
        &["filter.*.clean", "filter.*.smudge", "filter.*.process"],
        Value::One(LARGE_FILES),
        RUNS,
    ),
    row(&["filter.*.required"], Value::Any, ""),
    row(
        &["pull.twohead", "pull.octopus"],
        Value::One(STRATEGIES),
        "git runs the strategy that it names",
    ),
    row(&["pull.*", "push.*"], Value::Any, ""),
    row(
        &["fetch.bundleuri"],
        Value::Never,
        "git fetches from that address before any other",
    ),
    row(&["fetch.*"], Value::Any, ""),
    row(&["gpg.format"], Value::One(&["openpgp", "x509", "ssh"]), RUNS),
    row(
        &["gpg.*", "gpg.*.*"],
        Value::Never,
        "git runs programs by it, or trusts signatures by it",
    ),
    row(&["commit.template"], Value::File, "git reads that file into messages"),
    row(&["commit.*", "tag.*"], Value::Any, ""),
    row(&["interactive.difffilter"], Value::Never, RUNS),
    row(
        &["trailer.*.command", "trailer.*.cmd", "tar.*.command"],
        Value::Never,
        RUNS,
    ),
    row(&["gc.repackfilterto"], Value::InTree, "git writes to that directory"),
    row(
        &["gc.recentobjectshook", "uploadpack.packobjectshook"],
        Value::Never,
        RUNS,
    ),
    row(&["hook.*", "hook.*.*"], Value::Never, "git runs hooks by it"),
    row(
        &["credential.*", "credential.*.*"],
        Value::Never,
        "git runs a helper by it, or gives credentials away",
    ),
    row(
        &["include.*", "includeif.*.*"],
        Value::Never,
        "git reads further settings from that file",
    ),
    row(
        &["format.signaturefile"],
        Value::File,
        "git reads that file into messages",
    ),
    row(
        &["format.outputdirectory"],
        Value::InTree,
        "git writes to that directory",
    ),
    row(
        &[
            "browser.*",
            "browser.*.*",
            "man.*",
            "man.*.*",
            "web.browser",
            "instaweb.*",
            "guitool.*.*",
            "imap.tunnel",
            "safe.*",
        ],
        Value::Never,
        "git runs programs by it",
    ),
    row(
        &["help.browser", "help.format"],
        Value::Never,
        "git runs programs by it",
    ),
    row(&["protocol.version"], Value::Any, ""),
    row(
        &[
            "protocol.https.allow",
            "protocol.http.allow",
            "protocol.ssh.allow",
            "protocol.git.allow",
            "protocol.file.allow",
        ],
        Value::Any,
        "",
    ),
    row(
        &["protocol.allow", "protocol.*.allow"],
        Value::One(&["never"]),
        "git runs the helper of that transport",
    ),
    row(
        &["http.sslverify"],
        Value::One(&["true"]),
        "git trusts every server without it",
    ),
    row(
        &[
            "http.postbuffer",
            "http.version",
            "http.lowspeedlimit",
            "http.lowspeedtime",
            "http.maxrequests",
            "http.followredirects",
            "http.useragent",
        ],
        Value::Any,
        "",
    ),
    row(&["lfs.url", "lfs.pushurl"], Value::Address, "git-lfs reaches it"),
    row(
        &[
            "lfs.repositoryformatversion",
            "lfs.*.access",
            "lfs.*.locksverify",
            "lfs.fetchinclude",
            "lfs.fetchexclude",
        ],
        Value::Any,
        "",
    ),
    // Sections in which nothing runs anything, in git 2.51.
    row(
        &[
            "add.*",
            "advice.*",
            "am.*",
            "apply.*",
            "attr.*",
            "blame.*",
            "checkout.*",
            "clean.*",
            "clone.*",
            "color.*",
            "color.*.*",
            "column.*",
            "commitgraph.*",
            "completion.*",
            "extensions.*",
            "feature.*",
            "format.*",
            "fsck.*",
            "gc.*",
            "gc.*.*",
            "grep.*",
            "help.autocorrect",
            "i18n.*",
            "index.*",
            "interactive.singlekey",
            "log.*",
            "mailinfo.*",
            "mailmap.*",
            "maintenance.*",
            "maintenance.*.*",
            "notes.*",
            "notes.*.*",
            "pack.*",
            "pretty.*",
            "promisor.*",
            "rebase.*",
            "receive.*",
            "reflog.*",
            "repack.*",
            "rerere.*",
            "revert.*",
            "showbranch.*",
            "sparse.*",
            "splitindex.*",
            "ssh.variant",
            "stash.*",
            "status.*",
            "tar.umask",
            "trailer.*",
            "trailer.*.*",
            "transfer.*",
            "uploadarchive.*",
            "uploadpack.*",
            "versionsort.*",
            "worktree.*",
            "gitflow.branch.*",
            "gitflow.prefix.*",
        ],
        Value::Any,
        "",
    ),
];

/// Subcommands that an alias may stand for, without options that run something.
const COMMANDS: &[&str] = &[
    "add",
    "blame",
    "branch",
    "checkout",
    "cherry-pick",
    "clean",
    "commit",
    "describe",
    "diff",
    "fetch",
    "log",
    "ls-files",
    "merge",
    "merge-base",
    "mv",
    "pull",
    "push",
    "rebase",
    "reflog",
    "remote",
    "reset",
    "restore",
    "rev-list",
    "rev-parse",
    "rm",
    "shortlog",
    "show",
    "stash",
    "status",
    "switch",
    "tag",
    "worktree",
];

/// Subcommands that reach another repository, which is named first.
const REACHING: &[&str] = &["fetch", "pull", "push"];

/// Options of these without a value of their own in a further word.
const REACHING_OPTIONS: &[&str] = &[
    "-4",
    "-6",
    "-a",
    "-d",
    "-f",
    "-n",
    "-p",
    "-P",
    "-q",
    "-r",
    "-t",
    "-u",
    "-v",
    "--all",
    "--append",
    "--atomic",
    "--autostash",
    "--delete",
    "--dry-run",
    "--ff",
    "--ff-only",
    "--follow-tags",
    "--force",
    "--force-if-includes",
    "--force-with-lease",
    "--multiple",
    "--no-autostash",
    "--no-commit",
    "--no-edit",
    "--no-ff",
    "--no-rebase",
    "--no-recurse-submodules",
    "--no-tags",
    "--no-verify",
    "--porcelain",
    "--progress",
    "--prune",
    "--prune-tags",
    "--quiet",
    "--rebase",
    "--rebase=interactive",
    "--rebase=merges",
    "--recurse-submodules",
    "--set-upstream",
    "--squash",
    "--stat",
    "--tags",
    "--unshallow",
    "--verbose",
];

/// What an alias may do with subcommands that can name other places: the words after them.
const LOOKING: &[(&str, &[&str])] = &[
    ("remote", &["-v", "--verbose", "show", "get-url", "prune"]),
    ("worktree", &["list", "prune"]),
];

/// Beginnings of options by which some subcommand runs a program or writes to a file, abbreviations included.
const OPTIONS: &[&str] = &[
    "-c", "-C", "-x", "-O", "-o", "-s", "-S", "-X", "-u", "--c", "--ex", "--op", "--ou", "--up", "--rec", "--str",
    "--te", "--gp", "--git", "--work", "--edit=", "--to",
];

/// Those of [`OPTIONS`] that mean nothing of the kind to the subcommands above.
const HARMLESS: &[&str] = &[
    "-sb",
    "-S",
    "-u",
    "--color",
    "--cached",
    "--cc",
    "--cherry",
    "--cherry-pick",
    "--cherry-mark",
    "--count",
    "--oneline",
    "--topo-order",
    "--track",
    "--contains",
    "--continue",
    "--compact-summary",
    "--combined-all-paths",
];

impl Setting {
    /// Whether git is known to run nothing by it, and to reach nothing: with this value, wherever it is set.
    pub fn runs_nothing(&self) -> bool {
        holds(self, &|_| false).is_none()
    }
}

/// Why a setting is held back; nothing if it passes. `in_tree` says whether a path, relative to the git directory,
/// lies in the workspace.
pub(crate) fn holds(setting: &Setting, in_tree: &dyn Fn(&Path) -> bool) -> Option<String> {
    let Some(row) = TABLE.iter().find(|row| row.keys.iter().any(|key| fits(key, setting))) else {
        return Some(format!("`{}`, which is not known to be harmless", shown(&setting.name)));
    };
    let value = setting.value.as_deref();
    let text = value.map(String::from_utf8_lossy).unwrap_or_default();
    let passes = match row.value {
        Value::Any => true,
        Value::Never => false,
        Value::Bool => value.is_none() || is_bool(&text),
        Value::One(values) => values.iter().any(|one| *one == text),
        Value::Word => is_plain_name(&text),
        Value::Address => is_ordinary(&text),
        Value::Addresses => text.split_whitespace().all(is_ordinary),
        Value::AddressBefore => is_whole_address(&String::from_utf8_lossy(setting.parts().1.unwrap_or_default())),
        Value::InTree => setting.paths().iter().all(|path| in_tree(path)),
        Value::File => setting.paths().iter().all(|path| {
            let is_below = path.components().all(|part| matches!(part, Component::Normal(_)));
            match is_below && !path.to_string_lossy().starts_with(['~', '%']) {
                true => true,
                false => path.is_absolute() && in_tree(path),
            }
        }),
        Value::Alias => is_harmless_alias(&text),
        Value::MergeOptions => text.split_whitespace().all(|word| {
            [
                "--no-ff",
                "--ff",
                "--ff-only",
                "--log",
                "--no-log",
                "--edit",
                "--no-edit",
                "--stat",
                "--no-stat",
            ]
            .contains(&word)
                || [
                    "--squash",
                    "--no-squash",
                    "--commit",
                    "--no-commit",
                    "--verbose",
                    "-v",
                    "--quiet",
                ]
                .contains(&word)
        }),
        Value::NoCommand => !text.trim_start().starts_with('!'),
    };
    // A remote can be called by an address.
    let (section, name, _) = setting.parts();
    let is_reached = section != b"remote" || is_ordinary(&String::from_utf8_lossy(name.unwrap_or_default()));
    let does = if is_reached {
        row.does
    } else {
        "git runs a program to reach it"
    };
    (!passes || !is_reached).then(|| format!("`{}`: {does}", shown(&setting.name)))
}

/// Whether a setting has this key.
fn fits(key: &str, setting: &Setting) -> bool {
    let (section, subsection, name) = setting.parts();
    let mut parts = key.split('.');
    let is_part = |part: Option<&str>, is: &[u8]| part.is_some_and(|part| part == "*" || part.as_bytes() == is);
    if !is_part(parts.next(), section) {
        return false;
    }
    let rest: Vec<&str> = parts.collect();
    match (rest.as_slice(), subsection) {
        ([key], None) => is_part(Some(key), name),
        ([sub, key], Some(is)) => is_part(Some(sub), is) && is_part(Some(key), name),
        _ => false,
    }
}

fn is_bool(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["", "true", "false", "yes", "no", "on", "off", "1", "0"].contains(&text.as_str())
}

/// Whether git reaches an address by a transport of its own, or it is a name or a path.
pub(crate) fn is_ordinary(address: &str) -> bool {
    if address.starts_with('-') || address.chars().any(char::is_control) {
        return false;
    }
    // `helper::address` runs `git-remote-helper`.
    let word = address.find(|char: char| !char.is_ascii_alphanumeric() && !"+-._".contains(char));
    if word.is_some_and(|end| address.get(end..).is_some_and(|rest| rest.starts_with("::")))
        || address.starts_with("::")
    {
        return false;
    }
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            ["https", "http", "ssh", "git", "file", "git+ssh", "ssh+git"].contains(&scheme)
                && !rest.starts_with('-')
                && !host.starts_with('-')
        }
        // `user@host:path`, of which the host is an argument of ssh.
        None => !address.rsplit_once('@').is_some_and(|(_, host)| host.starts_with('-')),
    }
}

/// Whether the beginning of an address is that of an ordinary one, whatever follows: `ext:` could become `ext::`.
fn is_whole_address(beginning: &str) -> bool {
    let is_named = beginning.contains("://") || beginning.contains('@');
    is_ordinary(beginning) && (is_named || beginning.starts_with(['/', '.']))
}

fn is_harmless_alias(text: &str) -> bool {
    // Quotes and escapes can put words together that are not seen here.
    if text.contains(['"', '\'', '\\']) || text.trim_start().starts_with('!') {
        return false;
    }
    let mut words = text.split_whitespace();
    let Some(command) = words.next().filter(|command| COMMANDS.contains(command)) else {
        return false;
    };
    let runs = |word: &str| {
        let is_harmless = HARMLESS.contains(&word)
            || word.starts_with("--color=")
            || word == "-s" && ["status", "log", "show", "diff", "shortlog"].contains(&command);
        // An address, of which `helper::` runs a program.
        word.contains("::") || !is_harmless && OPTIONS.iter().any(|option| word.starts_with(option))
    };
    // Short options can be put together: `-qx` is `-q -x`.
    let holds_one_that_runs = |word: &str| {
        let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
        letters.is_some_and(|letters| {
            !HARMLESS.contains(&word) && letters.chars().any(|letter| runs(&format!("-{letter}")))
        })
    };
    let words: Vec<&str> = words.collect();
    !words
        .iter()
        .any(|word| runs(word) || holds_one_that_runs(word) || names_outside(word))
        && names_own_places(command, &words)
}

/// Whether a word of an alias names, or has in it, a place outside of the directory in which it is used, or an address.
fn names_outside(word: &str) -> bool {
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let value = word.split_once('=').map_or(word, |(_, value)| value);
    let leads = |text: &str| text.starts_with(['/', '~']) || text.split('/').any(|name| name == "..");
    leads(word)
        || leads(value)
        || is_short && word.get(2..).is_some_and(leads)
        || word.contains("://")
        // An abbreviation too.
        || word.starts_with("--no-i")
}

/// Whether a subcommand that can reach another repository, or write to another directory, does not by these words.
fn names_own_places(command: &str, words: &[&str]) -> bool {
    if let Some((_, allowed)) = LOOKING.iter().find(|(looking, _)| *looking == command) {
        let first = words.first();
        let looks = match command {
            "remote" => first.is_none_or(|first| allowed.contains(first)),
            _ => first.is_some_and(|first| allowed.contains(first)),
        };
        let is_option = |word: &&str| word.starts_with('-');
        return looks && words.iter().skip(1).all(|word| is_option(word) || is_plain_name(word));
    }
    if !REACHING.contains(&command) {
        return true;
    }
    let mut others = words.iter().filter(|word| !word.starts_with('-'));
    // Without one it is what the settings name; after it follow references.
    others.next().is_none_or(|remote| is_plain_name(remote))
        && words
            .iter()
            .all(|word| !word.starts_with('-') || REACHING_OPTIONS.contains(word))
}

#[cfg(test)]
mod tests;
