//! Buffers for reads, which are reused: a buffer returned a moment ago is still in the core's own
//! cache, need not be cleared, and costs the system no pages.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::sync::Mutex;

/// The size of a buffer is a multiple of this.
const STEP_BYTES: usize = 4096;
/// The number of sizes. Larger buffers are not kept.
const SIZES: usize = 64;
/// The most bytes kept for later reads.
const KEPT_BYTES: usize = 2 << 20;

/// Free buffers.
#[derive(Default)]
pub(crate) struct Buffers {
    kept: Mutex<FreeBuffers>,
}

struct FreeBuffers {
    /// Free buffers by size.
    free: [Vec<Box<[u8]>>; SIZES],
    bytes: usize,
}

impl Default for FreeBuffers {
    fn default() -> Self {
        Self { free: std::array::from_fn(|_| Vec::new()), bytes: 0 }
    }
}

impl fmt::Debug for Buffers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Buffers").finish_non_exhaustive()
    }
}

/// A buffer whose first bytes are in use.
pub(crate) struct Buffer {
    bytes: Box<[u8]>,
    len: usize,
    home: Arc<Buffers>,
}

impl Buffers {
    /// A buffer of `len` bytes, with any content.
    pub(crate) fn take(self: &Arc<Self>, len: usize) -> Buffer {
        let steps = len.div_ceil(STEP_BYTES).max(1);
        let free = || {
            let mut kept = self.kept.lock();
            let free = kept.free.get_mut(steps - 1)?.pop()?;
            kept.bytes -= free.len();
            Some(free)
        };
        let bytes = free().unwrap_or_else(|| vec![0; steps * STEP_BYTES].into());
        Buffer { bytes, len, home: Arc::clone(self) }
    }
}

impl Buffer {
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.len]
    }

    /// Its content as bytes. The buffer becomes free when the last slice is dropped.
    pub(crate) fn into_bytes(self) -> Bytes {
        Bytes::from_owner(self)
    }
}

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        let (len, size) = (bytes.len(), bytes.len() / STEP_BYTES);
        let mut kept = self.home.kept.lock();
        if size <= SIZES && kept.bytes + len <= KEPT_BYTES {
            kept.bytes += len;
            kept.free[size - 1].push(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_reused_when_its_last_slice_is_dropped() {
        let buffers = Arc::new(Buffers::default());
        let mut buffer = buffers.take(5000);
        buffer.bytes_mut().fill(7);
        let bytes = buffer.into_bytes();
        let at = bytes.as_ptr();
        assert_eq!(bytes.len(), 5000);
        let slice = bytes.slice(4000..);
        drop(bytes);
        assert_ne!(buffers.take(5000).as_ref().as_ptr(), at, "a reader has it");
        assert_eq!(&*slice, &[7; 1000]);
        drop(slice);
        let again = buffers.take(8192);
        assert_eq!((again.as_ref().as_ptr(), again.as_ref().len()), (at, 8192));
    }

    #[test]
    fn only_so_many_are_kept() {
        let buffers = Arc::new(Buffers::default());
        let taken: Vec<Buffer> = (0..40).map(|n| buffers.take(n * 10_000)).collect();
        drop(taken);
        let kept = buffers.kept.lock();
        let all: usize = kept.free.iter().flatten().map(|free| free.len()).sum();
        assert!(all <= KEPT_BYTES && all > 0 && all == kept.bytes, "{all}");
    }
}
