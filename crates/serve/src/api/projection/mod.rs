//! The endpoint for a picture of a collection: its vectors in two dimensions.

mod components;

use isolith_engine::{Page, Selection};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::endpoint::{Endpoint, Verb};
use crate::tool::{Call, Limits};
use crate::tools::collections::{Access, open_collection};
use crate::tools::drawer::object;

/// Numbers of records.
const RECORDS: Limits = Limits { default: 5_000, agent: 5_000, program: 20_000 };

/// Maximum number of values in memory: 128 MB.
const MAX_VALUES: usize = 32 << 20;

/// Number of records that are read at a time.
const PAGE: u64 = 1_000;

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        (Verb::Get, "/collections/{collection}/projection"),
        "collection_projection",
        "Place the vectors of a collection in a plane, by their two principal components",
        projection,
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ProjectionArguments {
    collection: String,
    /// A metadata key, whose value is returned with each point.
    by: Option<String>,
    /// Maximum number of records, the first ones: 1 to 20000, by default 5000. Fewer are used if
    /// their vectors would take more than 128 MB.
    #[schemars(range(min = 1, max = 20000))]
    limit: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct Projection {
    points: Vec<Point>,
    /// Number of records of the collection.
    records: u64,
    /// The part of the variance along x and along y, from 0 to 1.
    explained: [f32; 2],
}

#[derive(Serialize, JsonSchema)]
struct Point {
    id: String,
    x: f32,
    y: f32,
    /// The value of the metadata key.
    value: Option<Value>,
}

async fn projection(call: Call, arguments: ProjectionArguments) -> Result<Projection, Failure> {
    let ProjectionArguments { collection, by, limit } = arguments;
    let limit = call.limit(limit, RECORDS)? as usize;
    let (_, engine, state) = open_collection(&call, &collection, Access::Read).await?;
    let Some(dimension) = state.summary().dimension.map(|it| it as usize).filter(|it| *it > 0)
    else {
        return Ok(Projection { points: Vec::new(), records: state.records, explained: [0.0; 2] });
    };
    let limit = limit.min((MAX_VALUES / dimension).max(1));
    let (mut points, mut values, mut after_row) = (Vec::new(), Vec::new(), 0);
    while points.len() < limit {
        let page = Page { after_row, offset: 0, limit: PAGE.min((limit - points.len()) as u64) };
        let found = engine.get(&state.name, Selection::All, page, true).await?;
        let Some(last) = found.last() else { break };
        after_row = last.row;
        for stored in found {
            let record = stored.record;
            if record.vector.len() != dimension {
                continue;
            }
            let value = by.as_ref().and_then(|key| object(&record.metadata).remove(key));
            values.extend_from_slice(&record.vector);
            points.push(Point { id: record.id, x: 0.0, y: 0.0, value });
        }
    }
    let work = move || components::project(values, dimension);
    let (places, explained) = tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Failure::new(Code::Failed, format!("cannot compute: {error}")))?;
    for (point, [x, y]) in points.iter_mut().zip(places) {
        (point.x, point.y) = (x, y);
    }
    Ok(Projection { points, records: state.records, explained })
}
