//! Programs for files that work on the tree itself: those of bashkit's that pass over options without
//! a word (`cp -n`, `mv -n`, `mkdir -m`), or that lack the usual ones. An option that they do not
//! have is refused as GNU's programs refuse an unknown one.

mod chmod;
mod cp;
mod dirname;
mod ls;
mod mkdir;
mod mode;
mod moment;
mod mv;
mod options;
mod realpath;
mod rm;
mod stat;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, ExecutionBudget, async_trait};

use super::disk::Disk;
use crate::environment::Kind;
use crate::environment::memory::tree::{About, Fault, Follow, Id, Inside};

pub(super) use self::mode::Mode;

/// Each of them, by its name.
const ALL: &[(&str, Run)] = &[
    ("chmod", chmod::run),
    ("cp", cp::run),
    ("dirname", dirname::run),
    ("ls", ls::run),
    ("mkdir", mkdir::run),
    ("mv", mv::run),
    ("realpath", realpath::run),
    ("rm", rm::run),
    ("stat", stat::run),
];

/// How often one call looks for a file.
const MOST_LOOKS: u32 = 1_000_000;
/// How often it looks before it asks whether it is still wanted.
const LOOKS_APART: u32 = 32;

/// What one of them does. An error is one of how it is used.
type Run = fn(&mut Call<'_>) -> Result<(), String>;

/// One call of one of them.
struct Call<'a> {
    args: &'a [String],
    cwd: &'a Path,
    /// The bits that new files do not get.
    mask: u32,
    inside: Inside<'a>,
    /// What `cp` is given that is no file of the tree: devices, and what a shell feeds it.
    foreign: BTreeMap<String, Vec<u8>>,
    /// How large a file may get.
    largest: Option<u64>,
    /// How often it may still look, unless it is broken off: links can make a tree of a few names endless.
    looks: u32,
    budget: Option<ExecutionBudget>,
    out: String,
    /// What went wrong, line by line.
    failures: Vec<String>,
    /// The status once something has failed, and that of a call that is none.
    status: i32,
    misuse: i32,
}

impl Call<'_> {
    /// Keeps that something went wrong, and goes on. Of what is empty, nothing is said.
    fn fail(&mut self, why: impl Into<String>) {
        self.failures.push(why.into());
    }

    /// The path that a name stands for.
    fn path(&self, name: &str) -> PathBuf {
        self.cwd.join(name)
    }

    /// What there is of this name. One that ends with a slash is a directory.
    fn look(&mut self, name: &str, links: Follow) -> Result<(Id, About), Fault> {
        if name.is_empty() {
            return Err(Fault::NotFound);
        }
        let unwanted = |budget: &ExecutionBudget| budget.check().is_err();
        if self.looks.is_multiple_of(LOOKS_APART) && self.budget.as_ref().is_some_and(unwanted) {
            self.looks = 0;
        }
        self.looks = self.looks.checked_sub(1).ok_or(Fault::Loop)?;
        let directory = name.ends_with('/');
        let links = if directory { Follow::All } else { links };
        let id = self.inside.find(&self.cwd.join(name), links)?;
        let about = self.inside.about(id)?;
        if directory && about.kind != Kind::Directory {
            return Err(Fault::NotADirectory);
        }
        Ok((id, about))
    }

    /// The names in a directory.
    fn names(&mut self, name: &str) -> Result<Vec<(Arc<str>, Id)>, Fault> {
        let walked = self.inside.walk(&self.cwd.join(name), Follow::All)?;
        let id = walked.there().ok_or(Fault::NotFound)?;
        self.inside.list(id, &walked.path)
    }

    /// How many names it has: a directory has one in itself and in each that is in it.
    fn names_of(&mut self, name: &str, about: &About) -> u64 {
        match about.kind {
            Kind::Directory => {
                let below = self.names(name).unwrap_or_default();
                let directory = |(_, id): &&(Arc<str>, Id)| self.inside.kind(*id) == Some(Kind::Directory);
                2 + below.iter().filter(directory).count() as u64
            }
            Kind::File | Kind::Link | Kind::Fifo | Kind::Socket | Kind::Device => 1,
        }
    }

    /// Whether a name leads to a directory.
    fn is_directory(&mut self, name: &str) -> bool {
        self.look(name, Follow::All)
            .is_ok_and(|(_, about)| about.kind == Kind::Directory)
    }
}

/// What the system says of a fault.
fn said(fault: &Fault) -> String {
    fault.to_io().to_string()
}

/// The last name of a path, as it is written.
fn last_name(name: &str) -> &str {
    let name = name.trim_end_matches('/');
    name.rsplit('/').next().unwrap_or(name)
}

/// A name in a directory, as it is written.
fn within(directory: &str, name: &str) -> String {
    if directory.ends_with('/') {
        format!("{directory}{name}")
    } else {
        format!("{directory}/{name}")
    }
}

/// One of the programs, as bashkit calls it.
struct Ours {
    name: &'static str,
    run: Run,
    disk: Arc<Disk>,
}

/// All of them.
pub(super) fn all(disk: &Arc<Disk>) -> impl Iterator<Item = (&'static str, Box<dyn Builtin>)> {
    ALL.iter().map(|&(name, run)| {
        let disk = Arc::clone(disk);
        (name, Box::new(Ours { name, run, disk }) as Box<dyn Builtin>)
    })
}

impl Ours {
    /// What operands hold that the tree does not have.
    async fn foreign(&self, ctx: &BuiltinContext<'_>) -> BTreeMap<String, Vec<u8>> {
        let mut foreign = BTreeMap::new();
        for name in ctx.args.iter().filter(|arg| !arg.starts_with('-')) {
            let path = ctx.cwd.join(name);
            if self.disk.tree().enter().find(&path, Follow::All).is_err()
                && let Ok(content) = ctx.fs.read_file(&path).await
            {
                foreign.insert(name.clone(), content);
            }
        }
        foreign
    }
}

#[async_trait]
impl Builtin for Ours {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let foreign = match self.name {
            "cp" => self.foreign(&ctx).await,
            _ => BTreeMap::new(),
        };
        let mut call = Call {
            args: ctx.args,
            cwd: ctx.cwd,
            mask: self.disk.masks().now(),
            inside: self.disk.tree().enter(),
            foreign,
            largest: self.disk.largest(),
            looks: MOST_LOOKS,
            budget: ctx
                .execution_budget()
                .and_then(|budget| budget.try_with(Clone::clone).ok()),
            out: String::new(),
            failures: Vec::new(),
            status: 1,
            misuse: 1,
        };
        let misused = (self.run)(&mut call).err();
        let told = call.failures.iter().filter(|why| !why.is_empty());
        let mut stderr: String = told.map(|why| format!("{}: {why}\n", self.name)).collect();
        let mut exit_code = if call.failures.is_empty() { 0 } else { call.status };
        if let Some(why) = misused {
            let name = self.name;
            stderr.push_str(&format!("{name}: {why}\nTry '{name} --help' for more information.\n"));
            exit_code = call.misuse;
        }
        Ok(ExecResult {
            stdout: call.out.into(),
            stderr: stderr.into(),
            exit_code,
            ..ExecResult::default()
        })
    }
}
