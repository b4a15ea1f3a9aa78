//! The MCP tools.

pub(crate) mod code;
pub(crate) mod collections;
pub(crate) mod diary;
pub(crate) mod drawer;
pub(crate) mod facts;
pub(crate) mod graph;
pub(crate) mod graph_schema;
pub(crate) mod import;
pub(crate) mod index;
pub(crate) mod ingest;
pub(crate) mod maintenance;
pub(crate) mod matches;
pub(crate) mod memory;
pub(crate) mod recall;
pub(crate) mod records;
pub(crate) mod repair;
pub(crate) mod reports;
pub(crate) mod session;
pub(crate) mod symbols;
pub(crate) mod values;

pub(crate) use code::file_chunks;
pub(crate) use maintenance::report as health;

use crate::tool::{Tool, ToolGroup};

/// All tools, in the order of the tool list.
pub(crate) fn all() -> Vec<Tool> {
    use ToolGroup::{Admin, Code, Collections, Facts, Graph, Memory};
    let groups = [
        (Code, code::tools()),
        (Code, vec![index::tool()]),
        (Graph, vec![graph::tool(), graph_schema::tool()]),
        (Graph, symbols::tools()),
        (Graph, reports::tools()),
        (Memory, vec![recall::tool()]),
        (Memory, session::tools()),
        (Memory, memory::tools()),
        (Memory, diary::tools()),
        (Memory, vec![import::tool()]),
        (Facts, facts::tools()),
        (Collections, collections::tools()),
        (Collections, records::tools()),
        (Collections, vec![values::tool(), ingest::tool()]),
        (Admin, maintenance::tools()),
        (Admin, repair::tools()),
    ];
    let of = |(group, tools): (ToolGroup, Vec<Tool>)| tools.into_iter().map(move |it| it.of(group));
    groups.into_iter().flat_map(of).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;
    use crate::tool::{ToolSelection, USUAL};

    const NAMES: [&str; 45] = [
        "search_code",
        "search_similar",
        "read_chunk",
        "index_status",
        "index_project",
        "graph_query",
        "graph_schema",
        "graph_neighbours",
        "graph_path",
        "graph_impact",
        "graph_cycles",
        "graph_unused",
        "graph_hotspots",
        "graph_stats",
        "memory_search",
        "memory_wake_up",
        "memory_checkpoint",
        "memory_add",
        "memory_get",
        "memory_list",
        "memory_update",
        "memory_delete",
        "memory_check_duplicate",
        "diary_write",
        "diary_read",
        "memory_import",
        "fact_add",
        "fact_query",
        "fact_invalidate",
        "fact_retract",
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

    fn bytes(selection: &ToolSelection) -> usize {
        let tools = all();
        let listed = tools.iter().filter(|tool| tool.is_listed(selection)).map(Tool::definition);
        serde_json::to_string(&listed.collect::<Vec<_>>()).unwrap().len()
    }

    #[test]
    fn the_tool_list_is_small() {
        let tools = all();
        assert_eq!(tools.iter().map(Tool::name).collect::<Vec<_>>(), NAMES);
        // The list costs tokens in every conversation.
        let usual = bytes(&ToolSelection::Usual);
        assert!(USUAL.len() <= 14 && usual <= 11_000, "{usual} bytes");
        assert!(bytes(&ToolSelection::All) < 36_000, "{}", bytes(&ToolSelection::All));
        assert!(USUAL.iter().all(|name| NAMES.contains(name)));
    }

    #[test]
    fn groups_select_tools() {
        let names = |text: &str| {
            let selection: ToolSelection = text.parse().unwrap();
            let tools = all();
            let listed = tools.iter().filter(|tool| tool.is_listed(&selection));
            listed.map(|tool| tool.name().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names("all"), NAMES);
        assert_eq!(names("default").len(), USUAL.len());
        let facts = names("facts");
        assert!(!facts.is_empty() && facts.iter().all(|name| name.starts_with("fact_")));
        assert_eq!(names("facts, admin").len(), facts.len() + names("admin").len());
        assert!("facts,nothing".parse::<ToolSelection>().is_err());
        let every: usize = ToolGroup::ALL.iter().map(|group| names(group.name()).len()).sum();
        assert_eq!(every, NAMES.len());
        let hidden = all().into_iter().find(|tool| tool.name() == "health").unwrap();
        assert!(hidden.is_callable(&ToolSelection::Usual));
        assert!(!hidden.is_callable(&"facts".parse().unwrap()));
    }

    /// What a description must have, so that a model picks the tool and calls it correctly.
    #[test]
    fn descriptions_are_complete() {
        for tool in all() {
            let definition = serde_json::to_value(tool.definition()).unwrap();
            let name = tool.name();
            let text = definition["description"].as_str().unwrap();
            let (words, rest) = text.split_once(" Example: ").unwrap_or_else(|| {
                panic!("{name} has no example");
            });
            // What, when, and when not: another tool, or a reason.
            assert!(words.split(". ").count() >= 3, "{name}: {words}");
            assert!(words.contains("Use it "), "{name} does not say when to use it");
            let others = NAMES.iter().filter(|it| **it != name && words.contains(**it)).count();
            assert!(others > 0 || words.contains("Not "), "{name} does not say when not to");
            assert!(words.len() <= 420, "{name}: {} bytes", words.len());
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let example = values.next().unwrap().unwrap_or_else(|error| panic!("{name}: {error}"));
            let schema = &definition["inputSchema"];
            check_example(name, schema, &example);
            check_described(name, schema);
        }
    }

    /// The requests of the evaluation name tools and arguments that exist.
    #[test]
    fn requests_can_be_answered() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../bench/tools/requests.jsonl");
        let text = std::fs::read_to_string(file).unwrap();
        let tools = all();
        let mut asked = Vec::new();
        for line in text.lines() {
            let request: Value = serde_json::from_str(line).unwrap();
            let Some(name) = request["tool"].as_str() else { continue };
            let tool = tools.iter().find(|tool| tool.name() == name);
            let tool = tool.unwrap_or_else(|| panic!("there is no tool {name}: {line}"));
            let definition = serde_json::to_value(tool.definition()).unwrap();
            check_known(name, &definition["inputSchema"], &request["arguments"]);
            asked.push(tool.name());
        }
        assert_eq!(text.lines().count(), 120);
        let usual = asked.iter().filter(|name| USUAL.contains(name)).count();
        assert!(usual * 100 / asked.len() >= 60, "the default list answers {usual}");
    }

    fn check_example(name: &str, schema: &Value, example: &Value) {
        check_known(name, schema, example);
        for required in schema["required"].as_array().into_iter().flatten() {
            let given = example.get(required.as_str().unwrap()).is_some();
            assert!(given, "{name}: the example lacks {required}");
        }
    }

    fn check_known(name: &str, schema: &Value, arguments: &Value) {
        let known = &schema["properties"];
        for (key, value) in arguments.as_object().unwrap() {
            assert!(known[key].is_object(), "{name}: {key} is not an argument");
            if let Some(values) = known[key]["enum"].as_array() {
                assert!(values.contains(value), "{name}: {key} cannot be {value}");
            }
        }
    }

    /// Every argument, however deep, says what it is.
    fn check_described(name: &str, schema: &Value) {
        for (key, argument) in schema["properties"].as_object().into_iter().flatten() {
            let described = argument["description"].as_str().is_some_and(|it| it.len() > 3);
            assert!(described || argument["enum"].is_array(), "{name}: {key} has no description");
            check_described(name, &argument["items"]);
        }
    }
}
