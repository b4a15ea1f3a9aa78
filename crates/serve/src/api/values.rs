//! Endpoints for the values of a metadata key.

use isolith_types::Failure;
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;

use super::collections::both_filters;
use super::endpoint::{Endpoint, Verb};
use crate::tool::Call;
use crate::tools::values::{ValueList, count_values};

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
    count_values(&call, &collection, &key, limit, None).await
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
    count_values(&call, &collection, &key, limit, filter).await
}
