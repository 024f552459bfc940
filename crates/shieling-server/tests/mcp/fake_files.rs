//! The fake core's files: it answers by the name of what it is asked about.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use shieling::environment::{Ability, Capabilities, FileError, Kind};
use shieling::files::{
    Candidate, EditResponse, FileContent, FileHash, FileInfo, FileRequest, FileResponse, FilesError, GlobResponse,
    GrepMode, GrepResponse, Hit, ListResponse, PatchResponse, PatchedFile, ReadResponse, WriteResponse,
};
use shieling::outcome::{Layer, Status};
use shieling::policy::Decision;
use shieling::request::{Access, Command, FileOp, Operation};

use super::{Fake, denial};

/// The bytes of no image that anybody could draw.
pub(crate) const IMAGE: &[u8] = b"\x89PNG\r\n\x1a\n\x00\xff";

pub(crate) fn capabilities(abilities: BTreeSet<Ability>) -> Capabilities {
    Capabilities {
        networks: BTreeSet::new(),
        limits: BTreeSet::new(),
        abilities,
    }
}

/// What is asked, on one line, with long texts as their length.
pub(crate) fn words(ask: &FileRequest) -> String {
    let text = |text: &str| {
        if text.len() > 40 {
            format!("{} bytes", text.len())
        } else {
            format!("{text:?}")
        }
    };
    match ask {
        FileRequest::Read(read) => format!(
            "read {:?} from {} on, {} lines, images {:?}",
            read.path, read.offset, read.limit, read.max_image
        ),
        FileRequest::Write(write) => format!(
            "write {:?}: {}, expecting {:?}, new {}",
            write.path,
            text(&String::from_utf8_lossy(&write.content)),
            write.expect.as_ref().map(|hash| &hash.0),
            write.create_only
        ),
        FileRequest::Edit(edit) => format!(
            "edit {:?}: {} to {}, all {}, expecting {:?}",
            edit.path,
            text(&edit.old),
            text(&edit.new),
            edit.replace_all,
            edit.expect.as_ref().map(|hash| &hash.0)
        ),
        FileRequest::Patch(patch) => format!("patch {}, reverse {}", text(&patch.patch), patch.reverse),
        FileRequest::List(list) => format!("list {:?}, {} after {:?}", list.path, list.limit, list.after),
        FileRequest::Glob(glob) => format!(
            "glob {:?} in {:?}, {:?}, {} after {:?}",
            glob.pattern, glob.path, glob.include, glob.limit, glob.after
        ),
        FileRequest::Grep(grep) => format!(
            "grep {} in {:?}, {:?} of {:?}, {:?}, -B{} -A{}{}{}{}, {} from {:?}",
            text(&grep.pattern),
            grep.path,
            grep.mode,
            grep.globs,
            grep.include,
            grep.before,
            grep.after_lines,
            if grep.ignore_case { " -i" } else { "" },
            if grep.literal { " -F" } else { "" },
            if grep.multiline { " -U" } else { "" },
            grep.limit,
            grep.cursor
        ),
        FileRequest::Stat(stat) => format!("stat {:?}", stat.path),
        FileRequest::Delete(delete) => format!("delete {:?}, recursive {}", delete.path, delete.recursive),
        FileRequest::Move(moved) => format!("move {:?} to {:?}, replace {}", moved.from, moved.to, moved.replace),
    }
}

/// The path that decides what is answered.
fn path(ask: &FileRequest) -> PathBuf {
    let path: &Path = match ask {
        FileRequest::Read(read) => &read.path,
        FileRequest::Write(write) => &write.path,
        FileRequest::Edit(edit) => &edit.path,
        FileRequest::Patch(_) => Path::new("patch"),
        FileRequest::List(list) => &list.path,
        FileRequest::Glob(glob) => &glob.path,
        FileRequest::Grep(grep) => &grep.path,
        FileRequest::Stat(stat) => &stat.path,
        FileRequest::Delete(delete) => &delete.path,
        FileRequest::Move(moved) => &moved.from,
    };
    // As the library would have it.
    match path.to_str() {
        Some(".") => "/work".into(),
        _ => Path::new("/work").join(path),
    }
}

fn candidate(line: u64) -> Candidate {
    Candidate {
        line,
        text: "    let x = 1;\n    x".to_owned(),
        differs: Some("only the indentation differs".to_owned()),
    }
}

/// What goes wrong with files of these names.
fn trouble(path: &Path) -> Option<FilesError> {
    let at = || path.to_owned();
    Some(match path.file_name()?.to_str()? {
        "missing" => FileError::NotFound(at()).into(),
        "outside" => FileError::Outside {
            path: "/etc/passwd".into(),
            within: "the workspace",
        }
        .into(),
        "directory" => FileError::IsDirectory(at()).into(),
        "system" => FileError::ReadOnly("/etc/system".into()).into(),
        "full" => FileError::Full {
            path: at(),
            why: "64 MiB in all".to_owned(),
        }
        .into(),
        "unlike" => FilesError::NoMatch {
            path: at(),
            nearest: vec![candidate(12)],
        },
        "twice" => FilesError::Ambiguous {
            path: at(),
            count: 2,
            lines: vec![3, 9],
        },
        "stale" => FilesError::Stale {
            path: at(),
            now: FileHash("new".to_owned()),
            diff: Some("@@ -1 +1 @@\n-a\n+b\n".to_owned()),
        },
        "short" => FilesError::BeyondEnd {
            path: at(),
            offset: 9,
            lines: 2,
        },
        "empty-old" => FilesError::Argument {
            argument: "old",
            why: "it is empty, and stands everywhere".to_owned(),
        },
        "hidden" => FilesError::Refused {
            status: Status::Denied,
            denial: denial(Decision::Deny, "readonly: nothing may change", Layer::Policy),
        },
        "soon" => FilesError::Refused {
            status: Status::RateLimited,
            denial: denial(Decision::Deny, "too many", Layer::Rate),
        },
        "fault" => FilesError::Fault("the log is full".to_owned()),
        _ => return None,
    })
}

impl Fake {
    pub(super) async fn done(&self, ask: FileRequest) -> Result<FileResponse, FilesError> {
        self.note(words(&ask));
        let path = path(&ask);
        if let Some(trouble) = trouble(&path) {
            return Err(trouble);
        }
        let change = match path.file_name().and_then(|name| name.to_str()) {
            Some("ask") => Some(format!("-old\n+new \u{1b}[2K\n{}", "+more\n".repeat(4_000))),
            // Short as it is, and long as it is shown.
            Some("ask-escaped") => Some(format!("+{}\n", "\u{1b}".repeat(30_000))),
            _ => None,
        };
        if let Some(change) = change {
            let op = FileOp::new(Operation::WriteFile, "/work", &[], vec![(Access::Write, path.clone())])
                .with_change(change);
            let harmless = Command::new("true", "/work").expect("it is one");
            self.admit(op, &harmless, None)
                .await
                .map_err(|refused| FilesError::Refused {
                    status: refused.status,
                    denial: refused.denial.expect("it was refused"),
                })?;
        }
        Ok(answer(&ask, path))
    }
}

fn answer(ask: &FileRequest, path: PathBuf) -> FileResponse {
    let hash = FileHash("h1".to_owned());
    match ask {
        FileRequest::Read(read) => FileResponse::Read(ReadResponse {
            content: seen(&path, read.offset),
            path,
            size: 12,
            hash,
        }),
        FileRequest::Write(write) => FileResponse::Write(WriteResponse {
            note: None,
            created: !path.ends_with("old"),
            diff: path.ends_with("old").then(|| "-a\n+b\n".to_owned()),
            path,
            size: write.content.len() as u64,
            hash,
        }),
        FileRequest::Edit(edit) => FileResponse::Edit(EditResponse {
            note: None,
            path,
            replacements: if edit.replace_all { 3 } else { 1 },
            diff: "@@ -1 +1 @@\n-a\n+b\n".to_owned(),
            size: 2,
            hash,
        }),
        FileRequest::Patch(_) => FileResponse::Patch(PatchResponse {
            note: None,
            files: vec![
                patched("/work/new.rs", "added", (3, 0)),
                patched("/work/src/old.rs", "changed", (1, 2)),
                patched("/work/gone.rs", "removed", (0, 4)),
                PatchedFile {
                    from: Some("/work/from.rs".into()),
                    ..patched("/work/to.rs", "moved", (0, 0))
                },
            ],
        }),
        FileRequest::List(list) if list.after.as_deref() == Some("zzz") => FileResponse::List(ListResponse {
            entries: Vec::new(),
            next: None,
            ..listed(path, list.limit)
        }),
        FileRequest::List(list) => FileResponse::List(listed(path, list.limit)),
        FileRequest::Glob(_) => FileResponse::Glob(GlobResponse {
            root: path.clone(),
            paths: if path.ends_with("none") {
                Vec::new()
            } else {
                vec!["a.rs".into(), "src/b.rs".into()]
            },
            next: path.ends_with("many").then(|| "src/b.rs".to_owned()),
            unreadable: u64::from(path.ends_with("many")),
        }),
        FileRequest::Grep(grep) => FileResponse::Grep(grepped(&path, grep.mode)),
        FileRequest::Stat(_) if path.ends_with("link") => FileResponse::Info(FileInfo {
            target: Some("src/real".into()),
            ..info("/work/src/real".into(), Kind::File)
        }),
        FileRequest::Stat(_) | FileRequest::Delete(_) => FileResponse::Info(info(path, Kind::File)),
        FileRequest::Move(moved) => FileResponse::Info(info(Path::new("/work").join(&moved.to), Kind::File)),
    }
}

fn seen(path: &Path, offset: u64) -> FileContent {
    match path.file_name().and_then(|name| name.to_str()) {
        Some("image") => FileContent::Image {
            mime: "image/png".to_owned(),
            bytes: IMAGE.to_vec(),
        },
        Some("binary") => FileContent::Binary {
            format: Some("ELF".to_owned()),
            why: None,
        },
        Some("empty") => text("", 0, 0, None),
        Some("long") => text("one\ntwo\n", offset, 2, Some(offset + 2)),
        _ => text("one\ntwo\n", offset, 2, None),
    }
}

fn text(text: &str, offset: u64, lines: u64, next_offset: Option<u64>) -> FileContent {
    FileContent::Text {
        text: text.to_owned(),
        offset,
        lines,
        total_lines: Some(next_offset.map_or(offset + lines, |next| next + 5)),
        next_offset,
        encoding: "utf-8".to_owned(),
        cut_bytes: 0,
    }
}

fn patched(path: &str, change: &'static str, (added, removed): (u64, u64)) -> PatchedFile {
    PatchedFile {
        path: path.into(),
        change,
        from: None,
        added,
        removed,
        hash: (change != "removed").then(|| FileHash("h2".to_owned())),
    }
}

pub(crate) fn info(path: PathBuf, kind: Kind) -> FileInfo {
    FileInfo {
        path,
        kind,
        size: (kind == Kind::File).then_some(12),
        mode: "644".to_owned(),
        modified: "2026-01-02T03:04:05Z".to_owned(),
        target: (kind == Kind::Link).then(|| "/work/no\u{1b}where".into()),
        dangling: kind == Kind::Link,
        hash: None,
        note: None,
    }
}

fn listed(path: PathBuf, limit: u64) -> ListResponse {
    let entries = if path.ends_with("none") {
        Vec::new()
    } else {
        vec![
            info(".hidden".into(), Kind::File),
            info("a\nb".into(), Kind::Directory),
            info("link".into(), Kind::Link),
            info("pipe".into(), Kind::Fifo),
        ]
    };
    ListResponse {
        path,
        entries,
        next: (limit < 4).then(|| "link".to_owned()),
    }
}

fn grepped(path: &Path, mode: GrepMode) -> GrepResponse {
    let hit = |path: &str, line: u64, text: &str, matched| Hit {
        path: path.into(),
        line: Some(line),
        text: Some(text.to_owned()),
        matched,
        count: None,
    };
    let file = |path: &str, count| Hit {
        path: path.into(),
        line: None,
        text: None,
        matched: true,
        count,
    };
    let hits = match mode {
        _ if path.ends_with("none") => Vec::new(),
        GrepMode::Content => vec![
            hit("a.rs", 3, "before", false),
            hit("a.rs", 4, "fn main() {\u{1b}[31m", true),
            hit("src/b.rs", 7, "over\ntwo lines", true),
        ],
        GrepMode::Files => vec![file("a.rs", None), file("src/b.rs", None)],
        GrepMode::Count => vec![file("a.rs", Some(1)), file("src/b.rs", Some(2))],
    };
    GrepResponse {
        root: path.to_owned(),
        hits,
        next: path.ends_with("many").then(|| "c1".to_owned()),
        searched: 2,
        binary: u64::from(path.ends_with("none")),
        unreadable: 0,
    }
}
