//! The tools for files, in the dialects.

use super::{Argument, Fixed, How, Spoken, may, must};
use crate::tools::Tool;

/// A tool with these arguments, and nothing fixed.
const fn spoken(name: &'static str, tool: Tool, about: &'static str, takes: &'static [Argument]) -> Spoken {
    Spoken {
        name,
        tool,
        about,
        takes: Some(takes),
        fixed: &[],
    }
}

const LINE: Argument = Argument {
    how: How::FromOne,
    default: Some(Fixed::Number(1)),
    about: "The first line to show, counted from 1.",
    ..may("offset", "offset")
};

const MODE: Argument = Argument {
    how: How::Modes,
    about: "What to show: the lines that match, the files that have one, or how many lines match in each.",
    ..may("output_mode", "mode")
};

const FILE: Argument = must("file_path", "path");
const PATH: Argument = must("path", "path");
const PATTERN: Argument = must("pattern", "pattern");
const WHERE: Argument = may("path", "path");
const LIMIT: Argument = may("limit", "limit");

pub(super) const CLAUDE: [Spoken; 5] = [
    spoken(
        "Read",
        Tool::ReadFile,
        "Reads a file as numbered lines, or shows an image. Says how to go on if there is more.",
        &[FILE, LINE, LIMIT],
    ),
    spoken(
        "Write",
        Tool::WriteFile,
        "Writes a whole file, new or over what is there: all of it, or nothing. To change a part of a file, use Edit.",
        &[FILE, must("content", "content")],
    ),
    spoken(
        "Edit",
        Tool::EditFile,
        "Replaces exact text in a file. `old_string` must occur exactly once, unless `replace_all`; otherwise nothing changes, and the answer shows where it occurs, or what is most like it.",
        &[
            FILE,
            must("old_string", "old"),
            must("new_string", "new"),
            may("replace_all", "replace_all"),
        ],
    ),
    spoken("Glob", Tool::Glob, "", &[PATTERN, WHERE]),
    spoken(
        "Grep",
        Tool::Grep,
        "",
        &[
            PATTERN,
            WHERE,
            may("glob", "glob"),
            may("type", "type"),
            Argument {
                default: Some(Fixed::Text("files_with_matches")),
                ..MODE
            },
            may("-A", "after"),
            may("-B", "before"),
            may("-C", "context"),
            may("-n", "line_numbers"),
            may("-i", "ignore_case"),
            may("multiline", "multiline"),
            may("head_limit", "limit"),
        ],
    ),
];

pub(super) const CODEX: [Spoken; 4] = [
    spoken(
        "apply_patch",
        Tool::ApplyPatch,
        "Changes, adds, moves and removes files by a patch between `*** Begin Patch` and `*** End Patch`: all of it, or nothing.",
        &[Argument {
            about: "The entire patch, with paths from the workspace.",
            ..must("input", "patch")
        }],
    ),
    spoken(
        "read_file",
        Tool::ReadFile,
        "Reads a file with 1-indexed line numbers, or shows an image.",
        &[FILE, LINE, LIMIT],
    ),
    spoken(
        "list_dir",
        Tool::Ls,
        "Lists the entries of a directory, each with a mark of its kind.",
        &[must("dir_path", "path"), LIMIT],
    ),
    Spoken {
        fixed: &[("mode", Fixed::Text("files"))],
        ..spoken(
            "grep_files",
            Tool::Grep,
            "Finds the files whose content matches a regular expression.",
            &[
                PATTERN,
                may("include", "glob"),
                WHERE,
                Argument {
                    default: Some(Fixed::Number(100)),
                    ..LIMIT
                },
            ],
        )
    },
];

pub(super) const CAMEL: [Spoken; 1] = [spoken(
    "shell_write_content_to_file",
    Tool::WriteFile,
    "Writes content to a file, with no need to escape it for a shell: all of it, or nothing.",
    &[must("content", "content"), FILE],
)];

pub(super) const PYDANTIC: [Spoken; 6] = [
    spoken(
        "read_file",
        Tool::ReadFile,
        "Reads a text file as numbered lines, or shows an image. Says how to go on if there is more.",
        &[PATH, may("offset", "offset"), LIMIT],
    ),
    spoken("write_file", Tool::WriteFile, "", &[PATH, must("content", "content")]),
    spoken(
        "edit_file",
        Tool::EditFile,
        "",
        &[
            PATH,
            must("old", "old"),
            must("new", "new"),
            may("replace_all", "replace_all"),
        ],
    ),
    spoken("ls", Tool::Ls, "", &[WHERE]),
    spoken("glob", Tool::Glob, "", &[PATTERN, WHERE]),
    spoken(
        "grep",
        Tool::Grep,
        "",
        &[
            PATTERN,
            WHERE,
            may("glob", "glob"),
            Argument {
                default: Some(Fixed::Text("content")),
                ..MODE
            },
        ],
    ),
];
