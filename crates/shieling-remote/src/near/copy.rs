//! Copies of directories to and from the other side.

use std::path::Path;
use std::sync::Arc;

use rustix::fs::Statx;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use super::Remote;
use super::arrived::Running;
use super::calls::{CALL_TIMEOUT, Call, Near, Waiting};
use crate::carry::Outlet;
use crate::copy::{
    self, All, BlockingReader, BlockingWriter, Copied, CopyError, CopyErrorKind, CopyOptions, Gone, Selection, Source,
    Target, WireCopyOptions,
};
use crate::frame::Channel;
use crate::link::LinkError;
use crate::message::{Order, Said, pack};
use crate::wire_path::WirePath;

/// Takes what is copied in, entry by entry: its path, relative to the directory that is copied, and what the system
/// said of it before it was read.
pub type Seen = Box<dyn FnMut(&Path, &Statx) + Send>;

/// Says what is left out of a copy without a word, with all that is below it: by its path, relative to the directory
/// that is copied, and by what the system says of it.
pub type Hides = Arc<dyn Fn(&Path, &Statx) -> bool + Send + Sync>;

/// A directory that was copied in, of which the other side knows what it made. Dropping it has that forgotten.
pub struct Base(Call);

impl std::fmt::Debug for Base {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Base").field(&self.0.number).finish()
    }
}

impl Remote {
    /// Copies what is in the directory `from` of this host into the directory `to` of the other side, which is made
    /// if it is not there. Files and links that have the same names are replaced, directories are filled.
    ///
    /// Neither side holds more than a few pieces of files at once, and the names of one directory.
    ///
    /// # Errors
    /// [`CopyError`]. What was copied before stays; no file is incomplete.
    /// # Cancel safety
    /// Dropping the future gives the copy up, with the same effect as an error.
    pub async fn copy_in(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<Copied, CopyError> {
        let (_, copied) = self.send(from, to, options, false, Box::new(All)).await?;
        Ok(copied)
    }

    /// As [`Self::copy_in`], without what is hidden.
    ///
    /// # Errors
    /// As [`Self::copy_in`].
    /// # Cancel safety
    /// As [`Self::copy_in`].
    pub async fn copy_shown_in(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
        hides: Hides,
    ) -> Result<Copied, CopyError> {
        let shown = Observed {
            seen: Box::new(|_, _| ()),
            hides: Some(hides),
        };
        let (_, copied) = self.send(from, to, options, false, Box::new(shown)).await?;
        Ok(copied)
    }

    /// As [`Self::copy_in`], without what is hidden, and has the other side remember what it made, about 200 bytes for each entry:
    /// [`Self::copy_changes_out`]. Nothing else may write there until it is done.
    ///
    /// # Errors
    /// As [`Self::copy_in`].
    /// # Cancel safety
    /// As [`Self::copy_in`].
    pub async fn copy_base_in(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
        hides: Option<Hides>,
        seen: Seen,
    ) -> Result<(Base, Copied), CopyError> {
        let choice = Box::new(Observed { seen, hides });
        let (call, copied) = self.send(from, to, options, true, choice).await?;
        Ok((Base(call), copied))
    }

    /// Copies what is in the directory `from` of the other side into the directory `to` of this host, in the same way.
    ///
    /// # Errors
    /// As [`Self::copy_in`].
    /// # Cancel safety
    /// As [`Self::copy_in`].
    pub async fn copy_out(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<Copied, CopyError> {
        self.receive(from, to, options, None, None).await
    }

    /// Copies out what differs from what was made as `base`: entries that are new or not as they were, with the
    /// directories that lead to them. A file or link that this system refuses to make is left out and reported, unless
    /// there is no space left; so is what cannot be read there, and without a word what is mounted there. `gone` takes the paths that are not there any more, parents before what was in
    /// them; what cannot be read is not among them.
    ///
    /// # Errors
    /// As [`Self::copy_in`], and what `gone` returns.
    /// # Cancel safety
    /// As [`Self::copy_in`].
    pub async fn copy_changes_out(
        &self,
        base: &Base,
        from: &Path,
        to: &Path,
        options: CopyOptions,
        gone: impl FnMut(&Path) -> Result<(), CopyError> + Send + 'static,
    ) -> Result<Copied, CopyError> {
        self.receive(from, to, options, Some(base.0.number), Some(Box::new(gone)))
            .await
    }

    async fn send(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
        keep: bool,
        mut choice: Box<dyn Selection + Send>,
    ) -> Result<(Call, Copied), CopyError> {
        // Before anything is asked of the other side.
        let source = Source::open(from)?;
        let order = Order::CopyIn {
            to: WirePath::of(to),
            options: WireCopyOptions::of(options),
            keep,
        };
        let copying = Copying::begin(&self.near, &order).await?;
        copying.streams.0.input.grant(copy::WINDOW);
        let outlet = Outlet {
            link: Arc::clone(&self.near.shared.link),
            call: copying.call.number,
            channel: Channel::Input,
            credit: Arc::clone(&copying.streams.0.input),
        };
        let packed = on_thread(move || {
            let mut writer = BlockingWriter::new(outlet);
            source.pack(&mut writer, &mut *choice)?;
            copy::end(&mut writer)?;
            writer.end().map_err(CopyError::lost)
        })?;
        let (call, (), copied) = copying.finish(packed).await?;
        Ok((call, copied))
    }

    async fn receive(
        &self,
        from: &Path,
        to: &Path,
        options: CopyOptions,
        since: Option<u32>,
        gone: Option<Box<Gone>>,
    ) -> Result<Copied, CopyError> {
        let target = Target::open(to, options)?;
        let target = match gone {
            Some(gone) => target.with_gone(gone).leaving_out(),
            None => target,
        };
        let order = Order::CopyOut {
            from: WirePath::of(from),
            since,
            window: u32::try_from(copy::WINDOW).unwrap_or(u32::MAX),
        };
        let copying = Copying::begin(&self.near, &order).await?;
        let mut reader = BlockingReader(copying.streams.0.output.reader());
        let unpacked = on_thread(move || target.unpack(&mut reader).map(|(copied, _)| copied))?;
        let (_, copied, _) = copying.finish(unpacked).await?;
        Ok(copied)
    }
}

struct Observed {
    seen: Seen,
    hides: Option<Hides>,
}

impl Selection for Observed {
    fn takes(&mut self, path: &Path, found: &Statx) -> bool {
        (self.seen)(path, found);
        true
    }

    fn hides(&self, path: &Path, found: &Statx) -> bool {
        self.hides.as_ref().is_some_and(|hides| hides(path, found))
    }
}

/// The streams of a copy. Dropping them ends the threads at both ends.
struct Streams(Arc<Running>);

impl Streams {
    fn leave(&self) {
        self.0.input.close();
        self.0.output.leave();
        self.0.errors.leave();
    }
}

impl Drop for Streams {
    fn drop(&mut self) {
        self.leave();
    }
}

/// A copy that was ordered.
struct Copying {
    streams: Streams,
    answered: oneshot::Receiver<(Said, Vec<u8>)>,
    call: Call,
    _turn: Option<OwnedSemaphorePermit>,
}

impl Copying {
    async fn begin(near: &Arc<Near>, order: &Order) -> Result<Self, CopyError> {
        let turn = near.turn().await;
        let (answer, answered) = oneshot::channel();
        let mut running = None;
        let call = near.begin(|call| {
            let made = Running::new(&near.shared.link, call, copy::WINDOW);
            running = Some(Arc::clone(&made));
            Waiting {
                answer: Some(answer),
                job: Some(made),
                shell: None,
            }
        });
        let call = call.map_err(CopyError::lost)?;
        let (Some(running), Some(frame)) = (running, pack(call.number, order, &[])) else {
            return Err(CopyError::lost("the paths are too long to be sent"));
        };
        near.shared.link.order(frame).await;
        Ok(Self {
            streams: Streams(running),
            answered,
            call,
            _turn: turn,
        })
    }

    /// Waits for the thread that works at this end, and for what the other side answers.
    async fn finish<T>(
        self,
        mut working: oneshot::Receiver<Result<T, CopyError>>,
    ) -> Result<(Call, T, Copied), CopyError> {
        let Self {
            streams,
            mut answered,
            call,
            _turn,
        } = self;
        let link = Arc::clone(&call.near.shared.link);
        let answer = |answer: Result<(Said, Vec<u8>), _>| match answer {
            Ok((Said::Copied(copied), _)) => Ok(copied.copied()),
            Ok((Said::NotCopied(fault), _)) => Err(fault.error()),
            Ok(_) => Err(CopyError::stream("an answer to another question")),
            Err(_) => Err(CopyError::lost(link.over().unwrap_or(LinkError::Ended))),
        };
        let thread = |worked| match worked {
            Ok(worked) => worked,
            Err(_) => Err(CopyError::stream("the thread that copies is gone")),
        };
        // What went wrong at this end in itself; otherwise the other side has ended the stream, and says why.
        let is_own = |error: &CopyError| error.kind != CopyErrorKind::Lost;
        let silent = || CopyError::lost(format!("the other side said nothing for {} s", CALL_TIMEOUT.as_secs()));
        tokio::select! {
            biased;
            worked = &mut working => match thread(worked) {
                Err(error) if is_own(&error) => Err(error),
                worked => {
                    let answered = tokio::time::timeout(CALL_TIMEOUT, answered).await;
                    let copied = answer(answered.map_err(|_| silent())?)?;
                    Ok((call, worked?, copied))
                }
            },
            answered = &mut answered => match answer(answered) {
                // What it has sent before is still read.
                Ok(copied) => match tokio::time::timeout(CALL_TIMEOUT, working).await {
                    Ok(worked) => Ok((call, thread(worked)?, copied)),
                    Err(_) => Err(silent()),
                },
                Err(error) => {
                    // It is waited for, since it removes what it has not completed.
                    streams.leave();
                    match thread(working.await) {
                        Err(own) if is_own(&own) => Err(own),
                        Ok(_) | Err(_) => Err(error),
                    }
                }
            },
        }
    }
}

/// Does something that may block on a thread of its own.
fn on_thread<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, CopyError> + Send + 'static,
) -> Result<oneshot::Receiver<Result<T, CopyError>>, CopyError> {
    let (done, working) = oneshot::channel();
    let thread = std::thread::Builder::new().name("shieling-copy".to_owned());
    let started = thread.spawn(move || {
        // Nobody waits any more if the copy was given up.
        let _ = done.send(work());
    });
    started.map_err(|error| CopyError::lost(format!("no thread can be made: {error}")))?;
    Ok(working)
}
