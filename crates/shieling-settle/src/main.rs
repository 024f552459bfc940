//! The program `shieling-settle`: see the library.

fn main() {
    // There is nobody to tell: what was taken back stands in the store.
    if shieling_settle::program::run().is_none() {
        std::process::exit(2);
    }
}
