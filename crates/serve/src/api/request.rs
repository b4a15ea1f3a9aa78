//! Arguments from the path, the query and the body of a request.

use axum::extract::RawPathParams;
use axum::http::{HeaderMap, StatusCode, header};
use isolith_engine::Key;
use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use serde_json::Value;

use super::answer::ApiError;
use super::endpoint::Endpoint;
use super::schema::without_null;

/// Maximum length of an idempotency key, in bytes.
const MAX_KEY_BYTES: usize = 255;

/// All arguments of a request.
pub(super) fn arguments(
    endpoint: &Endpoint,
    path: &RawPathParams,
    query: Option<&str>,
    headers: &HeaderMap,
    body: &[u8],
) -> Result<JsonObject, ApiError> {
    let mut arguments = match endpoint.verb.has_body() {
        true => body_arguments(headers, body)?,
        false => JsonObject::new(),
    };
    for (name, value) in query_arguments(endpoint, query.unwrap_or_default())? {
        arguments.insert(name, value);
    }
    for (name, text) in path {
        if arguments.contains_key(name) {
            let message = format!("{name} is in the path already");
            return Err(bad(message, "leave it out of the body and of the query").into());
        }
        let value = typed(endpoint, name, text)?;
        arguments.insert(name.to_owned(), value);
    }
    Ok(arguments)
}

fn body_arguments(headers: &HeaderMap, body: &[u8]) -> Result<JsonObject, ApiError> {
    let kind = headers.get(header::CONTENT_TYPE).map(|kind| kind.to_str().unwrap_or_default());
    if !kind.map_or(body.is_empty(), is_json) {
        let kind = kind.unwrap_or("nothing");
        let message = format!("the Content-Type must be application/json, not {kind}");
        let failure = bad(message, "send JSON, and the header `Content-Type: application/json`");
        return Err(ApiError::with_status(StatusCode::UNSUPPORTED_MEDIA_TYPE, failure));
    }
    if body.iter().all(u8::is_ascii_whitespace) {
        return Ok(JsonObject::new());
    }
    let hint = "send one JSON object; numbers must be finite";
    match serde_json::from_slice(body) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(bad("the body must be a JSON object".to_owned(), hint).into()),
        Err(error) => Err(bad(format!("the body is not valid JSON: {error}"), hint).into()),
    }
}

fn is_json(kind: &str) -> bool {
    let kind = kind.split(';').next().unwrap_or_default().trim();
    kind.eq_ignore_ascii_case("application/json")
}

fn query_arguments(endpoint: &Endpoint, query: &str) -> Result<Vec<(String, Value)>, ApiError> {
    let mut arguments: Vec<(String, Value)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, text) = pair.split_once('=').unwrap_or((pair, ""));
        let (name, text) = (decoded(name)?, decoded(text)?);
        if endpoint.verb.has_body() || endpoint.is_in_path(&name) {
            let message = format!("{name} is not a query parameter here");
            return Err(bad(message, "put arguments into the JSON body").into());
        }
        let value = typed(endpoint, &name, &text)?;
        match (value, arguments.iter_mut().find(|(known, _)| *known == name)) {
            (value, None) => arguments.push((name, value)),
            (Value::Array(more), Some((_, Value::Array(list)))) => list.extend(more),
            (_, Some(_)) => {
                let message = format!("{name} is given twice");
                return Err(bad(message, "pass each query parameter once").into());
            }
        }
    }
    Ok(arguments)
}

/// The text as the type that the argument has: query and path have texts only.
fn typed(endpoint: &Endpoint, name: &str, text: &str) -> Result<Value, Failure> {
    let schema = endpoint.properties().find(|(known, _)| *known == name);
    // Unknown names are refused together with those in bodies.
    let schema = schema.map(|(_, schema)| without_null(schema)).unwrap_or_default();
    typed_as(&schema, text).ok_or_else(|| {
        let kind = schema["type"].as_str().unwrap_or_default();
        let text: String = text.chars().take(60).collect();
        Failure::new(Code::BadInput, format!("{name}: {text:?} is not of type {kind}"))
    })
}

fn typed_as(schema: &Value, text: &str) -> Option<Value> {
    match schema["type"].as_str() {
        Some("integer") => match text.parse::<u64>() {
            Ok(number) => Some(number.into()),
            Err(_) => text.parse::<i64>().ok().map(Value::from),
        },
        // Of numbers, JSON has only the finite ones.
        Some("number") => text.parse::<f64>().ok().filter(|it| it.is_finite()).map(Value::from),
        Some("boolean") => text.parse::<bool>().ok().map(Value::from),
        Some("array") => Some(Value::Array(vec![typed_as(&schema["items"], text)?])),
        _ => Some(text.into()),
    }
}

/// Decodes a part of a query.
fn decoded(text: &str) -> Result<String, Failure> {
    let invalid =
        || bad("the query is not valid".to_owned(), "encode it as a URL: %20 for a space");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((byte, after)) = rest.split_first() {
        rest = after;
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let (digits, after) = rest.split_at_checked(2).ok_or_else(invalid)?;
                let digits = std::str::from_utf8(digits).map_err(|_| invalid())?;
                let is_hex = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
                let byte = u8::from_str_radix(digits, 16).ok().filter(|_| is_hex);
                bytes.push(byte.ok_or_else(invalid)?);
                rest = after;
            }
            _ => bytes.push(*byte),
        }
    }
    String::from_utf8(bytes).map_err(|_| invalid())
}

/// The key of a write, if the endpoint takes one and the request has it.
pub(super) fn idempotency_key(
    endpoint: &Endpoint,
    headers: &HeaderMap,
) -> Result<Option<Key>, Failure> {
    if !endpoint.is_keyed {
        return Ok(None);
    }
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    let key = key.to_str().ok().filter(|_| keys.next().is_none());
    let is_key = |key: &&str| {
        (1..=MAX_KEY_BYTES).contains(&key.len()) && key.bytes().all(|it| it.is_ascii_graphic())
    };
    match key.filter(is_key) {
        Some(key) => Ok(Some(Key::of_text(key))),
        None => Err(bad(
            format!(
                "Idempotency-Key must be one text of 1 to {MAX_KEY_BYTES} ASCII characters without \
                 spaces"
            ),
            "use a new UUID for each write, and the same one to repeat it",
        )),
    }
}

fn bad(message: String, hint: &str) -> Failure {
    Failure::new(Code::BadInput, message).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn queries_are_decoded() {
        for (text, expected) in [
            ("a+b%20c", Some("a b c")),
            ("%C3%A4", Some("ä")),
            ("%", None),
            ("%4", None),
            ("%+4", None),
            ("%ff", None),
        ] {
            assert_eq!(decoded(text).ok().as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn texts_become_typed_values() {
        for (kind, text, expected) in [
            ("integer", "7", Some(json!(7))),
            ("integer", "-7", Some(json!(-7))),
            ("integer", "7.5", None),
            ("number", "0.5", Some(json!(0.5))),
            ("number", "NaN", None),
            ("number", "inf", None),
            ("boolean", "true", Some(json!(true))),
            ("boolean", "1", None),
            ("string", "1", Some(json!("1"))),
        ] {
            assert_eq!(typed_as(&json!({ "type": kind }), text), expected, "{kind} {text}");
        }
        let list = json!({ "type": "array", "items": { "type": "string" } });
        assert_eq!(typed_as(&list, "a"), Some(json!(["a"])));
    }

    #[test]
    fn only_json_is_json() {
        for (kind, expected) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/json", false),
            ("application/x-www-form-urlencoded", false),
            ("", false),
        ] {
            assert_eq!(is_json(kind), expected, "{kind}");
        }
    }
}
