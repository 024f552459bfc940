//! Reproducible random choices, determined by a seed.
//!
//! A xorshift generator, which is good enough for tests only.

/// A generator of choices. The same seed gives the same choices on every machine.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// Creates a generator with this seed.
    pub fn new(seed: u64) -> Self {
        // Spreads neighbouring seeds apart (splitmix64); a xorshift must not start at zero.
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    /// Returns the next number.
    pub fn number(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Returns a number below `bound`; 0 if the bound is 0.
    pub fn below(&mut self, bound: usize) -> usize {
        // The modulo favours small numbers by about 2^-60, which no test can detect.
        usize::try_from(self.number() >> 1).map_or(0, |number| number.checked_rem(bound).unwrap_or(0))
    }

    /// Returns `true` once in `times` on average.
    pub fn once_in(&mut self, times: usize) -> bool {
        self.below(times) == 0
    }

    /// Returns one of the items.
    ///
    /// # Panics
    /// If there are none.
    pub fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        *from
            .get(self.below(from.len()))
            .expect("there is something to choose from")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_makes_the_same_choices() {
        let choices = |seed| {
            let mut random = Random::new(seed);
            (0..50).map(|_| random.below(10)).collect::<Vec<_>>()
        };
        assert_eq!(choices(7), choices(7));
        assert_ne!(choices(7), choices(8));
        assert!(choices(0).iter().any(|choice| *choice > 0) && choices(0).iter().all(|choice| *choice < 10));
    }
}
