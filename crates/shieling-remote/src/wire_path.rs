//! Paths as they travel.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// A path or a name, whose bytes may be no UTF-8.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct WirePath(Vec<u8>);

impl WirePath {
    pub(crate) fn of(path: &Path) -> Self {
        Self::name(path.as_os_str())
    }

    pub(crate) fn name(name: &OsStr) -> Self {
        Self(name.as_bytes().to_vec())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn path(self) -> PathBuf {
        self.os().into()
    }

    pub(crate) fn os(self) -> OsString {
        OsString::from_vec(self.0)
    }
}
