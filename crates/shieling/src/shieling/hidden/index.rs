//! The paths in git's index, which are what git looks at where it is not told to look at more. It reads, and gives
//! nothing for an index that it does not read whole: another format, a split or a sparse one.

/// How long the name of an object is.
const HASH: usize = 20;

/// What stands of an entry before its path: times, numbers, the object's name, flags.
const FIXED: usize = 40 + HASH + 2;

/// Extensions that have paths stand elsewhere.
const ELSEWHERE: [&[u8]; 2] = [b"link", b"sdir"];

/// The paths of an index of the versions 2 to 4.
pub(super) fn paths(bytes: &[u8]) -> Option<Vec<String>> {
    let number = |at: usize| {
        let four = bytes.get(at..at + 4)?;
        usize::try_from(u32::from_be_bytes(four.try_into().ok()?)).ok()
    };
    (bytes.get(..4)? == b"DIRC").then_some(())?;
    let version = number(4).filter(|version| (2..=4).contains(version))?;
    let count = number(8)?;
    let end = bytes.len().checked_sub(HASH)?;
    let mut at = 12;
    let mut paths: Vec<String> = Vec::new();
    let mut last: Vec<u8> = Vec::new();
    for _ in 0..count {
        let start = at;
        let flags = bytes.get(at + FIXED - 2..at + FIXED)?;
        let extended = flags[0] & 0x40 != 0;
        at += FIXED + if extended { 2 } else { 0 };
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
        paths.push(String::from_utf8(last.clone()).ok()?);
    }
    while at < end {
        let name = bytes.get(at..at + 4)?;
        (!ELSEWHERE.contains(&name)).then_some(())?;
        at = at.checked_add(8)?.checked_add(number(at + 4)?)?;
    }
    (at == end).then_some(paths)
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
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn index(version: u32, entries: &[&[u8]], more: &[u8]) -> Vec<u8> {
        let mut bytes = b"DIRC".to_vec();
        bytes.extend(version.to_be_bytes());
        bytes.extend(u32::try_from(entries.len()).expect("few").to_be_bytes());
        for path in entries {
            let start = bytes.len();
            bytes.extend([0; FIXED]);
            bytes.extend(*path);
            bytes.push(0);
            while version < 4 && !(bytes.len() - start).is_multiple_of(8) {
                bytes.push(0);
            }
        }
        bytes.extend(more);
        bytes.extend([0; HASH]);
        bytes
    }

    #[test]
    fn the_paths_of_an_index_are_read_and_what_is_not_whole_is_not() {
        let names: [&[u8]; 3] = [b"README.md", b"src/a.rs", b"src/main.rs"];
        assert_eq!(
            paths(&index(2, &names, b"TREE\0\0\0\x02ab")).expect("it is whole"),
            ["README.md", "src/a.rs", "src/main.rs"]
        );
        // Each path cuts so much off the one before it.
        let cut: [&[u8]; 3] = [b"\0src/a.rs", b"\x04main.rs", b"\x07x"];
        assert_eq!(
            paths(&index(4, &cut, b"")).expect("it is whole"),
            ["src/a.rs", "src/main.rs", "src/x"]
        );
        for wrong in [
            index(5, &names, b""),
            index(2, &names, b"link\0\0\0\0"),
            index(3, &names, b"sdir\0\0\0\0"),
            index(2, &names, b"TREE\0\0\0\xff"),
            index(2, &names, b"")[..100].to_vec(),
            index(4, &[b"\x05a"], b""),
            b"DIRC".to_vec(),
            Vec::new(),
        ] {
            assert_eq!(paths(&wrong), None);
        }
    }
}
