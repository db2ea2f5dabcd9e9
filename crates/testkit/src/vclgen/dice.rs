//! Dice: a random generator that gives equal results for a seed on every machine.

/// A random generator.
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    /// Makes the generator of `seed`.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Random 64 bits (SplitMix64).
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A random number below `sides`.
    pub fn below(&mut self, sides: usize) -> usize {
        (self.bits() % sides as u64) as usize
    }

    /// Returns true once in `throws` calls, on average.
    pub fn one_in(&mut self, throws: usize) -> bool {
        self.below(throws) == 0
    }

    /// A random element.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
