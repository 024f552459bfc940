//! `shieling-jail`: builds a sandbox, stays in it as pid 1, and starts commands in it.
//!
//! ```text
//! host ──► zygote ──► keeper ──► server (pid 1 of the jail) ──► supervisor ──► command
//!          one a host  outside     builds, probes, serves        one a job      confined
//! ```
//!
//! One thread, no async, no policy. It is started with descriptor 3 (orders) and reads nothing
//! else: no argument, no variable, no file of configuration.
//!
//! Reading order: [`zygote`] and [`keeper`] for what happens outside, [`inside`] for how pid 1 builds the jail,
//! [`view`], [`rules`] and [`filter`] for its three locks, [`server`] and [`supervisor`] for what
//! runs in it.

mod zygote;
mod keeper;
mod inside;
mod own;
mod view;
mod numbers;
mod bounds;
mod temporary;
mod rules;
mod filter;
mod confine;
mod probe;
mod limits;
mod server;
mod supervisor;
mod parts;
mod launch;
mod tree;
mod socket;
mod refusal;
mod sys;

fn main() {
    // Whoever is told has been told on a socket; without one there is nobody to tell.
    if zygote::run().is_none() {
        sys::exit(2);
    }
}
