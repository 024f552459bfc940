//! The tools for files: from arguments to what is asked of the library, and from its answer, or why
//! there is none, to what is given.

use std::path::PathBuf;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use shieling::environment::FileError;
use shieling::files::{
    DeleteAsk, EditAsk, FileAnswer, FileAsk, FileHash, FilesError, Glob, GlobAsk, GrepAsk, GrepMode, ListAsk, MoveAsk,
    PatchAsk, ReadAsk, Seen, StatAsk, WriteAsk,
};
use shieling::outcome::{Denial, Status};
use shieling::units::ByteCount;

use super::{Given, Image, Service, read};
use crate::approval::{PERSON, Person, Silence};
use crate::arguments;
use crate::base64;
use crate::repeats::Again;
use crate::text::{self, About, files::Deed};
use crate::visible;

/// Arguments that ask something of files.
pub(super) trait Asks: DeserializeOwned {
    /// What is asked, and what is said of it. Images of up to `images` are wanted as images.
    ///
    /// # Errors
    /// Why it cannot be asked, in words.
    fn ask(self, images: Option<ByteCount>) -> Result<(FileAsk, Deed), String>;
}

impl Service {
    /// Does what a tool for files does.
    pub(super) async fn file<A: Asks>(&self, arguments: Value, about: About, person: &Arc<Person>) -> Given {
        let asked = match read::<A>(arguments) {
            Ok(asked) => asked,
            Err(wrong) => return wrong,
        };
        let (ask, deed) = match asked.ask(self.images) {
            Ok(ask) => ask,
            Err(wrong) => return Given::senseless(format!("{wrong}; nothing was done")),
        };
        let about = About {
            workspace: self.workplace.template.cwd().to_owned(),
            ..about
        };
        let answered = PERSON.scope(person.clone(), self.workplace.core.file(ask)).await;
        match answered {
            Ok(answer) => given(answer, &deed, &about),
            Err(FilesError::Refused { status, denial }) => refused(status, denial, &deed, &about, person),
            Err(error) => failed(&error, &deed, &about),
        }
    }
}

fn given(mut answer: FileAnswer, deed: &Deed, about: &About) -> Given {
    let text = text::files::answer(&answer, deed, about);
    let mut given = Given::new(text, &answer, false);
    if let FileAnswer::Read(read) = &mut answer
        && let Seen::Image { mime, bytes } = &mut read.seen
    {
        given.image = Some(Image {
            mime: std::mem::take(mime),
            bytes: std::mem::take(bytes),
        });
    }
    given
}

fn refused(status: Status, mut denial: Denial, deed: &Deed, about: &About, person: &Person) -> Given {
    if status == Status::NeedsApproval
        && let Some(reason) = denial.reasons.iter_mut().rfind(|reason| reason.rule == "approval")
    {
        reason.instead.get_or_insert_with(|| remedy(person.silence()));
    }
    let text = text::files::refusal(status, &denial, deed, about);
    let value = json!({
        "status": status,
        "error": FilesError::Refused { status, denial: denial.clone() }.to_string(),
        "code": status,
        "denial": denial,
    });
    Given {
        again: Again::after(status, &denial, person.silence().as_ref()),
        ..Given::new(text, &value, true)
    }
}

/// How there could be a yes.
fn remedy(silence: Option<Silence>) -> String {
    const LESS: &str = "start the server with a policy that decides it, or so that less is asked about";
    match silence {
        None => format!("{LESS}; or with a client that can ask a person (MCP elicitation)"),
        Some(Silence::NoWay) => {
            format!("this client cannot ask a person: use one that has MCP elicitation, or {LESS}")
        }
        Some(Silence::Failed(why)) => {
            format!("the client did not put the question ({why}): try again, or {LESS}")
        }
        Some(silence @ (Silence::Dismissed | Silence::Unreadable)) => super::run::remedy(Some(silence), ""),
    }
}

fn failed(error: &FilesError, deed: &Deed, about: &About) -> Given {
    let text = text::files::error(error, deed, about);
    let mut value = facts(error);
    value.insert("error".to_owned(), text::files::sentence(error, about).into());
    value.insert("code".to_owned(), error.code().into());
    value.insert("correctable".to_owned(), error.is_correctable().into());
    Given {
        again: again(error, deed),
        ..Given::new(text, &value, true)
    }
}

/// What is looked at may come about by itself; what is to be changed has to be another, or asked otherwise.
fn again(error: &FilesError, deed: &Deed) -> Again {
    let looks = deed.tool().definition().hints.read_only;
    match error {
        FilesError::BadPatch { .. } => Again::Fails,
        FilesError::File(FileError::Changed(_)) => Again::MaySucceed,
        error if looks || !error.is_correctable() => Again::MaySucceed,
        _ => Again::NeedsChange,
    }
}

/// What a program can use of an error besides its words.
fn facts(error: &FilesError) -> Map<String, Value> {
    let value = match error {
        FilesError::BeyondEnd { lines, .. } => json!({"lines": lines}),
        FilesError::Stale { now, diff, .. } => json!({"hash": now, "diff": diff}),
        FilesError::NoMatch { nearest, .. } => json!({"nearest": nearest}),
        FilesError::Ambiguous { count, lines, .. } => json!({"count": count, "lines": lines}),
        FilesError::TooLarge { size, limit, .. } => json!({"size": size, "limit": limit}),
        FilesError::BadPatch { line, .. } => json!({"line": line}),
        FilesError::Misfit { hunk, nearest, .. } => json!({"hunk": hunk, "nearest": nearest}),
        // The others say it all in words, and so does one that is new.
        _ => json!({}),
    };
    value.as_object().cloned().unwrap_or_default()
}

/// The path that a model has written, if a path can be meant.
///
/// # Errors
/// Why not, in words: what stands for something else elsewhere would be a name like any other here, and a
/// write would make it.
fn place(written: String) -> Result<PathBuf, String> {
    let shown = || visible::line(&written, 200);
    if written == "~" || written.starts_with("~/") {
        let shown = shown();
        return Err(format!(
            "`~` stands for no directory here: give a path from the workspace, or a whole one; what is really named so is `./{shown}`"
        ));
    }
    let is_scheme = |scheme: &str| !scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric());
    match written.split_once("://") {
        Some((scheme, _)) if is_scheme(scheme) => Err(format!("`{}` is a URL: give a path", shown())),
        _ => Ok(written.into()),
    }
}

impl Asks for arguments::ReadFile {
    fn ask(self, images: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Read(self.path.clone());
        let ask = ReadAsk {
            offset: self.offset,
            limit: self.limit,
            max_image: images,
            ..ReadAsk::new(place(self.path)?)
        };
        Ok((FileAsk::Read(ask), deed))
    }
}

impl Asks for arguments::WriteFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Write(self.path.clone());
        let content = match self.encoding {
            arguments::Encoding::Text => self.content.into_bytes(),
            arguments::Encoding::Base64 => {
                base64::decode(&self.content).map_err(|why| format!("`content` is no base64: {why}"))?
            }
        };
        let ask = WriteAsk {
            path: place(self.path)?,
            content,
            expect: self.hash.map(FileHash),
            create_only: self.create_only,
        };
        Ok((FileAsk::Write(ask), deed))
    }
}

impl Asks for arguments::EditFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Edit(self.path.clone());
        let ask = EditAsk {
            path: place(self.path)?,
            old: self.old,
            new: self.new,
            replace_all: self.replace_all,
            expect: self.hash.map(FileHash),
        };
        Ok((FileAsk::Edit(ask), deed))
    }
}

impl Asks for arguments::ApplyPatch {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let ask = PatchAsk {
            patch: self.patch,
            reverse: self.reverse,
        };
        Ok((FileAsk::Patch(ask), Deed::Patch))
    }
}

impl Asks for arguments::Ls {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::List(self.path.clone());
        let ask = ListAsk {
            path: place(self.path)?,
            limit: self.limit,
            after: self.after,
        };
        Ok((FileAsk::List(ask), deed))
    }
}

impl Asks for arguments::Glob {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Find(self.path.clone());
        let ask = GlobAsk {
            pattern: self.pattern,
            path: place(self.path)?,
            of: Glob {
                ignored: self.ignored,
                dotted: self.hidden,
            },
            limit: self.limit,
            after: self.after,
        };
        Ok((FileAsk::Glob(ask), deed))
    }
}

impl Asks for arguments::Grep {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let globs = match (self.glob, self.of) {
            (None, None) => Vec::new(),
            (Some(glob), None) => vec![glob],
            (None, Some(of)) => of.globs().iter().map(|glob| (*glob).to_owned()).collect(),
            (Some(_), Some(_)) => return Err("give `glob` or `type`, not both".to_owned()),
        };
        let mode = match self.mode {
            arguments::Mode::Content => GrepMode::Content,
            arguments::Mode::Files => GrepMode::Files,
            arguments::Mode::Count => GrepMode::Count,
        };
        let deed = Deed::Search {
            path: self.path.clone(),
            mode,
            numbered: self.line_numbers,
        };
        let around = self.context.unwrap_or(0);
        let ask = GrepAsk {
            pattern: self.pattern,
            path: place(self.path)?,
            literal: self.literal,
            ignore_case: self.ignore_case,
            multiline: self.multiline,
            globs,
            of: Glob {
                ignored: self.ignored,
                dotted: self.hidden,
            },
            before: self.before.unwrap_or(around),
            after_lines: self.after.unwrap_or(around),
            mode,
            limit: self.limit,
            cursor: self.cursor,
        };
        Ok((FileAsk::Grep(ask), deed))
    }
}

impl Asks for arguments::Stat {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Stat(self.path.clone());
        Ok((
            FileAsk::Stat(StatAsk {
                path: place(self.path)?,
            }),
            deed,
        ))
    }
}

impl Asks for arguments::DeleteFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Delete(self.path.clone());
        let ask = DeleteAsk {
            path: place(self.path)?,
            recursive: self.recursive,
        };
        Ok((FileAsk::Delete(ask), deed))
    }
}

impl Asks for arguments::MoveFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileAsk, Deed), String> {
        let deed = Deed::Move(self.from.clone(), self.to.clone());
        let ask = MoveAsk {
            from: place(self.from)?,
            to: place(self.to)?,
            replace: self.replace,
        };
        Ok((FileAsk::Move(ask), deed))
    }
}
