/// A bit set of positions in a segment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bits {
    words: Vec<u64>,
    length: usize,
}

impl Bits {
    /// An empty set that can hold the positions below `length`.
    pub fn new(length: usize) -> Self {
        Self { words: vec![0; length.div_ceil(64)], length }
    }

    /// The capacity of the set, not the number of positions in it: see [`count`](Self::count).
    pub fn len(&self) -> usize {
        self.length
    }

    /// Whether the capacity is 0.
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// Adds a position. Ignored if it is beyond the capacity.
    pub fn insert(&mut self, position: usize) {
        if position < self.length {
            self.words[position / 64] |= 1 << (position % 64);
        }
    }

    /// Removes a position.
    pub fn remove(&mut self, position: usize) {
        if position < self.length {
            self.words[position / 64] &= !(1 << (position % 64));
        }
    }

    /// Removes all positions.
    pub fn clear(&mut self) {
        self.words.fill(0);
    }

    /// Whether the position is in the set.
    pub fn contains(&self, position: usize) -> bool {
        self.word(position / 64) >> (position % 64) & 1 == 1
    }

    /// The number of positions in the set.
    pub fn count(&self) -> usize {
        self.words.iter().map(|word| word.count_ones() as usize).sum()
    }

    /// The positions in the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = usize> {
        self.words.iter().enumerate().flat_map(|(at, word)| ones(*word).map(move |i| 64 * at + i))
    }

    /// Positions `64 * at..64 * (at + 1)`, lowest bit first; bits beyond the capacity are zero.
    pub(crate) fn word(&self, at: usize) -> u64 {
        self.words.get(at).copied().unwrap_or(0)
    }
}

/// The indexes of the set bits.
pub(crate) fn ones(mut word: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let index = word.trailing_zeros() as usize;
        // Clears the lowest set bit.
        (word != 0).then(|| word &= word - 1).map(|()| index)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn insert_remove_and_clear() {
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
