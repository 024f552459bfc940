//! `shieling-jail`: builds a sandbox, stays in it as pid 1, and starts commands in it. All of it is in the library of
//! this crate.

fn main() {
    // Whoever is told has been told on a socket; without one there is nobody to tell.
    if shieling_jail::program::run().is_none() {
        std::process::exit(2);
    }
}
