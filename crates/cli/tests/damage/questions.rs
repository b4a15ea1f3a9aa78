//! The queries before and after, and the parts of an answer that are compared.

use serde_json::Value;

/// Commands whose answers are compared. VECTOR and OUT stand for files.
pub(crate) const QUESTIONS: &[&[&str]] = &[
    // Searches come first.
    &["search", "how are errors turned into exit codes", "--json"],
    &["search", "moment parse day", "--mode", "keyword", "--json"],
    &["search", "compare two numbers", "--mode", "vector", "--json"],
    &["search", "number of a day", "--kind", "function", "--json"],
    &["search", "Moment", "--symbol", "Moment", "--json"],
    &["search", "fn parse", "--mode", "exact", "--json"],
    &["memory", "search", "what was agreed about the deadline", "--json"],
    &["memory", "search", "deadline seven", "--mode", "keyword", "--json"],
    &["memory", "search", "apple garden", "--mode", "vector", "--json"],
    &["memory", "search", "paper and winter", "--wing", "wing 1", "--json"],
    &["collection", "query", "docs", "--vector", "VECTOR", "--limit", "20", "--json"],
    &["collection", "query", "docs", "--vector", "VECTOR", "--where", "{\"tenth\": 3}", "--json"],
    &["collection", "query", "docs", "--keywords", "apple seven", "--json"],
    &["collection", "query", "docs", "--vector", "VECTOR", "--keywords", "apple seven", "--json"],
    &[
        "graph",
        "query",
        "MATCH (f:Function)-[c]->(g) RETURN f.name, type(c), g.name \
         ORDER BY f.name, type(c), g.name LIMIT 500",
        "--json",
    ],
    &["graph", "query", "MATCH (a:Person)-[r:KNOWS]->(b) RETURN a, r, b ORDER BY id(r)", "--json"],
    &["memory", "list", "--all", "--jsonl"],
    &["fact", "query", "Max", "--limit", "500", "--json"],
    &["fact", "entities", "--json"],
    &["export", "--out", "OUT", "--json"],
    &["collection", "list", "--json"],
];

/// How many of them, from the first, are answered with the help of segments.
pub(crate) const SEARCHES: usize = 15;

/// Keys whose values are others each time, or say how the answer came about.
const VOLATILE: &[&str] = &[
    "took_ms",
    "seconds",
    "workers",
    "crashes",
    "fronts",
    "pid",
    "worker_pid",
    "retries",
    "store",
    "warnings",
    "disk",
    "rss_bytes",
    "uptime",
    "jobs",
    "out",
    "path_of_out",
    "quarantine",
    "bytes",
];

/// An answer without the parts that differ each time.
pub(crate) fn stable(mut value: Value) -> Value {
    strip(&mut value);
    value
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.retain(|key, _| !VOLATILE.contains(&key.as_str()));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Whether an answer itself reports that it is incomplete.
pub(crate) fn says_so(value: &Value) -> bool {
    match value {
        Value::Object(fields) => {
            fields.get("error").is_some_and(|error| !error.is_null())
                || fields.get("degraded").is_some_and(|degraded| !degraded.is_null())
        }
        Value::Array(lines) => lines.iter().any(says_so),
        _ => false,
    }
}
