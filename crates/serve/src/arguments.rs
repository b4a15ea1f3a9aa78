//! Limits on arguments.

use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;

use crate::server::DefaultLimits;

/// Default and maximum number of hits or rows.
const LIMITS: (u32, u32) = (10, 100);

/// Maximum size of a query.
const QUESTION_BYTES: usize = 16 << 10;

/// The requested number of results, or the default.
pub(crate) fn limit(asked: Option<u32>) -> Result<u32, Failure> {
    limit_of(asked, LIMITS)
}

/// The requested number of results. `usual` is the default, `most` the maximum.
pub(crate) fn limit_of(asked: Option<u32>, (usual, most): (u32, u32)) -> Result<u32, Failure> {
    match asked.unwrap_or(usual) {
        limit if (1..=most).contains(&limit) => Ok(limit),
        limit => Err(Failure::new(
            Code::BadInput,
            format!("limit must be from 1 to {most}, not {limit}"),
        )),
    }
}

/// Sets the limit to that of the user or project, if the caller gives none.
pub(crate) fn fill_limit(tool: &str, arguments: &mut JsonObject, defaults: DefaultLimits) {
    let limit = match tool {
        "search_code" | "search_similar" | "memory_search" | "collection_query" => defaults.results,
        "memory_list" | "fact_query" | "fact_timeline" | "graph_neighbours" | "graph_impact" => {
            defaults.rows
        }
        _ => None,
    };
    if let (Some(limit), false) = (limit, arguments.contains_key("limit")) {
        arguments.insert("limit".to_owned(), limit.min(LIMITS.1).into());
    }
}

/// Start of a page, from the cursor of the previous page. Cursors are opaque to clients.
pub(crate) fn offset(cursor: Option<&str>) -> Result<u64, Failure> {
    cursor.map_or(Ok(0), |cursor| {
        cursor.parse().map_err(|_| {
            Failure::new(Code::BadInput, "cursor must be the next_cursor of an earlier answer")
        })
    })
}

/// Fails if the query is empty or too long.
pub(crate) fn question(text: &str) -> Result<&str, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new(Code::BadInput, "the query is empty"));
    }
    bounded("query", text, QUESTION_BYTES)
}

/// Fails if the text is longer than `most` bytes.
pub(crate) fn bounded<'a>(name: &str, text: &'a str, most: usize) -> Result<&'a str, Failure> {
    match text.len() {
        length if length <= most => Ok(text),
        length => {
            let message = format!("{name} has {length} bytes; the limit is {most}");
            Err(Failure::new(Code::TooLarge, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_bounded() {
        assert_eq!(limit(None), Ok(10));
        assert_eq!(limit(Some(100)), Ok(100));
        for wrong in [0, 101, u32::MAX] {
            assert_eq!(limit(Some(wrong)).unwrap_err().code, Code::BadInput, "{wrong}");
        }
    }

    #[test]
    fn settings_fill_in_limits() {
        let defaults = DefaultLimits { results: Some(5), rows: Some(1_000) };
        let filled = |tool: &str, arguments: serde_json::Value| {
            let serde_json::Value::Object(mut arguments) = arguments else { return None };
            fill_limit(tool, &mut arguments, defaults);
            arguments.get("limit").and_then(serde_json::Value::as_u64)
        };
        let none = || serde_json::json!({});
        assert_eq!(filled("search_code", none()), Some(5));
        assert_eq!(filled("search_code", serde_json::json!({ "limit": 7 })), Some(7));
        assert_eq!(filled("memory_list", none()), Some(100));
        assert_eq!(filled("health", none()), None);
    }

    #[test]
    fn empty_and_overlong_queries_are_refused() {
        assert_eq!(question("why?"), Ok("why?"));
        assert_eq!(question(" \n").unwrap_err().code, Code::BadInput);
        assert_eq!(question(&"x".repeat(1 << 20)).unwrap_err().code, Code::TooLarge);
    }
}
