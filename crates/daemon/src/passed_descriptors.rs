//! Passed descriptors: messages over a unix socket that carry open files to another process.

use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

/// The most descriptors of one message. The kernel takes a few more (`SCM_MAX_FD`, unix(7)).
pub(crate) const DESCRIPTORS_MAX: usize = 200;

/// The size of a control message with that many descriptors.
const SPACE: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

/// Sends `parts` as one message, with `files`; returns the number of bytes taken. A closed peer is
/// an error, not a signal.
///
/// # Errors
/// Those of `sendmsg(2)`.
pub(crate) fn send(
    socket: impl AsFd,
    parts: &[IoSlice<'_>],
    files: &[BorrowedFd<'_>],
) -> Result<usize, Errno> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut passed = SendAncillaryBuffer::new(&mut space);
    if !files.is_empty() && !passed.push(SendAncillaryMessage::ScmRights(files)) {
        return Err(Errno::TOOMANYREFS);
    }
    sendmsg(socket, parts, &mut passed, SendFlags::NOSIGNAL)
}

/// Receives bytes into `parts`, and the descriptors that came with them. Programs that this process
/// starts do not get them.
///
/// # Errors
/// Those of `recvmsg(2)`.
pub(crate) fn receive(
    socket: impl AsFd,
    parts: &mut [IoSliceMut<'_>],
) -> Result<(usize, Vec<OwnedFd>), Errno> {
    let mut space = [MaybeUninit::uninit(); SPACE];
    let mut passed = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(socket, parts, &mut passed, RecvFlags::CMSG_CLOEXEC)?;
    let files = passed.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(files) => Some(files),
        _ => None,
    });
    Ok((received.bytes, files.flatten().collect()))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::Read as _;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn a_file_arrives_with_the_bytes_that_it_was_sent_with() {
        let (here, there) = UnixStream::pair().expect("a pair");
        let file = File::open("/proc/self/comm").expect("a file");
        let files = [file.as_fd(), file.as_fd()];
        assert_eq!(send(&here, &[IoSlice::new(b"two")], &files), Ok(3));
        assert_eq!(send(&here, &[IoSlice::new(b"none")], &[]), Ok(4));
        let mut bytes = [0; 3];
        let (length, files) = receive(&there, &mut [IoSliceMut::new(&mut bytes)]).expect("bytes");
        assert_eq!((length, &bytes, files.len()), (3, b"two", 2));
        let mut text = String::new();
        let file = files.into_iter().next().expect("a file");
        File::from(file).read_to_string(&mut text).expect("text");
        assert!(!text.is_empty());
        let (_, files) = receive(&there, &mut [IoSliceMut::new(&mut [0; 4])]).expect("bytes");
        assert!(files.is_empty());
    }

    #[test]
    fn a_peer_that_is_gone_is_an_error() {
        let (here, there) = UnixStream::pair().expect("a pair");
        drop(there);
        assert_eq!(send(&here, &[IoSlice::new(b"x")], &[]), Err(Errno::PIPE));
    }
}
