//! Terms on their way from a text to whoever asked.

/// The terms of the last few characters, in order. It is emptied before the text
/// goes on, so that it stays small.
#[derive(Debug, Clone, Default)]
pub(super) struct Found {
    text: String,
    ends: Vec<(usize, u32)>,
    given: usize,
    position: u32,
}

impl Found {
    /// Before the first character of a text.
    pub(super) fn restart(&mut self) {
        self.clear();
        self.position = 0;
    }

    /// A term at the next position.
    pub(super) fn push(&mut self, term: &str) {
        self.text.push_str(term);
        self.ends.push((self.text.len(), self.position));
        self.position = self.position.saturating_add(1);
    }

    /// A pair of characters at the next position.
    pub(super) fn push_pair(&mut self, first: char, second: Option<char>) {
        self.text.push(first);
        self.text.extend(second);
        self.ends.push((self.text.len(), self.position));
        self.position = self.position.saturating_add(1);
    }

    /// Another term for what the last position holds.
    pub(super) fn push_again(&mut self, term: &str) {
        self.text.push_str(term);
        self.ends.push((self.text.len(), self.position.saturating_sub(1)));
    }

    /// Hands out the next term, and forgets all once there is none.
    pub(super) fn next(&mut self) -> bool {
        if self.given < self.ends.len() {
            self.given += 1;
            return true;
        }
        self.clear();
        false
    }

    /// The term that was handed out last, and its position.
    pub(super) fn current(&self) -> (&str, u32) {
        let Some(last) = self.given.checked_sub(1) else {
            return ("", 0);
        };
        let start = last.checked_sub(1).map_or(0, |before| self.ends[before].0);
        let (end, position) = self.ends[last];
        (&self.text[start..end], position)
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
        self.given = 0;
    }
}

/// Overlapping pairs of characters of a script without spaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Pairs {
    last: Option<char>,
    alone: bool,
}

impl Pairs {
    /// Whether no such text is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    pub(super) fn push(&mut self, c: char, found: &mut Found) {
        self.alone = self.last.is_none();
        if let Some(last) = self.last.replace(c) {
            found.push_pair(last, Some(c));
        }
    }

    /// Ends the text: a character that met no other stands for itself.
    pub(super) fn end(&mut self, found: &mut Found) {
        if let Some(last) = self.last.take()
            && self.alone
        {
            found.push_pair(last, None);
        }
    }
}
