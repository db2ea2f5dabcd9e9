//! Channel: frames of a handover over a socket, with their descriptors.
//!
//! A frame is its length, in 32 bits, and a message. Descriptors arrive with the first byte of a
//! message or sooner, so they are kept in order, and a message says how many of them are its own.

use std::collections::VecDeque;
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::message::{HandoverMessage, SocketOffer};
use crate::passed_descriptors::{self, DESCRIPTORS_MAX};

/// The version of the form, which is each side's first byte.
const VERSION: u8 = 1;

/// The largest message. An invalidation is part of a request's head, or of an admin request.
const FRAME_MAX: usize = 16 << 20;

/// Bytes of one read.
const CHUNK: usize = 64 << 10;

/// One side of a conversation.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: UnixStream,
    has_greeted: bool,
    /// The other side's version was read.
    is_greeted: bool,
    received: Vec<u8>,
    files: VecDeque<OwnedFd>,
}

impl Channel {
    /// A side, and the socket of the other one.
    ///
    /// # Errors
    /// No descriptor is left.
    pub(crate) fn pair() -> io::Result<(Self, OwnedFd)> {
        let (own, theirs) = UnixStream::pair()?;
        Ok((Self::over(own), theirs.into()))
    }

    /// The side with this socket.
    pub(crate) fn over(socket: UnixStream) -> Self {
        let (received, files) = (Vec::new(), VecDeque::new());
        Self { socket, has_greeted: false, is_greeted: false, received, files }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// The other side is gone, or does not read until `until`.
    pub(crate) fn send(&mut self, message: &HandoverMessage, until: Instant) -> io::Result<()> {
        self.send_with(message, &[], until)
    }

    /// Sends a message with descriptors, at most [`DESCRIPTORS_MAX`].
    ///
    /// # Errors
    /// As of [`Channel::send`].
    pub(crate) fn send_with(
        &mut self,
        message: &HandoverMessage,
        files: &[BorrowedFd<'_>],
        until: Instant,
    ) -> io::Result<()> {
        let mut bytes = match std::mem::replace(&mut self.has_greeted, true) {
            true => Vec::new(),
            false => vec![VERSION],
        };
        bytes.extend(frame(message));
        let (mut rest, mut files) = (&bytes[..], files);
        while !rest.is_empty() {
            self.socket.set_write_timeout(Some(left(until)?))?;
            match passed_descriptors::send(&self.socket, &[IoSlice::new(rest)], files) {
                Ok(sent) => (rest, files) = (&rest[sent..], &[]),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Err(io::ErrorKind::TimedOut.into()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Offers descriptors, in as many messages as they take.
    ///
    /// # Errors
    /// As of [`Channel::send`].
    pub(crate) fn offer(
        &mut self,
        offer: &SocketOffer,
        files: &[BorrowedFd<'_>],
        until: Instant,
    ) -> io::Result<()> {
        for (number, files) in files.chunks(DESCRIPTORS_MAX).enumerate() {
            let part = SocketOffer { count: files.len(), is_more: number > 0, ..offer.clone() };
            self.send_with(&HandoverMessage::Sockets(part), files, until)?;
        }
        Ok(())
    }

    /// The next message, with its descriptors.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] at `until`, [`io::ErrorKind::UnexpectedEof`] if the other side
    /// is gone, or bytes that are no message.
    pub(crate) fn receive(
        &mut self,
        until: Instant,
    ) -> io::Result<(HandoverMessage, Vec<OwnedFd>)> {
        loop {
            if !self.is_greeted && !self.received.is_empty() {
                match self.received.remove(0) {
                    VERSION => self.is_greeted = true,
                    other => {
                        let why =
                            format!("it speaks version {other} of the handover, not {VERSION}");
                        return Err(io::Error::new(io::ErrorKind::InvalidData, why));
                    }
                }
            }
            if let Some(message) = take_frame(&mut self.received)? {
                let count = match &message {
                    HandoverMessage::Sockets(offer) => offer.count.min(self.files.len()),
                    _ => 0,
                };
                return Ok((message, self.files.drain(..count).collect()));
            }
            self.read(until)?;
        }
    }

    fn read(&mut self, until: Instant) -> io::Result<()> {
        self.socket.set_read_timeout(Some(left(until)?))?;
        let mut chunk = [0; CHUNK];
        match passed_descriptors::receive(&self.socket, &mut [IoSliceMut::new(&mut chunk)]) {
            Ok((0, _)) | Err(Errno::CONNRESET) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((length, files)) => {
                self.received.extend_from_slice(&chunk[..length]);
                self.files.extend(files);
                Ok(())
            }
            Err(Errno::INTR) => Ok(()),
            Err(Errno::AGAIN) => Err(io::ErrorKind::TimedOut.into()),
            Err(error) => Err(error.into()),
        }
    }

    /// The socket, which no longer blocks, and the bytes that were received and not read.
    ///
    /// # Errors
    /// The socket cannot be changed.
    pub(crate) fn into_parts(self) -> io::Result<(UnixStream, Vec<u8>)> {
        self.socket.set_nonblocking(true)?;
        Ok((self.socket, self.received))
    }
}

/// The time until `until`.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

/// A message with its length.
pub(crate) fn frame(message: &HandoverMessage) -> Vec<u8> {
    let bytes = message.encode();
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

/// Takes the first message out of `received`; `None` if it is not whole yet.
///
/// # Errors
/// Bytes that are no message.
pub(crate) fn take_frame(received: &mut Vec<u8>) -> io::Result<Option<HandoverMessage>> {
    let bad = || io::Error::new(io::ErrorKind::InvalidData, "bytes that are no message");
    let Some((length, rest)) = received.split_first_chunk::<4>() else { return Ok(None) };
    let length = usize::try_from(u32::from_le_bytes(*length)).map_err(|_| bad())?;
    if length > FRAME_MAX {
        return Err(bad());
    }
    let Some(bytes) = rest.get(..length) else { return Ok(None) };
    let message = HandoverMessage::decode(bytes).ok_or_else(bad)?;
    received.drain(..4 + length);
    Ok(Some(message))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::super::message::Role;
    use super::*;

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(20)
    }

    fn sides() -> (Channel, Channel) {
        let (own, theirs) = Channel::pair().expect("a pair");
        (own, Channel::over(theirs.into()))
    }

    #[test]
    fn more_descriptors_than_one_message_takes_arrive_in_order() {
        let (mut old, mut new) = sides();
        let file = File::open("/proc/self/comm").expect("a file");
        let files = vec![file.as_fd(); DESCRIPTORS_MAX + 3];
        let name = ":80".to_owned();
        let offer = SocketOffer { role: Role::Listener, name, count: 0, is_more: false };
        let sending = std::thread::scope(|scope| {
            let sending = scope.spawn(|| {
                old.send(&HandoverMessage::Offered, soon())?;
                old.offer(&offer, &files, soon())?;
                old.send(&HandoverMessage::Begin, soon())
            });
            let mut counts = Vec::new();
            loop {
                match new.receive(soon()).expect("a message") {
                    (HandoverMessage::Begin, _) => break,
                    (_, files) => counts.push(files.len()),
                }
            }
            assert_eq!(counts, [0, DESCRIPTORS_MAX, 3]);
            sending.join().expect("no panic")
        });
        sending.expect("all is sent");
    }

    #[test]
    fn silence_and_an_end_are_told_apart() {
        let (mut old, new) = sides();
        let at_once = Instant::now() + Duration::from_millis(1);
        let silent = old.receive(at_once).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(silent, Err(io::ErrorKind::TimedOut));
        drop(new);
        let ended = old.receive(soon()).map(|_| ()).map_err(|error| error.kind());
        assert_eq!(ended, Err(io::ErrorKind::UnexpectedEof));
    }

    #[test]
    fn another_version_of_the_form_is_named() {
        use std::io::Write as _;
        let (mut old, theirs) = Channel::pair().expect("a pair");
        UnixStream::from(theirs).write_all(&[7, 1, 0, 0, 0, 3]).expect("sent");
        let told = old.receive(soon()).expect_err("another version").to_string();
        assert_eq!(told, "it speaks version 7 of the handover, not 1");
    }

    #[test]
    fn a_length_that_no_message_has_is_refused() {
        assert!(take_frame(&mut vec![255, 255, 255, 255, 3]).is_err());
        assert!(take_frame(&mut vec![1, 0, 0, 0]).is_ok_and(|message| message.is_none()));
    }
}
