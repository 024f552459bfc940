//! Parses glob patterns, and determines which parts of a tree they can match.
//!
//! `*` and `?` match within a name, `**` matches any number of directories, `[a-z]` and `{a,b}` are alternatives.
//! Case matters. A pattern matches only below the directory that is searched.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use globset::{ErrorKind, GlobBuilder, GlobSet, GlobSetBuilder};
use ignore::overrides::{Override, OverrideBuilder};

use super::FilesError;
use super::cursor::brief;

/// The longest pattern, in bytes.
const LONGEST: usize = 4 << 10;

/// The largest number of globs in one request.
const MOST: usize = 100;

/// A pattern for paths below a directory.
pub(super) struct Pattern {
    matcher: GlobSet,
    /// It contains no slash, and matches in every directory.
    anywhere: bool,
    /// It ends with a slash, and matches directories.
    pub(super) directories: bool,
    /// It names something that begins with a dot.
    pub(super) dotted: bool,
    /// The literal directories that it begins with.
    prefix: String,
    /// The number of components of the longest path that it matches, if bounded.
    depth: Option<usize>,
}

impl Pattern {
    /// Parses a pattern for the directory with these paths.
    ///
    /// # Errors
    /// [`FilesError::Argument`] if the pattern is invalid.
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

    /// Returns whether a path below the directory matches.
    pub(super) fn matches(&self, below: &Path) -> bool {
        let name = below.file_name().map(Path::new);
        self.matcher
            .is_match(if self.anywhere { name.unwrap_or(below) } else { below })
    }

    /// Returns whether a directory may contain matching paths.
    pub(super) fn may_hold(&self, below: &Path) -> bool {
        let deep = self.depth.is_some_and(|depth| below.components().count() >= depth);
        let prefix = Path::new(&self.prefix);
        !deep && (below.starts_with(prefix) || prefix.starts_with(below))
    }
}

/// Compiles globs that select files; those that begin with `!` exclude. The last matching glob decides. If any glob
/// selects, files that match none are excluded.
///
/// # Errors
/// [`FilesError::Argument`] if a glob is invalid.
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
        // A leading slash stands for the directory that is searched, as in an ignore file.
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

/// Removes the path of the directory from the beginning of a pattern.
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

/// Compiles a glob.
fn checked(argument: &'static str, glob: &str) -> Result<GlobSet, FilesError> {
    let built = GlobBuilder::new(glob)
        .literal_separator(true)
        .backslash_escape(true)
        .empty_alternates(true)
        .build();
    // A set, since a single glob panics if it is too large to be compiled.
    let built = built.and_then(|built| GlobSetBuilder::new().add(built).build());
    built.map_err(|error| {
        let brief = brief(glob);
        let why = match (error.kind(), error_position(glob, error.kind())) {
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

/// Returns the position of an error in a glob, in bytes.
fn error_position(glob: &str, kind: &ErrorKind) -> Option<usize> {
    let mut class = None;
    let mut braces = Vec::new();
    let mut escaped = false;
    for (at, character) in glob.char_indices() {
        match character {
            _ if escaped => escaped = false,
            // The first character of a class is literal.
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

/// Returns the bytes of a path, with a trailing slash for a directory.
pub(super) fn shown(below: &Path, is_directory: bool) -> Vec<u8> {
    let end: &[u8] = if is_directory { b"/" } else { b"" };
    [below.as_os_str().as_bytes(), end].concat()
}

/// Converts bytes to a path.
pub(super) fn path(bytes: &[u8]) -> &Path {
    Path::new(OsStr::from_bytes(bytes))
}
