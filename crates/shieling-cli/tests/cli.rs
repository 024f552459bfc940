//! The real binary, from its arguments to its exit status.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and place the files that it reads"
)]

#[path = "cli/support.rs"]
mod support;

#[path = "cli/configuration.rs"]
mod configuration;
#[path = "cli/help.rs"]
mod help;
#[path = "cli/options.rs"]
mod options;
#[path = "cli/transcripts.rs"]
mod transcripts;
