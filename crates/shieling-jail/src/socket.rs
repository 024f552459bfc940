//! Messages with descriptors over sequenced packet sockets.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, SocketFlags, SocketType,
};

/// Descriptors that one message brings at most.
const DESCRIPTORS: usize = shieling_jail::message::SOCKETS_MOST;
/// The longest message, in bytes: what is longer travels as a file in memory.
const LONGEST: usize = 4096;

/// A message, and the descriptors that came with it.
pub(crate) type Message = (Vec<u8>, Vec<OwnedFd>);

/// Two ends.
pub(crate) fn pair() -> Result<(OwnedFd, OwnedFd), Errno> {
    rustix::net::socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
}

/// Sends a message with descriptors. Does not wait: no message of ours meets a full socket.
pub(crate) fn send(socket: impl AsFd, text: &[u8], fds: &[BorrowedFd<'_>]) -> Result<(), Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut with = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() && !with.push(SendAncillaryMessage::ScmRights(fds)) {
        return Err(Errno::TOOBIG);
    }
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    rustix::net::sendmsg(socket, &[std::io::IoSlice::new(text)], &mut with, flags).map(drop)
}

/// A message with its descriptors; nothing once the other end is gone.
pub(crate) fn receive(socket: impl AsFd, flags: RecvFlags) -> Result<Option<Message>, Errno> {
    let mut text = vec![0_u8; LONGEST];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut brought = RecvAncillaryBuffer::new(&mut space);
    let flags = flags | RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut [std::io::IoSliceMut::new(&mut text)], &mut brought, flags)?;
    let mut fds: Vec<OwnedFd> = Vec::new();
    for part in brought.drain() {
        if let RecvAncillaryMessage::ScmRights(rights) = part {
            fds.extend(rights);
        }
    }
    if received.bytes == 0 {
        return Ok(None);
    }
    text.truncate(received.bytes);
    Ok(Some((text, fds)))
}

/// All that is in a file in memory, from its beginning.
pub(crate) fn read_whole(file: &OwnedFd, longest: usize) -> Result<Vec<u8>, Errno> {
    let size = usize::try_from(rustix::fs::fstat(file)?.st_size).unwrap_or(usize::MAX);
    if size > longest {
        return Err(Errno::FBIG);
    }
    let mut bytes = vec![0; size];
    let mut filled = 0;
    while let Some(rest) = bytes.get_mut(filled..)
        && !rest.is_empty()
    {
        match rustix::io::pread(file, rest, filled as u64)? {
            0 => return Err(Errno::IO),
            count => filled += count,
        }
    }
    Ok(bytes)
}
