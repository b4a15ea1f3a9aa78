//! Vectors in JSON: lists of numbers, or base64 of little-endian f32, which is shorter and exact.

use std::borrow::Cow;
use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Deserializer, Error, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};

/// Why a text is not a vector.
#[derive(Debug, PartialEq)]
pub(crate) enum Base64Problem {
    Invalid(base64::DecodeError),
    /// The number of bytes is not a multiple of four.
    Length(usize),
}

impl fmt::Display for Base64Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(f, "not base64: {error}"),
            Self::Length(bytes) => write!(f, "{bytes} bytes are not a list of 32-bit numbers"),
        }
    }
}

/// Decodes base64 of little-endian f32.
pub(crate) fn from_base64(text: &str) -> Result<Vec<f32>, Base64Problem> {
    let bytes = STANDARD.decode(text).map_err(Base64Problem::Invalid)?;
    match bytes.as_chunks::<4>() {
        (numbers, []) => Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()),
        _ => Err(Base64Problem::Length(bytes.len())),
    }
}

fn to_base64(vector: &[f32]) -> String {
    let bytes: Vec<u8> = vector.iter().flat_map(|number| number.to_le_bytes()).collect();
    STANDARD.encode(bytes)
}

/// A vector in a request, in either form.
#[derive(Debug, PartialEq)]
pub(crate) struct GivenVector(pub(crate) Vec<f32>);

impl<'de> Deserialize<'de> for GivenVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(EitherForm).map(Self)
    }
}

struct EitherForm;

impl<'de> Visitor<'de> for EitherForm {
    type Value = Vec<f32>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of numbers, or base64 of little-endian f32")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vec<f32>, A::Error> {
        let mut numbers = Vec::new();
        while let Some(number) = list.next_element()? {
            numbers.push(number);
        }
        Ok(numbers)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Vec<f32>, E> {
        from_base64(text).map_err(E::custom)
    }
}

/// The schema of both forms.
fn either_form() -> Schema {
    json_schema!({
        "anyOf": [
            { "type": "array", "items": { "type": "number", "format": "float" } },
            { "type": "string", "contentEncoding": "base64" },
        ],
    })
}

impl JsonSchema for GivenVector {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Vector".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        either_form()
    }
}

/// The form of vectors in an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub(crate) enum VectorEncoding {
    #[default]
    Numbers,
    Base64,
}

/// A vector in an answer.
#[derive(Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub(crate) enum ShownVector {
    Numbers(Vec<f32>),
    Base64(String),
}

impl ShownVector {
    pub(crate) fn of(vector: Vec<f32>, encoding: VectorEncoding) -> Self {
        match encoding {
            VectorEncoding::Numbers => Self::Numbers(vector),
            VectorEncoding::Base64 => Self::Base64(to_base64(&vector)),
        }
    }
}

impl JsonSchema for ShownVector {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ShownVector".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        either_form()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(json: &str) -> Result<Vec<f32>, String> {
        serde_json::from_str::<GivenVector>(json).map(|it| it.0).map_err(|it| it.to_string())
    }

    #[test]
    fn both_forms_are_read_and_written() {
        let vector = [1.0, 2.0, -0.1];
        assert_eq!(given("[1, 2.0, -0.1]").unwrap(), vector);
        for encoding in [VectorEncoding::Numbers, VectorEncoding::Base64] {
            let shown = serde_json::to_string(&ShownVector::of(vector.to_vec(), encoding)).unwrap();
            assert_eq!(given(&shown).unwrap(), vector, "{shown}");
        }
        assert!(given("\"\"").unwrap().is_empty());
    }

    #[test]
    fn what_is_no_vector_is_explained() {
        for (json, expected) in [
            ("\"!\"", "not base64"),
            ("\"AACA\"", "3 bytes are not a list of 32-bit numbers"),
            ("[\"a\"]", "expected f32"),
            ("7", "expected a list of numbers, or base64 of little-endian f32"),
        ] {
            let error = given(json).unwrap_err();
            assert!(error.contains(expected), "{json}: {error}");
        }
    }
}
