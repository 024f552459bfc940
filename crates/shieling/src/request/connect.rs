//! A connection to a host, as an approver is asked about it and as it is recorded.

use std::path::{Path, PathBuf};

use super::{Digest, Fields, Request, RequestKind};

/// A connection to a host, which a command has tried to make.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connect {
    text: String,
    cwd: PathBuf,
}

impl Connect {
    /// Creates the request for a host and a port, from an environment with this workspace.
    pub fn new(host: &str, port: Option<u16>, workspace: impl Into<PathBuf>) -> Self {
        let text = match port {
            Some(port) if host.contains(':') => format!("connect [{host}]:{port}"),
            Some(port) => format!("connect {host}:{port}"),
            None => format!("look up {host}"),
        };
        Self {
            text,
            cwd: workspace.into(),
        }
    }
}

impl Request for Connect {
    fn kind(&self) -> RequestKind {
        RequestKind::Network
    }

    fn text(&self) -> &str {
        &self.text
    }

    fn cwd(&self) -> &Path {
        &self.cwd
    }

    fn digest(&self) -> Digest {
        let mut fields = Fields::of_network();
        fields.add(self.text.as_bytes());
        fields.add(self.cwd.as_os_str().as_encoded_bytes());
        fields.digest()
    }

    fn place(&self) -> Digest {
        let mut fields = Fields::of_network();
        fields.add(self.cwd.as_os_str().as_encoded_bytes());
        fields.digest()
    }
}
