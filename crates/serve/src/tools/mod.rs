//! What agents can do.

mod code;
mod collections;
mod diary;
mod drawer;
mod facts;
mod index;
mod ingest;
mod memory;
mod recall;
mod repair;
mod upkeep;

pub(crate) use code::chunks;
pub(crate) use upkeep::report as health;

use crate::tool::Tool;

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> Vec<Tool> {
    let groups = [
        code::tools(),
        vec![index::tool()],
        vec![recall::tool()],
        memory::tools(),
        diary::tools(),
        facts::tools(),
        collections::tools(),
        vec![ingest::tool()],
        upkeep::tools(),
        repair::tools(),
    ];
    groups.into_iter().flatten().collect()
}
