//! Settings of git that are given on its line or written with `git config`.

use super::start::launch;
use crate::reader::{Reader, Run};
use crate::reading::{Action, Doubt, Via};
use crate::screen::Unreadable;
use crate::word::{Atom, Word};

/// Keys of git's configuration that only change how its output looks, or how it counts.
const HARMLESS_KEYS: &[&str] = &[
    "advice.",
    "blame.blankboundary",
    "blame.coloring",
    "blame.date",
    "blame.markignoredlines",
    "blame.markunblamablelines",
    "blame.showemail",
    "blame.showroot",
    "color.",
    "column.",
    "core.abbrev",
    "core.autocrlf",
    "core.bare",
    "core.checkstat",
    "core.filemode",
    "core.ignorecase",
    "core.logallrefupdates",
    "core.precomposeunicode",
    "core.preloadindex",
    "core.quotepath",
    "core.safecrlf",
    "core.symlinks",
    "core.trustctime",
    "core.whitespace",
    "diff.algorithm",
    "diff.color",
    "diff.context",
    "diff.ignoresubmodules",
    "diff.interhunkcontext",
    "diff.mnemonicprefix",
    "diff.noprefix",
    "diff.relative",
    "diff.renamelimit",
    "diff.renames",
    "diff.statgraphwidth",
    "diff.submodule",
    "diff.suppressblankempty",
    "diff.wordregex",
    "grep.column",
    "grep.extendedregexp",
    "grep.fullname",
    "grep.linenumber",
    "grep.patterntype",
    "i18n.",
    "log.abbrevcommit",
    "log.date",
    "log.decorate",
    "log.follow",
    "log.showroot",
    "merge.conflictstyle",
    "pretty.",
    "safe.directory",
    "status.",
    "tag.sort",
    "branch.sort",
    "user.email",
    "user.name",
    "versionsort.",
    "init.defaultbranch",
    "pull.rebase",
    "push.default",
    "commit.gpgsign",
    "tag.gpgsign",
    "fetch.prune",
    "rebase.autostash",
    "gc.auto",
    "maintenance.auto",
    "format.pretty",
    "core.commentchar",
    "http.lowspeedlimit",
    "http.lowspeedtime",
    "protocol.version",
];

/// Keys whose value is a command.
const COMMAND_KEYS: &[&str] = &[
    "core.pager",
    "core.editor",
    "core.sshcommand",
    "core.askpass",
    "sequence.editor",
    "diff.external",
    "pager.",
    "credential.helper",
];

/// A format of git's: `%G?` and its like have gpg look at signatures.
pub(super) fn git_format(word: &Word, run: &Run, reader: &mut Reader<'_>) {
    let of_gpg = |text: &str| {
        let mut parts = text
            .split('%')
            .skip(1)
            .map(|part| part.trim_start_matches(['+', '-', ' ']));
        parts.any(|part| part.starts_with('G')) || text.contains("signature")
    };
    if word.known().is_none_or(|text| of_gpg(&text)) {
        starts_gpg(word, run, reader);
    }
}

fn starts_gpg(word: &Word, run: &Run, reader: &mut Reader<'_>) {
    let because = "this has git start gpg, which makes a key ring in the home where there is none".to_owned();
    let (action, object) = (Action::Doubt(Doubt::Argument, because), word.shown());
    reader.effect(action, object, word.span, Some(run.index), Via::Operand);
}

/// The editor of a rebase's steps, some of which git runs: an `exec` that it writes there is a command.
///
/// What only has git do something else with commits passes, as `sed -i 's/^pick/edit/'` does.
pub(crate) fn editor_of_steps(editor: &Word, reader: &mut Reader<'_>) {
    let known = editor.known();
    let plain = known
        .as_deref()
        .is_some_and(|text| match text.trim().split_once(char::is_whitespace) {
            None => matches!(text.trim(), "" | ":" | "true" | "cat" | "vi" | "vim" | "nano" | "emacs"),
            Some(("sed" | "gsed", rest)) => changes_verbs(rest),
            Some(_) => false,
        });
    if !plain {
        let because = "what it writes into the steps of a rebase can be an `exec`, which git runs";
        reader.doubt(Doubt::Launch, editor.shown(), because, editor.span, None);
    }
}

/// Whether these arguments of `sed` put one of git's verbs for commits in the place of another.
fn changes_verbs(arguments: &str) -> bool {
    const VERBS: [&str; 13] = [
        "p", "pick", "r", "reword", "e", "edit", "s", "squash", "f", "fixup", "d", "drop", "",
    ];
    let mut script = arguments.trim();
    while let Some((option, rest)) = script.split_once(char::is_whitespace)
        && matches!(option, "-i" | "-i.bak" | "-E" | "-e" | "-ie" | "-r")
    {
        script = rest.trim();
    }
    let script = script.trim_matches(['\'', '"']);
    script.split(';').all(|one| {
        let command = one
            .trim()
            .trim_start_matches(|letter: char| letter.is_ascii_digit() || matches!(letter, ',' | '$'));
        let Some(parts) = command
            .strip_prefix("s/")
            .map(|rest| rest.split('/').collect::<Vec<_>>())
        else {
            return false;
        };
        let [from, to, flags] = parts.as_slice() else {
            return false;
        };
        let from = from.trim_start_matches('^').trim_end_matches("\\b").trim();
        VERBS.contains(&from) && VERBS.contains(&to.trim()) && !to.trim().is_empty() && matches!(*flags, "" | "g")
    })
}

/// `git -c KEY=VALUE`.
pub(super) fn git_config(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let by = Some(run.index);
    let (key, value) = match word.prefix().find('=') {
        Some(at) => (word.prefix()[..at].to_ascii_lowercase(), Some(word.after(at + 1))),
        None => (
            word.known().map(|text| text.to_ascii_lowercase()).unwrap_or_default(),
            None,
        ),
    };
    // Keys that are harmless with values that switch something off, or name what only prints.
    let value_text = value
        .as_ref()
        .and_then(|value| value.known().map(|text| text.to_ascii_lowercase()));
    // Where a program or a directory is named, a word like `no` is one, too: nothing switches off.
    let off = matches!(value_text.as_deref(), Some("false" | "0" | "no" | "off" | ""));
    let harmless = match key.as_str() {
        "core.fsmonitor" | "core.untrackedcache" => off,
        "core.pager" => matches!(value_text.as_deref(), Some("" | "cat")),
        "diff.external" | "credential.helper" => value_text.as_deref() == Some(""),
        "core.hookspath" => matches!(value_text.as_deref(), Some("" | "/dev/null")),
        key if key.starts_with("filter.") => value_text.as_deref() == Some("") || off && key.ends_with(".required"),
        _ => false,
    };
    if harmless {
        return Ok(());
    }
    let matches = |keys: &[&str]| {
        keys.iter().any(|known| {
            if known.ends_with('.') {
                key.starts_with(known)
            } else {
                key == *known
            }
        })
    };
    if let ("log.showsignature", Some(value)) = (&*key, &value) {
        if !off {
            starts_gpg(value, run, reader);
        }
        return Ok(());
    }
    if let Some(value) = &value {
        let rebases = || run.args.iter().any(|word| word.known().as_deref() == Some("rebase"));
        match key.as_str() {
            "format.pretty" => git_format(value, run, reader),
            "sequence.editor" => editor_of_steps(value, reader),
            "core.editor" if rebases() => editor_of_steps(value, reader),
            key if key.starts_with("pretty.") => git_format(value, run, reader),
            _ => {}
        }
    }
    if matches(HARMLESS_KEYS) {
        return Ok(());
    }
    if let Some(value) = &value {
        if key.starts_with("alias.") {
            if value.prefix().starts_with('!') {
                return reader.shell_text(&value.after(1), by);
            }
            let mut argv = vec![Word::text("git", word.span)];
            if let Some(text) = value.known() {
                argv.extend(text.split_whitespace().map(|part| Word::text(part, word.span)));
                return launch(&argv, run, reader);
            }
        } else if matches(COMMAND_KEYS) {
            return reader.shell_text(
                &if value.prefix().starts_with('!') {
                    value.after(1)
                } else {
                    value.clone()
                },
                by,
            );
        }
    }
    let because = "this setting of git can make it run something".to_owned();
    reader.doubt_option(Doubt::Launch, word, because, by);
    Ok(())
}

/// Further keys whose value is a command, by what they begin and end with: the middle is a name.
const NAMED_COMMAND_KEYS: &[(&str, &str)] = &[
    ("browser.", ".cmd"),
    ("core.alternaterefscommand", ""),
    ("core.fsmonitor", ""),
    ("core.gitproxy", ""),
    ("credential.", ".helper"),
    ("diff.", ".command"),
    ("diff.", ".textconv"),
    ("difftool.", ".cmd"),
    ("filter.", ".clean"),
    ("filter.", ".process"),
    ("filter.", ".smudge"),
    ("gpg.", "program"),
    ("gpg.ssh.defaultkeycommand", ""),
    ("guitool.", ".cmd"),
    ("imap.tunnel", ""),
    ("instaweb.httpd", ""),
    ("interactive.difffilter", ""),
    ("man.", ".cmd"),
    ("merge.", ".driver"),
    ("mergetool.", ".cmd"),
    ("remote.", ".receivepack"),
    ("remote.", ".uploadpack"),
    ("sendemail.", "cmd"),
    ("sendemail.", "smtpserver"),
    ("submodule.", ".update"),
    ("tar.", ".command"),
    ("trailer.", ".cmd"),
    ("trailer.", ".command"),
    ("uploadpack.packobjectshook", ""),
];

/// Keys that bring further settings, hooks or ways to a repository, which run programs.
const LOADING_KEYS: &[(&str, &str)] = &[
    ("core.hookspath", ""),
    ("include.path", ""),
    ("includeif.", ".path"),
    ("protocol.ext.allow", ""),
    ("remote.", ".vcs"),
    ("url.ext::", ""),
];

/// `git config KEY VALUE`, where the value is a command.
pub(super) fn git_setting(key: &str, value: &Word, run: &Run, reader: &mut Reader<'_>) -> Result<(), Unreadable> {
    let key = key.to_ascii_lowercase();
    let command = key.starts_with("alias.")
        || COMMAND_KEYS
            .iter()
            .any(|known| key == *known || known.ends_with('.') && key.starts_with(known));
    let one_of = |keys: &[(&str, &str)]| {
        keys.iter().any(|(start, end)| match end.is_empty() {
            true => key == *start || start.ends_with("::") && key.starts_with(start),
            false => key.starts_with(start) && key.ends_with(end),
        })
    };
    if one_of(NAMED_COMMAND_KEYS) {
        let switch = value
            .known()
            .is_some_and(|text| matches!(&*text, "true" | "false" | "checkout" | "rebase" | "merge" | "none"));
        let text = match value.prefix().strip_prefix('!') {
            Some(_) => value.after(1),
            None => value.clone(),
        };
        // The address of a mail server is none of its programs.
        let address = key.ends_with("smtpserver") && !value.prefix().starts_with('/');
        return match switch || address {
            true => Ok(()),
            false => reader.shell_text(&text, Some(run.index)),
        };
    }
    if !command && !one_of(LOADING_KEYS) {
        return Ok(());
    }
    let mut atoms = vec![Atom::Text(format!("{key}="))];
    atoms.extend(value.atoms.iter().cloned());
    let word = Word {
        atoms: crate::word::joined(atoms).into(),
        ..value.clone()
    };
    git_config(&word, run, reader)
}
