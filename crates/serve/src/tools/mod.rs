//! The MCP tools.

pub(crate) mod code;
pub(crate) mod collections;
pub(crate) mod diary;
pub(crate) mod drawer;
pub(crate) mod facts;
pub(crate) mod graph;
pub(crate) mod index;
pub(crate) mod ingest;
pub(crate) mod maintenance;
pub(crate) mod matches;
pub(crate) mod memory;
pub(crate) mod recall;
pub(crate) mod records;
pub(crate) mod repair;
pub(crate) mod symbols;
pub(crate) mod values;

pub(crate) use code::file_chunks;
pub(crate) use maintenance::report as health;

use crate::tool::Tool;

/// All tools, in the order of the tool list.
pub(crate) fn all() -> Vec<Tool> {
    let groups = [
        code::tools(),
        vec![index::tool()],
        vec![graph::tool()],
        symbols::tools(),
        vec![recall::tool()],
        memory::tools(),
        diary::tools(),
        facts::tools(),
        collections::tools(),
        records::tools(),
        vec![values::tool(), ingest::tool()],
        maintenance::tools(),
        repair::tools(),
    ];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 36] = [
        "search_code",
        "search_similar",
        "read_chunk",
        "index_status",
        "index_project",
        "graph_query",
        "graph_neighbours",
        "graph_path",
        "graph_impact",
        "memory_search",
        "memory_add",
        "memory_get",
        "memory_list",
        "memory_update",
        "memory_delete",
        "memory_check_duplicate",
        "diary_write",
        "diary_read",
        "fact_add",
        "fact_query",
        "fact_invalidate",
        "fact_supersede",
        "fact_timeline",
        "fact_stats",
        "collection_list",
        "collection_query",
        "collection_add",
        "collection_create",
        "collection_get",
        "collection_delete",
        "collection_values",
        "ingest_file",
        "health",
        "workers",
        "repair",
        "reconnect",
    ];

    #[test]
    fn the_tool_list_is_small() {
        let tools = all();
        assert_eq!(tools.iter().map(Tool::name).collect::<Vec<_>>(), NAMES);
        let listed: Vec<_> = tools.iter().map(Tool::definition).collect();
        // The list costs tokens in every conversation.
        let bytes = serde_json::to_string(&listed).unwrap().len();
        assert!(bytes < 20_500, "{bytes} bytes");
    }
}
