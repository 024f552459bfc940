//! A row of the table of tools: names, where they mean something, and how what stands there is judged.

use crate::contents::Check;

/// Where a name means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In every directory.
    Anywhere,
    /// In every directory but those into which package managers unpack: nobody opens those as a folder of their own.
    Project,
    /// In the user's home, relative to it; and at the root, if it was there before: a link in the home may lead to it.
    StartUp,
    /// In the user's home, relative to it.
    Home,
}

/// How it is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judge {
    /// It passes.
    Pass,
    /// It is held back, whatever it says.
    Hold,
    /// It is held back when the outcome is given: what the command makes for itself is of use to it until then.
    HoldAtEnd,
    /// It is held back if something was there before.
    HoldIfThere,
    /// By what it says.
    Content(Check),
}

/// One row.
pub(crate) struct Row {
    /// The last names of a path, with `*` in a name for any characters; `**` at the end for all that lies below.
    pub(crate) names: &'static [&'static str],
    pub(crate) scope: Scope,
    pub(crate) judge: Judge,
    /// What reads it, and what it does.
    pub(crate) does: &'static str,
    /// Contents that pass, and that do not.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests"))]
    pub(crate) examples: (&'static [&'static str], &'static [&'static str]),
}

pub(crate) const NONE: (&[&str], &[&str]) = (&[], &[]);

pub(crate) const fn pass(names: &'static [&'static str]) -> Row {
    Row {
        names,
        scope: Scope::Anywhere,
        judge: Judge::Pass,
        does: "",
        examples: NONE,
    }
}

pub(crate) const fn hold(names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope: Scope::Anywhere,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

/// As [`hold`], but not in packages.
pub(crate) const fn project(names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope: Scope::Project,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

/// As [`project`], when the outcome is given.
pub(crate) const fn at_end(names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope: Scope::Project,
        judge: Judge::HoldAtEnd,
        does,
        examples: NONE,
    }
}

pub(crate) const fn content(
    names: &'static [&'static str],
    check: Check,
    does: &'static str,
    passes: &'static [&'static str],
    holds: &'static [&'static str],
) -> Row {
    Row {
        names,
        scope: Scope::Project,
        judge: Judge::Content(check),
        does,
        examples: (passes, holds),
    }
}

pub(crate) const fn home(scope: Scope, names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

pub(crate) const EDITOR: &str = "an editor runs code by it when the folder is opened";
pub(crate) const AGENT: &str = "an agent of the user runs commands, or is let run them, by it";
pub(crate) const SHELL: &str = "a shell runs code by it when the folder is entered";
pub(crate) const RUNTIME: &str = "a debugger or an interpreter runs it when it is started in that folder";
pub(crate) const PACKAGES: &str = "a package manager runs programs by it";
pub(crate) const HOOKS: &str = "a manager of hooks runs commands by it when the user commits";
pub(crate) const CONTROL: &str = "a version control system runs programs by it";
pub(crate) const OF_HOME: &str = "it runs by itself in the user's home, or speaks for the user";
