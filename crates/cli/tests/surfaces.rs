//! Every operation of a store can be reached from the command line, by agents and by programs, or
//! there is a reason why not.
#![allow(clippy::unwrap_used)]

mod agent;
mod http_client;
mod project;
mod test_env;

use std::collections::BTreeSet;

use agent::Agent;
use http_client::ApiServer;
use isolith_protocol::{Action, ReadJob};
use project::Project;
use serde_json::json;

/// How a surface offers an operation.
enum Offer {
    /// By this command, this tool or this endpoint.
    By(&'static str),
    /// Not at all, and why.
    Not(&'static str),
}

use Offer::{By, Not};

const INTERNAL: &str = "part of another operation, of no use alone";
const UPKEEP: &str = "done by the program itself when it is due";
const CHROMA: &str = "for Chroma's API, which creates databases; others only use them";
const TERMINAL: &str = "left to people: it needs a decision or a file of theirs";

/// Operations by name, with the command, the tool and the endpoint for each.
const OPERATIONS: &[(&str, Offer, Offer, Offer)] = &[
    // Reading.
    (
        "nearest",
        By("collection query"),
        By("collection_query"),
        By("POST /v1/collections/{collection}/query"),
    ),
    (
        "keywords",
        By("collection query"),
        By("collection_query"),
        By("POST /v1/collections/{collection}/query"),
    ),
    (
        "hybrid",
        By("collection query"),
        By("collection_query"),
        By("POST /v1/collections/{collection}/query"),
    ),
    ("code", By("search"), By("search_code"), By("GET /v1/code/search")),
    ("matches", By("search"), By("search_code"), By("POST /v1/code/search")),
    ("memory", By("memory search"), By("memory_search"), By("GET /v1/memory/search")),
    (
        "similar_drawers",
        Not("memory add reports duplicates"),
        By("memory_check_duplicate"),
        By("POST /v1/memory/duplicates"),
    ),
    ("overview", By("status"), By("health"), By("GET /v1/status")),
    (
        "collection",
        By("collection count"),
        By("collection_list"),
        By("GET /v1/collections/{collection}"),
    ),
    (
        "get",
        By("collection get"),
        By("collection_get"),
        By("POST /v1/collections/{collection}/get"),
    ),
    (
        "values",
        By("collection values"),
        By("collection_values"),
        By("GET /v1/collections/{collection}/values"),
    ),
    ("roots", By("status"), By("index_status"), By("GET /v1/code/index")),
    ("root_places", Not(INTERNAL), Not(INTERNAL), Not(INTERNAL)),
    ("files", Not(INTERNAL), Not(INTERNAL), Not(INTERNAL)),
    ("lines", Not("a map is a picture"), Not("a map is a picture"), By("GET /v1/code/map")),
    ("chunks", Not("search shows chunks"), By("read_chunk"), By("GET /v1/code/chunks")),
    ("drawers", By("memory get"), By("memory_get"), By("GET /v1/memory/drawers/{id}")),
    ("list_drawers", By("memory list"), By("memory_list"), By("GET /v1/memory/drawers")),
    ("taxonomy", By("memory taxonomy"), By("memory_list"), By("GET /v1/memory/taxonomy")),
    ("embed", Not(INTERNAL), Not(INTERNAL), Not(INTERNAL)),
    ("embed_again", Not(INTERNAL), Not(INTERNAL), Not(INTERNAL)),
    ("facts", By("fact query"), By("fact_query"), By("GET /v1/facts")),
    ("timeline", By("fact timeline"), By("fact_timeline"), By("GET /v1/facts/timeline")),
    ("fact_stats", By("fact stats"), By("fact_stats"), By("GET /v1/facts/stats")),
    (
        "predicates",
        By("fact predicates"),
        Not("fact_query shows the facts with a predicate"),
        By("GET /v1/facts/predicates"),
    ),
    (
        "entities",
        By("fact entities"),
        Not("fact_query finds entities by any of their names"),
        By("GET /v1/facts/entities"),
    ),
    (
        "entity",
        By("fact entity"),
        Not("fact_query says what is known of an entity"),
        By("GET /v1/facts/entities/{name}"),
    ),
    ("cypher", By("graph query"), By("graph_query"), By("POST /v1/graph/query")),
    ("verify", By("doctor"), By("health"), By("POST /v1/doctor")),
    ("load", Not(INTERNAL), Not(INTERNAL), Not(INTERNAL)),
    ("query", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("tenant", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("database", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("databases", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("collections", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("count_collections", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("find_collection", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    // Writing.
    (
        "create_collection",
        By("collection create"),
        By("collection_create"),
        By("POST /v1/collections"),
    ),
    (
        "delete_collection",
        By("collection delete"),
        By("collection_delete"),
        By("DELETE /v1/collections/{collection}"),
    ),
    (
        "rename_collection",
        By("collection rename"),
        Not(TERMINAL),
        By("PATCH /v1/collections/{collection}"),
    ),
    ("put", By("ingest"), By("collection_add"), By("PUT /v1/collections/{collection}/records")),
    (
        "update",
        By("collection update"),
        By("collection_add"),
        By("PATCH /v1/collections/{collection}/records"),
    ),
    (
        "delete",
        By("collection delete"),
        By("collection_delete"),
        By("POST /v1/collections/{collection}/delete"),
    ),
    ("add_root", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("put_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("touch_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("move_file", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("remove_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("clear_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("set_code_model", By("index"), Not(TERMINAL), Not(TERMINAL)),
    ("remove_root", By("index"), Not(TERMINAL), Not(TERMINAL)),
    ("finish_index", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("link_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("git_facts", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("add_drawers", By("memory add"), By("memory_add"), By("POST /v1/memory/drawers")),
    (
        "update_drawer",
        By("memory update"),
        By("memory_update"),
        By("PATCH /v1/memory/drawers/{id}"),
    ),
    ("delete_drawers", By("memory delete"), By("memory_delete"), By("DELETE /v1/memory/drawers")),
    ("add_fact", By("fact add"), By("fact_add"), By("POST /v1/facts")),
    (
        "add_facts",
        By("fact import"),
        Not("fact_add adds one at a time"),
        By("POST /v1/facts/import"),
    ),
    ("retract_fact", By("fact retract"), By("fact_retract"), By("POST /v1/facts/retract")),
    (
        "declare_predicate",
        By("fact predicate"),
        Not(TERMINAL),
        By("PUT /v1/facts/predicates/{name}"),
    ),
    (
        "invalidate_fact",
        By("fact invalidate"),
        By("fact_invalidate"),
        By("POST /v1/facts/invalidate"),
    ),
    ("supersede_fact", By("fact supersede"), By("fact_supersede"), By("POST /v1/facts/supersede")),
    ("describe_entity", By("fact entity"), Not(TERMINAL), By("PATCH /v1/facts/entities/{name}")),
    ("import_graph", By("graph import"), Not(TERMINAL), By("POST /v1/graph/import")),
    ("swap", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("quarantine_segments", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("swap_graph", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("quarantine_graph", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("purge", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("remember_poison", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("forget_poison", By("doctor"), By("repair"), By("POST /v1/doctor")),
    ("tidy", Not(UPKEEP), Not(UPKEEP), Not(UPKEEP)),
    ("recount", By("doctor"), By("repair"), By("POST /v1/doctor")),
    ("copy_files", By("index"), By("index_project"), By("POST /v1/code/index")),
    ("create_tenant", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("update_tenant", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("create_database", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("delete_database", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("add_collection", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("change_collection", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    ("reset", Not(CHROMA), Not(CHROMA), Not(CHROMA)),
    (
        "save_checkpoint",
        By("memory checkpoint"),
        By("memory_checkpoint"),
        By("POST /v1/memory/checkpoints"),
    ),
];

#[test]
fn every_operation_is_offered_or_has_a_reason() {
    let known: BTreeSet<&str> = Action::NAMES.iter().chain(ReadJob::NAMES).copied().collect();
    let listed: BTreeSet<&str> = OPERATIONS.iter().map(|(name, ..)| *name).collect();
    let missing: Vec<_> = known.difference(&listed).collect();
    assert!(missing.is_empty(), "say in OPERATIONS how {missing:?} can be reached, or why not");
    let gone: Vec<_> = listed.difference(&known).collect();
    assert!(gone.is_empty(), "{gone:?} are not operations any more");
}

#[test]
fn the_commands_tools_and_endpoints_exist() {
    let project = Project::sample();
    let mut agent = Agent::greeted(project.command(&["mcp", "--tools", "all"]));
    let listed = agent.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tools: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let server = ApiServer::start(project.command(&["serve", "--json", "--listen", "127.0.0.1:0"]));
    let description = server.get("/v1/openapi.json");
    let mut commands = BTreeSet::new();
    for (name, command, tool, endpoint) in OPERATIONS {
        match endpoint {
            By(endpoint) => {
                let (verb, path) = endpoint.split_once(' ').unwrap();
                let operation = &description["paths"][path][verb.to_lowercase()];
                assert!(operation.is_object(), "{name}: there is no endpoint {endpoint}");
            }
            Not(reason) => assert!(!reason.is_empty(), "{name}"),
        }
        match tool {
            By(tool) => assert!(tools.contains(tool), "{name}: there is no tool {tool}"),
            Not(reason) => assert!(!reason.is_empty(), "{name}"),
        }
        match command {
            By(command) => drop(commands.insert(*command)),
            Not(reason) => assert!(!reason.is_empty(), "{name}"),
        }
    }
    for command in commands {
        let mut words: Vec<&str> = command.split(' ').collect();
        words.push("--help");
        let status = project.command(&words).output().unwrap().status;
        assert!(status.success(), "there is no command {command}");
    }
    assert_eq!(agent.leave(), Some(0));
}
