//! Removals, moves and settings that would stop half-way at something protected.

use shieling::outcome::{Layer, Outcome, Status};

use crate::support::{Checked, Field, check};

/// A repository, another one and a linked tree in it, and a branch beside the one that is checked out.
const REPOSITORIES: &str = "git init -q -b main . && git commit -q --allow-empty -m a && git branch old && \
    git worktree add -q wt && git init -q -b main nested && git -C nested commit -q --allow-empty -m n && \
    echo n > nested/n && echo w > wt/w && mkdir plain && echo p > plain/p";

/// Each text is denied, and nothing has changed.
pub(super) fn before_it_begins(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORIES)?.start()?;
    let seen = "find . -not -path './.git/*' | sort; git for-each-ref; git worktree list; find nested/.git wt | sort";
    let before = place.host(seen)?;
    for text in [
        "rm -rf nested",
        "rm -r nested/",
        "rm -rf ./n*",
        "rm -rf plain *",
        "rm -rf .",
        "rm -rf .git",
        "cd plain && rm -rf ../nested",
        "d=nested; rm -rf \"$d\"",
        "mv nested /tmp/x",
        "mv -t /tmp nested",
        "git worktree remove wt",
        "git worktree remove --force wt",
        "git worktree move wt elsewhere",
        "git branch -m old new",
        "git branch -M old new",
        "git branch -c old new",
        "git -C nested branch -m main new",
        "git -C wt branch -m old new",
        "git -c a.b=c submodule add ./nested sub",
    ] {
        let outcome = place.answer(text)?;
        let denial = outcome.denial.as_ref();
        check(
            outcome.status == Status::Denied && denial.is_some_and(|denial| denial.layer == Layer::Environment),
            || format!("`{text}` ended as {:?}: {}", outcome.status, outcome.stderr),
        )?;
        let told = denial.iter().flat_map(|denial| &denial.reasons).all(|reason| {
            reason.because.contains("protected")
                && reason
                    .instead
                    .as_ref()
                    .is_some_and(|instead| instead.contains("--open-protected"))
        });
        check(told, || format!("`{text}`: {denial:?}"))?;
    }
    let after = place.host(seen)?;
    check(before == after, || format!("it was {before} and is {after}"))?;
    for text in [
        "rm -rf plain && mkdir plain && mv plain other && rm -r other",
        "rm -f nested/n wt/w && ln -s nested link && rm -rf link && test -e nested/.git/HEAD",
        "mkdir -p a/nested && cd a && rm -rf nested && cd .. && rm -rf a",
        "cd /tmp && mkdir nested && rm -rf nested",
        "git init -q -b main own && cd own && git commit -q --allow-empty -m o && git branch -m new && \
         git worktree add -q ../side && git worktree remove ../side && cd .. && mv own mine && rm -rf mine",
        "git branch -D old",
    ] {
        place.works(text)?;
    }
    Ok(())
}

pub(super) fn by_a_script(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORIES)?.start()?;
    // Nor is it followed when a text for another shell runs, such as that of a trap.
    let outcome = place.attempt("bash -c 'rm -rf nested 2>/dev/null'")?;
    let told = |outcome: &Outcome| {
        let mut told = outcome.hints.iter().map(|hint| hint.because.as_str());
        told.any(|because| because.contains("`nested/.git`") && because.contains("no more"))
    };
    check(told(&outcome), || format!("it is not told: {:?}", outcome.hints))?;
    let outcome = place.attempt("true")?;
    check(!told(&outcome), || "it is told twice".to_owned())?;
    for (text, path) in [
        ("git config a.b c 2>&1 | tail -1", ".git/config"),
        ("git init -q --shared new", "/new/.git/hooks/"),
        ("mkdir d; chmod g+s d", "d"),
    ] {
        let outcome = place.attempt(text)?;
        let told = outcome.hints.iter().any(|hint| {
            hint.path
                .as_ref()
                .is_some_and(|named| named.to_string_lossy().ends_with(path))
        });
        check(told, || format!("`{text}`: {:?}", outcome.hints))?;
    }
    Ok(())
}
