//! Metadata of records and collections.

use std::fmt;

use isolith_types::Metadata;
use serde::Deserialize;
use serde::de::{Deserializer, Error, MapAccess, Visitor};
use serde_json::{Map, Value as Json};

use super::error::{ChromaError, Reply};

/// Keys that Chroma keeps for itself.
const RESERVED: &str = "chroma:";

/// Where the URI of a record is kept.
pub(super) const URI: &str = "chroma:uri";

/// Where Chroma keeps the text of a record.
const DOCUMENT: &str = "chroma:document";

/// Metadata of something new.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct NewMetadata(pub(super) Map<String, Json>);

/// Changed metadata, in which a null removes a key.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct MetadataChange(pub(super) Map<String, Json>);

impl<'de> Deserialize<'de> for NewMetadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries { nulls: false }).map(Self)
    }
}

impl<'de> Deserialize<'de> for MetadataChange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Entries { nulls: true }).map(Self)
    }
}

impl From<NewMetadata> for MetadataChange {
    fn from(new: NewMetadata) -> Self {
        Self(new.0)
    }
}

impl NewMetadata {
    /// Checks the metadata of a new collection.
    pub(super) fn check_for_collection(&self) -> Reply<()> {
        check_for_collection(&self.0, "metadata")
    }
}

impl MetadataChange {
    /// Checks the new metadata of a collection.
    pub(super) fn check_for_collection(&self) -> Reply<()> {
        check_for_collection(&self.0, "new_metadata")
    }

    /// Checks the metadata of the record with this index.
    pub(super) fn check_for_record(&self, index: usize) -> Reply<()> {
        match self.0.keys().any(|key| key_problem(key).is_some()) {
            true => Err(ChromaError::validation(format!(
                "metadatas: Invalid metadata at index {index}"
            ))),
            false => Ok(()),
        }
    }

    /// The first key with a sparse vector.
    pub(super) fn sparse_vector(&self) -> Option<&str> {
        self.0.iter().find(|(_, value)| value.is_object()).map(|(key, _)| key.as_str())
    }

    /// Removes the text that a client stored under Chroma's own key.
    pub(super) fn take_document(&mut self) -> Option<String> {
        match self.0.get(DOCUMENT) {
            Some(Json::String(_)) => {
                self.0.remove(DOCUMENT).and_then(|text| text.as_str().map(str::to_owned))
            }
            _ => None,
        }
    }
}

fn check_for_collection(metadata: &Map<String, Json>, field: &str) -> Reply<()> {
    let problem = match metadata.is_empty() {
        true => Some("Metadata cannot be empty".to_owned()),
        false => metadata.keys().find_map(|key| key_problem(key)),
    };
    problem.map_or(Ok(()), |problem| Err(ChromaError::validation(format!("{field}: {problem}"))))
}

fn key_problem(key: &str) -> Option<String> {
    if key.is_empty() {
        Some("Metadata key cannot be empty".to_owned())
    } else if key.starts_with(['#', '$']) {
        Some(format!("Metadata key cannot start with '#' or '$': {key}"))
    } else {
        None
    }
}

/// What the store keeps.
pub(super) fn stored(metadata: Map<String, Json>) -> Reply<Metadata> {
    Metadata::from_json(Json::Object(metadata))
        .map_err(|error| ChromaError::invalid(error.to_string()))
}

/// What clients see of a record's metadata, and its URI. Empty metadata is null.
pub(super) fn shown(metadata: &Metadata) -> (Json, Json) {
    let Json::Object(mut map) = metadata.to_json() else { return (Json::Null, Json::Null) };
    let uri = map.remove(URI).filter(Json::is_string).unwrap_or_default();
    map.retain(|key, value| !key.starts_with(RESERVED) && !value.is_null());
    (if map.is_empty() { Json::Null } else { Json::Object(map) }, uri)
}

/// Reads an object of permitted values.
struct Entries {
    nulls: bool,
}

impl<'de> Visitor<'de> for Entries {
    type Value = Map<String, Json>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a map")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut entries = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let value = match self.nulls {
                true => map.next_value::<ChangedValue>()?.0,
                false => map.next_value::<NewValue>()?.0,
            };
            entries.insert(key, value);
        }
        Ok(entries)
    }
}

struct NewValue(Json);

struct ChangedValue(Json);

impl<'de> Deserialize<'de> for NewValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Json::deserialize(deserializer)?;
        permitted(value).map(Self).ok_or_else(|| no_variant("MetadataValue"))
    }
}

impl<'de> Deserialize<'de> for ChangedValue {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Json::deserialize(deserializer)? {
            Json::Null => Ok(Self(Json::Null)),
            value => permitted(value).map(Self).ok_or_else(|| no_variant("UpdateMetadataValue")),
        }
    }
}

fn no_variant<E: Error>(name: &str) -> E {
    E::custom(format!("data did not match any variant of untagged enum {name}"))
}

/// A value of one of Chroma's types: a scalar, a list of scalars of one type, or a sparse vector.
fn permitted(value: Json) -> Option<Json> {
    match value {
        Json::Bool(_) | Json::String(_) => Some(value),
        Json::Number(number) if number.is_u64() && !number.is_i64() => {
            // Larger integers are kept as Chroma keeps them.
            number.as_f64().and_then(serde_json::Number::from_f64).map(Json::Number)
        }
        Json::Number(_) => Some(value),
        Json::Array(items) => list(items).map(Json::Array),
        Json::Object(ref object) => is_sparse_vector(object).then_some(value),
        Json::Null => None,
    }
}

fn list(items: Vec<Json>) -> Option<Vec<Json>> {
    let all = |fits: fn(&Json) -> bool| items.iter().all(fits);
    if all(Json::is_boolean) || all(Json::is_string) || all(Json::is_i64) {
        return Some(items);
    }
    // Integers in a list of floats are floats.
    let number = |item: &Json| item.as_f64().and_then(serde_json::Number::from_f64);
    items.iter().map(|item| number(item).map(Json::Number)).collect()
}

fn is_sparse_vector(object: &Map<String, Json>) -> bool {
    let has = |key| object.get(key).is_some_and(Json::is_array);
    object.get("#type").is_none_or(|kind| kind == "sparse_vector")
        && has("indices")
        && has("values")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn values_have_chromas_types() {
        for (value, expected) in [
            (json!(1), Some(json!(1))),
            (json!(1.0), Some(json!(1.0))),
            (json!([1, 2.5]), Some(json!([1.0, 2.5]))),
            (json!([]), Some(json!([]))),
            (json!([true, false]), Some(json!([true, false]))),
            (json!([1, "x"]), None),
            (json!([[1]]), None),
            (json!({"b": 1}), None),
            (json!(null), None),
            (json!(18_446_744_073_709_551_615_u64), Some(json!(18_446_744_073_709_551_615.0))),
        ] {
            assert_eq!(permitted(value.clone()), expected, "{value}");
        }
    }

    #[test]
    fn a_null_is_only_permitted_in_changes() {
        let error = serde_json::from_str::<NewMetadata>(r#"{"a":null}"#).unwrap_err().to_string();
        assert!(error.contains("untagged enum MetadataValue"), "{error}");
        let change: MetadataChange = serde_json::from_str(r#"{"a":null,"b":2}"#).unwrap();
        assert_eq!(change.0.len(), 2);
    }

    #[test]
    fn reserved_keys_are_not_shown() {
        let metadata = Metadata::parse(r#"{"chroma:uri":"u","chroma:x":1,"a":2}"#).unwrap();
        assert_eq!(shown(&metadata), (json!({"a": 2}), json!("u")));
        let metadata = Metadata::parse(r#"{"chroma:uri":"u"}"#).unwrap();
        assert_eq!(shown(&metadata), (Json::Null, json!("u")));
    }
}
