//! Vectors in requests: lists of numbers, or base64 of little-endian f32.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, SeqAccess, Unexpected, Visitor};

use super::error::{ChromaError, Reply};
use crate::vector::{Base64Problem, from_base64};

/// The vectors of a request.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Vectors {
    /// All numbers, one vector after the other.
    pub(super) numbers: Vec<f32>,
    /// The length of each vector; `None` for a null.
    pub(super) lengths: Vec<Option<usize>>,
    /// Why a vector in base64 cannot be decoded.
    problem: Option<String>,
}

impl Vectors {
    /// Vectors of one length.
    pub(super) fn of_rows(rows: Vec<Vec<f32>>) -> Self {
        let lengths = rows.iter().map(|row| Some(row.len())).collect();
        Self { numbers: rows.concat(), lengths, problem: None }
    }

    /// Checks what the form of the JSON does not: base64, lengths and values.
    pub(super) fn validate(&self) -> Reply<()> {
        if let Some(problem) = &self.problem {
            return Err(ChromaError::invalid(problem));
        }
        if self.lengths.contains(&Some(0)) {
            let message = "embeddings: Each embedding must have at least 1 dimension";
            return Err(ChromaError::validation(message));
        }
        if !self.numbers.iter().fold(true, |all, number| all & number.is_finite()) {
            let message = "embeddings: Embeddings must not contain NaN or Infinity values";
            return Err(ChromaError::validation(message));
        }
        Ok(())
    }

    /// The length that all vectors have; `None` if there are none.
    pub(super) fn dimension(&self) -> Reply<Option<u32>> {
        let mut lengths = self.lengths.iter().flatten();
        let Some(first) = lengths.next() else { return Ok(None) };
        if lengths.any(|length| length != first) {
            return Err(ChromaError::invalid("Inconsistent dimensions in provided embeddings"));
        }
        Ok(Some(u32::try_from(*first).unwrap_or(u32::MAX)))
    }

    /// The vectors in order; `None` for a null.
    pub(super) fn rows(&self) -> impl Iterator<Item = Option<&[f32]>> {
        let mut rest = &self.numbers[..];
        self.lengths.iter().map(move |length| {
            let (row, others) = rest.split_at((*length)?);
            rest = others;
            Some(row)
        })
    }
}

/// Vectors of new records.
#[derive(Debug)]
pub(super) struct NewVectors(pub(super) Vectors);

/// Vectors of changed records; nulls leave a vector unchanged.
#[derive(Debug, Default)]
pub(super) struct ChangedVectors(pub(super) Vectors);

/// Vectors of queries, as lists of numbers only.
#[derive(Debug)]
pub(super) struct QueryVectors(pub(super) Vectors);

impl<'de> Deserialize<'de> for NewVectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let vectors = deserializer.deserialize_seq(List { nulls: false, base64: true });
        vectors.map(Self).map_err(|error| no_variant(error, "EmbeddingsPayload"))
    }
}

impl<'de> Deserialize<'de> for ChangedVectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let vectors = deserializer.deserialize_seq(List { nulls: true, base64: true });
        vectors.map(Self).map_err(|error| no_variant(error, "UpdateEmbeddingsPayload"))
    }
}

impl<'de> Deserialize<'de> for QueryVectors {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_seq(List { nulls: false, base64: false }).map(Self)
    }
}

/// Chroma says no more than this. A missing field is no wrong variant.
fn no_variant<E: Error>(error: E, name: &str) -> E {
    if error.to_string().starts_with("missing field") {
        return error;
    }
    E::custom(format!("data did not match any variant of untagged enum {name}"))
}

/// Reads a list of vectors.
struct List {
    nulls: bool,
    base64: bool,
}

impl<'de> Visitor<'de> for List {
    type Value = Vectors;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Vectors, A::Error> {
        let mut vectors = Vectors::default();
        let Self { nulls, base64 } = self;
        while list.next_element_seed(Row { into: &mut vectors, nulls, base64 })?.is_some() {}
        Ok(vectors)
    }
}

/// Reads one vector.
struct Row<'a> {
    into: &'a mut Vectors,
    nulls: bool,
    base64: bool,
}

impl<'de> serde::de::DeserializeSeed<'de> for Row<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.nulls || self.base64 {
            true => deserializer.deserialize_any(self),
            false => deserializer.deserialize_seq(self),
        }
    }
}

impl<'de> Visitor<'de> for Row<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a sequence")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        let before = self.into.numbers.len();
        while let Some(number) = list.next_element::<f64>()? {
            // A number that is too large becomes infinite, and is refused later.
            self.into.numbers.push(number as f32);
        }
        self.into.lengths.push(Some(self.into.numbers.len() - before));
        Ok(())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if !self.base64 {
            return Err(E::invalid_type(Unexpected::Str(text), &self));
        }
        match from_base64(text) {
            Ok(numbers) => {
                self.into.lengths.push(Some(numbers.len()));
                self.into.numbers.extend(numbers);
            }
            Err(problem) => {
                self.into.lengths.push(None);
                self.into.problem.get_or_insert_with(|| in_chromas_words(&problem));
            }
        }
        Ok(())
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        if !self.nulls {
            return Err(E::invalid_type(Unexpected::Unit, &self));
        }
        self.into.lengths.push(None);
        Ok(())
    }
}

/// Chroma's words for a text that is no vector.
fn in_chromas_words(problem: &Base64Problem) -> String {
    match problem {
        Base64Problem::Invalid(error) => format!("Invalid base64 string: {error}"),
        Base64Problem::Length(bytes) => format!(
            "Invalid byte length: {bytes} bytes cannot be converted to f32 values (must be \
             divisible by 4)"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(json: &str) -> Result<Vectors, String> {
        serde_json::from_str::<NewVectors>(json).map(|it| it.0).map_err(|error| error.to_string())
    }

    #[test]
    fn lists_and_base64_are_the_same() {
        let lists = new("[[1,2,3],[4.5]]").unwrap();
        assert_eq!(lists.numbers, [1.0, 2.0, 3.0, 4.5]);
        assert_eq!(lists.lengths, [Some(3), Some(1)]);
        assert_eq!(lists.rows().collect::<Vec<_>>(), [Some(&[1.0, 2.0, 3.0][..]), Some(&[4.5])]);
        let coded = new(r#"["AACAPwAAAEAAAEBA"]"#).unwrap();
        assert_eq!((&coded.numbers[..], coded.dimension()), (&[1.0, 2.0, 3.0][..], Ok(Some(3))));
    }

    #[test]
    fn bad_vectors_are_refused() {
        let invalid = |message: &str| Err(ChromaError::invalid(message));
        for (json, expected) in [
            (r#"["!!!notb64"]"#, "Invalid base64 string: Invalid symbol 33, offset 0."),
            ("[[]]", "Validation error: embeddings: Each embedding must have at least 1 dimension"),
            (
                "[[1e39]]",
                "Validation error: embeddings: Embeddings must not contain NaN or Infinity values",
            ),
        ] {
            assert_eq!(new(json).unwrap().validate(), invalid(expected), "{json}");
        }
        assert!(new("[[1,2],[1]]").unwrap().dimension().is_err());
        for json in ["null", "[null]", "[[\"a\"]]", "5"] {
            let message = new(json).unwrap_err();
            let expected = "data did not match any variant of untagged enum EmbeddingsPayload";
            assert!(message.starts_with(expected), "{json}: {message}");
        }
        let error = serde_json::from_str::<QueryVectors>(r#"["AACAPw=="]"#).unwrap_err();
        assert!(error.to_string().contains("expected a sequence"), "{error}");
    }
}
