//! The file tools.

use shieling::environment::Ability;

use super::definition::{Definition, Hints, LOOKS, Tool, schema};
use crate::arguments;
use crate::shapes;

/// The former content is lost, and a second call has another effect, or fails.
const CHANGES: Hints = Hints {
    read_only: false,
    destructive: true,
    idempotent: false,
    open_world: false,
};

/// The former content is lost, and a second call changes nothing more.
const SETS: Hints = Hints {
    idempotent: true,
    ..CHANGES
};

const READS: &[Ability] = &[Ability::ReadFiles];
const WRITES: &[Ability] = &[Ability::ReadFiles, Ability::WriteFiles];

pub(super) const TOOLS: &[Definition] = &[
    Definition {
        tool: Tool::ReadFile,
        name: "read_file",
        title: "Read a file",
        description: "Reads a text file as numbered lines, or shows an image. Says how to go on if there is more. The `hash` that it gives protects an edit or a write from overwriting what somebody else has changed since.",
        takes: schema::<arguments::ReadFile>,
        gives: shapes::read,
        hints: LOOKS,
        needs: READS,
    },
    Definition {
        tool: Tool::WriteFile,
        name: "write_file",
        title: "Write a file",
        description: "Writes a whole file, new or over what is there: all of it, or nothing. To change a part of a file, edit it.",
        takes: schema::<arguments::WriteFile>,
        gives: shapes::written,
        hints: SETS,
        needs: WRITES,
    },
    Definition {
        tool: Tool::EditFile,
        name: "edit_file",
        title: "Edit a file",
        description: "Replaces exact text in a file and shows what changed. `old` must occur exactly once, unless `replace_all`; otherwise nothing changes, and the answer shows where it occurs, or what is most like it.",
        takes: schema::<arguments::EditFile>,
        gives: shapes::edited,
        hints: CHANGES,
        needs: WRITES,
    },
    Definition {
        tool: Tool::ApplyPatch,
        name: "apply_patch",
        title: "Apply a patch",
        description: "Changes, adds, moves and removes several files by a patch: all of it, or nothing.",
        takes: schema::<arguments::ApplyPatch>,
        gives: shapes::patched,
        hints: CHANGES,
        needs: WRITES,
    },
    Definition {
        tool: Tool::Ls,
        name: "ls",
        title: "List a directory",
        description: "Lists a directory: hidden entries too, directories with a slash, files with their size, links with where they lead.",
        takes: schema::<arguments::Ls>,
        gives: shapes::listed,
        hints: LOOKS,
        needs: READS,
    },
    Definition {
        tool: Tool::Glob,
        name: "glob",
        title: "Find files",
        description: "Finds files by what their paths look like, sorted by path. What begins with a dot and what .gitignore names is left out, unless asked for.",
        takes: schema::<arguments::Glob>,
        gives: shapes::found,
        hints: LOOKS,
        needs: READS,
    },
    Definition {
        tool: Tool::Grep,
        name: "grep",
        title: "Search in files",
        description: "Searches in files for a regular expression. Binary files, what begins with a dot and what .gitignore names is left out, the latter two unless asked for.",
        takes: schema::<arguments::Grep>,
        gives: shapes::grepped,
        hints: LOOKS,
        needs: READS,
    },
    Definition {
        tool: Tool::Stat,
        name: "stat",
        title: "Look at a file",
        description: "Tells what stands at a path: its kind, size, permissions, when it changed, where it leads if it is a link, and its `hash`.",
        takes: schema::<arguments::Stat>,
        gives: shapes::info,
        hints: LOOKS,
        needs: READS,
    },
    Definition {
        tool: Tool::DeleteFile,
        name: "delete_file",
        title: "Delete a file",
        description: "Removes a file, a link or an empty directory; with `recursive` a directory with all that is in it.",
        takes: schema::<arguments::DeleteFile>,
        gives: shapes::info,
        hints: CHANGES,
        needs: WRITES,
    },
    Definition {
        tool: Tool::MoveFile,
        name: "move_file",
        title: "Move a file",
        description: "Moves or renames a file, a link or a directory. What is there already stays, unless `replace`.",
        takes: schema::<arguments::MoveFile>,
        gives: shapes::info,
        hints: CHANGES,
        needs: WRITES,
    },
];
