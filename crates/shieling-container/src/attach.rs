//! The streams of a container without a terminal: one connection, on which pieces of output and of errors come in
//! frames of `stream: u8 │ 0 0 0 │ length: u32, big endian │ bytes`, and input goes as it is.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use shieling_remote::transport::Said;
use tokio::io::{AsyncRead, ReadBuf};

const HEADER: usize = 8;

/// The output of a container, out of its frames. Errors go to [`Said`].
pub(crate) struct Output<R> {
    inner: R,
    header: [u8; HEADER],
    header_read: usize,
    left: usize,
    is_output: bool,
    said: Said,
}

impl<R> Output<R> {
    pub(crate) fn new(inner: R, said: Said) -> Self {
        Self {
            inner,
            header: [0; HEADER],
            header_read: 0,
            left: 0,
            is_output: false,
            said,
        }
    }
}

impl<R: AsyncRead + Unpin> AsyncRead for Output<R> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while into.remaining() > 0 {
            if this.left == 0 {
                let mut header = ReadBuf::new(&mut this.header[this.header_read..]);
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut header))?;
                let read = header.filled().len();
                if read == 0 {
                    // Within a header it is cut off; whoever reads the protocol above notices that, too.
                    return Poll::Ready(Ok(()));
                }
                this.header_read += read;
                if this.header_read == HEADER {
                    let [stream, a, b, c, length @ ..] = this.header;
                    if [a, b, c] != [0; 3] || !(1..=2).contains(&stream) {
                        let what = format!("the engine sent no frame of a stream, but {:?}", this.header);
                        return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, what)));
                    }
                    this.is_output = stream == 1;
                    this.left = u32::from_be_bytes(length) as usize;
                    this.header_read = 0;
                }
            } else if this.is_output {
                let most = this.left.min(into.remaining());
                let mut piece = ReadBuf::new(into.initialize_unfilled_to(most));
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
                let read = piece.filled().len();
                into.advance(read);
                this.left -= read;
                return Poll::Ready(Ok(()));
            } else {
                let mut piece = [0; 512];
                let most = this.left.min(piece.len());
                let mut piece = ReadBuf::new(&mut piece[..most]);
                ready!(Pin::new(&mut this.inner).poll_read(cx, &mut piece))?;
                if piece.filled().is_empty() {
                    return Poll::Ready(Ok(()));
                }
                this.left -= piece.filled().len();
                this.said.push(piece.filled());
            }
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::io::AsyncReadExt as _;

    use super::*;

    fn frame(stream: u8, bytes: &[u8]) -> Vec<u8> {
        let mut frame = vec![stream, 0, 0, 0];
        frame.extend(u32::try_from(bytes.len()).unwrap().to_be_bytes());
        frame.extend(bytes);
        frame
    }

    #[tokio::test]
    async fn frames_are_taken_apart_wherever_they_are_cut() {
        let all = [
            frame(1, b"one"),
            frame(2, b"wrong\x1b"),
            frame(1, b""),
            frame(1, &[0xff; 300]),
        ]
        .concat();
        for cut in 1..all.len() {
            let mut mock = tokio_test_reader(&[&all[..cut], &all[cut..]]);
            let said = Said::default();
            let mut read = Vec::new();
            let mut output = Output::new(&mut mock, said.clone());
            output.read_to_end(&mut read).await.unwrap();
            assert_eq!(read, [b"one".as_slice(), &[0xff; 300]].concat(), "cut at {cut}");
            assert_eq!(said.text(), "wrong\x1b");
        }
    }

    /// Gives the pieces one read after the other.
    fn tokio_test_reader(pieces: &[&[u8]]) -> tokio::io::DuplexStream {
        let (near, mut far) = tokio::io::duplex(1024);
        let pieces: Vec<Vec<u8>> = pieces.iter().map(|piece| piece.to_vec()).collect();
        tokio::spawn(async move {
            for piece in pieces {
                tokio::io::AsyncWriteExt::write_all(&mut far, &piece).await.unwrap();
                tokio::time::sleep(Duration::ZERO).await;
            }
        });
        near
    }

    #[tokio::test]
    async fn what_is_no_frame_is_an_error_and_not_output() {
        for wrong in [&b"hello, world"[..], &frame(3, b"x"), &frame(0, b"x")] {
            let mut output = Output::new(wrong, Said::default());
            let error = output.read_to_end(&mut Vec::new()).await.unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::InvalidData, "{wrong:?}");
        }
    }
}
