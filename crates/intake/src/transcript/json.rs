//! JSON that is read without being built: what is not asked for costs nothing,
//! however much of it there is.

use std::borrow::Cow;
use std::ops::Range;

use serde::Deserialize;

use crate::feed::{Cut, Fault, Feed, Taken, next_member, peek, take_key, take_value};

/// One whole value, as it is written, and where it begins in the file.
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

    /// Where it is in another value that it is a part of.
    pub(crate) fn place_in(self, whole: Json<'_>) -> Range<usize> {
        let start = self.offset.saturating_sub(whole.offset) as usize;
        start..start + self.bytes.len()
    }

    pub(crate) fn is_null(self) -> bool {
        self.bytes == b"null"
    }

    pub(crate) fn is_true(self) -> bool {
        self.bytes == b"true"
    }

    /// Whether it is this text, which has nothing to be escaped.
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

    /// What people call such a value.
    pub(crate) fn kind(self) -> &'static str {
        match self.bytes.first() {
            Some(b'"') => "text",
            Some(b'[') => "a list",
            Some(b'{') => "an object",
            Some(b'-' | b'0'..=b'9') => "a number",
            Some(b't' | b'f') => "true or false",
            Some(b'n') => "null",
            _ => "something that is not JSON",
        }
    }

    /// The text, if it is one that can be read.
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
                Err(format!("is no valid JSON text: {reason} (after byte {})", self.offset))
            }
        }
    }

    /// The text that is there; anything else is none.
    pub(crate) fn some_text(self) -> Option<Cow<'a, str>> {
        self.text().ok().filter(|text| !text.trim().is_empty())
    }

    /// The number, if it is one.
    pub(crate) fn number(self) -> Option<f64> {
        serde_json::from_slice(self.bytes).ok()
    }

    /// The members of an object; of anything else, none.
    pub(crate) fn members(self) -> Members<'a> {
        let mut cut = Cut::new(self.bytes, self.offset);
        if self.is_object() {
            cut.take(1);
        }
        Members { cut, first: true, ended: !self.is_object() }
    }

    /// The items of a list; of anything else, none.
    pub(crate) fn items(self) -> Items<'a> {
        let mut cut = Cut::new(self.bytes, self.offset);
        if self.is_list() {
            cut.take(1);
        }
        Items { cut, first: true, ended: !self.is_list() }
    }

    /// The values of these keys, in their order; null for one that is not there.
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

/// Goes through the members of an object, up to the first thing that is wrong.
pub(crate) struct Members<'a> {
    cut: Cut<'a>,
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

/// Goes through the items of a list, up to the first thing that is wrong.
pub(crate) struct Items<'a> {
    cut: Cut<'a>,
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
    cut: &mut Cut<'a>,
    first: &mut bool,
    ended: &mut bool,
    close: u8,
    take: impl FnOnce(&mut Cut<'a>) -> Result<T, Fault>,
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

fn value<'a>(cut: &mut Cut<'a>) -> Result<Json<'a>, Fault> {
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
    fn fields_are_found_and_others_passed_over() {
        let json = Json::new(br#"{"a":{"b":[1,2]}, "c" : "x\n", "d":[true,null]}"#, 100);
        let [c, missing, d] = json.fields(["c", "nothing", "d"]).unwrap();
        assert_eq!(c.text().unwrap(), "x\n");
        assert!(missing.is_null());
        let items: Vec<Json<'_>> = d.items().map(Result::unwrap).collect();
        assert_eq!(items, [Json::new(b"true", 136), Json::new(b"null", 141)]);
    }

    #[test]
    fn what_is_wrong_ends_the_walk() {
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
    fn text_that_is_none_says_why() {
        for (json, says) in [
            (&b"5"[..], "must be text, found a number"),
            (b"\"a\xFF\"", "is not UTF-8 at byte 12"),
            (b"\"\\q\"", "is no valid JSON text: invalid escape (after byte 10)"),
        ] {
            assert_eq!(Json::new(json, 10).text().unwrap_err(), says);
        }
    }
}
