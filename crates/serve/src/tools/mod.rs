//! What agents can do.

mod code;
mod collections;
mod diary;
mod drawer;
mod index;
mod ingest;
mod memory;
mod repair;
mod upkeep;

use crate::tool::Tool;

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> Vec<Tool> {
    let groups = [
        code::tools(),
        vec![index::tool()],
        memory::tools(),
        diary::tools(),
        collections::tools(),
        vec![ingest::tool()],
        upkeep::tools(),
        repair::tools(),
    ];
    groups.into_iter().flatten().collect()
}
