//! Tests of the list of endpoints and of their description.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use isolith_types::Hint;
use serde_json::Value;

use super::*;
use crate::hints::for_programs;
use crate::tools;

/// Tools whose endpoint has another name.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("collection_get", "record_find"),
    ("collection_delete", "record_delete_many"),
    ("collection_values", "value_find"),
    ("graph_neighbours", "graph_callers"),
    ("workers", "health"),
];

/// Arguments and fields of answers of tools that their endpoint lacks, and where they are.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("collection_add", "missing", "PATCH /v1/collections/{collection}/records"),
    ("collection_add", "update", "PATCH /v1/collections/{collection}/records"),
    ("collection_delete", "all", "DELETE /v1/collections/{collection}"),
    ("graph_neighbours", "direction", "each direction has a path"),
    ("memory_delete", "source", "DELETE /v1/memory/drawers"),
    ("memory_list", "wings", "GET /v1/memory/taxonomy"),
    ("workers", "workers", "a field of each store"),
];

fn tool_definitions() -> Vec<(String, Value)> {
    let definition = |tool: crate::tool::Tool| serde_json::to_value(tool.definition()).unwrap();
    let tools = tools::all().into_iter().map(|tool| (tool.name().to_owned(), definition(tool)));
    tools.collect()
}

fn names(schema: &Value) -> BTreeSet<String> {
    let properties = schema["properties"].as_object().into_iter().flatten();
    properties.map(|(name, _)| name.clone()).collect()
}

/// The fields of an endpoint's answer.
fn fields(endpoint: &Endpoint) -> BTreeSet<String> {
    let mut settings = schemars::generate::SchemaSettings::draft2020_12().for_serialize();
    settings.inline_subschemas = true;
    names((endpoint.answer)(&mut settings.into_generator()).as_value())
}

#[test]
fn every_tool_has_an_endpoint_that_does_the_same() {
    let all = endpoints();
    let tools = tool_definitions();
    for (tool, definition) in &tools {
        let other = OTHER_NAMES.iter().find(|(name, _)| name == tool).map(|(_, other)| *other);
        let endpoint = all.iter().find(|endpoint| endpoint.name == other.unwrap_or(tool));
        let endpoint = endpoint.unwrap_or_else(|| panic!("the tool {tool} has no endpoint"));
        let taken = endpoint.properties().map(|(name, _)| name.clone()).collect();
        for (wanted, offered) in [
            (names(&definition["inputSchema"]), taken),
            (names(&definition["outputSchema"]), fields(endpoint)),
        ] {
            for name in wanted.difference(&offered) {
                let elsewhere = ELSEWHERE.iter().any(|(of, it, _)| of == tool && it == name);
                assert!(elsewhere, "{tool}: the endpoint has no {name}");
            }
        }
    }
    for (tool, _) in OTHER_NAMES {
        assert!(tools.iter().any(|(name, _)| name == tool), "{tool} is not a tool any more");
    }
}

#[test]
fn endpoints_are_unique_and_consistent() {
    let all = endpoints();
    let names: BTreeSet<&str> = all.iter().map(|endpoint| endpoint.name).collect();
    assert_eq!(names.len(), all.len());
    let routes: BTreeSet<(Verb, &str)> = all.iter().map(|it| (it.verb, it.path)).collect();
    assert_eq!(routes.len(), all.len());
    for endpoint in &all {
        for argument in endpoint.path_arguments() {
            let known = endpoint.properties().any(|(name, _)| name == argument);
            assert!(known && endpoint.is_required(argument), "{}: {argument}", endpoint.path);
        }
        let schema = &endpoint.arguments;
        // A misspelled argument is refused, not ignored.
        assert_eq!(schema["additionalProperties"], false, "{}", endpoint.path);
        let is_write = endpoint.verb != Verb::Get;
        assert!(is_write || !endpoint.is_keyed, "{}", endpoint.path);
    }
}

#[test]
fn the_description_is_complete() {
    let all = endpoints();
    let document = openapi::document(&all);
    assert_eq!(document["openapi"], "3.1.0");
    let groups: Vec<&str> = document["tags"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|tag| tag["name"].as_str())
        .collect();
    for endpoint in &all {
        let path = format!("/v1{}", endpoint.path);
        let operation = &document["paths"][&path][endpoint.verb.name().to_lowercase()];
        assert_eq!(operation["operationId"], endpoint.name);
        assert!(groups.contains(&endpoint.group()), "{path}");
        let listed = operation["parameters"].as_array().unwrap();
        let in_path = listed.iter().filter(|parameter| parameter["in"] == "path").count();
        assert_eq!(in_path, endpoint.path_arguments().count(), "{path}");
        assert_eq!(operation["responses"]["4XX"]["$ref"], "#/components/responses/Error");
    }
    // Every reference leads somewhere.
    let text = document.to_string();
    for reference in text.split("\"$ref\":\"#").skip(1) {
        let pointer = reference.split('"').next().unwrap();
        assert!(document.pointer(pointer).is_some(), "{pointer}");
    }
}

/// The pages' types are generated from that file, so that a change here shows what it breaks there.
#[test]
fn the_pages_are_built_with_the_current_description() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/openapi.json");
    let mut document = openapi::document(&endpoints());
    // A new version alone changes nothing for the pages.
    document["info"]["version"] = "0".into();
    let text = serde_json::to_string_pretty(&document).unwrap() + "\n";
    if std::env::var_os("ISOLITH_BLESS").is_some() {
        fs::write(&file, &text).unwrap();
    }
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == text,
        "web/openapi.json is not current: run this test with ISOLITH_BLESS=1, then `cargo xtask web`, \
         which shows what the change breaks in the pages"
    );
}

#[test]
fn the_page_lists_all_endpoints_and_loads_nothing() {
    let all = endpoints();
    let page = docs::page(&openapi::document(&all));
    for endpoint in &all {
        assert!(page.contains(&format!("<code>/v1{}</code>", endpoint.path)), "{}", endpoint.path);
    }
    for loading in ["<script", "src=", "http://", "https://", "url(", "@import", "<link"] {
        assert!(!page.contains(loading), "{loading}");
    }
}

#[test]
fn hints_name_endpoints_that_exist() {
    let folder = || "/a".to_owned();
    let hints = [
        Hint::IndexProject,
        Hint::ResumeIndexing { folder: folder() },
        Hint::IndexRepository { folder: folder() },
        Hint::ListIndexes,
        Hint::AllowIndexedFolder,
        Hint::CreateStore,
        Hint::CheckStore,
        Hint::RepairStore,
        Hint::RepairIdleStore,
        Hint::ListCollections,
        Hint::IngestFile,
        Hint::ListDrawers,
        Hint::QueryFacts,
        Hint::ListEntities,
        Hint::InvalidateFact { id: "f1".to_owned() },
        Hint::SupersedeFact { id: "f1".to_owned() },
        Hint::AddFact,
        Hint::CreateGraph,
    ];
    let routes: BTreeSet<String> =
        endpoints().iter().map(|it| format!("{} /v1{}", it.verb.name(), it.path)).collect();
    for hint in hints {
        let words = for_programs(&hint);
        let words: Vec<&str> =
            words.split([' ', ',', ';']).filter(|word| !word.is_empty()).collect();
        let named: Vec<String> = words
            .windows(2)
            .filter(|pair| pair[1].starts_with("/v1/"))
            .map(|pair| pair.join(" "))
            .collect();
        assert!(!named.is_empty(), "{hint:?}");
        for route in named {
            assert!(routes.contains(&route), "{hint:?}: {route}");
        }
    }
}
