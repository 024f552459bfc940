//! The real binary, from its arguments to its exit status.
#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and place the files that it reads"
)]

#[path = "cli/support.rs"]
mod support;

#[path = "cli/afterwards.rs"]
mod afterwards;
// What is tried with the gate alone too.
#[path = "../../shieling-gate/tests/workspace/attacks.rs"]
mod attacks;
#[path = "cli/attach.rs"]
mod attach;
#[path = "cli/changes.rs"]
mod changes;
#[path = "cli/configuration.rs"]
mod configuration;
#[cfg(feature = "container")]
#[path = "cli/container.rs"]
mod container;
#[path = "cli/degraded.rs"]
mod degraded;
#[path = "cli/direct.rs"]
mod direct;
#[path = "cli/guide.rs"]
mod guide;
#[path = "cli/help.rs"]
mod help;
#[cfg(feature = "container")]
#[path = "cli/interrupted.rs"]
mod interrupted;
#[path = "cli/hidden.rs"]
mod hidden;
#[path = "cli/killed.rs"]
mod killed;
#[path = "cli/memory.rs"]
mod memory;
#[path = "cli/mounts.rs"]
mod mounts;
#[path = "cli/mcp.rs"]
mod mcp;
#[path = "cli/mcp_sessions.rs"]
mod mcp_sessions;
#[path = "cli/mcp_tools.rs"]
mod mcp_tools;
#[path = "cli/network.rs"]
mod network;
#[path = "cli/network_session.rs"]
mod network_session;
#[path = "cli/official.rs"]
mod official;
#[path = "cli/options.rs"]
mod options;
#[path = "cli/random.rs"]
mod random;
#[path = "cli/recordings.rs"]
mod recordings;
#[path = "cli/orphans.rs"]
mod orphans;
#[path = "cli/replay.rs"]
mod replay;
#[path = "cli/sandbox.rs"]
mod sandbox;
// What is tried with change sets alone too.
#[path = "../../shieling-changes/tests/changes/scripts.rs"]
mod scripts;
#[path = "cli/shell.rs"]
mod shell;
#[path = "cli/ssh.rs"]
mod ssh;
#[path = "cli/streams.rs"]
mod streams;
#[path = "cli/transcripts.rs"]
mod transcripts;
// What both crates that meet the official client share.
#[path = "../../shieling-server/tests/mcp/yes.rs"]
mod yes;
