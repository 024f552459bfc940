//! The file tools in the dialects.

use crate::dialect::tool::{Argument, Conversion, DialectTool, Fixed, may, must};
use crate::tools::Tool;

/// Creates a tool with these arguments and no fixed ones.
const fn dialect_tool(
    name: &'static str,
    tool: Tool,
    description: &'static str,
    takes: &'static [Argument],
) -> DialectTool {
    DialectTool {
        name,
        tool,
        description,
        takes: Some(takes),
        fixed: &[],
    }
}

const LINE: Argument = Argument {
    how: Conversion::FromOne,
    default: Some(Fixed::Number(1)),
    description: "The first line to show, counted from 1.",
    ..may("offset", "offset")
};

const MODE: Argument = Argument {
    how: Conversion::Modes,
    description: "What to show: the lines that match, the files that have one, or how many lines match in each.",
    ..may("output_mode", "mode")
};

const FILE: Argument = must("file_path", "path");
const PATH: Argument = must("path", "path");
const PATTERN: Argument = must("pattern", "pattern");
const WHERE: Argument = may("path", "path");
const LIMIT: Argument = may("limit", "limit");

pub(super) const CLAUDE: [DialectTool; 5] = [
    dialect_tool(
        "Read",
        Tool::ReadFile,
        "Reads a file as numbered lines, or shows an image. Says how to go on if there is more.",
        &[FILE, LINE, LIMIT],
    ),
    dialect_tool(
        "Write",
        Tool::WriteFile,
        "Writes a whole file, new or over what is there: all of it, or nothing. To change a part of a file, use Edit.",
        &[FILE, must("content", "content")],
    ),
    dialect_tool(
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
    dialect_tool("Glob", Tool::Glob, "", &[PATTERN, WHERE]),
    dialect_tool(
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
            Argument {
                description: "So many lines after each match [default: `-C`].",
                ..may("-A", "after")
            },
            Argument {
                description: "So many lines before each match [default: `-C`].",
                ..may("-B", "before")
            },
            may("-C", "context"),
            may("-n", "line_numbers"),
            may("-i", "ignore_case"),
            may("multiline", "multiline"),
            may("head_limit", "limit"),
        ],
    ),
];

pub(super) const CODEX: [DialectTool; 4] = [
    dialect_tool(
        "apply_patch",
        Tool::ApplyPatch,
        "Changes, adds, moves and removes files by a patch between `*** Begin Patch` and `*** End Patch`: all of it, or nothing.",
        &[Argument {
            description: "The entire patch, with paths from the workspace.",
            ..must("input", "patch")
        }],
    ),
    dialect_tool(
        "read_file",
        Tool::ReadFile,
        "Reads a file with 1-indexed line numbers, or shows an image.",
        &[FILE, LINE, LIMIT],
    ),
    dialect_tool(
        "list_dir",
        Tool::Ls,
        "Lists the entries of a directory, each with a mark of its kind.",
        &[must("dir_path", "path"), LIMIT],
    ),
    DialectTool {
        fixed: &[("mode", Fixed::Text("files"))],
        ..dialect_tool(
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

pub(super) const CAMEL: [DialectTool; 1] = [dialect_tool(
    "shell_write_content_to_file",
    Tool::WriteFile,
    "Writes content to a file, with no need to escape it for a shell: all of it, or nothing.",
    &[must("content", "content"), FILE],
)];

pub(super) const PYDANTIC: [DialectTool; 6] = [
    dialect_tool(
        "read_file",
        Tool::ReadFile,
        "Reads a text file as numbered lines, or shows an image. Says how to go on if there is more.",
        &[PATH, may("offset", "offset"), LIMIT],
    ),
    dialect_tool("write_file", Tool::WriteFile, "", &[PATH, must("content", "content")]),
    dialect_tool(
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
    dialect_tool("ls", Tool::Ls, "", &[WHERE]),
    dialect_tool("glob", Tool::Glob, "", &[PATTERN, WHERE]),
    dialect_tool(
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
