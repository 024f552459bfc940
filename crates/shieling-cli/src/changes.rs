//! `shieling changes` and `shieling undo`: change sets that wait or can be undone, for the person whose workspace it is.

use std::io;
use std::path::{Component, Path, PathBuf};

use serde_json::{Value, json};
use shieling::changes::{
    ChangeSet, ChangesError, Choice, Committed, DiffLimits, Judged, Limits, State, Store, Summary, Surroundings,
};
use shieling::outcome::ChangeTotals;

use crate::config::{Printable, files, reason};
use crate::escape;
use crate::options::ChangeSets;
use crate::state;
use crate::words::Failure;

/// The status where a set was not applied, and stays.
const WAITS: u8 = 1;

/// Lists, shows, applies or discards.
pub(crate) fn changes(options: &ChangeSets) -> Result<u8, Failure> {
    match options {
        ChangeSets::List { json } => list(*json),
        ChangeSets::Show { id, only, json } => show(id, only, *json),
        ChangeSets::Apply {
            id,
            only,
            accept_held_back,
            overwrite,
        } => apply(
            id,
            Choice {
                only: only.clone(),
                overwrite: *overwrite,
                accept_held_back: *accept_held_back,
                ..Choice::default()
            },
        ),
        ChangeSets::Discard { id } => discard(id),
    }
}

/// The sets; nothing if none was ever kept.
fn store() -> Result<Option<Store>, Failure> {
    let state = state::directory()
        .ok_or_else(|| Failure::new("there are no change sets: neither XDG_STATE_HOME nor HOME is set"))?;
    let Ok(state) = files::canonical(&state) else {
        return Ok(None);
    };
    Store::open(&state::change_sets(&state), Limits::default())
        .map(Some)
        .map_err(|error| failure(&error))
}

/// Chosen paths, relative to the workspace however they were given. Nothing is everything.
fn chosen(only: &[PathBuf], workspace: &Path) -> Vec<PathBuf> {
    let relative = |path: &PathBuf| -> PathBuf {
        let path = path.strip_prefix(workspace).unwrap_or(path);
        path.components().filter(|part| *part != Component::CurDir).collect()
    };
    let only: Vec<PathBuf> = only.iter().map(relative).collect();
    if only.iter().any(|path| path.as_os_str().is_empty()) {
        return Vec::new();
    }
    only
}

fn opened(id: &str) -> Result<(Store, ChangeSet), Failure> {
    let unknown = || ChangesError::Unknown { id: id.to_owned() };
    let store = store()?.ok_or_else(|| failure(&unknown()))?;
    let set = store.get(id).map_err(|error| failure(&error))?;
    Ok((store, set))
}

fn failure(error: &ChangesError) -> Failure {
    let failure = match error {
        ChangesError::Io { doing, path, source } => {
            Failure::new(format!("cannot {doing} `{}`: {}", Printable(path), reason(source)))
        }
        error => Failure::new(error.to_string()),
    };
    match error {
        ChangesError::Unknown { .. } => failure.with("instead", "see `shieling changes list`"),
        ChangesError::ChangedSince { paths } => {
            let paths: Vec<String> = paths.iter().map(|path| format!("`{}`", Printable(path))).collect();
            failure
                .with(
                    "because",
                    format!("undoing it would lose what is there now: {}", paths.join(", ")),
                )
                .with(
                    "instead",
                    "undo what was committed later first, or move those files away",
                )
        }
        ChangesError::Completes { because, .. } => failure.with("because", escape::line(because).to_string()).with(
            "instead",
            "undo what was committed later first, or take out what is told above",
        ),
        ChangesError::Incomplete { is_live: true, .. } => {
            failure.with("instead", "wait until they have ended, or end them")
        }
        ChangesError::Incomplete { id, is_live: false } => failure.with(
            "instead",
            format!(
                "look at what there is with `shieling changes show {id}`; `shieling changes discard {id}` removes it"
            ),
        ),
        ChangesError::HiddenUnknown { .. } => failure.with(
            "instead",
            "take what is right with `shieling changes apply ID --accept-held-back --only PATH`",
        ),
        ChangesError::Busy { .. } => failure.with("instead", "end that sandbox first"),
        _ => failure,
    }
}

/// What the gate knows when a person decides.
fn surroundings() -> Surroundings {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    Surroundings {
        home: home.filter(|home| home.is_absolute()),
        ..Surroundings::default()
    }
}

/// As [`surroundings`], with what was hidden from the commands that made a set.
fn surroundings_of(set: &ChangeSet) -> Result<Surroundings, Failure> {
    let hidden = shieling::hidden_of(set).map_err(|error| {
        Failure::new(format!("the change set `{}` cannot be judged: {error}", set.id()))
            .with("because", "paths were hidden from the commands that made it")
            .with("instead", "use the version of Shieling that made it")
    })?;
    Ok(Surroundings {
        hidden,
        ..surroundings()
    })
}

fn list(json: bool) -> Result<u8, Failure> {
    let sets = match store()? {
        Some(store) => store.list().map_err(|error| failure(&error))?,
        None => Vec::new(),
    };
    let mut text = String::new();
    for set in &sets {
        match json {
            true => text.push_str(&object(set).to_string()),
            false => text.push_str(&line(set)),
        }
        text.push('\n');
    }
    if sets.is_empty() && !json {
        crate::print::write_all(io::stderr().lock(), "no change sets\n")?;
    }
    crate::print::write_all(io::stdout().lock(), &text)?;
    Ok(0)
}

fn line(set: &Summary) -> String {
    let live = match (set.state, set.is_live) {
        (State::Incomplete, true) => ", in use: commands still work on a copy of the workspace".to_owned(),
        (State::Incomplete, false) => format!(
            ", interrupted while it was stored, cannot be applied: `shieling changes discard {}` removes it",
            set.id
        ),
        (_, true) => ", in use".to_owned(),
        (_, false) => String::new(),
    };
    let held = match set.held_back {
        0 => String::new(),
        held => format!(", {held} held back"),
    };
    let command = set
        .command
        .as_deref()
        .map_or_else(String::new, |command| format!("  {}", escape::headline(command, 60)));
    let renamed = match set.renames {
        0 => String::new(),
        renames => format!(", {renames} of them renamed"),
    };
    format!(
        "{}  {:<9} {}{renamed}{held}{live}  {}{command}",
        set.id,
        set.state.name(),
        ChangeTotals::from(set.counts),
        Printable(&set.workspace),
    )
}

fn object(set: &Summary) -> Value {
    json!({
        "id": set.id,
        "workspace": set.workspace.to_string_lossy(),
        "mode": set.mode.name(),
        "state": set.state.name(),
        "created": set.created,
        "added": set.counts.added,
        "modified": set.counts.modified,
        "deleted": set.counts.deleted,
        "renamed": set.renames,
        "held_back": set.held_back,
        "in_use": set.is_live,
        "command": set.command,
    })
}

fn show(id: &str, only: &[PathBuf], json: bool) -> Result<u8, Failure> {
    let (_store, set) = opened(id)?;
    if set.state() == State::Committed {
        return Err(Failure::new(format!("the change set `{id}` is committed"))
            .with("because", "its changes are in the workspace")
            .with(
                "instead",
                format!("`shieling undo {id}` takes them back, and then they can be shown"),
            ));
    }
    let judged = set
        .judge(&surroundings_of(&set)?, Limits::default())
        .map_err(|error| failure(&error))?;
    let mut summary = set.summary();
    summary.counts = judged.counts;
    summary.held_back = judged.held_back;
    summary.renames = judged.renames;
    let only = chosen(only, &summary.workspace);
    let diff = set
        .diff(&only, DiffLimits::default())
        .map_err(|error| failure(&error))?;
    if json {
        let mut object = object(&summary);
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| path.to_string_lossy().into_owned()).collect()
        };
        object["paths"] = json!({
            "added": paths(&judged.added),
            "modified": paths(&judged.modified),
            "deleted": paths(&judged.deleted),
            "renamed": renamed(&judged),
        });
        object["held_back"] = held_back(&judged);
        object["conflicts"] = conflicts(&judged);
        object["diff"] = diff.text.into();
        object["left_out"] = diff.left_out.into();
        crate::print::write_all(io::stdout().lock(), &format!("{object}\n"))?;
        return Ok(0);
    }
    // The diff has its control characters escaped.
    let mut text = format!("{}\n{}", line(&summary), diff.text);
    if diff.left_out > 0 {
        text.push_str(&format!(
            "({} more paths are not shown; choose some with --only)\n",
            diff.left_out
        ));
    }
    text.push_str(&told(&judged));
    crate::print::write_all(io::stdout().lock(), &text)?;
    Ok(0)
}

fn renamed(judged: &Judged) -> Value {
    let renamed = judged
        .renamed
        .iter()
        .map(|rename| json!({"old_path": rename.from.to_string_lossy(), "new_path": rename.to.to_string_lossy()}));
    renamed.collect()
}

fn held_back(judged: &Judged) -> Value {
    let held = judged.held.iter().map(|held| {
        json!({"path": held.path.to_string_lossy(), "rule": held.rule, "because": held.because, "instead": held.instead})
    });
    held.collect()
}

fn conflicts(judged: &Judged) -> Value {
    let conflicts = judged
        .conflicts
        .iter()
        .map(|conflict| json!({"path": conflict.path.to_string_lossy(), "because": conflict.because}));
    conflicts.collect()
}

/// What is held back and what conflicts, a line each.
fn told(judged: &Judged) -> String {
    let mut text = String::new();
    for held in &judged.held {
        let (because, instead) = (escape::line(&held.because), escape::line(&held.instead));
        text.push_str(&format!("held     `{}`: {because}; {instead}\n", Printable(&held.path)));
    }
    for conflict in &judged.conflicts {
        let because = escape::line(&conflict.because);
        text.push_str(&format!("conflict `{}`: {because}\n", Printable(&conflict.path)));
    }
    text
}

fn apply(id: &str, mut choice: Choice) -> Result<u8, Failure> {
    let (store, set) = opened(id)?;
    choice.only = chosen(&choice.only, set.workspace());
    let surroundings = surroundings_of(&set)?;
    let Committed {
        id: committed,
        mut judged,
    } = store
        .apply(set, &choice, &surroundings)
        .map_err(|error| failure(&error))?;
    let mut text = String::new();
    if let Some(done) = &committed {
        let totals = ChangeTotals::from(judged.counts);
        text.push_str(&format!("applied  {totals}\n"));
        text.push_str(&format!("undo     shieling undo {done}\n"));
    }
    if committed.is_some() {
        // The set's version was taken, and the other is kept for undoing.
        judged.conflicts.clear();
    }
    text.push_str(&told(&judged));
    if judged.conflicting > 0 && committed.is_none() {
        text.push_str(&format!(
            "instead  nothing was applied: choose paths with `--only PATH`, or take the set's version with \
             `shieling changes apply {id} --overwrite`\n"
        ));
    } else if judged.held_back > 0 {
        text.push_str(&format!(
            "instead  it stays in the set: `shieling changes apply {id} --accept-held-back --only PATH`\n"
        ));
    } else if committed.is_none() {
        text.push_str("nothing to apply: the workspace has all of it\n");
    }
    crate::print::write_all(io::stdout().lock(), &text)?;
    Ok(
        match committed.is_none() && (judged.conflicting > 0 || judged.held_back > 0) {
            true => WAITS,
            false => 0,
        },
    )
}

fn discard(id: &str) -> Result<u8, Failure> {
    let (store, set) = opened(id)?;
    store.discard(set).map_err(|error| failure(&error))?;
    store.finish_removals();
    crate::print::write_all(io::stdout().lock(), &format!("discarded {id}\n"))?;
    Ok(0)
}

/// Takes a committed set back.
pub(crate) fn undo(id: &str) -> Result<u8, Failure> {
    let (store, mut set) = opened(id)?;
    if set.state() != State::Committed {
        return Err(Failure::new(format!("the change set `{id}` is {}", set.state().name()))
            .with("because", "only what was committed can be undone"));
    }
    store.undo(&mut set, &surroundings()).map_err(|error| failure(&error))?;
    crate::print::write_all(
        io::stdout().lock(),
        &format!("undone   {id}; `shieling changes apply {id}` applies it again\n"),
    )?;
    Ok(0)
}
