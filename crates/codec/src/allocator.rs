//! Allocator for brotli that counts the bytes that it has allocated. It sets no limit of its own.

use brotli::Allocator;
use brotli::SliceWrapper;
use brotli::enc::{BrotliAlloc, StandardAlloc};

/// Allocator that counts its bytes.
#[derive(Debug, Default)]
pub(crate) struct CountingAllocator {
    now: usize,
    peak: usize,
}

impl CountingAllocator {
    /// The most bytes that were allocated at one time.
    pub(crate) const fn peak(&self) -> usize {
        self.peak
    }
}

impl<T: Clone + Default> Allocator<T> for CountingAllocator {
    type AllocatedMemory = <StandardAlloc as Allocator<T>>::AllocatedMemory;

    fn alloc_cell(&mut self, len: usize) -> Self::AllocatedMemory {
        self.now += len * size_of::<T>();
        self.peak = self.peak.max(self.now);
        StandardAlloc::default().alloc_cell(len)
    }

    fn free_cell(&mut self, data: Self::AllocatedMemory) {
        let slice: &[T] = data.slice();
        self.now = self.now.saturating_sub(size_of_val(slice));
    }
}

impl BrotliAlloc for CountingAllocator {}
