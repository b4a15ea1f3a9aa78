/// A set of positions in a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// An empty set of positions below `length`.
    pub fn new(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    /// How many positions there are, in the set or not.
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether there are no positions at all.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Puts a position into the set. One beyond the length is left out.
    pub fn insert(&mut self, position: usize) {
        if position < self.length {
            self.words[position / 64] |= 1 << (position % 64);
        }
    }

    /// Takes a position out of the set.
    pub fn remove(&mut self, position: usize) {
        if position < self.length {
            self.words[position / 64] &= !(1 << (position % 64));
        }
    }

    /// Takes all positions out.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Whether a position is in the set.
    pub fn contains(&self, position: usize) -> bool {
        self.word(position / 64) >> (position % 64) & 1 == 1
    }

    /// How many positions are in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The positions in the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| ones(*word).map(move |i| 64 * at + i))
    }

    /// Positions 64 × `at` and up, the lowest bit first; none of those beyond the length.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }
}

/// The places of the bits that are set.
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let place = word.trailing_zeros() as usize;
        // Clears the lowest bit.
        (word != 0).then(|| word &= word - 1).map(|()| place)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_inserted() {
        let mut bits = Bits::new(130);
        for position in [0, 63, 64, 129, 130, 1000] {
            bits.insert(position);
        }
        assert_eq!(bits.iter().collect::<Vec<_>>(), [0, 63, 64, 129]);
        assert_eq!((bits.count(), bits.len()), (4, 130));
        bits.remove(63);
        assert!(!bits.contains(63) && bits.contains(64) && !bits.contains(1000));
        bits.clear();
        assert_eq!(bits.iter().count(), 0);
    }
}
