//! `chmod`, `cp`, `dirname`, `ls`, `mkdir`, `mv`, `realpath` and `rm`, implemented on the tree, since those of
//! bashkit silently ignore options and failures (`mv -n`, `mkdir -m`, `rm -f` on a read-only tree). Unsupported
//! options are refused.

mod invocation;
mod ls;
mod mode;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bashkit::{Builtin, BuiltinContext, ExecResult, async_trait};
use shieling::environment::Kind;

use self::invocation::{Invocation, MOST_LOOKS, names, said, within};
use self::mode::Mode;
use super::disk::{Disk, ENDLESS, MASK, NULL};
use crate::tree::{End, Follow, Id, NodeInfo, TreeError, Write};

/// A program: its name, its function, its short options (those after `:` have a value), and its long options, each
/// with the short option that it stands for.
struct Program(&'static str, Run, &'static str, &'static str);

type Run = fn(&mut Invocation<'_>) -> Result<(), String>;

const ALL: &[Program] = &[
    Program("chmod", chmod, "R:", "Rrecursive"),
    Program(
        "cp",
        cp,
        "rRapdPLfnvT:t",
        "rrecursive aarchive ppreserve Pno-dereference Ldereference fforce nno-clobber vverbose ttarget-directory",
    ),
    Program("dirname", dirname, ":", ""),
    Program(
        "ls",
        ls::run,
        "aAl1hdRrtSUFp:",
        "aall Aalmost-all hhuman-readable ddirectory Rrecursive rreverse Fclassify",
    ),
    Program("mkdir", mkdir, "pv:m", "pparents vverbose mmode"),
    Program("mv", mv, "fnvT:t", "fforce nno-clobber vverbose ttarget-directory"),
    Program("realpath", realpath, "e:", "ecanonicalize-existing"),
    Program("rm", rm, "rRfdv:", "rrecursive fforce ddir vverbose"),
];

/// Parses arguments as GNU `getopt` does: clusters, values attached or separate, operands anywhere.
fn read(args: &[String], letters: &str, long: &str) -> Result<(String, Option<String>, Vec<String>), String> {
    let (bare, valued) = letters.split_once(':').unwrap_or((letters, ""));
    let (mut given, mut value, mut operands) = (String::new(), None, Vec::new());
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            operands.extend(rest.cloned());
            break;
        }
        let missing = || format!("option '{arg}' requires an argument");
        if let Some(option) = arg.strip_prefix("--") {
            let (name, attached) = option
                .split_once('=')
                .map_or((option, None), |(name, value)| (name, Some(value)));
            let letter = long
                .split(' ')
                .find(|known| known.get(1..) == Some(name))
                .and_then(|known| known.chars().next());
            let letter = letter.ok_or_else(|| format!("unrecognized option '{arg}'"))?;
            if valued.contains(letter) {
                value = Some(
                    attached
                        .map(str::to_owned)
                        .or_else(|| rest.next().cloned())
                        .ok_or_else(missing)?,
                );
            } else if attached.is_some() {
                return Err(format!("memory has no values for '{arg}'"));
            }
            given.push(letter);
            continue;
        }
        let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.is_empty()) else {
            operands.push(arg.clone());
            continue;
        };
        for (at, letter) in cluster.char_indices() {
            given.push(letter);
            if valued.contains(letter) {
                let here = &cluster[at + letter.len_utf8()..];
                let here = (!here.is_empty()).then(|| here.to_owned());
                value = Some(here.or_else(|| rest.next().cloned()).ok_or_else(missing)?);
                break;
            }
            if !bare.contains(letter) {
                return Err(format!(
                    "invalid option, or one that memory does not have -- '{letter}'"
                ));
            }
        }
    }
    Ok((given, value, operands))
}

fn rm(call: &mut Invocation<'_>) -> Result<(), String> {
    if call.operands.is_empty() && call.has("f") {
        return Ok(());
    }
    call.each(|call, name| {
        let cannot = |why: &str| format!("cannot remove '{name}': {why}");
        let path = call.path(name);
        if matches!(name.trim_end_matches('/').rsplit('/').next(), Some("." | "..")) {
            return Err(format!("refusing to remove '.' or '..' directory: skipping '{name}'"));
        }
        if call
            .inside
            .walk(&path, Follow::Parents)
            .is_ok_and(|walked| walked.path == "/")
        {
            return Err("it is dangerous to operate recursively on '/'".to_owned());
        }
        let directory = match call.look(name, Follow::Parents) {
            Ok((_, about)) => about.kind == Kind::Directory,
            Err(TreeError::NotFound | TreeError::NotADirectory) if call.has("f") => return Ok(()),
            Err(fault) => return Err(cannot(&said(fault))),
        };
        let recursive = directory && call.has("rR");
        if directory && !recursive && !call.has("d") {
            return Err(cannot("Is a directory"));
        }
        let write_target = call.inside.write_target(&path, Follow::Parents);
        let removed = write_target.and_then(|write_target| call.inside.remove(&write_target, recursive));
        removed.map_err(|fault| cannot(&said(fault)))?;
        call.tell(|| format!("removed {}'{name}'", if directory { "directory " } else { "" }));
        Ok(())
    })
}

fn dirname(call: &mut Invocation<'_>) -> Result<(), String> {
    call.each(|call, name| {
        let above = name
            .trim_end_matches('/')
            .rfind('/')
            .map(|at| name[..at].trim_end_matches('/'));
        call.out.push_str(match above {
            Some("") => "/",
            Some(above) => above,
            None if name.starts_with('/') => "/",
            None => ".",
        });
        call.out.push('\n');
        Ok(())
    })
}

fn realpath(call: &mut Invocation<'_>) -> Result<(), String> {
    call.each(|call, name| {
        let path = call.path(name);
        let walked = call.inside.walk(&path, Follow::All);
        let walked = walked.and_then(|walked| match &walked.end {
            End::Missing { names, .. } if call.has("e") || names.len() > 1 || name.is_empty() => {
                Err(TreeError::NotFound)
            }
            End::There { .. } | End::Missing { .. } => Ok(walked.path),
        });
        call.out += &walked.map_err(|fault| format!("{name}: {}", said(fault)))?;
        call.out.push('\n');
        Ok(())
    })
}

fn mkdir(call: &mut Invocation<'_>) -> Result<(), String> {
    let mode = match call.value.take() {
        None => 0o777 & !MASK,
        Some(text) => {
            let mode = Mode::read(&text).ok_or_else(|| format!("invalid mode '{text}'"))?;
            mode.of(0o777, true)
        }
    };
    call.each(|call, name| {
        if !call.has("p") {
            return make(call, name, mode);
        }
        let ends = name
            .trim_end_matches('/')
            .match_indices('/')
            .map(|(at, _)| at)
            .filter(|at| *at > 0);
        for above in ends.map(|at| &name[..at]) {
            if !call.is_directory(above) {
                make(call, above, 0o777 & !MASK)?;
            }
        }
        if call.is_directory(name) {
            Ok(())
        } else {
            make(call, name, mode)
        }
    })
}

fn make(call: &mut Invocation<'_>, name: &str, mode: u32) -> Result<(), String> {
    let cannot = |why: String| format!("cannot create directory '{name}': {why}");
    if name.is_empty() {
        return Err(cannot("No such file or directory".to_owned()));
    }
    let path = call.path(name);
    // The root exists, but is not a write target.
    if call.inside.find(&path, Follow::Parents).is_ok() {
        return Err(cannot("File exists".to_owned()));
    }
    let made = call.inside.write_target(&path, Follow::Parents);
    let made = made.and_then(|write_target| call.inside.make_directory(&write_target, false, mode));
    made.map_err(|fault| cannot(said(fault)))?;
    call.tell(|| format!("mkdir: created directory '{name}'"));
    Ok(())
}

fn mv(call: &mut Invocation<'_>) -> Result<(), String> {
    for (from, to) in call.places()? {
        if let Err(why) = rename(call, &from, &to) {
            call.failures.push(why);
        }
    }
    Ok(())
}

fn rename(call: &mut Invocation<'_>, from: &str, to: &str) -> Result<(), String> {
    let stat = |fault| format!("cannot stat '{from}': {}", said(fault));
    let (id, about) = call.look(from, Follow::Parents).map_err(stat)?;
    let refused = |fault| format!("cannot move '{from}' to '{to}': {}", said(fault));
    let directory = about.kind == Kind::Directory;
    if to.ends_with('/') && !directory && !call.is_directory(to) {
        return Err(refused(TreeError::NotADirectory));
    }
    let (from_at, to_at) = (call.path(from.trim_end_matches('/')), call.path(to));
    let source = call.inside.write_target(&from_at, Follow::Parents).map_err(refused)?;
    let target = call.inside.write_target(&to_at, Follow::Parents).map_err(refused)?;
    if let Some(there) = call.inside.current(&target).map_err(refused)? {
        if there == id {
            return Err(format!("'{from}' and '{to}' are the same file"));
        }
        if call.last("nf") == Some('n') {
            return Ok(());
        }
        match (directory, call.inside.kind(there) == Some(Kind::Directory)) {
            (false, true) => return Err(format!("cannot overwrite directory '{to}' with non-directory")),
            (true, false) => return Err(format!("cannot overwrite non-directory '{to}' with directory '{from}'")),
            (true, true) | (false, false) => {}
        }
    }
    let below = target.path.strip_prefix(&*source.path);
    if directory && below.is_some_and(|rest| rest.starts_with('/')) {
        return Err(format!("cannot move '{from}' to a subdirectory of itself, '{to}'"));
    }
    call.inside.rename(&source, &target, true, false).map_err(refused)?;
    call.tell(|| format!("renamed '{from}' -> '{to}'"));
    Ok(())
}

fn chmod(call: &mut Invocation<'_>) -> Result<(), String> {
    if call.operands.is_empty() {
        return Err("missing operand".to_owned());
    }
    let text = call.operands.remove(0);
    let mode = Mode::read(&text).ok_or_else(|| format!("invalid mode: '{text}'"))?;
    call.each(|call, name| change(call, &mode, name, Follow::All))
}

fn change(call: &mut Invocation<'_>, mode: &Mode, name: &str, links: Follow) -> Result<(), String> {
    let (id, about) = call
        .look(name, links)
        .map_err(|fault| format!("cannot access '{name}': {}", said(fault)))?;
    // A link found on the way has no mode of its own.
    if about.kind == Kind::Link {
        return Ok(());
    }
    let directory = about.kind == Kind::Directory;
    let (before, after) = (about.mode & 0o7777, mode.of(about.mode & 0o7777, directory));
    // As in `sandbox`: no other user exists here.
    if after & !before & 0o6000 != 0 {
        return Err(format!("changing permissions of '{name}': Operation not permitted"));
    }
    let set = call.inside.set_mode(id, after);
    set.map_err(|fault| format!("changing permissions of '{name}': {}", said(fault)))?;
    if directory && call.has("R") {
        for (child, _) in names(call, name, id)? {
            change(call, mode, &within(name, &child), Follow::Parents)?;
        }
    }
    Ok(())
}

fn cp(call: &mut Invocation<'_>) -> Result<(), String> {
    let links = match call.last("adPL") {
        Some('L') => Follow::All,
        Some(_) => Follow::Parents,
        None if call.has("rR") => Follow::Parents,
        None => Follow::All,
    };
    for (from, to) in call.places()? {
        if let Err(why) = copy(call, &from, &to, links) {
            call.failures.push(why);
        }
    }
    Ok(())
}

fn copy(call: &mut Invocation<'_>, from: &str, to: &str, links: Follow) -> Result<(), String> {
    if call.path(to) == Path::new(NULL) {
        return Ok(());
    }
    if call.path(from) == Path::new(ENDLESS) {
        return Err(format!(
            "error reading '{from}': it has no end, and cannot be read in memory"
        ));
    }
    if let Some(content) = call.foreign.get(from).cloned() {
        // A pipe of the shell has no other names.
        let mode = if from.starts_with("/dev/fd/") { 0o600 } else { 0o666 };
        return write(call, to, &content, mode).map(drop);
    }
    let (id, about) = call
        .look(from, links)
        .map_err(|fault| format!("cannot stat '{from}': {}", said(fault)))?;
    if about.kind == Kind::Directory {
        return directory(call, from, to, links, (id, &about));
    }
    if to.ends_with('/') && !call.is_directory(to) {
        return Err(format!("cannot create regular file '{to}': Not a directory"));
    }
    if let Ok((there, over)) = call.look(to, Follow::All) {
        if there == id {
            return Err(format!("'{from}' and '{to}' are the same file"));
        }
        if over.kind == Kind::Directory {
            return Err(format!("cannot overwrite directory '{to}' with non-directory"));
        }
        if call.has("n") {
            return Ok(());
        }
    }
    if about.kind == Kind::Link {
        let cannot = |fault| format!("cannot create symbolic link '{to}': {}", said(fault));
        let path = call.path(to);
        let target = call.inside.target(id).map_err(cannot)?;
        let write_target = call.inside.write_target(&path, Follow::Parents).map_err(cannot)?;
        match call.inside.current(&write_target).map_err(cannot)? {
            Some(there) if there == id => return Err(format!("'{from}' and '{to}' are the same file")),
            Some(_) => call.inside.remove(&write_target, false).map_err(cannot)?,
            None => {}
        }
        call.inside.link(&write_target, &target).map_err(cannot)?;
    } else {
        let content = call.inside.content(id);
        let content = content.map_err(|fault| format!("error reading '{from}': {}", said(fault)))?;
        let made = write(call, to, &content, about.mode & 0o777)?;
        keep(call, made, &about, to)?;
    }
    call.tell(|| format!("'{from}' -> '{to}'"));
    Ok(())
}

/// Writes a file. A new one gets this mode without the umask.
fn write(call: &mut Invocation<'_>, to: &str, content: &[u8], mode: u32) -> Result<Id, String> {
    let cannot = |fault| format!("cannot create regular file '{to}': {}", said(fault));
    let path = call.path(to);
    let write_target = call.inside.write_target(&path, Follow::All).map_err(cannot)?;
    let what = Write::Replace(content);
    call.inside
        .write(&write_target, what, false, mode & !MASK, call.largest)
        .map_err(cannot)
}

/// Gives a copy the mode and the times of the original, if requested.
fn keep(call: &mut Invocation<'_>, made: Id, about: &NodeInfo, to: &str) -> Result<(), String> {
    if !call.has("ap") {
        return Ok(());
    }
    let kept = call.inside.set_mode(made, about.mode & 0o7777);
    let kept = kept.and_then(|()| call.inside.set_modified(made, about.modified));
    kept.map_err(|fault| format!("preserving permissions for '{to}': {}", said(fault)))
}

fn directory(
    call: &mut Invocation<'_>,
    from: &str,
    to: &str,
    links: Follow,
    (id, about): (Id, &NodeInfo),
) -> Result<(), String> {
    if !call.has("rRa") {
        return Err(format!("-r not specified; omitting directory '{from}'"));
    }
    let cannot = |fault| format!("cannot create directory '{to}': {}", said(fault));
    let (from_at, to_at) = (call.path(from), call.path(to));
    let source = call.inside.walk(&from_at, Follow::All).map_err(cannot)?;
    let target = call.inside.walk(&to_at, Follow::All).map_err(cannot)?;
    let inside = target.path.strip_prefix(&source.path);
    if inside.is_some_and(|rest| rest.is_empty() || rest.starts_with('/') || source.path == "/") {
        return Err(format!("cannot copy a directory, '{from}', into itself, '{to}'"));
    }
    let made = match target.there() {
        Some(there) if call.inside.kind(there) == Some(Kind::Directory) => None,
        Some(_) => return Err(format!("cannot overwrite non-directory '{to}' with directory '{from}'")),
        None => {
            let write_target = call.inside.write_target(&to_at, Follow::All).map_err(cannot)?;
            let mode = about.mode & 0o7777 & !MASK;
            call.inside.make_directory(&write_target, false, mode).map_err(cannot)?;
            call.tell(|| format!("'{from}' -> '{to}'"));
            call.inside.current(&write_target).map_err(cannot)?
        }
    };
    let links = if links == Follow::All && !call.has("L") {
        Follow::Parents
    } else {
        links
    };
    for (name, _) in names(call, from, id)? {
        if let Err(why) = copy(call, &within(from, &name), &within(to, &name), links) {
            call.failures.push(why);
        }
    }
    made.map_or(Ok(()), |made| keep(call, made, about, to))
}

/// A program in the form that bashkit calls.
struct Ours {
    program: &'static Program,
    disk: Arc<Disk>,
}

/// Returns all programs.
pub(super) fn all(disk: &Arc<Disk>) -> impl Iterator<Item = (&'static str, Box<dyn Builtin>)> {
    ALL.iter().map(|program| {
        let disk = Arc::clone(disk);
        (program.0, Box::new(Ours { program, disk }) as Box<dyn Builtin>)
    })
}

#[async_trait]
impl Builtin for Ours {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let Program(name, run, letters, long) = *self.program;
        let mut args = ctx.args.to_vec();
        // A mode that looks like an option: `chmod -x f`.
        if name == "chmod"
            && args
                .first()
                .is_some_and(|arg| arg.len() > 1 && Mode::read(arg).is_some())
        {
            args.insert(0, "--".to_owned());
        }
        args.retain(|arg| name != "ls" || !matches!(arg.as_str(), "--color=auto" | "--color=never"));
        let status = if name == "ls" { 2 } else { 1 };
        let misused = |why: String| {
            let help = format!("{name}: {why}\nTry '{name} --help' for more information.\n");
            Ok(ExecResult::err(help, status))
        };
        let (letters, value, operands) = match read(&args, letters, long) {
            Ok(read) => read,
            Err(why) => return misused(why),
        };
        let mut foreign = BTreeMap::new();
        for operand in operands.iter().filter(|_| name == "cp") {
            let path = ctx.cwd.join(operand);
            let here = self.disk.tree().enter().find(&path, Follow::All).is_ok();
            if !here && let Ok(content) = ctx.fs.read_file(&path).await {
                foreign.insert(operand.clone(), content);
            }
        }
        let budget = ctx.execution_budget();
        let mut call = Invocation {
            letters,
            value,
            operands,
            cwd: ctx.cwd,
            inside: self.disk.tree().enter(),
            foreign,
            largest: self.disk.largest(),
            looks: MOST_LOOKS,
            budget: budget.and_then(|budget| budget.try_with(Clone::clone).ok()),
            out: String::new(),
            failures: Vec::new(),
        };
        if let Err(why) = run(&mut call) {
            return misused(why);
        }
        let stderr: String = call.failures.iter().map(|why| format!("{name}: {why}\n")).collect();
        Ok(ExecResult {
            exit_code: if stderr.is_empty() { 0 } else { status },
            stdout: call.out.into(),
            stderr: stderr.into(),
            ..ExecResult::default()
        })
    }
}
