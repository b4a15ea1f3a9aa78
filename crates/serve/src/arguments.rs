//! Arguments that tools share, and their limits.

use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use crate::server::DefaultLimits;

/// For tools that take no arguments.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct NoArguments {}

/// Maximum number of results, for agents.
const MAX_RESULTS: u32 = 100;

/// Maximum size of a query.
const MAX_QUERY_BYTES: usize = 16 << 10;

/// The requested number of results, or the default; fails above the maximum.
pub(crate) fn limit_within(
    requested: Option<u32>,
    (default, max): (u32, u32),
) -> Result<u32, Failure> {
    match requested.unwrap_or(default) {
        limit if (1..=max).contains(&limit) => Ok(limit),
        limit => {
            Err(Failure::new(Code::BadInput, format!("limit must be from 1 to {max}, not {limit}")))
        }
    }
}

/// Fills in the limit from the settings if the caller omits it.
pub(crate) fn fill_limit(tool: &str, arguments: &mut JsonObject, defaults: DefaultLimits) {
    let limit = match tool {
        "search_code" | "search_similar" | "memory_search" | "collection_query" => defaults.results,
        "memory_list" | "fact_query" | "fact_timeline" | "graph_neighbours" | "graph_impact" => {
            defaults.rows
        }
        _ => None,
    };
    if let (Some(limit), false) = (limit, arguments.contains_key("limit")) {
        arguments.insert("limit".to_owned(), limit.min(MAX_RESULTS).into());
    }
}

/// The offset that a cursor stands for. Cursors are opaque to clients.
pub(crate) fn offset(cursor: Option<&str>) -> Result<u64, Failure> {
    cursor.map_or(Ok(0), |cursor| {
        cursor.parse().map_err(|_| {
            Failure::new(Code::BadInput, "cursor must be the next_cursor of an earlier answer")
        })
    })
}

/// Fails if the query is empty or too long.
pub(crate) fn check_query(text: &str) -> Result<&str, Failure> {
    if text.trim().is_empty() {
        return Err(Failure::new(Code::BadInput, "the query is empty"));
    }
    check_length("query", text, MAX_QUERY_BYTES)
}

/// Fails if the text is longer than `max` bytes.
pub(crate) fn check_length<'a>(name: &str, text: &'a str, max: usize) -> Result<&'a str, Failure> {
    match text.len() {
        length if length <= max => Ok(text),
        length => {
            let message = format!("{name} has {length} bytes; the limit is {max}");
            Err(Failure::new(Code::TooLarge, message))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_out_of_range_are_refused() {
        assert_eq!(limit_within(None, (10, 100)), Ok(10));
        assert_eq!(limit_within(Some(100), (10, 100)), Ok(100));
        for wrong in [0, 101, u32::MAX] {
            let refused = limit_within(Some(wrong), (10, 100)).unwrap_err();
            assert_eq!(refused.code, Code::BadInput, "{wrong}");
        }
    }

    #[test]
    fn omitted_limits_come_from_the_settings() {
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
        assert_eq!(check_query("why?"), Ok("why?"));
        assert_eq!(check_query(" \n").unwrap_err().code, Code::BadInput);
        assert_eq!(check_query(&"x".repeat(1 << 20)).unwrap_err().code, Code::TooLarge);
    }
}
