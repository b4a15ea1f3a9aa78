use std::borrow::Cow;
use std::fmt;

use isolith_types::{LONGEST_VECTOR, Metadata, MetadataError, Metric};
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};

use crate::feed::{is_blank, name_byte};
use crate::records::error::Flaw;
use crate::records::number::{NumberFault, read_number};
use crate::records::{MAX_DIMENSION, MAX_ID_BYTES};

/// Reads an id. Here and below, the bytes are one whole value, and `offset` is its position in
/// the file.
pub(crate) fn read_id(bytes: &[u8], offset: u64) -> Result<Cow<'_, str>, Flaw> {
    match bytes.first() {
        Some(b'"') => {}
        Some(b'-' | b'0'..=b'9') => return Err(Flaw::NumberAsId { number: excerpt(bytes) }),
        _ => return Err(wrong_kind("id", "text", bytes)),
    }
    let id = read_text("id", bytes, offset)?;
    match id.len() {
        0 => Err(Flaw::EmptyId),
        length if length > MAX_ID_BYTES => Err(Flaw::LongId { bytes: length }),
        _ => Ok(id),
    }
}

/// Reads a document; null means none.
pub(crate) fn read_document(bytes: &[u8], offset: u64) -> Result<Option<Cow<'_, str>>, Flaw> {
    match bytes {
        [b'"', ..] => read_text("document", bytes, offset).map(Some),
        b"null" => Ok(None),
        _ => Err(wrong_kind("document", "text or null", bytes)),
    }
}

/// Reads metadata; null means empty metadata.
pub(crate) fn read_metadata(bytes: &[u8], offset: u64) -> Result<Metadata, Flaw> {
    match bytes {
        b"null" => return Ok(Metadata::default()),
        [b'{', ..] => {}
        _ => return Err(wrong_kind("metadata", "an object or null", bytes)),
    }
    let text = std::str::from_utf8(bytes).map_err(|error| Flaw::NotUtf8 {
        part: "metadata",
        offset: offset + error.valid_up_to() as u64,
    })?;
    Metadata::parse(text).map_err(|error| {
        let unusual = text.contains("NaN") || text.contains("Infinity");
        let note = match error {
            MetadataError::Malformed(_) if unusual => " (NaN and Infinity are not JSON)",
            _ => "",
        };
        Flaw::Metadata(format!("{error}{note}"))
    })
}

/// Replaces the content of `vector` with the numbers of a JSON list.
pub(crate) fn read_vector(bytes: &[u8], offset: u64, vector: &mut Vec<f32>) -> Result<(), Flaw> {
    vector.clear();
    if bytes.first() != Some(&b'[') {
        return Err(wrong_kind("embedding", "a list of numbers", bytes));
    }
    let mut at = after_blanks(bytes, 1);
    if bytes.get(at) == Some(&b']') {
        return Err(Flaw::EmptyVector);
    }
    loop {
        let (value, length) = read_number(&bytes[at..])
            .map_err(|fault| number_flaw(fault, bytes, at, offset, vector.len() + 1))?;
        if vector.len() == MAX_DIMENSION as usize {
            return Err(Flaw::TooManyNumbers);
        }
        vector.push(value);
        at = after_blanks(bytes, at + length);
        match bytes.get(at) {
            Some(b',') => at = after_blanks(bytes, at + 1),
            Some(b']') => return Ok(()),
            Some(&found) => {
                return Err(Flaw::Syntax {
                    offset: offset + at as u64,
                    expected: "a comma or ]",
                    found: name_byte(found),
                });
            }
            None => return Err(Flaw::CutOff { offset: offset + at as u64 }),
        }
    }
}

/// The requirements on all vectors of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct VectorRule {
    /// If not given, set by the first vector.
    pub(crate) dimension: Option<u32>,
    pub(crate) refuses_zero: bool,
}

impl VectorRule {
    /// A zero vector has no direction, so a file that has one for cosine is probably wrong.
    pub(crate) fn new(dimension: Option<u32>, metric: Metric) -> Self {
        Self { dimension, refuses_zero: metric == Metric::Cosine }
    }

    pub(crate) fn admit(&mut self, vector: &[f32]) -> Result<(), Flaw> {
        if let Some(expected) = self.dimension
            && vector.len() != expected as usize
        {
            return Err(Flaw::Dimension { found: vector.len(), expected });
        }
        if self.refuses_zero && vector.iter().all(|value| *value == 0.0) {
            return Err(Flaw::ZeroVector);
        }
        let square: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
        if square.sqrt() > LONGEST_VECTOR {
            return Err(Flaw::LongVector);
        }
        self.dimension = Some(vector.len() as u32);
        Ok(())
    }
}

/// The type of a JSON value, for messages.
pub(crate) fn kind_of(bytes: &[u8]) -> &'static str {
    match bytes {
        [b'"', ..] => "text",
        [b'[', ..] => "a list",
        [b'{', ..] => "an object",
        [b'0'..=b'9', ..] | [b'-', b'0'..=b'9', ..] => "a number",
        b"null" => "null",
        b"true" | b"false" => "true or false",
        b"NaN" => "NaN",
        b"Infinity" | b"-Infinity" => "Infinity",
        _ => "something that is not JSON",
    }
}

fn wrong_kind(part: &'static str, expected: &'static str, bytes: &[u8]) -> Flaw {
    Flaw::WrongKind { part, expected, found: kind_of(bytes) }
}

fn read_text<'a>(part: &'static str, bytes: &'a [u8], offset: u64) -> Result<Cow<'a, str>, Flaw> {
    serde_json::from_slice::<Text<'_>>(bytes).map(|text| text.0).map_err(|error| {
        match std::str::from_utf8(bytes) {
            Err(error) => Flaw::NotUtf8 { part, offset: offset + error.valid_up_to() as u64 },
            Ok(text) => {
                let place = format!(" at line {} column {}", error.line(), error.column());
                let reason = error.to_string().replace(&place, "");
                let lines = text.split_inclusive('\n').take(error.line().saturating_sub(1));
                let before = lines.map(str::len).sum::<usize>() + error.column().saturating_sub(1);
                Flaw::BadText { part, reason, offset: offset + before as u64 }
            }
        }
    })
}

/// Text, borrowed if it has no escapes.
struct Text<'a>(Cow<'a, str>);

impl<'de> Deserialize<'de> for Text<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyText;

        impl<'de> Visitor<'de> for AnyText {
            type Value = Text<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("text")
            }

            fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Borrowed(text)))
            }

            fn visit_str<E>(self, text: &str) -> Result<Text<'de>, E> {
                Ok(Text(Cow::Owned(text.to_owned())))
            }
        }

        deserializer.deserialize_str(AnyText)
    }
}

#[inline]
fn after_blanks(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(|byte| is_blank(*byte)) {
        at += 1;
    }
    at
}

#[cold]
fn number_flaw(fault: NumberFault, bytes: &[u8], at: usize, offset: u64, position: usize) -> Flaw {
    let item = &bytes[at.min(bytes.len())..];
    let length = item.iter().take_while(|byte| !is_blank(**byte) && !b",]".contains(byte)).count();
    let item = &item[..length];
    match fault {
        NumberFault::NotFinite => Flaw::NotFinite { position, text: excerpt(item) },
        NumberFault::TooLarge => Flaw::NumberTooLarge { position, text: excerpt(item) },
        NumberFault::Malformed => {
            let found = match kind_of(item) {
                "a number" | "something that is not JSON" if length > 0 => excerpt(item),
                _ if length == 0 => "nothing".to_owned(),
                kind => kind.to_owned(),
            };
            Flaw::NotANumber { position, found, offset: offset + at as u64 }
        }
    }
}

/// The beginning of a value, for messages.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 40;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(SHOWN)]).into_owned();
    if bytes.len() > SHOWN { text + "…" } else { text }
}
