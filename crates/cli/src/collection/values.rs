//! `isolith collection values`.

use std::fmt::Write as _;

use isolith_engine::{Engine, ValueCounts};
use isolith_types::{Failure, Filter, Scalar, counted};
use serde_json::{Value, json};

use super::excerpt;
use crate::table::table;

/// The values with their counts, as JSON and as text.
pub(super) async fn values(
    engine: &Engine,
    name: &str,
    key: &str,
    filter: Option<Filter>,
    limit: u32,
) -> Result<(Value, String), Failure> {
    let ValueCounts { values, total } = engine.count_values(name, key, filter, limit).await?;
    let text = show(&values, total);
    let values: Vec<Value> = values
        .into_iter()
        .map(|(value, count)| json!({ "value": value.to_json(), "count": count }))
        .collect();
    Ok((json!({ "values": values, "total": total }), text))
}

fn show(values: &[(Scalar, u64)], total: u64) -> String {
    if values.is_empty() {
        return "no values\n".to_owned();
    }
    // As JSON, as filters take them.
    let row = |(value, count): &(Scalar, u64)| {
        vec![count.to_string(), excerpt(Some(&value.to_json().to_string()))]
    };
    let rows: Vec<Vec<String>> = values.iter().map(row).collect();
    let mut text = table(&[">COUNT", "VALUE"], &rows);
    let more = total.saturating_sub(values.len() as u64);
    if more > 0 {
        let _ = writeln!(text, "{}: raise --limit to show them", counted(more, "more value"));
    }
    text
}
