//! Paths as text in what is serialized: bytes that are no UTF-8 are replaced, so that one odd name costs no outcome.

use std::path::{Path, PathBuf};

use serde::{Serialize as _, Serializer};

pub(crate) fn one<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&path.display())
}

pub(crate) fn some<S: Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_deref().map(Path::to_string_lossy).serialize(serializer)
}

pub(crate) fn list<S: Serializer>(paths: &[PathBuf], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

pub(crate) fn some_list<S: Serializer>(paths: &Option<Vec<PathBuf>>, serializer: S) -> Result<S::Ok, S::Error> {
    match paths {
        Some(paths) => list(paths, serializer),
        None => serializer.serialize_none(),
    }
}

pub(crate) fn some_pair<S: Serializer>(pair: &Option<(PathBuf, PathBuf)>, serializer: S) -> Result<S::Ok, S::Error> {
    let pair = pair
        .as_ref()
        .map(|(one, other)| (one.to_string_lossy(), other.to_string_lossy()));
    pair.serialize(serializer)
}
