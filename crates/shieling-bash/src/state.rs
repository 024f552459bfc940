//! What the shell tells of itself: where it stands, and its exported variables if they changed.
#![allow(unsafe_code, reason = "bash's variables are C strings")]

use core::ffi::CStr;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use rustix::fd::{BorrowedFd, FromRawFd as _, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::bash;
use crate::message::{BrokenOff, GIVEN_UP, KEY, Kind, LONGEST_PIECE, REPORT, Report, read_given_up};

/// The socket's number, once there is one.
static SOCKET: AtomicI32 = AtomicI32::new(-1);
/// By what the kernel tells it from others.
static FILE: AtomicU64 = AtomicU64::new(0);
/// The shell's own number: what it forks says nothing.
static SHELL: AtomicI32 = AtomicI32::new(0);
/// A digest of the variables as they were told.
static TOLD: AtomicU64 = AtomicU64::new(0);
/// The command that runs, or ran last.
static NUMBER: AtomicU64 = AtomicU64::new(0);
static mut KEY_BYTES: [u8; KEY] = [0; KEY];

/// The longest path that Linux gives.
const PATH: usize = 4096;

/// From here on, reports go to this socket, with this key.
pub(crate) fn begin(socket: i32, key: [u8; KEY]) {
    // SAFETY: bash has one thread, and nothing reads the key yet.
    unsafe { KEY_BYTES = key };
    SHELL.store(rustix::process::getpid().as_raw_pid(), Ordering::Relaxed);
    // SAFETY: our caller owns it.
    if let Ok(found) = rustix::fs::fstat(unsafe { BorrowedFd::borrow_raw(socket) }) {
        FILE.store(found.st_ino, Ordering::Relaxed);
    }
    SOCKET.store(socket, Ordering::Relaxed);
}

/// From here on, nothing is said from here, and nobody can listen here.
pub(crate) fn end() {
    let number = SOCKET.swap(-1, Ordering::Relaxed);
    if number < 0 {
        return;
    }
    // SAFETY: borrowed to be looked at; if it is not open, the kernel says so.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    // A command may have put something of its own there.
    let ours = rustix::fs::fstat(fd).is_ok_and(|found| found.st_ino == FILE.load(Ordering::Relaxed));
    if ours {
        // SAFETY: in this process nobody uses it any more.
        drop(unsafe { OwnedFd::from_raw_fd(number) });
    }
}

/// From here on, reports are about this command.
pub(crate) fn about(number: u64) {
    NUMBER.store(number, Ordering::Relaxed);
}

/// Whether the host has given up the command that reports are about. The message stays in the socket.
pub(crate) fn is_given_up() -> bool {
    // SAFETY: borrowed for a call; if it is not the socket any more, the kernel says so.
    let socket = unsafe { BorrowedFd::borrow_raw(SOCKET.load(Ordering::Relaxed)) };
    // One more than it takes: a longer message is another one.
    let mut bytes = [0; GIVEN_UP + 1];
    let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
    let Ok((_, length)) = rustix::io::retry_on_intr(|| recv(socket, &mut bytes[..], flags)) else {
        return false;
    };
    bytes.get(..length).and_then(read_given_up) == Some(NUMBER.load(Ordering::Relaxed))
}

/// Whether this is the shell itself, and not a subshell.
fn is_shell() -> bool {
    rustix::process::getpid().as_raw_pid() == SHELL.load(Ordering::Relaxed)
}

/// Says that the command is over, or that the shell leaves, and how things stand.
pub(crate) fn report(kind: Kind, status: i32, broken_off: BrokenOff) -> Result<(), Errno> {
    if !is_shell() {
        return Ok(());
    }
    let head = |kind| Report {
        // SAFETY: it is written once, before the first report.
        key: unsafe { KEY_BYTES },
        kind,
        broken_off,
        number: NUMBER.load(Ordering::Relaxed),
        status,
    };
    variables(&head)?;
    let mut directory = [MaybeUninit::<u8>::uninit(); PATH];
    // A directory that was deleted has no path; the host keeps the last one.
    // SAFETY: the buffer is this long.
    let path = unsafe { getcwd(directory.as_mut_ptr().cast(), directory.len()) };
    let path = if path.is_null() {
        &[][..]
    } else {
        // SAFETY: it is a C string in our buffer.
        unsafe { CStr::from_ptr(path) }.to_bytes()
    };
    tell(&head(kind), path)
}

unsafe extern "C" {
    fn getcwd(buffer: *mut core::ffi::c_char, length: usize) -> *mut core::ffi::c_char;
}

/// Tells the exported variables, if they are others than those that were told.
fn variables(head: &impl Fn(Kind) -> Report) -> Result<(), Errno> {
    // SAFETY: this is what bash calls before it starts a program.
    unsafe { bash::maybe_make_export_env() };
    let digest = each_variable().fold(0xcbf2_9ce4_8422_2325_u64, |digest, text| {
        text.to_bytes_with_nul().iter().fold(digest, |digest, &byte| {
            (digest ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
        })
    });
    if TOLD.swap(digest, Ordering::Relaxed) == digest {
        return Ok(());
    }
    static mut PIECE: [u8; LONGEST_PIECE] = [0; LONGEST_PIECE];
    // SAFETY: bash has one thread, and this function does not call itself.
    let piece = unsafe { (&raw mut PIECE).as_mut() }.ok_or(Errno::FAULT)?;
    let mut length = 0;
    let mut kind = Kind::FirstVariables;
    for text in each_variable() {
        for &byte in text.to_bytes_with_nul() {
            if length == piece.len() {
                tell(&head(kind), piece)?;
                kind = Kind::MoreVariables;
                length = 0;
            }
            if let Some(place) = piece.get_mut(length) {
                *place = byte;
                length += 1;
            }
        }
    }
    tell(&head(kind), piece.get(..length).unwrap_or_default())
}

/// The exported variables, without `_`, which is another one for each program.
fn each_variable() -> impl Iterator<Item = &'static CStr> {
    // SAFETY: bash keeps a list of C strings here that ends with null.
    let mut at = unsafe { bash::export_env };
    core::iter::from_fn(move || {
        if at.is_null() {
            return None;
        }
        // SAFETY: we are not past the null that ends the list.
        let text = unsafe { *at };
        if text.is_null() {
            return None;
        }
        // SAFETY: the null has not come yet.
        at = unsafe { at.add(1) };
        // SAFETY: each entry is a C string, which lives until bash makes the list anew.
        Some(unsafe { CStr::from_ptr(text) })
    })
    .filter(|text| !text.to_bytes().starts_with(b"_="))
}

/// One message. Waits while the host has too many to read.
fn tell(report: &Report, carried: &[u8]) -> Result<(), Errno> {
    let socket = SOCKET.load(Ordering::Relaxed);
    if socket < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: we have put it there; if a command has closed it, sending says so.
    let socket = unsafe { BorrowedFd::borrow_raw(socket) };
    static mut MESSAGE: [u8; REPORT + LONGEST_PIECE] = [0; REPORT + LONGEST_PIECE];
    // SAFETY: bash has one thread, and this function does not call itself.
    let message = unsafe { (&raw mut MESSAGE).as_mut() }.ok_or(Errno::FAULT)?;
    let length = REPORT + carried.len();
    let message = message.get_mut(..length).ok_or(Errno::MSGSIZE)?;
    let (head, body) = message.split_at_mut(REPORT);
    head.copy_from_slice(&report.encode());
    body.copy_from_slice(carried);
    loop {
        match send(socket, message, SendFlags::NOSIGNAL) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
}
