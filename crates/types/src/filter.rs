use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::Scalar;

/// Selects records. A record without a key matches no comparison of that key, and therefore
/// every negated one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Filter {
    /// All of these hold.
    And(Vec<Filter>),
    /// At least one of these holds.
    Or(Vec<Filter>),
    /// This does not hold.
    Not(Box<Filter>),
    /// Compares a key's value.
    Compare {
        /// The metadata key.
        key: String,
        /// The operator.
        how: Comparison,
        /// The operand; only values of the same type match (all numbers are one type).
        value: Scalar,
    },
    /// A key's value is one of these.
    In {
        /// The metadata key.
        key: String,
        /// The allowed values.
        values: Vec<Scalar>,
    },
    /// A key's list contains this element.
    Contains {
        /// The metadata key.
        key: String,
        /// The element.
        value: Scalar,
    },
    /// The document contains this text (case-sensitive).
    DocumentContains(String),
    /// Some part of the document matches this regular expression.
    DocumentMatches(String),
    /// The record's id is one of these.
    Id(Vec<String>),
}

/// A comparison operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// Why a JSON value is not a filter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FilterError(String);

impl fmt::Display for FilterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bad filter: {}", self.0)
    }
}

impl std::error::Error for FilterError {}

/// The maximum nesting: SQLite limits the depth of expressions, too.
const MAX_DEPTH: usize = 32;

impl Filter {
    /// Parses Chroma's `where`: `{"key": value}`, `{"key": {"$gt": 1}}`, `$and`, `$or`,
    /// `$not`; operators `$eq $ne $lt $lte $gt $gte $in $nin $contains $not_contains`.
    /// The key `#document` stands for the document. Returns `None` for an empty object.
    ///
    /// # Errors
    /// If it is not a valid filter.
    pub fn from_where(json: &Json) -> Result<Option<Self>, FilterError> {
        let object = object(json)?;
        if object.is_empty() {
            return Ok(None);
        }
        read_where(json, 0).map(Some)
    }

    /// Parses Chroma's `where_document`: `$contains`, `$not_contains`, `$regex`,
    /// `$not_regex`, `$and`, `$or`, `$not`. Returns `None` for an
    /// empty object.
    ///
    /// # Errors
    /// If it is not a valid filter.
    pub fn from_where_document(json: &Json) -> Result<Option<Self>, FilterError> {
        let object = object(json)?;
        if object.is_empty() {
            return Ok(None);
        }
        read_document(json, 0).map(Some)
    }

    /// Requires both filters, or the one that is given.
    pub fn both(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        match (one, other) {
            (Some(one), Some(other)) => Some(Self::And(vec![one, other])),
            (one, other) => one.or(other),
        }
    }

    fn negated(self) -> Self {
        Self::Not(Box::new(self))
    }
}

fn read_where(json: &Json, depth: usize) -> Result<Filter, FilterError> {
    all_of(json, depth, |key, value| match logical(key, value, depth, read_where)? {
        Some(filter) => Ok(filter),
        None if key == "#document" => read_document(value, depth + 1),
        None => read_key(key, value),
    })
}

fn read_document(json: &Json, depth: usize) -> Result<Filter, FilterError> {
    all_of(json, depth, |key, value| {
        if let Some(filter) = logical(key, value, depth, read_document)? {
            return Ok(filter);
        }
        let text = || match value.as_str() {
            Some(text) if !text.is_empty() => Ok(text.to_owned()),
            _ => Err(FilterError(format!("{key} takes a non-empty string"))),
        };
        Ok(match key {
            "$contains" => Filter::DocumentContains(text()?),
            "$not_contains" => Filter::DocumentContains(text()?).negated(),
            "$regex" => Filter::DocumentMatches(text()?),
            "$not_regex" => Filter::DocumentMatches(text()?).negated(),
            other => {
                return Err(FilterError(format!(
                    "{other:?} is not a document operator; use $contains, $not_contains, $regex or $not_regex"
                )));
            }
        })
    })
}

/// Several keys in one object are combined with AND.
fn all_of(
    json: &Json,
    depth: usize,
    read: impl Fn(&str, &Json) -> Result<Filter, FilterError>,
) -> Result<Filter, FilterError> {
    if depth > MAX_DEPTH {
        return Err(FilterError(format!("nested deeper than {MAX_DEPTH}")));
    }
    let object = object(json)?;
    let mut filters =
        object.iter().map(|(key, value)| read(key, value)).collect::<Result<Vec<_>, _>>()?;
    match filters.len() {
        0 => Err(FilterError("empty condition".to_owned())),
        1 => Ok(filters.remove(0)),
        _ => Ok(Filter::And(filters)),
    }
}

fn logical(
    key: &str,
    value: &Json,
    depth: usize,
    read: impl Fn(&Json, usize) -> Result<Filter, FilterError>,
) -> Result<Option<Filter>, FilterError> {
    let list = || match value.as_array() {
        Some(items) if !items.is_empty() => {
            items.iter().map(|item| read(item, depth + 1)).collect::<Result<Vec<_>, _>>()
        }
        _ => Err(FilterError(format!("{key} takes a list of conditions"))),
    };
    Ok(Some(match key {
        "$and" => Filter::And(list()?),
        "$or" => Filter::Or(list()?),
        "$not" => read(value, depth + 1)?.negated(),
        _ => return Ok(None),
    }))
}

fn read_key(key: &str, value: &Json) -> Result<Filter, FilterError> {
    if key.starts_with('$') {
        return Err(FilterError(format!("{key:?} is not an operator; use $and, $or or $not")));
    }
    let Json::Object(operators) = value else {
        let value = scalar(key, value)?;
        return Ok(Filter::Compare { key: key.to_owned(), how: Comparison::Equal, value });
    };
    let mut filters = operators
        .iter()
        .map(|(operator, operand)| read_operator(key, operator, operand))
        .collect::<Result<Vec<_>, _>>()?;
    match filters.len() {
        0 => Err(FilterError(format!("{key:?} has no operator"))),
        1 => Ok(filters.remove(0)),
        _ => Ok(Filter::And(filters)),
    }
}

fn read_operator(key: &str, operator: &str, operand: &Json) -> Result<Filter, FilterError> {
    let compare = |how| {
        Ok::<_, FilterError>(Filter::Compare {
            key: key.to_owned(),
            how,
            value: scalar(key, operand)?,
        })
    };
    let within = || match operand.as_array() {
        Some(items) => Ok(Filter::In {
            key: key.to_owned(),
            values: items.iter().map(|item| scalar(key, item)).collect::<Result<_, _>>()?,
        }),
        None => Err(FilterError(format!("{operator} of {key:?} takes a list"))),
    };
    let contains = || {
        Ok::<_, FilterError>(Filter::Contains { key: key.to_owned(), value: scalar(key, operand)? })
    };
    Ok(match operator {
        "$eq" => compare(Comparison::Equal)?,
        "$ne" => compare(Comparison::Equal)?.negated(),
        "$lt" => compare(Comparison::Less)?,
        "$lte" => compare(Comparison::AtMost)?,
        "$gt" => compare(Comparison::Greater)?,
        "$gte" => compare(Comparison::AtLeast)?,
        "$in" => within()?,
        "$nin" => within()?.negated(),
        "$contains" => contains()?,
        "$not_contains" => contains()?.negated(),
        other => {
            return Err(FilterError(format!(
                "{other:?} is not an operator; use $eq, $ne, $lt, $lte, $gt, $gte, $in, $nin, $contains or $not_contains"
            )));
        }
    })
}

fn scalar(key: &str, json: &Json) -> Result<Scalar, FilterError> {
    Scalar::from_json(json.clone()).ok_or_else(|| {
        FilterError(format!(
            "{key:?} is compared with {json}, which is not a string, a number or a boolean"
        ))
    })
}

fn object(json: &Json) -> Result<&Map<String, Json>, FilterError> {
    json.as_object().ok_or_else(|| FilterError(format!("{json} is not a JSON object")))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn equal(key: &str, value: Scalar) -> Filter {
        Filter::Compare { key: key.to_owned(), how: Comparison::Equal, value }
    }

    #[test]
    fn chroma_filters_are_parsed() {
        let read = |json| Filter::from_where(&json).unwrap();
        assert_eq!(read(json!({})), None);
        assert_eq!(read(json!({"a": 1})), Some(equal("a", Scalar::Integer(1))));
        assert_eq!(
            read(json!({"$and": [{"a": "x"}, {"b": {"$ne": true}}]})),
            Some(Filter::And(vec![
                equal("a", Scalar::Text("x".to_owned())),
                Filter::Not(Box::new(equal("b", Scalar::Bool(true)))),
            ]))
        );
        assert_eq!(
            read(json!({"a": {"$gte": 1.5}, "b": {"$in": [1, 2]}})),
            Some(Filter::And(vec![
                Filter::Compare {
                    key: "a".to_owned(),
                    how: Comparison::AtLeast,
                    value: Scalar::Float(1.5)
                },
                Filter::In {
                    key: "b".to_owned(),
                    values: vec![Scalar::Integer(1), Scalar::Integer(2)]
                },
            ]))
        );
        assert_eq!(
            Filter::from_where_document(&json!({"$not_regex": "^a"})).unwrap(),
            Some(Filter::Not(Box::new(Filter::DocumentMatches("^a".to_owned()))))
        );
    }

    #[test]
    fn filter_errors_name_the_problem() {
        for (json, message) in [
            (json!([1]), "bad filter: [1] is not a JSON object"),
            (
                json!({"a": null}),
                "bad filter: \"a\" is compared with null, which is not a string, a number or a boolean",
            ),
            (json!({"$and": []}), "bad filter: $and takes a list of conditions"),
            (
                json!({"$xor": [1]}),
                "bad filter: \"$xor\" is not an operator; use $and, $or or $not",
            ),
            (json!({"a": {"$in": 1}}), "bad filter: $in of \"a\" takes a list"),
        ] {
            assert_eq!(Filter::from_where(&json).unwrap_err().to_string(), message);
        }
        let mut deep = json!({"a": 1});
        for _ in 0..40 {
            deep = json!({"$not": deep});
        }
        assert!(Filter::from_where(&deep).is_err());
    }
}
