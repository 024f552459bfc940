//! From the arguments of a tool for files to what is asked of the library.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use shieling::files::{
    DeleteAsk, EditAsk, FileAsk, FileHash, Glob, GlobAsk, GrepAsk, GrepMode, ListAsk, MoveAsk, PatchAsk, ReadAsk,
    StatAsk, WriteAsk,
};
use shieling::units::ByteCount;

use crate::arguments;
use crate::base64;
use crate::text::files::Deed;
use crate::visible;

/// Arguments that ask something of files.
pub(in crate::service) trait Asks: DeserializeOwned {
    /// What is asked, and what is said of it. Images of up to `images` are wanted as images.
    ///
    /// # Errors
    /// Why it cannot be asked, in words.
    fn ask(self, images: Option<ByteCount>) -> Result<(FileAsk, Deed), String>;
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
