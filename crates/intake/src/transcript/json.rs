//! Reads parts of JSON without building a tree, so that the size of unused values does not matter.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use crate::feed::{Fault, Feed, SliceFeed, Taken, next_member, peek, take_key, take_value};

/// The text of one complete value, and its offset in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Json<'a> {
    pub(crate) bytes: &'a [u8],
    offset: u64,
}

impl<'a> Json<'a> {
    pub(crate) const NULL: Json<'static> = Json { bytes: b"null", offset: 0 };

    pub(crate) fn new(bytes: &'a [u8], offset: u64) -> Self {
        Self { bytes, offset }
    }

    /// Its byte range in a value that contains it.
    pub(crate) fn range_in(self, whole: Json<'_>) -> Range<usize> {
        let start = self.offset.saturating_sub(whole.offset) as usize;
        start..start + self.bytes.len()
    }

    pub(crate) fn is_null(self) -> bool {
        self.bytes == b"null"
    }

    pub(crate) fn is_true(self) -> bool {
        self.bytes == b"true"
    }

    /// Whether it is this text, which must not need escapes.
    pub(crate) fn is(self, text: &str) -> bool {
        let inner = self.bytes.strip_prefix(b"\"").and_then(|bytes| bytes.strip_suffix(b"\""));
        inner == Some(text.as_bytes())
    }

    pub(crate) fn is_object(self) -> bool {
        self.bytes.first() == Some(&b'{')
    }

    pub(crate) fn is_list(self) -> bool {
        self.bytes.first() == Some(&b'[')
    }

    /// The type of the value, for messages.
    pub(crate) fn kind(self) -> &'static str {
        match self.bytes.first() {
            Some(b'"') => "text",
            Some(b'[') => "a list",
            Some(b'{') => "an object",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "invalid JSON",
        }
    }

    /// The decoded text. The error completes a sentence that begins with the value's name.
    pub(crate) fn text(self) -> Result<Cow<'a, str>, String> {
        if self.bytes.first() != Some(&b'"') {
            return Err(format!("must be text, found {}", self.kind()));
        }
        if let Err(error) = std::str::from_utf8(self.bytes) {
            let at = self.offset + error.valid_up_to() as u64;
            return Err(format!("is not UTF-8 at byte {at}"));
        }
        match serde_json::from_slice::<Borrowed<'a>>(self.bytes) {
            Ok(text) => Ok(text.0),
            Err(error) => {
                let place = format!(" at line {} column {}", error.line(), error.column());
                let reason = error.to_string().replace(&place, "");
                Err(format!("is not valid JSON text: {reason} (after byte {})", self.offset))
            }
        }
    }

    /// The text, unless it is blank or not valid text.
    pub(crate) fn some_text(self) -> Option<Cow<'a, str>> {
        self.text().ok().filter(|text| !text.trim().is_empty())
    }

    /// The number; `None` for anything else.
    pub(crate) fn number(self) -> Option<f64> {
        serde_json::from_slice(self.bytes).ok()
    }

    /// The members of an object; empty for anything else.
    pub(crate) fn members(self) -> Members<'a> {
        let mut cut = SliceFeed::new(self.bytes, self.offset);
        if self.is_object() {
            cut.take(1);
        }
        Members { cut, first: true, ended: !self.is_object() }
    }

    /// The items of a list; empty for anything else.
    pub(crate) fn items(self) -> Items<'a> {
        let mut cut = SliceFeed::new(self.bytes, self.offset);
        if self.is_list() {
            cut.take(1);
        }
        Items { cut, first: true, ended: !self.is_list() }
    }

    /// The values of these keys, in this order; null for missing ones.
    pub(crate) fn fields<const N: usize>(self, keys: [&str; N]) -> Result<[Json<'a>; N], String> {
        let mut values = [Json::NULL; N];
        for member in self.members() {
            let (key, value) = member?;
            if let Some(at) = keys.iter().position(|wanted| *wanted == key) {
                values[at] = value;
            }
        }
        Ok(values)
    }
}

#[derive(Deserialize)]
#[serde(transparent)]
struct Borrowed<'a>(#[serde(borrow)] Cow<'a, str>);

/// The members of an object, ending after the first error.
pub(crate) struct Members<'a> {
    cut: SliceFeed<'a>,
    first: bool,
    ended: bool,
}

impl<'a> Iterator for Members<'a> {
    type Item = Result<(String, Json<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        next_of(&mut self.cut, &mut self.first, &mut self.ended, b'}', |cut| {
            let key = take_key(cut)?;
            Ok((key, value(cut)?))
        })
    }
}

/// The items of a list, ending after the first error.
pub(crate) struct Items<'a> {
    cut: SliceFeed<'a>,
    first: bool,
    ended: bool,
}

impl<'a> Iterator for Items<'a> {
    type Item = Result<Json<'a>, String>;

    fn next(&mut self) -> Option<Self::Item> {
        next_of(&mut self.cut, &mut self.first, &mut self.ended, b']', value)
    }
}

fn next_of<'a, T>(
    cut: &mut SliceFeed<'a>,
    first: &mut bool,
    ended: &mut bool,
    close: u8,
    take: impl FnOnce(&mut SliceFeed<'a>) -> Result<T, Fault>,
) -> Option<Result<T, String>> {
    if *ended {
        return None;
    }
    let found = match next_member(cut, *first, close) {
        Ok(true) => take(cut),
        Ok(false) => {
            *ended = true;
            let found = peek(cut).ok().flatten()?;
            Err(Fault::Syntax { offset: cut.offset(), expected: "the end", found })
        }
        Err(fault) => Err(fault),
    };
    *first = false;
    *ended |= found.is_err();
    Some(found.map_err(|fault| fault.to_string()))
}

fn value<'a>(cut: &mut SliceFeed<'a>) -> Result<Json<'a>, Fault> {
    let offset = cut.offset();
    match take_value(cut, usize::MAX)? {
        Taken::Whole(length) => Ok(Json::new(cut.take(length), offset)),
        Taken::TooLong(_) => Ok(Json::NULL),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_returns_only_the_requested_keys() {
        let json = Json::new(br#"{"a":{"b":[1,2]}, "c" : "x\n", "d":[true,null]}"#, 100);
        let [c, missing, d] = json.fields(["c", "nothing", "d"]).unwrap();
        assert_eq!(c.text().unwrap(), "x\n");
        assert!(missing.is_null());
        let items: Vec<Json<'_>> = d.items().map(Result::unwrap).collect();
        assert_eq!(items, [Json::new(b"true", 136), Json::new(b"null", 141)]);
    }

    #[test]
    fn iteration_ends_at_the_first_error() {
        for (text, members) in [
            (r#"{"a":1,"b"}"#, 2),
            (r#"{"a":1"#, 2),
            (r#"{"a":1} x"#, 2),
            (r#"{"a":1,}"#, 2),
            ("[1]", 0),
            ("", 0),
        ] {
            let found: Vec<_> = Json::new(text.as_bytes(), 0).members().collect();
            assert_eq!(found.len(), members, "{text}: {found:?}");
            assert!(found.last().is_none_or(Result::is_err), "{text}: {found:?}");
        }
    }

    #[test]
    fn invalid_text_is_rejected_with_a_reason() {
        for (json, expected) in [
            (&b"5"[..], "must be text, found a number"),
            (b"\"a\xFF\"", "is not UTF-8 at byte 12"),
            (b"\"\\q\"", "is not valid JSON text: invalid escape (after byte 10)"),
        ] {
            assert_eq!(Json::new(json, 10).text().unwrap_err(), expected);
        }
    }
}
