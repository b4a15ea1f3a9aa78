use crate::feed::{Fault, Feed};

/// The maximum nesting of lists and objects in a file.
const MAX_DEPTH: u32 = 120;

/// Longer keys are never ones that are looked for.
const MAX_KEY_BYTES: usize = 4 << 10;

/// The result of taking a value or a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// It is the first so many bytes of the window, not yet consumed.
    Whole(usize),
    /// It exceeds the limit with this many bytes, and was consumed.
    TooLong(u64),
}

/// Consumes white space and returns the next byte without consuming it; `None` at the end.
///
/// # Errors
/// A [`Fault`] if reading fails or is cancelled.
pub fn peek<F: Feed>(feed: &mut F) -> Result<Option<u8>, Fault> {
    loop {
        let window = feed.window();
        let blank = window.iter().take_while(|byte| is_blank(**byte)).count();
        if let Some(&byte) = window.get(blank) {
            feed.advance(blank);
            return Ok(Some(byte));
        }
        feed.advance(blank);
        if !feed.more()? {
            return Ok(None);
        }
    }
}

/// Moves to the next member of an open list or object; false when it closes.
///
/// # Errors
/// A [`Fault`] if the bytes are not JSON or cannot be read.
pub fn next_member<F: Feed>(feed: &mut F, first: bool, close: u8) -> Result<bool, Fault> {
    match peek(feed)? {
        None => Err(Fault::End { offset: feed.offset() }),
        Some(byte) if byte == close => {
            feed.advance(1);
            Ok(false)
        }
        Some(_) if first => Ok(true),
        Some(b',') => {
            feed.advance(1);
            peek(feed)?;
            Ok(true)
        }
        Some(found) => {
            let expected = if close == b']' { "a comma or ]" } else { "a comma or }" };
            Err(Fault::Syntax { offset: feed.offset(), expected, found })
        }
    }
}

/// Takes a key with its colon and moves to the value. The key is returned without quotes and
/// with its escapes decoded.
///
/// # Errors
/// A [`Fault`] if the bytes are not JSON or cannot be read.
pub fn take_key<F: Feed>(feed: &mut F) -> Result<String, Fault> {
    match peek(feed)? {
        None => return Err(Fault::End { offset: feed.offset() }),
        Some(b'"') => {}
        Some(found) => {
            return Err(Fault::Syntax {
                offset: feed.offset(),
                expected: "a key in quotes",
                found,
            });
        }
    }
    let mut key = String::new();
    if let Taken::Whole(length) = take_value(feed, MAX_KEY_BYTES)? {
        key = serde_json::from_slice(&feed.window()[..length]).unwrap_or_default();
        feed.advance(length);
    }
    match peek(feed)? {
        None => return Err(Fault::End { offset: feed.offset() }),
        Some(b':') => feed.advance(1),
        Some(found) => {
            return Err(Fault::Syntax { offset: feed.offset(), expected: "a colon", found });
        }
    }
    peek(feed)?;
    Ok(key)
}

/// Brings a whole value into the window, or consumes it if it is longer than the limit. Only
/// quotes and brackets are checked.
///
/// # Errors
/// A [`Fault`] if the bytes are not JSON or cannot be read.
pub fn take_value<F: Feed>(feed: &mut F, limit: usize) -> Result<Taken, Fault> {
    let mut extent = Extent::default();
    let mut consumed = 0u64;
    let mut seen = 0;
    loop {
        let window = feed.window();
        match extent.scan(&window[seen..]) {
            Scan::End(length) => {
                let length = seen + length;
                if consumed == 0 && length <= limit {
                    return Ok(Taken::Whole(length));
                }
                feed.advance(length);
                return Ok(Taken::TooLong(consumed + length as u64));
            }
            Scan::Open => seen = window.len(),
            Scan::Bad { at, expected } => {
                let (offset, found) = (feed.offset() + (seen + at) as u64, window[seen + at]);
                return Err(Fault::Syntax { offset, expected, found });
            }
            Scan::TooDeep(at) => {
                return Err(Fault::TooDeep { offset: feed.offset() + (seen + at) as u64 });
            }
        }
        if seen > limit {
            feed.advance(seen);
            consumed += seen as u64;
            seen = 0;
        }
        if !feed.more()? {
            return match (extent.ends_with_the_bytes(), consumed) {
                (false, _) => Err(Fault::End { offset: feed.offset() + seen as u64 }),
                (true, 0) => Ok(Taken::Whole(seen)),
                (true, _) => {
                    feed.advance(seen);
                    Ok(Taken::TooLong(consumed + seen as u64))
                }
            };
        }
    }
}

/// Consumes a value of any size.
///
/// # Errors
/// A [`Fault`] if the bytes are not JSON or cannot be read.
pub fn skip_value<F: Feed>(feed: &mut F) -> Result<(), Fault> {
    if let Taken::Whole(length) = take_value(feed, 0)? {
        feed.advance(length);
    }
    Ok(())
}

/// Brings a line into the window, without its end, or consumes it with its end if it is longer
/// than the limit. `None` at the end of the bytes.
///
/// # Errors
/// A [`Fault`] if reading fails or is cancelled.
pub fn take_line<F: Feed>(feed: &mut F, limit: usize) -> Result<Option<Taken>, Fault> {
    let mut consumed = 0u64;
    let mut seen = 0;
    loop {
        let window = feed.window();
        let length = seen + to_line_end(&window[seen..]);
        if length < window.len() {
            if consumed == 0 && length <= limit {
                return Ok(Some(Taken::Whole(length)));
            }
            feed.advance(length + 1);
            return Ok(Some(Taken::TooLong(consumed + length as u64)));
        }
        seen = length;
        if seen > limit {
            feed.advance(seen);
            consumed += seen as u64;
            seen = 0;
        }
        if !feed.more()? {
            return Ok(match (consumed, seen) {
                (0, 0) => None,
                (0, length) => Some(Taken::Whole(length)),
                (consumed, length) => {
                    feed.advance(length);
                    Some(Taken::TooLong(consumed + length as u64))
                }
            });
        }
    }
}

/// Finds the end of one value, given in any number of pieces.
#[derive(Debug, Default)]
struct Extent {
    state: LexState,
    depth: u32,
    /// A bit for each open bracket: 1 for an object. Only the lowest `depth` bits are valid.
    objects: u128,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum LexState {
    #[default]
    Start,
    /// In a number, true, false or null outside of any list or object.
    Scalar,
    Text,
    Escape,
    /// In a list or an object, outside of any text.
    Between,
}

enum Scan {
    End(usize),
    Open,
    Bad { at: usize, expected: &'static str },
    TooDeep(usize),
}

impl Extent {
    fn scan(&mut self, bytes: &[u8]) -> Scan {
        let mut at = 0;
        while at < bytes.len() {
            let rest = &bytes[at..];
            match self.state {
                LexState::Start => match rest[0] {
                    b'"' => {
                        self.state = LexState::Text;
                        at += 1;
                    }
                    b'[' | b'{' => self.state = LexState::Between,
                    b'-' | b'0'..=b'9' | b't' | b'f' | b'n' | b'N' | b'I' => {
                        self.state = LexState::Scalar;
                    }
                    _ => return Scan::Bad { at, expected: "a value" },
                },
                LexState::Scalar => {
                    at += run(rest, |byte| {
                        is_blank(byte) | is_bracket(byte) | matches!(byte, b',' | b':' | b'"')
                    });
                    if at < bytes.len() {
                        return Scan::End(at);
                    }
                }
                LexState::Escape => {
                    self.state = LexState::Text;
                    at += 1;
                }
                LexState::Text => {
                    at += run(rest, |byte| (byte == b'"') | (byte == b'\\'));
                    match bytes.get(at) {
                        None => {}
                        Some(b'\\') => self.state = LexState::Escape,
                        Some(_) if self.depth == 0 => return Scan::End(at + 1),
                        Some(_) => self.state = LexState::Between,
                    }
                    at += 1;
                }
                LexState::Between => {
                    at += run(rest, |byte| (byte == b'"') | is_bracket(byte));
                    if let Some(&byte) = bytes.get(at)
                        && let Some(outcome) = self.bracket(byte, at)
                    {
                        return outcome;
                    }
                    at += 1;
                }
            }
        }
        Scan::Open
    }

    fn bracket(&mut self, byte: u8, at: usize) -> Option<Scan> {
        match byte {
            b'"' => self.state = LexState::Text,
            b'[' | b'{' if self.depth == MAX_DEPTH => return Some(Scan::TooDeep(at)),
            b'[' | b'{' => {
                let bit = 1 << self.depth;
                if byte == b'{' {
                    self.objects |= bit;
                } else {
                    self.objects &= !bit;
                }
                self.depth += 1;
            }
            _ => {
                self.depth -= 1;
                let object = self.objects >> self.depth & 1 == 1;
                if object != (byte == b'}') {
                    let expected = if object { "} or a member" } else { "] or a member" };
                    return Some(Scan::Bad { at, expected });
                }
                if self.depth == 0 {
                    return Some(Scan::End(at + 1));
                }
            }
        }
        None
    }

    fn ends_with_the_bytes(&self) -> bool {
        self.state == LexState::Scalar
    }
}

/// Whether a byte is white space in JSON.
pub fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\n' | b'\r' | b'\t')
}

/// `[` differs from `{`, and `]` from `}`, only in the bit that is set here.
#[inline]
fn is_bracket(byte: u8) -> bool {
    ((byte | 0x20) == b'{') | ((byte | 0x20) == b'}')
}

/// The number of bytes before the end of the line, or all if it is not among them.
fn to_line_end(bytes: &[u8]) -> usize {
    run(bytes, |byte| byte == b'\n')
}

/// The number of bytes before the first one that stops, or all if none does. Whole chunks are
/// tested without branches, so that the compiler can vectorize them.
#[inline]
fn run(bytes: &[u8], stops: impl Fn(u8) -> bool) -> usize {
    const CHUNK: usize = 32;
    let mut at = 0;
    for chunk in bytes.chunks_exact(CHUNK) {
        if chunk.iter().fold(false, |any, &byte| any | stops(byte)) {
            break;
        }
        at += CHUNK;
    }
    at + bytes[at..].iter().take_while(|byte| !stops(**byte)).count()
}
