//! Patterns of names: read, checked, and what of a tree they can reach.
//!
//! `*` and `?` stay within a name, `**` goes over any number of directories, `[a-z]` and `{a,b}` choose.
//! Upper and lower case are different. A pattern leads nowhere but down.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{ErrorKind, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use super::FilesError;
use super::cursor::brief;

/// The longest pattern, in bytes.
const LONGEST: usize = 4 << 10;

/// The most globs that choose files at once.
const MOST: usize = 100;

/// A pattern of paths below a directory.
pub(super) struct Pattern {
    matcher: GlobSet,
    /// It has no slash, and is looked for in every directory.
    anywhere: bool,
    /// It ends with a slash, and means directories.
    pub(super) directories: bool,
    /// It names something that begins with a dot.
    pub(super) dotted: bool,
    /// The directories that it begins with, as they stand.
    prefix: String,
    /// How many names its longest path can have, if it is bounded.
    depth: Option<usize>,
}

impl Pattern {
    /// Reads a pattern that is to be looked for in a directory, which goes by these paths.
    ///
    /// # Errors
    /// [`FilesError::Argument`].
    pub(super) fn parse(argument: &'static str, text: &str, roots: &[&Path]) -> Result<Self, FilesError> {
        let relative = relative(argument, text, roots)?;
        let parts: Vec<&str> = relative.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
        let glob = parts.join("/");
        if glob.is_empty() {
            let why = "it is empty; `**/*` finds every file".to_owned();
            return Err(FilesError::Argument { argument, why });
        }
        let matcher = checked(argument, &glob)?;
        let literal = |part: &&&str| !part.contains(['*', '?', '[', '{', '\\']);
        let leading: Vec<&str> = parts[..parts.len() - 1].iter().take_while(literal).copied().collect();
        let prefix = leading.join("/");
        Ok(Self {
            anywhere: parts.len() == 1,
            directories: relative.ends_with('/'),
            dotted: ["/.", "{.", ",."].iter().any(|dot| glob.contains(dot)) || glob.starts_with('.'),
            depth: (parts.len() > 1 && !glob.contains("**")).then_some(parts.len()),
            matcher,
            prefix,
        })
    }

    /// Whether a path below the directory is one of those that are meant.
    pub(super) fn matches(&self, below: &Path) -> bool {
        let name = below.file_name().map(Path::new);
        self.matcher
            .is_match(if self.anywhere { name.unwrap_or(below) } else { below })
    }

    /// Whether a directory below may hold such a path.
    pub(super) fn may_hold(&self, below: &Path) -> bool {
        let deep = self.depth.is_some_and(|depth| below.components().count() >= depth);
        let prefix = Path::new(&self.prefix);
        !deep && (below.starts_with(prefix) || prefix.starts_with(below))
    }
}

/// Which files are chosen by some globs, of which those that begin with `!` leave out: the last that fits
/// a file decides, and if any chooses, what none fits is left out.
///
/// # Errors
/// [`FilesError::Argument`].
pub(super) fn choice(argument: &'static str, globs: &[String], root: &Path) -> Result<Override, FilesError> {
    let wrong = |why: String| FilesError::Argument { argument, why };
    if globs.len() > MOST {
        return Err(wrong(format!(
            "{} globs are too many: at most {MOST} can be given",
            globs.len()
        )));
    }
    let mut builder = OverrideBuilder::new(root);
    for glob in globs {
        let (not, pattern) = match glob.strip_prefix('!') {
            Some(pattern) => ("!", pattern),
            None => ("", &**glob),
        };
        // A glob that begins with a slash means the directory that is searched, as in an ignore file.
        let anchored = pattern.starts_with('/') && !pattern.starts_with(&*root.to_string_lossy());
        let relative = match anchored {
            true => pattern,
            false => relative(argument, pattern, &[root])?,
        };
        let beneath = relative.trim_start_matches("./");
        if beneath.trim_matches('/').is_empty() {
            return Err(wrong("a glob is empty; leave it out to search every file".to_owned()));
        }
        checked(argument, beneath)?;
        let full = format!("{not}{beneath}");
        builder
            .add(&full)
            .map_err(|error| wrong(format!("`{glob}`: {error}")))?;
    }
    builder.build().map_err(|error| wrong(error.to_string()))
}

/// A pattern without the path of the directory that it begins with, if it does.
fn relative<'a>(argument: &'static str, text: &'a str, roots: &[&Path]) -> Result<&'a str, FilesError> {
    let wrong = |why: String| Err(FilesError::Argument { argument, why });
    let shown = brief(text);
    if text.len() > LONGEST {
        return wrong(format!(
            "{} bytes are too long for a pattern: at most {LONGEST} are read",
            text.len()
        ));
    }
    if text.split(['/', '{', '}', ',']).any(|part| part == "..") {
        return wrong(format!(
            "`{shown}` leads up with `..`, and a pattern only leads down: give the directory as `path`"
        ));
    }
    if !text.starts_with('/') {
        return Ok(text);
    }
    let below = roots.iter().find_map(|root| {
        let rest = text.strip_prefix(root.to_str()?.trim_end_matches('/'))?;
        rest.starts_with('/').then(|| rest.trim_start_matches('/'))
    });
    match below {
        Some(below) => Ok(below),
        None => wrong(format!(
            "`{shown}` is absolute, and a pattern is relative to `path`: give the directory as `path`, and the rest as the pattern"
        )),
    }
}

/// A glob that can be matched.
fn checked(argument: &'static str, glob: &str) -> Result<GlobSet, FilesError> {
    let built = GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build();
    // A set, since a single one panics where it is too large to be compiled.
    let built = built.and_then(|built| GlobSetBuilder::new().add(built).build());
    built.map_err(|error| {
        let brief = brief(glob);
        let why = match (error.kind(), place(glob, error.kind())) {
            (ErrorKind::Regex(_), _) => format!("`{brief}` has too much in it, or in its braces"),
            (kind, Some(at)) => {
                let at = glob[..at].chars().count() + 1;
                format!("{kind}, at character {at} of `{brief}`; a backslash before a character takes it as it stands")
            }
            (kind, None) => format!("{kind}, in `{brief}`"),
        };
        FilesError::Argument { argument, why }
    })
}

/// Where a glob is broken, in bytes.
fn place(glob: &str, kind: &ErrorKind) -> Option<usize> {
    let mut class = None;
    let mut braces = Vec::new();
    let mut escaped = false;
    for (at, character) in glob.char_indices() {
        match character {
            _ if escaped => escaped = false,
            // The first character of a class belongs to it, whatever it is.
            ']' if class.is_some_and(|from| at > from + 1) => class = None,
            _ if class.is_some() => {}
            '\\' => escaped = true,
            '[' => class = Some(at),
            '{' => braces.push(at),
            '}' if braces.pop().is_none() => return Some(at),
            _ordinary => {}
        }
    }
    match kind {
        ErrorKind::UnclosedClass => class,
        ErrorKind::UnclosedAlternates => braces.pop(),
        ErrorKind::InvalidRange(from, to) => glob.find(&format!("{from}-{to}")),
        ErrorKind::DanglingEscape => glob.rfind('\\'),
        _other => None,
    }
}

/// A path as bytes, with the slash that a directory is shown with.
pub(super) fn shown(below: &Path, is_directory: bool) -> Vec<u8> {
    let end: &[u8] = if is_directory { b"/" } else { b"" };
    [below.as_os_str().as_bytes(), end].concat()
}

/// Bytes as a path.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
