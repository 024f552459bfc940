//! What known programs do with their arguments: tables, and the few functions that tables cannot be.

mod apply;
mod awk;
mod code;
mod find_program;
mod history;
mod normal;
mod parse;
mod sed;
mod special;
mod table;
mod walks;

pub(crate) use apply::{
    apply, elsewhere, is_of_the_project, is_opaque, names_what_it_changes, prints, reads_by_itself, runs_the_project,
    started_by_options, starts_others,
};
pub(crate) use code::code;
pub(crate) use history::prints_history;
pub(crate) use normal::{Normal, normal};
pub(crate) use table::find;
pub(crate) use walks::is_of_programs;
pub(crate) use walks::pattern_of;
