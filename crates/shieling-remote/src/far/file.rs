//! What is done with files on the far side: handles that a call has made, on threads that may block.

use std::sync::{Arc, Mutex, PoisonError};

use shieling::environment::{Content, Entry, FileError, Files, Node, WriteTarget};

use super::calls::{Far, Gathered, MOST_CONTENT, Thing};
use crate::fault::FileFault;
use crate::message::{FILE_PIECE, FileOrder, Put, Said, WireMeta, links};
use crate::wire_path::WirePath;

/// How many entries of a directory are told at once, by the bytes of their names.
const LISTED: usize = 256 * 1024;

/// What was done: what is said of it with which bytes, and what is kept under the call's number.
type Answer = Result<(Said, Vec<u8>, Option<Thing>), FileError>;

fn said(said: Said) -> Answer {
    Ok((said, Vec::new(), None))
}

fn node(node: Box<dyn Node>) -> Answer {
    let said = Said::Node(WirePath::of(node.path()));
    Ok((said, Vec::new(), Some(Thing::Node(Arc::from(node)))))
}

fn open(content: Box<dyn Content>) -> Answer {
    Ok((Said::Done, Vec::new(), Some(Thing::Open(Arc::new(Mutex::new(content))))))
}

fn locked<T>(of: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Far {
    /// Does something with files and answers. Says whether something is kept under the call's number.
    pub(super) async fn file(self: &Arc<Self>, call: u32, order: FileOrder, bytes: Vec<u8>) -> bool {
        let files = match order {
            FileOrder::Node { .. } | FileOrder::WriteTarget { .. } => match self.environment.files().await {
                Ok(files) => Some(files),
                Err(error) => {
                    let why = FileFault::Unsupported(error.to_string());
                    self.say(call, &Said::NotDone(why), &[]);
                    return false;
                }
            },
            _ => None,
        };
        let far = Arc::clone(self);
        let done = tokio::task::spawn_blocking(move || far.do_file(files, order, &bytes));
        let answer = done
            .await
            .unwrap_or(Err(FileError::Unsupported("the far side gave it up")));
        match answer {
            Ok((said, bytes, thing)) => {
                let keeps = thing.is_some();
                // First, since the answer has the near side use it.
                if let Some(thing) = thing {
                    self.keep(call, thing);
                }
                self.say(call, &said, &bytes);
                keeps
            }
            Err(error) => {
                self.say(call, &Said::NotDone(FileFault::of(&error)), &[]);
                false
            }
        }
    }

    /// Takes a piece of a content.
    pub(super) fn append(&self, to: u32, bytes: &[u8]) -> Result<(), String> {
        let gathered = self.thing(to, |thing| match thing {
            Thing::Content(content) => Some(Arc::clone(content)),
            _ => None,
        });
        let Some(gathered) = gathered else { return Ok(()) };
        let mut gathered = locked(&gathered);
        if gathered.bytes.len() + bytes.len() > gathered.length {
            return Err("more of a content than was said".to_owned());
        }
        gathered.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn node(&self, call: u32) -> Result<Arc<dyn Node>, FileError> {
        self.thing(call, |thing| match thing {
            Thing::Node(node) => Some(Arc::clone(node)),
            _ => None,
        })
        .ok_or(UNKNOWN)
    }

    fn write_target(&self, call: u32) -> Result<Arc<Mutex<Box<dyn WriteTarget>>>, FileError> {
        self.thing(call, |thing| match thing {
            Thing::WriteTarget(write_target) => Some(Arc::clone(write_target)),
            _ => None,
        })
        .ok_or(UNKNOWN)
    }

    fn opened(&self, call: u32) -> Result<Arc<Mutex<Box<dyn Content>>>, FileError> {
        self.thing(call, |thing| match thing {
            Thing::Open(open) => Some(Arc::clone(open)),
            _ => None,
        })
        .ok_or(UNKNOWN)
    }

    fn do_file(&self, files: Option<Arc<dyn Files>>, order: FileOrder, bytes: &[u8]) -> Answer {
        match order {
            FileOrder::Node { path, keep } => {
                let files = files.ok_or(UNKNOWN)?;
                node(files.node(&path.path(), links(keep))?)
            }
            FileOrder::WriteTarget { path, keep } => {
                let files = files.ok_or(UNKNOWN)?;
                let write_target = files.write_target(&path.path(), links(keep))?;
                let said = Said::Node(WirePath::of(write_target.path()));
                Ok((
                    said,
                    Vec::new(),
                    Some(Thing::WriteTarget(Arc::new(Mutex::new(write_target)))),
                ))
            }
            FileOrder::Child { of, name } => node(self.node(of)?.child(&name.os())?),
            FileOrder::Current { write_target } => match locked(&*self.write_target(write_target)?).current()? {
                Some(found) => node(found),
                None => said(Said::Done),
            },
            FileOrder::Meta { of } => {
                let meta = match self.opened(of) {
                    Ok(open) => locked(&open).meta()?,
                    Err(_) => self.node(of)?.meta()?,
                };
                said(Said::Meta(WireMeta::of(&meta)))
            }
            FileOrder::ChildMeta { of, name } => {
                let meta = self.node(of)?.child_meta(&name.os())?;
                said(Said::Meta(WireMeta::of(&meta)))
            }
            FileOrder::Open { of } => open(self.node(of)?.open()?),
            FileOrder::OpenChild { of, name } => open(self.node(of)?.open_child(&name.os())?),
            FileOrder::Read { of, offset, length } => {
                let mut buffer = vec![0; (length as usize).min(FILE_PIECE)];
                let read = locked(&*self.opened(of)?).read_at(offset, &mut buffer)?;
                buffer.truncate(read);
                Ok((Said::Bytes, buffer, None))
            }
            FileOrder::Entries { of } => {
                let listing = self.node(of)?.entries()?.into_iter().peekable();
                let listing = Arc::new(Mutex::new(listing));
                let first = some(&mut locked(&listing));
                Ok((first, Vec::new(), Some(Thing::Listing(listing))))
            }
            FileOrder::More { of } => {
                let listing = self.thing(of, |thing| match thing {
                    Thing::Listing(listing) => Some(Arc::clone(listing)),
                    _ => None,
                });
                said(some(&mut locked(&*listing.ok_or(UNKNOWN)?)))
            }
            FileOrder::Target { of } => {
                let target = self.node(of)?.target()?;
                said(Said::Paths(vec![WirePath::of(&target)]))
            }
            FileOrder::Content { length } => self.room_for(length),
            FileOrder::Put {
                write_target,
                content,
                how,
                expect,
            } => {
                let write_target = self.write_target(write_target)?;
                let write_target = locked(&write_target);
                let gathered = match content {
                    None => None,
                    Some(content) => Some(
                        self.thing(content, |thing| match thing {
                            Thing::Content(content) => Some(Arc::clone(content)),
                            _ => None,
                        })
                        .ok_or(UNKNOWN)?,
                    ),
                };
                let gathered = gathered.as_deref().map(locked);
                let content = match &gathered {
                    None => bytes,
                    // A piece that was lost is no content.
                    Some(gathered) if gathered.bytes.len() != gathered.length => return Err(UNKNOWN),
                    Some(gathered) => &gathered.bytes,
                };
                match how {
                    Put::Replace { executable } => write_target.replace(content, executable, expect.expect())?,
                    Put::Restore(was) => write_target.restore(content, &was.meta(), expect.expect())?,
                }
                said(Said::Done)
            }
            FileOrder::SetMode { write_target, mode } => {
                locked(&*self.write_target(write_target)?).set_mode(mode)?;
                said(Said::Done)
            }
            FileOrder::Remove {
                write_target,
                recursive,
            } => {
                locked(&*self.write_target(write_target)?).remove(recursive)?;
                said(Said::Done)
            }
            FileOrder::Rename {
                write_target,
                to,
                replace,
            } => {
                let (from, onto) = (self.write_target(write_target)?, self.write_target(to)?);
                if Arc::ptr_eq(&from, &onto) {
                    let path = locked(&from).path().to_path_buf();
                    return Err(FileError::Exists(path));
                }
                // In one order, so that two that cross do not wait for each other.
                let (from, onto) = if write_target < to {
                    let from = locked(&from);
                    (from, locked(&onto))
                } else {
                    let onto = locked(&onto);
                    (locked(&from), onto)
                };
                from.rename(&**onto, replace)?;
                said(Said::Done)
            }
            FileOrder::Append { .. } => Err(UNKNOWN),
        }
    }

    fn room_for(&self, length: u64) -> Answer {
        let room = u32::try_from(length)
            .ok()
            .and_then(|length| Arc::clone(&self.contents).try_acquire_many_owned(length).ok());
        let room = room.ok_or_else(|| FileError::Full {
            path: "/".into(),
            why: format!(
                "the far side holds {MOST_CONTENT} bytes of contents at once; these are {length} more than it can take now"
            ),
        })?;
        let content = Gathered {
            bytes: Vec::new(),
            length: usize::try_from(length).unwrap_or(usize::MAX),
            _room: room,
        };
        Ok((
            Said::Done,
            Vec::new(),
            Some(Thing::Content(Arc::new(Mutex::new(content)))),
        ))
    }
}

/// What is said of a number that stands for nothing of that kind.
const UNKNOWN: FileError = FileError::Unsupported("the far side does not hold it any more");

fn some(listing: &mut std::iter::Peekable<std::vec::IntoIter<Entry>>) -> Said {
    let (mut entries, mut bytes) = (Vec::new(), 0);
    while bytes < LISTED {
        let Some(entry) = listing.next() else { break };
        bytes += entry.name.len() + 8;
        entries.push((WirePath::name(&entry.name), entry.kind));
    }
    let more = listing.peek().is_some();
    Said::Entries { entries, more }
}
