//! Paths that name open descriptors: `/dev/stdin`, `/dev/fd/3`, `/proc/self/fd/0`.

/// An open descriptor that a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Descriptor {
    /// This one of the program that opens the path.
    Number(u32),
    /// Perhaps one: of another process, or the path does not tell which.
    Unknown,
}

/// The descriptor that a path names, if it names one. A relative path does so in the root directory alone.
pub(crate) fn descriptor(path: &str) -> Option<Descriptor> {
    let parts: Vec<&str> = path.split('/').filter(|part| !matches!(*part, "" | ".")).collect();
    let number = match parts.as_slice() {
        ["dev", "stdin"] => Some(0),
        ["dev", "stdout"] => Some(1),
        ["dev", "stderr"] => Some(2),
        ["dev", "fd", text] | ["proc", "self" | "thread-self", "fd", text] => text.parse().ok(),
        ["proc", _, "fd", _] => None,
        _ => return None,
    };
    let number = number.filter(|_| path.starts_with('/'));
    Some(number.map_or(Descriptor::Unknown, Descriptor::Number))
}
