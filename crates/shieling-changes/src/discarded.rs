//! Removes sets that were discarded.
//!
//! ```text
//! discard: one rename, to a name that no list shows ─► removed: a few thousand names at once, more in the background
//!                                                        └─ the process ended: whoever opens the store next goes on
//! ```
//!
//! Who removes a set holds a lock of it, so that no other process does the same work.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::thread::JoinHandle;

use rustix::fs::AtFlags;
use rustix::io::Errno;

use crate::directory::Directory;
use crate::lock::Lock;

/// How the name of a discarded set begins.
const PREFIX: &str = "discarded.";

/// How many names are removed while the caller waits: about 20 ms.
const AT_ONCE: usize = 2_000;

/// Takes a set away from those that are listed, and begins to remove it.
pub(crate) fn discard(store: &Directory, id: &str) -> Result<Option<JoinHandle<()>>, Errno> {
    let mut bytes = [0_u8; 8];
    rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty())?;
    // An id is drawn anew once its set is gone.
    let name = OsString::from(format!("{PREFIX}{id}.{:016x}", u64::from_ne_bytes(bytes)));
    match store.rename(OsStr::new(id), store, &name) {
        Err(Errno::NOENT) => return Ok(None),
        renamed => renamed?,
    }
    match remove(store, &name, &mut AT_ONCE.clone()) {
        Err(Errno::INPROGRESS) => Ok(remove_in_background(store)),
        removed => removed.map(|()| None),
    }
}

/// Goes on with what processes that ended have left. `None` if there is nothing.
pub(crate) fn go_on(store: &Directory) -> Result<Option<JoinHandle<()>>, Errno> {
    Ok(match names(store)?.is_empty() {
        true => None,
        false => remove_in_background(store),
    })
}

fn names(store: &Directory) -> Result<Vec<OsString>, Errno> {
    let mut names = store.names()?;
    names.retain(|name| name.as_bytes().starts_with(PREFIX.as_bytes()));
    Ok(names)
}

/// What cannot be removed now is left to the next process.
fn remove_in_background(store: &Directory) -> Option<JoinHandle<()>> {
    let store = store.try_clone().ok()?;
    let work = move || {
        for name in names(&store).unwrap_or_default() {
            let _ = remove(&store, &name, &mut usize::MAX.clone());
        }
    };
    std::thread::Builder::new().name("discard".to_owned()).spawn(work).ok()
}

/// Removes at most so many names of a discarded set, unless another process is at it.
fn remove(store: &Directory, name: &OsStr, most: &mut usize) -> Result<(), Errno> {
    let set = match store.child(name) {
        Err(Errno::NOENT) => return Ok(()),
        set => set?,
    };
    let Some(_lock) = Lock::of(&set)? else { return Ok(()) };
    for inside in set.names()? {
        set.remove_some(&inside, most)?;
    }
    match rustix::fs::unlinkat(store, name, AtFlags::REMOVEDIR) {
        Err(Errno::NOENT) => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    #![expect(clippy::disallowed_methods, reason = "tests make files")]

    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::directory::LEVELS;

    /// A store with a set in it that is large and deep.
    fn store() -> (tempfile::TempDir, Directory) {
        let place = tempfile::tempdir().expect("a directory");
        let set = place.path().join("0123abcd/upper");
        let deep = "d/".repeat(2 * LEVELS + 10);
        let mut at = Directory::open(place.path()).expect("opened");
        for name in Path::new("0123abcd/upper").join(deep).iter() {
            rustix::fs::mkdirat(&at, name, rustix::fs::Mode::RWXU).expect("made");
            at = at.child(name).expect("opened");
        }
        for number in 0..AT_ONCE + 10 {
            fs::write(set.join(number.to_string()), "").expect("written");
        }
        let store = Directory::open(place.path()).expect("opened");
        (place, store)
    }

    #[test]
    fn a_large_and_deep_set_is_gone_from_its_name_at_once_and_removed_in_the_background() {
        let (place, store) = store();
        let thread = discard(&store, "0123abcd").expect("discarded").expect("it is large");
        assert!(!place.path().join("0123abcd").exists());
        thread.join().expect("it ends");
        assert_eq!(store.names().expect("listed"), [""; 0]);
        assert!(discard(&store, "0123abcd").expect("it is gone").is_none());
    }

    #[test]
    fn a_removal_that_was_broken_off_at_any_name_is_gone_on_with() {
        for most in [0, LEVELS + 1, 2 * LEVELS + 300] {
            let (_place, store) = store();
            let name = OsString::from(format!("{PREFIX}0123abcd.1"));
            store.rename(OsStr::new("0123abcd"), &store, &name).expect("renamed");
            assert_eq!(
                remove(&store, &name, &mut most.clone()),
                Err(Errno::INPROGRESS),
                "{most}"
            );
            let thread = go_on(&store).expect("listed").expect("something is left");
            thread.join().expect("it ends");
            assert_eq!(store.names().expect("listed"), [""; 0], "{most}");
            assert!(go_on(&store).expect("listed").is_none());
        }
    }

    #[test]
    fn what_one_process_removes_is_left_alone_by_others() {
        let (_place, store) = store();
        let name = OsString::from(format!("{PREFIX}0123abcd.1"));
        store.rename(OsStr::new("0123abcd"), &store, &name).expect("renamed");
        let set = store.child(&name).expect("opened");
        let lock = Lock::of(&set).expect("locked").expect("nobody has it");
        let before = set.child("upper").and_then(|upper| upper.names()).expect("listed");
        go_on(&store)
            .expect("listed")
            .expect("something is left")
            .join()
            .expect("it ends");
        assert_eq!(
            set.child("upper").and_then(|upper| upper.names()).expect("listed"),
            before
        );
        drop(lock);
        // Several at once, of which one does it.
        let threads: Vec<_> = (0..4).map(|_| go_on(&store).expect("listed")).collect();
        threads
            .into_iter()
            .flatten()
            .for_each(|thread| thread.join().expect("it ends"));
        assert_eq!(store.names().expect("listed"), [""; 0]);
    }
}
