use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value as Json;

/// A record's metadata: a JSON object of strings, numbers, booleans, nulls and lists of these.
/// Stored as canonical text (sorted keys, no spaces), so that equal metadata has equal bytes.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Metadata(String);

/// A value that a filter can compare with.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Scalar {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// Any other number.
    Float(f64),
    /// True or false.
    Bool(bool),
}

/// The value of a metadata key.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// One value.
    One(Scalar),
    /// A list of values.
    Many(Vec<Scalar>),
}

/// Why a JSON value is not metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataError {
    /// It is not a JSON object.
    NotAnObject,
    /// A value has a type that filters do not support.
    Unsupported {
        /// The key of that value.
        key: String,
    },
    /// It is not valid JSON.
    Malformed(String),
}

impl fmt::Display for MetadataError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAnObject => f.write_str("metadata must be a JSON object or null"),
            Self::Unsupported { key } => write!(
                f,
                "metadata key {key:?} must hold text, a number, a boolean, null or a list of these"
            ),
            Self::Malformed(reason) => write!(f, "metadata is not JSON: {reason}"),
        }
    }
}

impl std::error::Error for MetadataError {}

impl Default for Metadata {
    fn default() -> Self {
        Self("{}".to_owned())
    }
}

impl Metadata {
    /// Parses JSON text and makes it canonical.
    ///
    /// # Errors
    /// If it is not valid metadata.
    pub fn parse(text: &str) -> Result<Self, MetadataError> {
        let json = serde_json::from_str(text)
            .map_err(|error| MetadataError::Malformed(error.to_string()))?;
        Self::from_json(json)
    }

    /// Converts a JSON value; null becomes empty metadata.
    ///
    /// # Errors
    /// If it is not valid metadata.
    pub fn from_json(json: Json) -> Result<Self, MetadataError> {
        let object = match json {
            Json::Null => return Ok(Self::default()),
            Json::Object(object) => object,
            _ => return Err(MetadataError::NotAnObject),
        };
        for (key, value) in &object {
            let plain = |value: &Json| !value.is_array() && !value.is_object();
            let supported = match value {
                Json::Array(items) => items.iter().all(plain),
                other => plain(other),
            };
            if !supported {
                return Err(MetadataError::Unsupported { key: key.clone() });
            }
        }
        let sorted: BTreeMap<String, Json> = object.into_iter().collect();
        serde_json::to_string(&sorted)
            .map(Self)
            .map_err(|error| MetadataError::Malformed(error.to_string()))
    }

    /// Takes text that is known to be canonical, such as text from the database.
    pub fn from_canonical(text: String) -> Self {
        Self(text)
    }

    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Converts to a JSON value; null if the text is not JSON.
    pub fn to_json(&self) -> Json {
        serde_json::from_str(&self.0).unwrap_or(Json::Null)
    }

    /// The keys and values, without nulls.
    pub fn entries(&self) -> Vec<(String, Value)> {
        let Json::Object(object) = self.to_json() else { return Vec::new() };
        object
            .into_iter()
            .filter_map(|(key, value)| {
                let value = match value {
                    Json::Array(items) => {
                        Value::Many(items.into_iter().filter_map(Scalar::from_json).collect())
                    }
                    other => Value::One(Scalar::from_json(other)?),
                };
                Some((key, value))
            })
            .collect()
    }

    /// Merges the keys of `other` into this metadata; a null removes a key.
    #[must_use]
    pub fn merged_with(&self, other: &Metadata) -> Self {
        let (Json::Object(mut base), Json::Object(changes)) = (self.to_json(), other.to_json())
        else {
            return other.clone();
        };
        for (key, value) in changes {
            if value.is_null() {
                base.remove(&key);
            } else {
                base.insert(key, value);
            }
        }
        let sorted: BTreeMap<String, Json> = base.into_iter().collect();
        serde_json::to_string(&sorted).map_or_else(|_| self.clone(), Self)
    }
}

impl Scalar {
    /// The JSON value; null for a number that is not finite.
    pub fn to_json(&self) -> Json {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Integer(whole) => (*whole).into(),
            Self::Float(number) => (*number).into(),
            Self::Bool(value) => (*value).into(),
        }
    }

    /// Converts a JSON value; `None` for null, lists and objects.
    pub fn from_json(json: Json) -> Option<Self> {
        match json {
            Json::String(text) => Some(Self::Text(text)),
            Json::Bool(value) => Some(Self::Bool(value)),
            Json::Number(number) => match number.as_i64() {
                Some(whole) => Some(Self::Integer(whole)),
                None => number.as_f64().map(Self::Float),
            },
            Json::Null | Json::Array(_) | Json::Object(_) => None,
        }
    }
}

// JSON contains the object itself; between processes (postcard) it stays text.
impl Serialize for Metadata {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            self.to_json().serialize(serializer)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Metadata {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        fn read<'de, T: DeserializeOwned, D: Deserializer<'de>>(from: D) -> Result<T, D::Error> {
            T::deserialize(from)
        }
        if deserializer.is_human_readable() {
            Self::from_json(read::<Json, D>(deserializer)?).map_err(D::Error::custom)
        } else {
            Ok(Self(Cow::<str>::deserialize(deserializer)?.into_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_metadata_has_equal_bytes() {
        let one = Metadata::parse(r#"{ "b": [1, "x"], "a": null }"#).unwrap();
        let other = Metadata::parse(r#"{"a":null,"b":[1,"x"]}"#).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.as_str(), r#"{"a":null,"b":[1,"x"]}"#);
    }

    #[test]
    fn metadata_errors_name_the_key() {
        for (text, message) in [
            ("[1]", "metadata must be a JSON object or null"),
            (
                r#"{"deep":{"er":1}}"#,
                r#"metadata key "deep" must hold text, a number, a boolean, null or a list of these"#,
            ),
        ] {
            assert_eq!(Metadata::parse(text).unwrap_err().to_string(), message);
        }
        assert!(Metadata::parse("{").unwrap_err().to_string().starts_with("metadata is not JSON"));
    }

    #[test]
    fn merging_replaces_keys_and_nulls_remove_them() {
        let base = Metadata::parse(r#"{"a":1,"b":2}"#).unwrap();
        let changes = Metadata::parse(r#"{"b":null,"c":true}"#).unwrap();
        assert_eq!(base.merged_with(&changes).as_str(), r#"{"a":1,"c":true}"#);
    }

    #[test]
    fn metadata_is_an_object_in_json() {
        let metadata = Metadata::parse(r#"{"a":1}"#).unwrap();
        assert_eq!(serde_json::to_string(&metadata).unwrap(), r#"{"a":1}"#);
        assert_eq!(serde_json::from_str::<Metadata>(r#"{"a": 1}"#).unwrap(), metadata);
        let bytes = postcard::to_allocvec(&metadata).unwrap();
        assert_eq!(postcard::from_bytes::<Metadata>(&bytes).unwrap(), metadata);
    }
}
