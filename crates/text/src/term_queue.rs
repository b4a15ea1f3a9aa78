//! Buffers terms between a splitter and its caller.

/// A queue of terms with their positions. It is drained before more text is read.
#[derive(Debug, Clone, Default)]
pub(super) struct TermQueue {
    /// The terms, concatenated.
    text: String,
    /// End in `text` and position of each term.
    ends: Vec<(usize, u32)>,
    /// Number of terms taken.
    taken: usize,
    position: u32,
}

impl TermQueue {
    /// Prepares for a new text.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.position = 0;
    }

    /// Appends a term at the next position.
    pub(super) fn push(&mut self, term: &str) {
        self.text.push_str(term);
        self.ends.push((self.text.len(), self.position));
        self.position = self.position.saturating_add(1);
    }

    /// Appends one or two characters as a term at the next position.
    pub(super) fn push_bigram(&mut self, first: char, second: Option<char>) {
        self.text.push(first);
        self.text.extend(second);
        self.ends.push((self.text.len(), self.position));
        self.position = self.position.saturating_add(1);
    }

    /// Appends a term at the same position as the last one.
    pub(super) fn push_at_last_position(&mut self, term: &str) {
        self.text.push_str(term);
        self.ends.push((self.text.len(), self.position.saturating_sub(1)));
    }

    /// Moves to the next term; clears the queue and returns false if there is none.
    pub(super) fn next(&mut self) -> bool {
        if self.taken < self.ends.len() {
            self.taken += 1;
            return true;
        }
        self.clear();
        false
    }

    /// The current term and its position.
    pub(super) fn current(&self) -> (&str, u32) {
        let Some(last) = self.taken.checked_sub(1) else {
            return ("", 0);
        };
        let start = last.checked_sub(1).map_or(0, |previous| self.ends[previous].0);
        let (end, position) = self.ends[last];
        (&self.text[start..end], position)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.taken = 0;
    }
}

/// Forms overlapping bigrams of text in a script without spaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Bigrams {
    last: Option<char>,
    is_first: bool,
}

impl Bigrams {
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    pub(super) fn push(&mut self, c: char, queue: &mut TermQueue) {
        self.is_first = self.last.is_none();
        if let Some(last) = self.last.replace(c) {
            queue.push_bigram(last, Some(c));
        }
    }

    /// Ends the run; a single character becomes a term.
    pub(super) fn end(&mut self, queue: &mut TermQueue) {
        if let Some(last) = self.last.take()
            && self.is_first
        {
            queue.push_bigram(last, None);
        }
    }
}
