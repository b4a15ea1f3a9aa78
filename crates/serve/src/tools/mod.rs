//! What agents can do.

mod code;
mod collections;
mod index;
mod upkeep;

use crate::tool::Tool;

/// All tools, in the order in which they are listed.
pub(crate) fn all() -> Vec<Tool> {
    [code::tools(), vec![index::tool()], collections::tools(), upkeep::tools()]
        .into_iter()
        .flatten()
        .collect()
}
