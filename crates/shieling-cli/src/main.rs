//! The `shieling` command.
fn main() {}
