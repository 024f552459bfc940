//! Files on the other side, by handles that stay there.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use shieling::environment::{Content, Entry, Expect, FileError, Files, Links, Meta, Node, WriteTarget};

use super::calls::{CALL_TIMEOUT, Call, Near, Unanswered, Waiting};
use crate::message::{FILE_PIECE, FileOrder, Order, Put, Said, WireExpect, WireMeta, pack};
use crate::park::wait_at_most;
use crate::wire_path::WirePath;

/// How much memory the entries of one directory may take.
const MOST_LISTED: usize = if cfg!(test) { 16 << 20 } else { 512 << 20 };

/// The files of an environment on the other side.
pub(super) struct Remote(pub(super) Arc<Near>);

/// Something on the other side that a call's number stands for.
struct Handle {
    call: Call,
    path: PathBuf,
}

fn lost(path: &Path, why: &dyn std::fmt::Display, done: &str) -> FileError {
    FileError::Io {
        doing: "reach",
        path: path.to_path_buf(),
        source: io::Error::new(io::ErrorKind::ConnectionAborted, format!("{why}; {done}")),
    }
}

/// The order has not left this side, or not all that it needs.
fn not_sent(path: &Path, why: &dyn std::fmt::Display) -> FileError {
    lost(path, why, "nothing was done")
}

/// The order was sent, and no answer has come.
fn unanswered(path: &Path, why: &dyn std::fmt::Display) -> FileError {
    lost(path, why, "whether it was done is not known")
}

impl Near {
    fn file(self: &Arc<Self>, at: &Path, order: FileOrder, bytes: &[u8]) -> Result<(Call, Said, Vec<u8>), FileError> {
        match self.wait_for(&Order::File(order), bytes) {
            Ok((_, Said::NotDone(fault), _)) => Err(fault.error()),
            Ok(answer) => Ok(answer),
            Err(Unanswered::NotSent(why)) => Err(not_sent(at, &why)),
            Err(Unanswered::Lost(why)) => Err(unanswered(at, &why)),
        }
    }

    fn node(self: &Arc<Self>, at: &Path, order: FileOrder) -> Result<Handle, FileError> {
        match self.file(at, order, &[])? {
            (call, Said::Node(path), _) => Ok(Handle {
                call,
                path: path.path(),
            }),
            _ => Err(UNFITTING),
        }
    }

    fn done(self: &Arc<Self>, at: &Path, order: FileOrder) -> Result<Call, FileError> {
        match self.file(at, order, &[])? {
            (call, Said::Done, _) => Ok(call),
            _ => Err(UNFITTING),
        }
    }

    fn meta(self: &Arc<Self>, at: &Path, order: FileOrder) -> Result<Meta, FileError> {
        match self.file(at, order, &[])? {
            (_, Said::Meta(meta), _) => Ok(meta.meta()),
            _ => Err(UNFITTING),
        }
    }
}

/// What is said where the answer fits no question.
const UNFITTING: FileError = FileError::Unsupported("the other side has answered what was not asked");

impl Files for Remote {
    fn node(&self, path: &Path, links: Links) -> Result<Box<dyn Node>, FileError> {
        let order = FileOrder::Node {
            path: WirePath::of(path),
            keep: links == Links::Keep,
        };
        Ok(Box::new(self.0.node(path, order)?))
    }

    fn write_target(&self, path: &Path, links: Links) -> Result<Box<dyn WriteTarget>, FileError> {
        let order = FileOrder::WriteTarget {
            path: WirePath::of(path),
            keep: links == Links::Keep,
        };
        Ok(Box::new(self.0.node(path, order)?))
    }
}

impl Handle {
    fn near(&self) -> &Arc<Near> {
        &self.call.near
    }

    fn of(&self) -> u32 {
        self.call.number
    }
}

impl Node for Handle {
    fn path(&self) -> &Path {
        &self.path
    }

    fn meta(&self) -> Result<Meta, FileError> {
        self.near().meta(&self.path, FileOrder::Meta { of: self.of() })
    }

    fn open(&self) -> Result<Box<dyn Content>, FileError> {
        let call = self.near().done(&self.path, FileOrder::Open { of: self.of() })?;
        let path = self.path.clone();
        Ok(Box::new(Handle { call, path }))
    }

    fn entries(&self) -> Result<Vec<Entry>, FileError> {
        let (mut all, mut bytes) = (Vec::new(), 0);
        let (listing, mut said, _) = self
            .near()
            .file(&self.path, FileOrder::Entries { of: self.of() }, &[])?;
        loop {
            let Said::Entries { entries, more } = said else {
                return Err(UNFITTING);
            };
            // One that has no end, or gives nothing and promises more, is none.
            if more && entries.is_empty() {
                return Err(UNFITTING);
            }
            bytes += entries
                .iter()
                .map(|(name, _)| name.len() + size_of::<Entry>())
                .sum::<usize>();
            if bytes > MOST_LISTED {
                return Err(FileError::Unsupported(
                    "a directory with this many entries is not listed over a link",
                ));
            }
            all.extend(entries.into_iter().map(|(name, kind)| Entry { name: name.os(), kind }));
            if !more {
                return Ok(all);
            }
            let next = FileOrder::More { of: listing.number };
            said = self.near().file(&self.path, next, &[])?.1;
        }
    }

    fn child(&self, name: &OsStr) -> Result<Box<dyn Node>, FileError> {
        let order = FileOrder::Child {
            of: self.of(),
            name: WirePath::name(name),
        };
        Ok(Box::new(self.near().node(&self.path, order)?))
    }

    fn child_meta(&self, name: &OsStr) -> Result<Meta, FileError> {
        let order = FileOrder::ChildMeta {
            of: self.of(),
            name: WirePath::name(name),
        };
        self.near().meta(&self.path, order)
    }

    fn open_child(&self, name: &OsStr) -> Result<Box<dyn Content>, FileError> {
        let order = FileOrder::OpenChild {
            of: self.of(),
            name: WirePath::name(name),
        };
        let call = self.near().done(&self.path, order)?;
        let path = self.path.join(name);
        Ok(Box::new(Handle { call, path }))
    }

    fn target(&self) -> Result<PathBuf, FileError> {
        match self.near().file(&self.path, FileOrder::Target { of: self.of() }, &[])? {
            (_, Said::Paths(mut paths), _) => paths.pop().map(WirePath::path).ok_or(UNFITTING),
            _ => Err(UNFITTING),
        }
    }
}

impl Content for Handle {
    fn read_at(&mut self, offset: u64, into: &mut [u8]) -> Result<usize, FileError> {
        let mut filled = 0;
        while filled < into.len() {
            let wanted = (into.len() - filled).min(FILE_PIECE);
            let order = FileOrder::Read {
                of: self.of(),
                offset: offset.saturating_add(filled as u64),
                length: u32::try_from(wanted).unwrap_or(u32::MAX),
            };
            let (_, said, bytes) = self.near().file(&self.path, order, &[])?;
            let (Said::Bytes, true) = (said, bytes.len() <= wanted) else {
                return Err(UNFITTING);
            };
            if let Some(room) = into.get_mut(filled..filled + bytes.len()) {
                room.copy_from_slice(&bytes);
            }
            filled += bytes.len();
            if bytes.len() < wanted {
                break;
            }
        }
        Ok(filled)
    }

    fn meta(&self) -> Result<Meta, FileError> {
        Node::meta(self)
    }
}

impl Handle {
    fn put(&self, content: &[u8], how: Put, expect: Expect) -> Result<(), FileError> {
        let order = |content| FileOrder::Put {
            write_target: self.of(),
            content,
            how,
            expect: WireExpect::of(expect),
        };
        if content.len() <= FILE_PIECE {
            self.near().file(&self.path, order(None), content)?;
            return Ok(());
        }
        let length = content.len() as u64;
        let room = self.near().done(&self.path, FileOrder::Content { length })?;
        for piece in content.chunks(FILE_PIECE) {
            let append = Order::File(FileOrder::Append { to: room.number });
            let frame = pack(room.number, &append, piece).ok_or(UNFITTING)?;
            // In line, so that it takes no more memory than its turn.
            let sent = wait_at_most(self.near().shared.link.in_line(frame), CALL_TIMEOUT);
            match sent {
                Some(Ok(())) => {}
                Some(Err(why)) => return Err(not_sent(&self.path, &why)),
                None => return Err(not_sent(&self.path, &"the other side takes nothing")),
            }
        }
        // What is urgent would overtake the pieces: an answer to something in line says that they are there.
        let order = order(Some(room.number));
        self.near().in_line(&self.path, order)
    }
}

impl Near {
    /// Has something done after all that stands in line.
    fn in_line(self: &Arc<Self>, at: &Path, order: FileOrder) -> Result<(), FileError> {
        let (answer, answered) = tokio::sync::oneshot::channel();
        let waiting = Waiting {
            answer: Some(answer),
            ..Waiting::default()
        };
        let ordering = async {
            let _turn = self.turn().await;
            let call = self.begin(|_| waiting).map_err(|why| not_sent(at, &why))?;
            let frame = pack(call.number, &Order::File(order), &[]).ok_or(UNFITTING)?;
            let sent = self.shared.link.in_line(frame).await;
            sent.map_err(|why| unanswered(at, &why))?;
            match answered.await {
                Ok((Said::Done, _)) => Ok(()),
                Ok((Said::NotDone(fault), _)) => Err(fault.error()),
                Ok(_) => Err(UNFITTING),
                Err(_) => Err(unanswered(at, &"the link was lost")),
            }
        };
        wait_at_most(ordering, CALL_TIMEOUT).unwrap_or_else(|| Err(unanswered(at, &"the other side has not answered")))
    }
}

impl WriteTarget for Handle {
    fn path(&self) -> &Path {
        &self.path
    }

    fn current(&self) -> Result<Option<Box<dyn Node>>, FileError> {
        match self.near().file(
            &self.path,
            FileOrder::Current {
                write_target: self.of(),
            },
            &[],
        )? {
            (call, Said::Node(path), _) => Ok(Some(Box::new(Self {
                call,
                path: path.path(),
            }))),
            (_, Said::Done, _) => Ok(None),
            _ => Err(UNFITTING),
        }
    }

    fn replace(&self, content: &[u8], executable: bool, expect: Expect) -> Result<(), FileError> {
        self.put(content, Put::Replace { executable }, expect)
    }

    fn restore(&self, content: &[u8], was: &Meta, expect: Expect) -> Result<(), FileError> {
        self.put(content, Put::Restore(WireMeta::of(was)), expect)
    }

    fn set_mode(&self, mode: u32) -> Result<(), FileError> {
        let write_target = self.of();
        self.near()
            .done(&self.path, FileOrder::SetMode { write_target, mode })
            .map(drop)
    }

    fn remove(&self, recursive: bool) -> Result<(), FileError> {
        let write_target = self.of();
        self.near()
            .done(
                &self.path,
                FileOrder::Remove {
                    write_target,
                    recursive,
                },
            )
            .map(drop)
    }

    fn rename(&self, to: &dyn WriteTarget, replace: bool) -> Result<(), FileError> {
        let to = to.as_any().downcast_ref::<Self>().ok_or(FileError::Unsupported(
            "a file cannot be moved to the files of another environment",
        ))?;
        let order = FileOrder::Rename {
            write_target: self.of(),
            to: to.of(),
            replace,
        };
        self.near().done(&self.path, order).map(drop)
    }

    fn as_any(&self) -> &dyn std::any::Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::os::unix::net::UnixStream;

    use shieling::environment::{Environment as _, Kind};
    use shieling_memory::Memory;

    use super::*;
    use crate::frame::{HEADER, Header, PREAMBLE, preamble};
    use crate::message::{Description, Surroundings, unpack};

    /// A far side that answers each order about files with this.
    fn answering(answer: impl Fn(FileOrder) -> Option<Said> + Send + 'static) -> UnixStream {
        let (near, mut far) = UnixStream::pair().expect("a pair");
        std::thread::spawn(move || {
            let memory = Memory::builder("/work").build().expect("a memory");
            let described = Description::of(&memory, &Surroundings::default());
            let said = pack(0, &Said::Described(Box::new(described)), &[]).expect("it is short");
            far.write_all(&[&preamble()[..], &said].concat()).expect("it is read");
            far.read_exact(&mut [0; PREAMBLE]).expect("its version");
            let mut header = [0; HEADER];
            while far.read_exact(&mut header).is_ok() {
                let header = Header::read(header).expect("it keeps to the protocol");
                let mut body = vec![0; header.length];
                far.read_exact(&mut body).expect("it comes whole");
                if let Ok((Order::File(order), _)) = unpack(&body)
                    && let Some(said) = answer(order)
                {
                    // Once the near side has had enough, nobody reads it.
                    let _ = far.write_all(&pack(header.call, &said, &[]).expect("it fits"));
                }
            }
        });
        near
    }

    fn listed(entries: Vec<(WirePath, Kind)>) -> Result<Vec<Entry>, FileError> {
        let stream = answering(move |order| match order {
            FileOrder::Node { path, .. } => Some(Said::Node(path)),
            FileOrder::Entries { .. } | FileOrder::More { .. } => Some(Said::Entries {
                entries: entries.clone(),
                more: true,
            }),
            _ => None,
        });
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a runtime");
        let transport = async move {
            stream.set_nonblocking(true)?;
            Ok(tokio::net::UnixStream::from_std(stream)?.into_split())
        };
        let connecting = crate::near::Remote::connect(transport, crate::Timing::default());
        let remote = runtime.block_on(connecting).expect("a link");
        let files = runtime.block_on(remote.files()).expect("it has files");
        files.node(Path::new("/work"), Links::Follow)?.entries()
    }

    #[test]
    fn a_listing_without_an_end_is_given_up() {
        assert!(listed(Vec::new()).is_err(), "it promises more and gives none");
        // A name may be long, so that few messages make much.
        let long = WirePath::name(OsStr::new(&"x".repeat(3 << 20)));
        let error = listed(vec![(long, Kind::File)]).expect_err("it has no end");
        assert!(error.to_string().contains("this many entries"), "{error}");
    }
}
