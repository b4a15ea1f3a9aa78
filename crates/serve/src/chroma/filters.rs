//! Chroma's filters, as strict as Chroma is.

use isolith_types::{Comparison, Filter, Scalar};
use serde_json::Value as Json;

use super::error::{ChromaError, Reply};

/// The deepest nesting that is read.
const MAX_DEPTH: usize = 32;

/// Combines `where`, `where_document` and `ids`, all of which must hold.
pub(super) fn combined(
    metadata: &Json,
    document: &Json,
    ids: Option<Vec<String>>,
) -> Reply<Option<Filter>> {
    let metadata = (!metadata.is_null()).then(|| read_where(metadata, 0)).transpose();
    let metadata = metadata.map_err(|Malformed| ChromaError::invalid("Invalid where clause"))?;
    let document = (!document.is_null()).then(|| read_document(document, 0)).transpose();
    let document =
        document.map_err(|Malformed| ChromaError::invalid("Invalid where document clause"))?;
    Ok(Filter::both(ids.map(Filter::Id), Filter::both(metadata, document)))
}

/// A filter that Chroma refuses, without saying why.
#[derive(Debug, PartialEq, Eq)]
struct Malformed;

type Read = Result<Filter, Malformed>;

fn read_where(json: &Json, depth: usize) -> Read {
    let (key, value) = only_pair(json)?;
    match key {
        "$and" => Ok(Filter::And(each(value, depth, read_where)?)),
        "$or" => Ok(Filter::Or(each(value, depth, read_where)?)),
        _ if key.starts_with('$') => Err(Malformed),
        _ => match value {
            Json::Object(_) => {
                let (operator, operand) = only_pair(value)?;
                read_operator(key, operator, operand)
            }
            _ => compare(key, Comparison::Equal, value),
        },
    }
}

fn read_operator(key: &str, operator: &str, operand: &Json) -> Read {
    if let Json::Array(values) = operand {
        let values = set(values)?;
        let filter = Filter::In { key: key.to_owned(), values };
        return match operator {
            "$in" => Ok(filter),
            "$nin" => Ok(negated(filter)),
            _ => Err(Malformed),
        };
    }
    let is_number = operand.is_number();
    match operator {
        "$eq" => compare(key, Comparison::Equal, operand),
        "$ne" => compare(key, Comparison::Equal, operand).map(negated),
        "$gt" if is_number => compare(key, Comparison::Greater, operand),
        "$gte" if is_number => compare(key, Comparison::AtLeast, operand),
        "$lt" if is_number => compare(key, Comparison::Less, operand),
        "$lte" if is_number => compare(key, Comparison::AtMost, operand),
        "$contains" | "$not_contains" | "$regex" | "$not_regex" if key == "#document" => {
            document_operator(operator, operand.as_str().ok_or(Malformed)?)
        }
        "$contains" => contains(key, operand),
        "$not_contains" => contains(key, operand).map(negated),
        _ => Err(Malformed),
    }
}

fn compare(key: &str, how: Comparison, value: &Json) -> Read {
    Ok(Filter::Compare { key: key.to_owned(), how, value: scalar(value)? })
}

fn contains(key: &str, value: &Json) -> Read {
    Ok(Filter::Contains { key: key.to_owned(), value: scalar(value)? })
}

fn scalar(value: &Json) -> Result<Scalar, Malformed> {
    // An integer beyond i64 is no number for Chroma.
    if value.is_u64() && !value.is_i64() {
        return Err(Malformed);
    }
    Scalar::from_json(value.clone()).ok_or(Malformed)
}

/// Values of one type, which is that of the first.
fn set(values: &[Json]) -> Result<Vec<Scalar>, Malformed> {
    let fits: fn(&Json) -> bool = match values.first().ok_or(Malformed)? {
        Json::String(_) => Json::is_string,
        Json::Bool(_) => Json::is_boolean,
        first if first.is_i64() => Json::is_i64,
        first if first.is_f64() => Json::is_number,
        _ => return Err(Malformed),
    };
    let all = values.iter().all(fits);
    if all { values.iter().map(scalar).collect() } else { Err(Malformed) }
}

fn read_document(json: &Json, depth: usize) -> Read {
    let (key, value) = only_pair(json)?;
    match key {
        "$and" => Ok(Filter::And(each(value, depth, read_document)?)),
        "$or" => Ok(Filter::Or(each(value, depth, read_document)?)),
        _ => document_operator(key, value.as_str().ok_or(Malformed)?),
    }
}

fn document_operator(operator: &str, text: &str) -> Read {
    Ok(match operator {
        "$contains" => Filter::DocumentContains(text.to_owned()),
        "$not_contains" => negated(Filter::DocumentContains(text.to_owned())),
        "$regex" => Filter::DocumentMatches(text.to_owned()),
        "$not_regex" => negated(Filter::DocumentMatches(text.to_owned())),
        _ => return Err(Malformed),
    })
}

fn negated(filter: Filter) -> Filter {
    Filter::Not(Box::new(filter))
}

fn only_pair(json: &Json) -> Result<(&str, &Json), Malformed> {
    let object = json.as_object().filter(|object| object.len() == 1).ok_or(Malformed)?;
    object.iter().next().map(|(key, value)| (key.as_str(), value)).ok_or(Malformed)
}

fn each(
    value: &Json,
    depth: usize,
    read: fn(&Json, usize) -> Read,
) -> Result<Vec<Filter>, Malformed> {
    if depth >= MAX_DEPTH {
        return Err(Malformed);
    }
    value.as_array().ok_or(Malformed)?.iter().map(|child| read(child, depth + 1)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_chroma_accepts_is_accepted() {
        for (json, accepted) in [
            (json!({"a": 1}), true),
            (json!({"a": true}), true),
            (json!({"a": {"$in": [1, 2]}}), true),
            (json!({"a": {"$in": [1.5, 2]}}), true),
            (json!({"a": {"$contains": 1}}), true),
            (json!({"$and": []}), true),
            (json!({"#document": {"$contains": "x"}}), true),
            (json!({}), false),
            (json!({"a": 1, "b": 2}), false),
            (json!({"a": null}), false),
            (json!({"a": {"$in": []}}), false),
            (json!({"a": {"$in": [1, "x"]}}), false),
            (json!({"a": {"$in": [1, 2.5]}}), false),
            (json!({"a": {"$gt": "x"}}), false),
            (json!({"a": {"$gt": 1, "$lt": 2}}), false),
            (json!({"a": {"$regex": "x"}}), false),
            (json!({"$bad": 1}), false),
            (json!({"$not": {"a": 1}}), false),
            (json!({"a": 18_446_744_073_709_551_615_u64}), false),
            (json!([]), false),
        ] {
            assert_eq!(read_where(&json, 0).is_ok(), accepted, "{json}");
        }
        for (json, accepted) in [
            (json!({"$contains": ""}), true),
            (json!({"$or": [{"$contains": "a"}, {"$not_regex": "b"}]}), true),
            (json!({"$contains": 1}), false),
            (json!({}), false),
            (json!({"x": "y"}), false),
        ] {
            assert_eq!(read_document(&json, 0).is_ok(), accepted, "{json}");
        }
    }

    #[test]
    fn all_conditions_are_combined() {
        let ids = Some(vec!["i".to_owned()]);
        let found = combined(&json!({"a": 1}), &json!({"$regex": "x"}), ids).unwrap().unwrap();
        assert_eq!(
            found,
            Filter::And(vec![
                Filter::Id(vec!["i".to_owned()]),
                Filter::And(vec![
                    compare("a", Comparison::Equal, &json!(1)).unwrap(),
                    Filter::DocumentMatches("x".to_owned()),
                ]),
            ])
        );
        assert_eq!(combined(&Json::Null, &Json::Null, None), Ok(None));
    }
}
