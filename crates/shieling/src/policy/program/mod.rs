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

pub(crate) use apply::{apply, is_opaque, prints, reads_by_itself};
pub(crate) use code::code;
pub(crate) use history::prints_history;
pub(crate) use normal::{Normal, normal};
pub(crate) use table::find;
