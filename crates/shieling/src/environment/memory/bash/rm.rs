//! `rm`: bashkit's says nothing of what `-f` may not remove, and ends with 0.

use std::path::{Component, Path, PathBuf};

use bashkit::{Builtin, BuiltinContext, Error, ExecResult, async_trait};

/// `rm`, which fails wherever something is still there afterwards. It asks nobody: `-i` and `-I` are
/// refused.
pub(super) struct Rm;

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
struct Asked {
    recursive: bool,
    force: bool,
    empty: bool,
    verbose: bool,
    operands: Vec<String>,
}

#[async_trait]
impl Builtin for Rm {
    async fn execute(&self, ctx: BuiltinContext<'_>) -> bashkit::Result<ExecResult> {
        let asked = match read(ctx.args) {
            Ok(asked) => asked,
            Err(why) => return Ok(ExecResult::err(format!("rm: {why}\n"), 1)),
        };
        if asked.operands.is_empty() && !asked.force {
            return Ok(ExecResult::err("rm: missing operand\n", 1));
        }
        let (mut said, mut failed) = (String::new(), String::new());
        for name in &asked.operands {
            match remove(&ctx, &asked, name).await {
                Ok(Some(what)) if asked.verbose => said.push_str(&format!("removed {what}'{name}'\n")),
                Ok(_) => {}
                Err(why) => failed.push_str(&format!("rm: {why}\n")),
            }
        }
        Ok(ExecResult {
            stdout: said.into(),
            exit_code: i32::from(!failed.is_empty()),
            stderr: failed.into(),
            ..ExecResult::default()
        })
    }
}

/// Removes one; says what it was if there was something.
async fn remove(ctx: &BuiltinContext<'_>, asked: &Asked, name: &str) -> Result<Option<&'static str>, String> {
    let cannot = |why: &str| format!("cannot remove '{name}': {why}");
    let path = absolute(ctx.cwd, name);
    if path == Path::new("/") {
        return Err("it is dangerous to operate recursively on '/'".to_owned());
    }
    if matches!(name.trim_end_matches('/').rsplit('/').next(), Some("." | "..")) {
        return Err(format!("refusing to remove '.' or '..' directory: skipping '{name}'"));
    }
    let there = match ctx.fs.lstat(&path).await {
        Ok(there) => there,
        Err(error) if asked.force && nothing_there(&error) => return Ok(None),
        Err(error) => return Err(cannot(&reason(&error))),
    };
    let directory = there.file_type.is_dir();
    if directory && !asked.recursive && !asked.empty {
        return Err(cannot("Is a directory"));
    }
    match ctx.fs.remove(&path, directory && asked.recursive).await {
        Ok(()) => Ok(Some(if directory { "directory " } else { "" })),
        Err(error) => Err(cannot(&reason(&error))),
    }
}

fn read(args: &[String]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut options = true;
    for arg in args {
        match arg.strip_prefix('-') {
            Some("-") if options => options = false,
            Some(letters) if options && !letters.is_empty() && !letters.starts_with('-') => {
                for letter in letters.chars() {
                    match letter {
                        'r' | 'R' => asked.recursive = true,
                        'f' => asked.force = true,
                        'd' => asked.empty = true,
                        'v' => asked.verbose = true,
                        'i' | 'I' => return Err("nobody can be asked in memory: use it without -i".to_owned()),
                        other => return Err(format!("invalid option -- '{other}'")),
                    }
                }
            }
            Some(long) if options && long.starts_with('-') => match &long[1..] {
                "recursive" => asked.recursive = true,
                "force" => asked.force = true,
                "dir" => asked.empty = true,
                "verbose" => asked.verbose = true,
                "one-file-system" | "preserve-root" | "interactive=never" => {}
                _ => return Err(format!("unrecognized option '{arg}'")),
            },
            Some(_) | None => asked.operands.push(arg.clone()),
        }
    }
    Ok(asked)
}

/// Without `.` and `..`, which are taken for what stands before them as everywhere in memory.
fn absolute(cwd: &Path, name: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in cwd.join(name).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::RootDir | Component::Normal(_) | Component::Prefix(_) => path.push(part),
        }
    }
    path
}

fn nothing_there(error: &Error) -> bool {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    matches!(error, Error::Io(error) if matches!(error.kind(), NotFound | NotADirectory))
}

fn reason(error: &Error) -> String {
    match error {
        Error::Io(error) => error.to_string(),
        other => other.to_string(),
    }
}
