//! What a watch knows, as bytes: for a process that goes on where the one that watched is gone.
//!
//! A part is what changed since the part before. The bytes come from ourselves and are read by the same version; what cannot
//! be read is an error and nothing worse.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use shieling_gate::{Entry, Kind, Lead, LeadKind};

use crate::plan::Plan;
use crate::tree::{Kept, Seen, Stamp, Time};

const DIRECTORY: u8 = 1;
const NO_DIRECTORY: u8 = 2;
const KEPT: u8 = 3;
const NOTHING_KEPT: u8 = 4;
const LATER: u8 = 5;
const LEAD: u8 = 6;

/// One thing that is known.
pub(crate) enum Part {
    Directory(PathBuf, Option<Seen>),
    Kept(PathBuf, Option<Kept>),
    Later(PathBuf),
    Lead(Lead),
}

/// Writes bytes.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn directory(&mut self, path: &Path, seen: Option<&Seen>) {
        self.byte(seen.map_or(NO_DIRECTORY, |_| DIRECTORY));
        self.path(path);
        if let Some(seen) = seen {
            self.stamp(&seen.stamp);
            self.byte(u8::from(seen.is_young));
        }
    }

    pub(crate) fn kept(&mut self, path: &Path, kept: Option<&Kept>) {
        self.byte(kept.map_or(NOTHING_KEPT, |_| KEPT));
        self.path(path);
        let Some(kept) = kept else { return };
        self.stamp(&kept.stamp);
        self.byte(u8::from(kept.is_young));
        let (kind, target) = match &kept.entry.kind {
            Kind::File => (0, None),
            Kind::Directory => (1, None),
            Kind::Link(target) => (2, Some(target)),
            Kind::Fifo => (3, None),
            Kind::Socket => (4, None),
            Kind::Device => (5, None),
        };
        self.byte(kind);
        self.path(target.map_or(Path::new(""), |target| target));
        self.number(kept.entry.mode.into());
        self.number(kept.entry.links);
        self.number(kept.entry.size);
        self.byte(u8::from(kept.content.is_some()));
        self.bytes(kept.content.as_deref().unwrap_or_default());
    }

    pub(crate) fn later(&mut self, path: &Path) {
        self.byte(LATER);
        self.path(path);
    }

    pub(crate) fn lead(&mut self, lead: &Lead) {
        self.byte(LEAD);
        self.place_and_kind(lead);
    }

    fn place_and_kind(&mut self, lead: &Lead) {
        self.path(&lead.path);
        self.byte(match lead.kind {
            LeadKind::GitSettings => 0,
            LeadKind::Code => 1,
            LeadKind::Folder => 2,
            LeadKind::Program => 3,
        });
    }

    /// A plan, and when its first look began.
    pub(crate) fn plan(&mut self, plan: &Plan, since: Time) {
        self.path(&plan.root);
        self.byte(u8::from(plan.home.is_some()));
        self.path(plan.home.as_deref().unwrap_or(Path::new("")));
        self.number(plan.leads.len() as u64);
        plan.leads.iter().for_each(|lead| self.place_and_kind(lead));
        for paths in [&plan.toolchains, &plan.beside] {
            self.number(paths.len() as u64);
            for path in paths {
                self.path(path);
            }
        }
        self.time(since);
    }

    fn stamp(&mut self, stamp: &Stamp) {
        self.number(stamp.device);
        self.number(stamp.inode);
        self.time(stamp.changed);
        self.number(stamp.owner.0.into());
        self.number(stamp.owner.1.into());
    }

    fn time(&mut self, time: Time) {
        self.0.extend_from_slice(&time.to_ne_bytes());
    }

    fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    fn number(&mut self, number: u64) {
        self.0.extend_from_slice(&number.to_ne_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn path(&mut self, path: &Path) {
        self.bytes(path.as_os_str().as_bytes());
    }
}

/// Reads them. `None` is what cannot be read.
#[derive(Debug)]
pub(crate) struct Reader<'b>(pub(crate) &'b [u8]);

impl Reader<'_> {
    pub(crate) fn part(&mut self) -> Option<Part> {
        let what = self.byte()?;
        let path = self.path()?;
        Some(match what {
            DIRECTORY => {
                let seen = Seen {
                    stamp: self.stamp()?,
                    is_young: self.byte()? != 0,
                    was_closed: false,
                };
                Part::Directory(path, Some(seen))
            }
            NO_DIRECTORY => Part::Directory(path, None),
            KEPT => Part::Kept(path, Some(self.kept()?)),
            NOTHING_KEPT => Part::Kept(path, None),
            LATER => Part::Later(path),
            LEAD => Part::Lead(Lead {
                kind: self.kind_of_lead()?,
                path,
            }),
            _ => return None,
        })
    }

    fn kind_of_lead(&mut self) -> Option<LeadKind> {
        Some(match self.byte()? {
            0 => LeadKind::GitSettings,
            1 => LeadKind::Code,
            2 => LeadKind::Folder,
            3 => LeadKind::Program,
            _ => return None,
        })
    }

    fn kept(&mut self) -> Option<Kept> {
        let stamp = self.stamp()?;
        let is_young = self.byte()? != 0;
        let (kind, target) = (self.byte()?, self.path()?);
        let kind = match kind {
            0 => Kind::File,
            1 => Kind::Directory,
            2 => Kind::Link(target),
            3 => Kind::Fifo,
            4 => Kind::Socket,
            5 => Kind::Device,
            _ => return None,
        };
        let entry = Entry {
            kind,
            mode: u32::try_from(self.number()?).ok()?,
            links: self.number()?,
            size: self.number()?,
        };
        let has_content = self.byte()? != 0;
        let content = self.bytes()?.to_vec();
        Some(Kept {
            entry,
            stamp,
            content: has_content.then_some(content),
            is_young,
        })
    }

    /// A plan that looks in the background of nothing, and when its first look began.
    pub(crate) fn plan(&mut self) -> Option<(Plan, Time)> {
        let root = self.path()?;
        let has_home = self.byte()? != 0;
        let home = self.path()?;
        let mut leads = Vec::new();
        for _ in 0..self.number()? {
            leads.push(Lead {
                path: self.path()?,
                kind: self.kind_of_lead()?,
            });
        }
        let mut lists = [Vec::new(), Vec::new()];
        for list in &mut lists {
            for _ in 0..self.number()? {
                list.push(self.path()?);
            }
        }
        let [toolchains, beside] = lists;
        let plan = Plan {
            root,
            home: has_home.then_some(home),
            leads,
            toolchains,
            beside,
            first_budget: std::time::Duration::ZERO,
            has_notifier: false,
        };
        Some((plan, self.time()?))
    }

    fn stamp(&mut self) -> Option<Stamp> {
        Some(Stamp {
            device: self.number()?,
            inode: self.number()?,
            changed: self.time()?,
            owner: (u32::try_from(self.number()?).ok()?, u32::try_from(self.number()?).ok()?),
        })
    }

    fn time(&mut self) -> Option<Time> {
        let (time, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(Time::from_ne_bytes(*time))
    }

    fn byte(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    fn number(&mut self) -> Option<u64> {
        let (number, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_ne_bytes(*number))
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (bytes, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(bytes)
    }

    fn path(&mut self) -> Option<PathBuf> {
        Some(PathBuf::from(OsStr::from_bytes(self.bytes()?)))
    }
}
