//! The tool for the values of a metadata key.

use std::fmt::{self, Write as _};

use isolith_engine::ValueCounts;
use isolith_types::{Failure, Filter, Scalar, counted};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::one_line;
use crate::tool::{Call, Effect, Limits, Tool, ToolAnswer};
use crate::tools::collections::{Access, filter, open_collection};

/// Numbers of values in an answer.
const VALUES: Limits = Limits { default: 100, agent: 100, program: 10_000 };

pub(super) fn tool() -> Tool {
    Tool::new(
        "collection_values",
        Effect::Read,
        "Count the distinct values of a metadata key in a collection. Use it to see what can be filtered by. For the records use collection_get. Example: {\"collection\":\"papers\",\"key\":\"year\"}",
        collection_values,
    )
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectionValues {
    /// Its name
    collection: String,
    /// Metadata key
    key: String,
    /// Metadata filter
    r#where: Option<JsonObject>,
    /// 1-100, default 10
    limit: Option<u32>,
}

async fn collection_values(call: Call, arguments: CollectionValues) -> Result<ValueList, Failure> {
    let CollectionValues { collection, key, r#where, limit } = arguments;
    count_values(&call, &collection, &key, limit, filter(r#where)?).await
}

/// Counts the distinct values of a metadata key in the records that match a filter.
pub(crate) async fn count_values(
    call: &Call,
    name: &str,
    key: &str,
    limit: Option<u32>,
    filter: Option<Filter>,
) -> Result<ValueList, Failure> {
    let limit = call.limit(limit, VALUES)?;
    let (_, engine, state) = open_collection(call, name, Access::Read).await?;
    let ValueCounts { values, total } =
        engine.count_values(&state.name, key, filter, limit).await?;
    let values = values.into_iter();
    let values = values.map(|(value, count)| ValueWithCount { value: value.into(), count });
    Ok(ValueList { values: values.collect(), total })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ValueList {
    /// The most frequent first.
    values: Vec<ValueWithCount>,
    /// Number of distinct values, including those that are not listed.
    total: u64,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ValueCount")]
struct ValueWithCount {
    value: SingleValue,
    /// Number of records that have it.
    count: u64,
}

#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
enum SingleValue {
    Text(String),
    Integer(i64),
    Number(f64),
    Bool(bool),
}

impl From<Scalar> for SingleValue {
    fn from(scalar: Scalar) -> Self {
        match scalar {
            Scalar::Text(text) => Self::Text(text),
            Scalar::Integer(whole) => Self::Integer(whole),
            Scalar::Float(number) => Self::Number(number),
            Scalar::Bool(value) => Self::Bool(value),
        }
    }
}

impl fmt::Display for SingleValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(&one_line(text, 160)),
            Self::Integer(whole) => write!(f, "{whole}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Bool(value) => write!(f, "{value}"),
        }
    }
}

impl ToolAnswer for ValueList {
    fn text(&self) -> String {
        let mut text = counted(self.total, "value");
        for ValueWithCount { value, count } in &self.values {
            let _ = write!(text, "\n{value}: {count}");
        }
        text
    }

    fn is_trusted(&self) -> bool {
        self.values.is_empty()
    }
}
