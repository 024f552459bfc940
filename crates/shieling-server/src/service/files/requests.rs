//! From the arguments of file tools to requests to the library.

use std::path::PathBuf;

use serde::de::DeserializeOwned;
use shieling::files::{
    DeleteRequest, EditRequest, FileHash, FileRequest, GlobRequest, GrepMode, GrepRequest, Include, ListRequest,
    MoveRequest, PatchRequest, ReadRequest, StatRequest, WriteRequest,
};
use shieling::units::ByteCount;

use crate::arguments;
use crate::base64;
use crate::text::files::FileAction;
use crate::visible;

/// Arguments of a file tool.
pub(in crate::service) trait FileArguments: DeserializeOwned {
    /// Returns the request, and what its result will be worded with. Images up to `images` are requested as images.
    ///
    /// # Errors
    /// A message why the request is invalid.
    fn ask(self, images: Option<ByteCount>) -> Result<(FileRequest, FileAction), String>;
}

/// Parses a path that a model has written.
///
/// # Errors
/// A message why it cannot be meant as a path. Notations that have a meaning elsewhere, such as `~`, would be
/// ordinary names here, and a write would create them.
fn parse_path(written: String) -> Result<PathBuf, String> {
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

impl FileArguments for arguments::ReadFile {
    fn ask(self, images: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Read(self.path.clone());
        let ask = ReadRequest {
            offset: self.offset,
            limit: self.limit,
            max_image: images,
            ..ReadRequest::new(parse_path(self.path)?)
        };
        Ok((FileRequest::Read(ask), action))
    }
}

impl FileArguments for arguments::WriteFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Write(self.path.clone());
        let content = match self.encoding {
            arguments::Encoding::Text => self.content.into_bytes(),
            arguments::Encoding::Base64 => {
                base64::decode(&self.content).map_err(|why| format!("`content` is no base64: {why}"))?
            }
        };
        let ask = WriteRequest {
            path: parse_path(self.path)?,
            content,
            expect: self.hash.map(FileHash),
            create_only: self.create_only,
        };
        Ok((FileRequest::Write(ask), action))
    }
}

impl FileArguments for arguments::EditFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Edit(self.path.clone());
        let ask = EditRequest {
            path: parse_path(self.path)?,
            old: self.old,
            new: self.new,
            replace_all: self.replace_all,
            expect: self.hash.map(FileHash),
        };
        Ok((FileRequest::Edit(ask), action))
    }
}

impl FileArguments for arguments::ApplyPatch {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let ask = PatchRequest {
            patch: self.patch,
            reverse: self.reverse,
        };
        Ok((FileRequest::Patch(ask), FileAction::Patch))
    }
}

impl FileArguments for arguments::Ls {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::List {
            path: self.path.clone(),
            after: self.after.clone(),
        };
        let ask = ListRequest {
            path: parse_path(self.path)?,
            limit: self.limit,
            after: self.after,
        };
        Ok((FileRequest::List(ask), action))
    }
}

impl FileArguments for arguments::Glob {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Find(self.path.clone());
        let ask = GlobRequest {
            pattern: self.pattern,
            path: parse_path(self.path)?,
            include: Include {
                ignored: self.ignored,
                dotfiles: self.hidden,
            },
            limit: self.limit,
            after: self.after,
        };
        Ok((FileRequest::Glob(ask), action))
    }
}

impl FileArguments for arguments::Grep {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
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
        let action = FileAction::Search {
            path: self.path.clone(),
            mode,
            numbered: self.line_numbers,
        };
        let around = self.context.unwrap_or(0);
        let ask = GrepRequest {
            pattern: self.pattern,
            path: parse_path(self.path)?,
            literal: self.literal,
            ignore_case: self.ignore_case,
            multiline: self.multiline,
            globs,
            include: Include {
                ignored: self.ignored,
                dotfiles: self.hidden,
            },
            before: self.before.unwrap_or(around),
            after_lines: self.after.unwrap_or(around),
            mode,
            limit: self.limit,
            cursor: self.cursor,
        };
        Ok((FileRequest::Grep(ask), action))
    }
}

impl FileArguments for arguments::Stat {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Stat(self.path.clone());
        Ok((
            FileRequest::Stat(StatRequest {
                path: parse_path(self.path)?,
            }),
            action,
        ))
    }
}

impl FileArguments for arguments::DeleteFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Delete(self.path.clone());
        let ask = DeleteRequest {
            path: parse_path(self.path)?,
            recursive: self.recursive,
        };
        Ok((FileRequest::Delete(ask), action))
    }
}

impl FileArguments for arguments::MoveFile {
    fn ask(self, _: Option<ByteCount>) -> Result<(FileRequest, FileAction), String> {
        let action = FileAction::Move(self.from.clone(), self.to.clone());
        let ask = MoveRequest {
            from: parse_path(self.from)?,
            to: parse_path(self.to)?,
            replace: self.replace,
        };
        Ok((FileRequest::Move(ask), action))
    }
}
