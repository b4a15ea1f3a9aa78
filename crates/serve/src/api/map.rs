//! The endpoint for a map of the code: all files with their sizes.

use isolith_engine::{CodeMap, MappedFile};
use isolith_types::{Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::endpoint::{Endpoint, Verb};
use crate::tool::{Call, Limits};

/// Numbers of files in an answer.
const FILES: Limits = Limits { default: 10_000, agent: 10_000, program: 50_000 };

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![Endpoint::new(
        (Verb::Get, "/code/map"),
        "code_map",
        "List all indexed files with their sizes, calls from other files and import cycles",
        map,
    )]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MapArguments {
    /// Maximum number of files, the longest ones: 1 to 50000, by default 10000.
    #[schemars(range(min = 1, max = 50000))]
    limit: Option<u32>,
}

async fn map(call: Call, arguments: MapArguments) -> Result<Map, Failure> {
    let limit = call.limit(arguments.limit, FILES)? as usize;
    let engine = call.server.stores().code()?;
    call.server.wait_for_watchers().await;
    let CodeMap { files, left_out } = engine.code_map(limit).await?;
    Ok(Map { files: files.into_iter().map(File::from).collect(), left_out })
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "CodeMap")]
struct Map {
    /// The longest first.
    files: Vec<File>,
    /// Number of files that were left out, the shortest ones.
    left_out: usize,
}

#[derive(Serialize, JsonSchema)]
#[schemars(rename = "MappedFile")]
struct File {
    /// The indexed folder that it is in.
    root: String,
    /// Relative to that folder.
    path: String,
    language: String,
    /// Number of lines, up to the last one that is not blank.
    lines: u32,
    bytes: u64,
    /// Whether it is marked as generated.
    generated: bool,
    /// Who changed it last, according to git.
    author: Option<String>,
    changed_at: Option<String>,
    /// Number of calls of what is in it from other files.
    calls: u64,
    /// The number of the import cycle that it is part of.
    cycle: Option<usize>,
}

impl From<MappedFile> for File {
    fn from(file: MappedFile) -> Self {
        Self {
            root: file.root.display().to_string(),
            path: file.path,
            language: file.language,
            lines: file.lines,
            bytes: file.bytes,
            generated: file.generated,
            author: file.author,
            changed_at: file.changed_at.map(|at| Moment::instant(at).to_string()),
            calls: file.calls,
            cycle: file.cycle,
        }
    }
}
