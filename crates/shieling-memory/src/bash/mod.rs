//! The bash in memory. This module encapsulates bashkit.

mod user;
mod parsing;
mod braces;
mod programs;
mod precheck;
mod thread_pool;
mod bytes;
mod disk;
mod files;
mod seq;
mod custom;
mod resume;
mod hooks;
mod engine;
mod output_pipe;
mod run;
mod session_state;
mod plain;

pub(super) use self::disk::ENDLESS;
pub(super) use self::engine::{BashConfig, Engine, SpareBash};
pub(super) use self::run::{Ran, Stdin, Stdio, answer};
pub(super) use self::session_state::SessionState;
pub(super) use self::thread_pool::ThreadPool;
pub(super) use self::user::HOME;
