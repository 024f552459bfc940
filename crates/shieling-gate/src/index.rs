//! The paths in git's index: what git tracks, and as what. It reads bytes, and gives nothing for an index of
//! another version, and for a split or a sparse one; other extensions are skipped.

/// How long the name of an object is: SHA-1 and SHA-256.
const HASHES: [usize; 2] = [20, 32];

/// Extensions that have paths stand elsewhere.
const ELSEWHERE: [&[u8]; 2] = [b"link", b"sdir"];

/// One path in an index.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IndexEntry {
    /// The path, relative to the working tree.
    pub path: Vec<u8>,
    /// Its kind and permissions, such as `0o100644`.
    pub mode: u32,
}

impl IndexEntry {
    /// Returns whether it is tracked as a symbolic link.
    pub fn is_link(&self) -> bool {
        self.mode & 0o170_000 == 0o120_000
    }
}

/// Reads the paths of an index of the versions 2 to 4, in git's order. Returns `None` if it cannot be read whole.
pub fn tracked(bytes: &[u8]) -> Option<Vec<IndexEntry>> {
    HASHES.into_iter().find_map(|hash| with_hash(bytes, hash))
}

fn with_hash(bytes: &[u8], hash: usize) -> Option<Vec<IndexEntry>> {
    // What stands of an entry before its path: times, numbers, the object's name, flags.
    let fixed = 40 + hash + 2;
    let number = |at: usize| Some(u32::from_be_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
    let length = |at: usize| usize::try_from(number(at)?).ok();
    (bytes.get(..4)? == b"DIRC").then_some(())?;
    let version = number(4).filter(|version| (2..=4).contains(version))?;
    let count = number(8)?;
    let end = bytes.len().checked_sub(hash)?;
    let mut at = 12;
    let mut found = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = at;
        let mode = number(at + 24)?;
        let flags = bytes.get(at + fixed - 2..at + fixed)?;
        let extended = flags[0] & 0x40 != 0;
        at += fixed + if extended { 2 } else { 0 };
        if version == 4 {
            let (cut, length) = offset(bytes.get(at..end)?)?;
            at += length;
            last.truncate(last.len().checked_sub(cut)?);
        } else {
            last.clear();
        }
        let length = bytes.get(at..end)?.iter().position(|byte| *byte == 0)?;
        last.extend_from_slice(&bytes[at..at + length]);
        at += length + 1;
        if version < 4 {
            // Entries are filled up to a multiple of eight.
            at = start + (at - start).div_ceil(8) * 8;
        }
        found.push(IndexEntry {
            path: last.clone(),
            mode,
        });
    }
    while at < end {
        let name = bytes.get(at..at + 4)?;
        (!ELSEWHERE.contains(&name)).then_some(())?;
        at = at.checked_add(8)?.checked_add(length(at + 4)?)?;
    }
    (at == end).then_some(found)
}

/// A number as version 4 writes it, with how many bytes it takes.
fn offset(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut at = 1;
    while bytes[at - 1] & 0x80 != 0 {
        let next = *bytes.get(at)?;
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(next & 0x7f);
        at += 1;
    }
    Some((value, at))
}

#[cfg(test)]
#[expect(clippy::disallowed_methods, reason = "git writes what is read")]
mod tests {
    use super::*;

    /// What git's index holds after this, and what git lists of it.
    fn index(format: &str, text: &str) -> (Vec<u8>, String) {
        let directory = tempfile::tempdir().expect("a directory");
        let text = format!(
            "git init -q --object-format={format} . && mkdir -p a/b && for i in $(seq 30); do echo $i > a/b/file$i; \
             done && echo x > .env && ln -s .env link && git add . && {{ {text}; }} && git ls-files -s | \
             awk '{{ print $1, $4 }}'"
        );
        let ran = std::process::Command::new("bash")
            .args(["-ec", &text])
            .current_dir(directory.path())
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .output()
            .expect("bash runs");
        assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
        let bytes = std::fs::read(directory.path().join(".git/index")).expect("git wrote it");
        (bytes, String::from_utf8(ran.stdout).expect("text"))
    }

    #[test]
    fn every_form_of_an_index_is_read_as_git_lists_it() {
        for (format, version) in [("sha1", 2), ("sha1", 3), ("sha1", 4), ("sha256", 2), ("sha256", 4)] {
            let change = format!("touch new && git add -N new && git update-index --index-version {version}");
            let (bytes, listed) = index(format, &change);
            let found = tracked(&bytes).expect("it is whole");
            let lines: String = found
                .iter()
                .map(|one| format!("{:06o} {}\n", one.mode, String::from_utf8_lossy(&one.path)))
                .collect();
            assert_eq!(lines, listed, "{format} {version}");
            let links: Vec<_> = found
                .iter()
                .filter(|one| one.is_link())
                .map(|one| &one.path[..])
                .collect();
            assert_eq!(links, [b"link"]);
        }
    }

    #[test]
    fn what_is_not_whole_is_not_read() {
        let (whole, _) = index("sha1", "true");
        let mut later = whole.clone();
        later[7] = 5;
        let (split, _) = index("sha1", "git update-index --split-index");
        for wrong in [
            later,
            split,
            whole[..100].to_vec(),
            whole[..whole.len() - 1].to_vec(),
            b"DIRC".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(tracked(&wrong), None);
        }
    }
}
