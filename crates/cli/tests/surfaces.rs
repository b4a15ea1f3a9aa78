//! Every operation of a store can be reached from the command line and by agents, or there is a
//! reason why not.
#![allow(clippy::unwrap_used)]

mod agent;
mod project;
mod test_env;

use std::collections::BTreeSet;

use agent::Agent;
use isolith_protocol::{Action, ReadJob};
use project::Project;
use serde_json::json;

/// How a surface offers an operation.
enum Offer {
    /// By this command, or this tool.
    By(&'static str),
    /// Not at all, and why.
    Not(&'static str),
}

use Offer::{By, Not};

const INTERNAL: &str = "part of another operation, of no use alone";
const UPKEEP: &str = "done by the program itself when it is due";
const TERMINAL: &str = "left to people: it needs a decision or a file of theirs";

/// Operations by name, with the command and the tool for each.
const OPERATIONS: &[(&str, Offer, Offer)] = &[
    // Reading.
    ("nearest", By("collection query"), By("collection_query")),
    ("keywords", By("collection query"), By("collection_query")),
    ("code", By("search"), By("search_code")),
    ("memory", By("memory search"), By("memory_search")),
    ("similar_drawers", Not("memory add reports duplicates"), By("memory_check_duplicate")),
    ("overview", By("status"), By("health")),
    ("collection", By("collection count"), By("collection_list")),
    ("get", By("collection get"), Not("collection_query shows records")),
    ("roots", By("status"), By("index_status")),
    ("root_places", Not(INTERNAL), Not(INTERNAL)),
    ("files", Not(INTERNAL), Not(INTERNAL)),
    ("chunks", Not("search shows chunks"), By("read_chunk")),
    ("drawers", By("memory get"), By("memory_get")),
    ("list_drawers", By("memory list"), By("memory_list")),
    ("taxonomy", By("memory taxonomy"), By("memory_list")),
    ("embed", Not(INTERNAL), Not(INTERNAL)),
    ("embed_again", Not(INTERNAL), Not(INTERNAL)),
    ("facts", By("fact query"), By("fact_query")),
    ("timeline", By("fact timeline"), By("fact_timeline")),
    ("fact_stats", By("fact stats"), By("fact_stats")),
    ("entities", By("fact entities"), Not("fact_query finds entities by any of their names")),
    ("entity", By("fact entity"), Not("fact_query says what is known of an entity")),
    ("cypher", By("graph query"), By("graph_query")),
    ("verify", By("doctor"), By("health")),
    ("load", Not(INTERNAL), Not(INTERNAL)),
    // Writing.
    ("create_collection", By("collection create"), By("collection_add")),
    ("delete_collection", By("collection delete"), Not(TERMINAL)),
    ("rename_collection", By("collection rename"), Not(TERMINAL)),
    ("put", By("ingest"), By("collection_add")),
    ("update", Not("ingest replaces records"), Not("collection_add replaces records")),
    ("delete", By("collection delete"), Not(TERMINAL)),
    ("add_root", By("index"), By("index_project")),
    ("put_files", By("index"), By("index_project")),
    ("touch_files", By("index"), By("index_project")),
    ("move_file", By("index"), By("index_project")),
    ("remove_files", By("index"), By("index_project")),
    ("clear_files", By("index"), By("index_project")),
    ("set_code_model", By("index"), Not(TERMINAL)),
    ("remove_root", By("index"), Not(TERMINAL)),
    ("finish_index", By("index"), By("index_project")),
    ("link_files", By("index"), By("index_project")),
    ("git_facts", By("index"), By("index_project")),
    ("add_drawers", By("memory add"), By("memory_add")),
    ("update_drawer", By("memory update"), By("memory_update")),
    ("delete_drawers", By("memory delete"), By("memory_delete")),
    ("add_fact", By("fact add"), By("fact_add")),
    ("invalidate_fact", By("fact invalidate"), By("fact_invalidate")),
    ("supersede_fact", By("fact supersede"), By("fact_supersede")),
    ("describe_entity", By("fact entity"), Not(TERMINAL)),
    ("import_graph", By("graph import"), Not(TERMINAL)),
    ("swap", Not(UPKEEP), Not(UPKEEP)),
    ("quarantine_segments", Not(UPKEEP), Not(UPKEEP)),
    ("swap_graph", Not(UPKEEP), Not(UPKEEP)),
    ("quarantine_graph", Not(UPKEEP), Not(UPKEEP)),
    ("purge", Not(UPKEEP), Not(UPKEEP)),
    ("remember_poison", Not(UPKEEP), Not(UPKEEP)),
    ("forget_poison", By("doctor"), By("repair")),
    ("tidy", Not(UPKEEP), Not(UPKEEP)),
    ("recount", By("doctor"), By("repair")),
    ("copy_files", By("index"), By("index_project")),
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
fn the_commands_and_tools_exist() {
    let project = Project::sample();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let listed = agent.ask("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let tools: BTreeSet<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let mut commands = BTreeSet::new();
    for (name, command, tool) in OPERATIONS {
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
