//! Messages with descriptors over sequenced packet sockets.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use shieling_jail::message::SOCKETS_MOST;

/// Two ends.
pub(super) fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    Ok(socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?)
}

/// Sends a message with descriptors, at most [`SOCKETS_MOST`].
///
/// # Errors
/// `WouldBlock` if the other side has too many to take already.
pub(super) fn send(socket: &OwnedFd, text: &[u8], fds: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MOST))];
    loop {
        let mut with = SendAncillaryBuffer::new(&mut space);
        if !fds.is_empty() && !with.push(SendAncillaryMessage::ScmRights(fds)) {
            return Err(Errno::TOOBIG.into());
        }
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        match sendmsg(socket, &[io::IoSlice::new(text)], &mut with, flags) {
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

/// Whether receiving is to be tried once more.
///
/// Where the other side has closed its end before it read all that it was sent, the kernel says so once, before it gives
/// out what the other side had sent. An order to end a job can cross the report that it has ended.
pub(super) fn once_more(errno: Errno) -> bool {
    matches!(errno, Errno::INTR | Errno::CONNRESET)
}

/// A message, its length, and the descriptors that came with it, at most [`SOCKETS_MOST`]. Does not wait.
pub(super) fn receive(socket: &OwnedFd, into: &mut [u8]) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(SOCKETS_MOST))];
    let mut brought = RecvAncillaryBuffer::new(&mut space);
    let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
    let received = recvmsg(socket, &mut [io::IoSliceMut::new(into)], &mut brought, flags)?;
    let mut descriptors = Vec::new();
    for part in brought.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            descriptors.extend(rights);
        }
    }
    Ok((received.bytes, descriptors))
}
