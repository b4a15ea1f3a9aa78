//! Conversion between data and JSON.

use isolith_types::{Code, Failure};
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};
use serde_json::Value as Json;

use super::{Datum, MAX_DEPTH, NodeDatum, RelationshipDatum};

/// 2^63: integers from here on do not fit into an `i64`.
const LIMIT: f64 = 9_223_372_036_854_775_808.0;

impl Datum {
    /// Converts a JSON value.
    ///
    /// # Errors
    /// `bad_input` for an integer that does not fit into 64 bits, and for values nested deeper than
    /// [`MAX_DEPTH`]. JSON parsers silently round integers beyond 64 bits to the nearest float, so
    /// integral floats of that size are refused, too: two ids must never become one.
    pub fn from_json(json: &Json) -> Result<Self, Failure> {
        from_json(json, 0)
    }

    /// Converts to JSON. Numbers that are not finite, which JSON cannot express, become the strings
    /// `NaN`, `Infinity` and `-Infinity`.
    pub fn to_json(&self) -> Json {
        serde_json::to_value(self.as_json()).unwrap_or_default()
    }

    /// Serializes like [`Datum::to_json`], without a copy.
    pub fn as_json(&self) -> impl Serialize + '_ {
        AsJson(self)
    }
}

fn from_json(json: &Json, depth: u16) -> Result<Datum, Failure> {
    if depth > MAX_DEPTH {
        let message = format!("a parameter is nested more than {MAX_DEPTH} levels deep");
        return Err(Failure::new(Code::BadInput, message).with_hint("pass flatter values"));
    }
    Ok(match json {
        Json::Null => Datum::Null,
        Json::Bool(value) => Datum::Boolean(*value),
        Json::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Datum::Integer(number),
            (None, Some(float)) if float.abs() < LIMIT => Datum::Float(float),
            _ => return Err(too_wide(number)),
        },
        Json::String(text) => Datum::Text(text.clone()),
        Json::Array(list) => {
            let items = list.iter().map(|item| from_json(item, depth + 1));
            Datum::List(items.collect::<Result<_, _>>()?)
        }
        Json::Object(map) => {
            let entry =
                |(key, value): (&String, &Json)| Ok((key.clone(), from_json(value, depth + 1)?));
            Datum::Map(map.iter().map(entry).collect::<Result<_, Failure>>()?)
        }
    })
}

fn too_wide(number: &serde_json::Number) -> Failure {
    let message = format!("{number} does not fit into a 64-bit integer and would be rounded");
    Failure::new(Code::BadInput, message)
        .with_hint("pass it as a string; toFloat($name) makes a float of it in the query")
}

struct AsJson<'a>(&'a Datum);
struct Node<'a>(&'a NodeDatum);
struct Relationship<'a>(&'a RelationshipDatum);
struct Items<'a, T>(&'a [T]);
struct Entries<'a>(&'a std::collections::BTreeMap<String, Datum>);

impl Serialize for AsJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Datum::Null => serializer.serialize_unit(),
            Datum::Boolean(value) => serializer.serialize_bool(*value),
            Datum::Integer(value) => serializer.serialize_i64(*value),
            Datum::Float(value) if value.is_finite() => serializer.serialize_f64(*value),
            Datum::Float(value) => serializer.serialize_str(&super::number_text(*value)),
            Datum::Text(text) => serializer.serialize_str(text),
            Datum::List(list) => Items(list).serialize(serializer),
            Datum::Map(map) => Entries(map).serialize(serializer),
            Datum::Node(node) => Node(node).serialize(serializer),
            Datum::Relationship(relationship) => Relationship(relationship).serialize(serializer),
            Datum::Path(path) => {
                let mut map = serializer.serialize_map(Some(2))?;
                map.serialize_entry("nodes", &Items(&path.nodes))?;
                map.serialize_entry("relationships", &Items(&path.relationships))?;
                map.end()
            }
            Datum::Temporal(it) => serializer.collect_str(it),
        }
    }
}

/// A type with its own JSON form.
trait Shown {
    fn shown(&self) -> impl Serialize + '_;
}

impl Shown for Datum {
    fn shown(&self) -> impl Serialize + '_ {
        AsJson(self)
    }
}

impl Shown for NodeDatum {
    fn shown(&self) -> impl Serialize + '_ {
        Node(self)
    }
}

impl Shown for RelationshipDatum {
    fn shown(&self) -> impl Serialize + '_ {
        Relationship(self)
    }
}

impl<T: Shown> Serialize for Items<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut items = serializer.serialize_seq(Some(self.0.len()))?;
        for item in self.0 {
            items.serialize_element(&item.shown())?;
        }
        items.end()
    }
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (key, value) in self.0 {
            map.serialize_entry(key, &AsJson(value))?;
        }
        map.end()
    }
}

// Fields are in alphabetical order, as in all other JSON of this project.
impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(3))?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("labels", &self.0.labels)?;
        map.serialize_entry("properties", &Entries(&self.0.properties))?;
        map.end()
    }
}

impl Serialize for Relationship<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(5))?;
        map.serialize_entry("end", &self.0.end)?;
        map.serialize_entry("id", &self.0.id)?;
        map.serialize_entry("properties", &Entries(&self.0.properties))?;
        map.serialize_entry("start", &self.0.start)?;
        map.serialize_entry("type", &self.0.kind)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Datum, Failure> {
        Datum::from_json(&serde_json::from_str(text).unwrap())
    }

    #[test]
    fn json_is_converted_to_parameters() {
        let json = serde_json::json!({"a": [1, 1.5, "x", null, true], "b": -1e18});
        let Datum::Map(map) = Datum::from_json(&json).unwrap() else { panic!("a map") };
        assert_eq!(Datum::Map(map).to_json(), json);
        assert_eq!(read("9223372036854775807").unwrap(), Datum::Integer(i64::MAX));
        assert_eq!(read("-9223372036854775808").unwrap(), Datum::Integer(i64::MIN));
    }

    #[test]
    fn integers_beyond_64_bits_are_refused() {
        for text in [
            "9223372036854775808",
            "-9223372036854775809",
            "18446744073709551615",
            "12345678901234567890123",
            "[1, {\"id\": 12345678901234567890124}]",
        ] {
            let refused = read(text).unwrap_err();
            assert_eq!(refused.code, Code::BadInput, "{text}");
        }
    }

    #[test]
    fn deep_parameters_are_refused() {
        let nested = |depth: usize| read(&format!("{}1{}", "[".repeat(depth), "]".repeat(depth)));
        assert!(nested(100).is_ok());
        assert_eq!(nested(101).unwrap_err().code, Code::BadInput);
    }

    #[test]
    fn non_finite_numbers_become_strings() {
        let floats = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.5].map(Datum::Float);
        assert_eq!(
            Datum::List(floats.to_vec()).to_json().to_string(),
            r#"["NaN","Infinity","-Infinity",0.5]"#
        );
    }
}
