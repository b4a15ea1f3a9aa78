//! Reading requests: JSON bodies, query strings and ids.

use axum::body::Bytes;
use axum::http::{HeaderMap, header};
use serde::de::DeserializeOwned;
use serde_json::error::Category;

use super::error::{ChromaError, Reply};

/// Bodies larger than this are parsed on another thread.
const PARSED_INLINE: usize = 256 << 10;

/// Parses a body. A missing content type stands for JSON.
pub(super) async fn parse<T>(headers: &HeaderMap, body: Bytes) -> Reply<T>
where
    T: DeserializeOwned + Send + 'static,
{
    if !is_json(headers) {
        return Err(ChromaError::media_type());
    }
    if body.len() <= PARSED_INLINE {
        return from_bytes(&body);
    }
    let parsed = tokio::task::spawn_blocking(move || from_bytes(&body)).await;
    parsed.unwrap_or_else(|error| Err(ChromaError::internal(error.to_string())))
}

fn from_bytes<T: DeserializeOwned>(body: &[u8]) -> Reply<T> {
    // Keeping track of the path takes time, so it is only done for an error.
    let error = match serde_json::from_slice::<T>(body) {
        Ok(payload) => return Ok(payload),
        Err(error) => error,
    };
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(with_path) => Err(malformed(with_path.inner(), &with_path)),
        Ok(_) => Err(malformed(&error, &error)),
    }
}

fn malformed(error: &serde_json::Error, shown: &impl std::fmt::Display) -> ChromaError {
    match error.classify() {
        Category::Data => ChromaError::unprocessable(format!(
            "Failed to deserialize the JSON body into the target type: {shown}"
        )),
        Category::Io | Category::Syntax | Category::Eof => {
            ChromaError::invalid(format!("Failed to parse the request body as JSON: {shown}"))
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let Some(kind) = headers.get(header::CONTENT_TYPE) else { return true };
    let Ok(kind) = kind.to_str() else { return false };
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    kind == "application/json" || kind.starts_with("application/") && kind.ends_with("+json")
}

/// `limit` and `offset` of a query string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paging {
    pub(super) limit: u64,
    pub(super) offset: u64,
}

pub(super) fn paging(query: Option<&str>) -> Reply<Paging> {
    let mut paging = Paging { limit: u64::MAX, offset: 0 };
    for pair in query.unwrap_or_default().split('&') {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let place = match name {
            "limit" => &mut paging.limit,
            "offset" => &mut paging.offset,
            _ => continue,
        };
        let number = value.parse::<u32>().map_err(|error| {
            let message = format!("Failed to deserialize query string: {name}: {error}");
            ChromaError::invalid(message)
        });
        *place = u64::from(number?);
    }
    Ok(paging)
}

/// The canonical form of a collection's id.
pub(super) fn collection_uuid(text: &str) -> Reply<String> {
    uuid(text).ok_or_else(|| ChromaError::invalid("Collection ID is not a valid UUIDv4"))
}

/// The canonical form of a uuid, with or without hyphens.
pub(super) fn uuid(text: &str) -> Option<String> {
    let digits: String = match text.len() {
        32 => text.to_owned(),
        36 if [8, 13, 18, 23].iter().all(|at| text.as_bytes()[*at] == b'-') => {
            text.replace('-', "")
        }
        _ => return None,
    };
    if digits.len() != 32 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let digits = digits.to_ascii_lowercase();
    let groups = [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]];
    Some(groups.join("-"))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    struct Payload {
        #[expect(dead_code, reason = "only its type matters")]
        name: Vec<u32>,
    }

    #[test]
    fn errors_name_the_path() {
        for (body, message) in [
            (
                "{bad",
                "Failed to parse the request body as JSON: key must be a string at line 1 column 2",
            ),
            (
                "{}",
                "Failed to deserialize the JSON body into the target type: \
                 missing field `name` at line 1 column 2",
            ),
            (
                r#"{"name":[1,-1]}"#,
                "Failed to deserialize the JSON body into the target type: name[1]: invalid \
                 value: integer `-1`, expected u32 at line 1 column 13",
            ),
        ] {
            let error = from_bytes::<Payload>(body.as_bytes()).unwrap_err();
            let expected = match body {
                "{bad" => ChromaError::invalid(message),
                _ => ChromaError::unprocessable(message),
            };
            assert_eq!(error, expected, "{body}");
        }
        assert!(from_bytes::<Payload>(br#"{"name":[1]}"#).is_ok());
    }

    #[test]
    fn uuids_are_canonical() {
        let canonical = "45398e72-3882-4136-93cf-1e0d0817765a";
        for text in
            [canonical, "45398E72388241 3693cf1e0d0817765a", "45398e723882413693cf1e0d0817765a"]
        {
            let expected = (!text.contains(' ')).then(|| canonical.to_owned());
            assert_eq!(uuid(text), expected, "{text}");
        }
        assert_eq!(uuid("notauuid"), None);
        assert_eq!(uuid("45398e72-3882-4136-93cf-1e0d0817765é"), None);
    }

    #[test]
    fn paging_is_read_from_the_query_string() {
        assert_eq!(paging(Some("limit=3&x=1&offset=2")), Ok(Paging { limit: 3, offset: 2 }));
        assert_eq!(paging(None), Ok(Paging { limit: u64::MAX, offset: 0 }));
        let message = "Failed to deserialize query string: limit: invalid digit found in string";
        assert_eq!(paging(Some("limit=-1")), Err(ChromaError::invalid(message)));
    }
}
