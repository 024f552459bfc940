//! Starts one command and ends its whole tree, exactly. Refuses to guess: whether a process is left
//! is asked of the kernel, not hoped.
//!
//! Linux only: it rests on child subreapers, pidfds and `close_range` (kernel 5.9 or newer), and
//! on `/proc` for finding the processes to signal.
//!
//! This is the layer below approval: whoever runs commands for an agent goes through an
//! [`Environment`](crate::environment::Environment), which takes only what was approved.

mod counts;
mod descent;
mod drive;
mod stop_handle;
mod error;
mod event;
mod finished;
mod handle;
mod jail;
mod job;
mod lifecycle;
mod memory;
mod output_reader;
mod pipes;
mod plan;
mod run;
mod settler;
mod shell;
mod socket;
mod started;
mod streams;
mod sys;
mod zygote;

pub(crate) use counts::{Counts, Struck};
pub use error::{JailError, SpawnError};
pub use event::{Control, Ended, Event, LostError, MainEnd, Usage};
pub use finished::{End, Finished, Limits};
pub(crate) use handle::{Job, Parts, STOP_MARGIN, TerminalFilter};
pub use handle::{OpenStreams, Process};
pub use jail::Jail;
pub(crate) use jail::{Next, Ordered, Sent};
pub(crate) use lifecycle::{Action, Lifecycle};
pub use memory::programs_in;
pub use output_reader::LARGE;
pub(crate) use output_reader::{OutputReader, Reading, read_pipe};
pub use plan::{Plan, SCRIPT_DESCRIPTOR, Streams};
pub use run::run_to_end;
pub(crate) use run::run_until;
pub(crate) use settler::Settler;
pub use shell::{SessionShell, Shell, ShellError, Starting, State};
pub use started::{Received, SendError, Started};
pub use stop_handle::AtEnd;
pub(crate) use stop_handle::StopHandle;
pub use streams::{DRAIN, LARGE_PIPE};
pub(crate) use sys::{watch, watch_both};
pub use zygote::start_ahead;
#[cfg(feature = "copy")]
pub use zygote::{copy_ahead, has_copy};

pub use shieling_jail::message::{Layer as JailLayer, Refusal as JailRefusal};
