//! Copies of directories on the far side, on threads that may block.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::fs::Statx;

use super::calls::{Far, Thing};
use crate::carry::Outlet;
use crate::copy::{
    self, All, BlockingReader, BlockingWriter, Copied, CopyError, CopyErrorKind, CopyFault, CopyOptions, Made,
    Selection, Source, Stamp, Target, WireCopied,
};
use crate::flow::{Credit, Inbox};
use crate::frame::Channel;
use crate::message::Said;

/// Ends the streams of a copy that is given up, and with them the thread that works on it.
struct Streams {
    input: Option<Arc<Inbox>>,
    output: Option<Arc<Credit>>,
}

impl Drop for Streams {
    fn drop(&mut self) {
        if let Some(input) = &self.input {
            input.leave();
        }
        if let Some(output) = &self.output {
            output.close();
        }
    }
}

impl Far {
    /// Makes a tree of what arrives, and answers. Says whether something is kept under the call's number.
    pub(super) async fn copy_in(
        &self,
        call: u32,
        input: Arc<Inbox>,
        to: &Path,
        options: CopyOptions,
        keep: bool,
    ) -> bool {
        if !self.copies {
            self.not_copied(call, &unsupported());
            return false;
        }
        let streams = Streams {
            input: Some(Arc::clone(&input)),
            output: None,
        };
        let to = to.to_owned();
        let unpacked = tokio::task::spawn_blocking(move || {
            let target = Target::open(&to, options)?;
            let target = if keep { target.keep_made() } else { target };
            let mut reader = BlockingReader(input.reader());
            target.unpack(&mut reader)
        });
        let unpacked = unpacked
            .await
            .unwrap_or_else(|_| Err(CopyError::lost("the far side gave it up")));
        drop(streams);
        match unpacked {
            Ok((copied, made)) => {
                let keeps = made.is_some();
                if let Some(made) = made {
                    // A change within the same tick of the clock could not be told from what was made.
                    tokio::time::sleep(copy::TICK).await;
                    self.keep(call, Thing::Made(Arc::new(Mutex::new(made))));
                }
                self.say(call, &Said::Copied(WireCopied::of(&copied)), &[]);
                keeps
            }
            Err(error) => {
                self.not_copied(call, &error);
                false
            }
        }
    }

    /// Sends a tree, and answers.
    pub(super) async fn copy_out(&self, call: u32, output: Arc<Credit>, from: &Path, since: Option<u32>) {
        if !self.copies {
            return self.not_copied(call, &unsupported());
        }
        let made = since.map(|since| {
            self.thing(since, |thing| match thing {
                Thing::Made(made) => Some(Arc::clone(made)),
                _ => None,
            })
        });
        if matches!(made, Some(None)) {
            let error = CopyError::new(CopyErrorKind::Lost, "", "what was copied before is not known any more");
            return self.not_copied(call, &error);
        }
        let streams = Streams {
            input: None,
            output: Some(Arc::clone(&output)),
        };
        let outlet = Outlet {
            link: Arc::clone(&self.link),
            call,
            channel: Channel::Output,
            credit: output,
        };
        let from = from.to_owned();
        let packed =
            tokio::task::spawn_blocking(move || send(&from, made.flatten().as_deref(), BlockingWriter::new(outlet)));
        let packed = packed
            .await
            .unwrap_or_else(|_| Err(CopyError::lost("the far side gave it up")));
        drop(streams);
        match packed {
            Ok(()) => self.say(call, &Said::Copied(WireCopied::of(&Copied::default())), &[]),
            Err(error) => self.not_copied(call, &error),
        }
    }

    fn not_copied(&self, call: u32, error: &CopyError) {
        self.say(call, &Said::NotCopied(CopyFault::of(error)), &[]);
    }
}

fn unsupported() -> CopyError {
    CopyError::new(
        CopyErrorKind::Unsupported,
        "",
        "its environment has no files of its own there",
    )
}

/// What differs from what was made.
struct Changed<'m> {
    made: &'m Made,
    /// What of it was not found yet.
    left: BTreeSet<&'m Path>,
}

impl Selection for Changed<'_> {
    fn takes(&mut self, path: &Path, found: &Statx) -> bool {
        self.left.remove(path);
        self.made.get(path) != Some(&Stamp::of(found))
    }

    // Volumes of the container are no part of the copy. What was mounted over a part of it later hides that.
    fn reports_mount(&self, path: &Path) -> bool {
        self.made.contains_key(path)
    }

    // What is there is unknown, so that it does not count as gone.
    fn left_out(&mut self, path: &Path) {
        let below = self.left.range(path..).take_while(|known| known.starts_with(path));
        for known in below.copied().collect::<Vec<_>>() {
            self.left.remove(known);
        }
    }
}

/// Sends all that differs from what was made, or all.
fn send(from: &Path, made: Option<&Mutex<Made>>, mut to: BlockingWriter) -> Result<(), CopyError> {
    let source = Source::open(from)?;
    match made {
        None => source.pack(&mut to, &mut All)?,
        Some(made) => {
            let made = made.lock().unwrap_or_else(PoisonError::into_inner);
            let mut changed = Changed {
                made: &made,
                left: made.keys().map(AsRef::as_ref).collect(),
            };
            source.pack(&mut to, &mut changed)?;
            copy::gone(&mut to, changed.left.into_iter())?;
        }
    }
    copy::end(&mut to)?;
    to.end().map_err(CopyError::lost)
}
