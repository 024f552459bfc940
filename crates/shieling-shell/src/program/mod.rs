//! What known programs do with their arguments: tables, and the few functions that tables cannot be.

mod apply;
mod awk;
mod code;
mod facts;
mod find_program;
mod git_settings;
mod history;
mod language;
mod normal;
mod parse;
mod queries;
mod sed;
mod special;
mod start;
mod table;
mod walks;

pub(crate) use apply::apply;
pub(crate) use code::code;
pub use facts::{helper_directories, helpers, is_interpreter, project_files, runs_scripts};
pub(crate) use git_settings::editor_of_steps;
pub use history::prints_history;
pub use normal::{Normal, normal};
pub(crate) use queries::{
    Printed, keeps_lines, may_name_input, may_read_input, passes_on, prints, prints_names_alone, started_by_options,
};
pub use queries::{
    elsewhere, is_of_the_project, is_opaque, names_what_it_changes, reads_by_itself, runs_the_project, starts_others,
};
pub(crate) use special::special;
pub use table::{Example, examples, is_described};
pub(crate) use table::{Program, find};
pub use walks::{is_of_programs, pattern_of};
