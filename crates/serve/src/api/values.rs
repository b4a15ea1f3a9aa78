//! Endpoints for the values of a metadata key.

use isolith_engine::ValueCounts;
use isolith_types::{Failure, Filter, Scalar};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::collections::both_filters;
use super::endpoint::{Endpoint, Verb};
use crate::tool::{Call, Limits};
use crate::tools::collections::{Access, open_collection};

/// Numbers of values in an answer.
const VALUES: Limits = Limits { default: 100, agent: 100, program: 10_000 };

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Get, "/collections/{collection}/values"),
            "value_list",
            "Count the distinct values of a metadata key",
            list,
        ),
        Endpoint::new(
            (Verb::Post, "/collections/{collection}/values"),
            "value_find",
            "Count the distinct values of a metadata key in records that match filters",
            find,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValuesToList {
    collection: String,
    /// The metadata key. Each element of a list counts.
    key: String,
    /// Maximum number of values: 1 to 10000, by default 100.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

async fn list(call: Call, arguments: ValuesToList) -> Result<ValueList, Failure> {
    let ValuesToList { collection, key, limit } = arguments;
    count(&call, &collection, &key, limit, None).await
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ValuesToFind {
    collection: String,
    /// The metadata key. Each element of a list counts.
    key: String,
    /// Only records whose metadata match.
    r#where: Option<JsonObject>,
    /// Only records whose documents match.
    where_document: Option<JsonObject>,
    /// Maximum number of values: 1 to 10000, by default 100.
    #[schemars(range(min = 1, max = 10000))]
    limit: Option<u32>,
}

async fn find(call: Call, arguments: ValuesToFind) -> Result<ValueList, Failure> {
    let ValuesToFind { collection, key, r#where, where_document, limit } = arguments;
    let filter = both_filters(r#where, where_document)?;
    count(&call, &collection, &key, limit, filter).await
}

async fn count(
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
struct ValueList {
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
