//! `isolith fact`, through the real binary.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::collections::BTreeSet;
use std::fs;
use std::process::{Child, Stdio};

use serde_json::{Value, json};
use test_env::{Ran, TestEnv};

/// The ids of facts, in their order.
fn ids(document: &Value) -> Vec<&str> {
    let facts = document["facts"].as_array().unwrap();
    facts.iter().map(|fact| fact["id"].as_str().unwrap()).collect()
}

#[test]
fn facts_are_added_queried_ended_and_replaced() {
    let env = TestEnv::new();
    let berlin = [
        &["fact", "add", "Max", "lives_in", "Berlin", "--from", "2020-01-01"][..],
        &["--confidence", "0.75", "--drawer", "d1", "--file", "notes.md", "--agent", "claude"],
        &["--subject-type", "person", "--object-type", "city"],
    ]
    .concat();
    let added = env.json(&berlin);
    assert_eq!(added, json!({ "id": "f1", "created": true, "updated": false }));
    let again = env.json(&["fact", "add", " max ", "Lives in", "BERLIN"]);
    assert_eq!(again, json!({ "id": "f1", "created": false, "updated": false }));

    let found = env.json(&["fact", "query", "MAX"]);
    let fact = &found["facts"][0];
    let recorded = fact["recorded_at"].as_str().unwrap();
    assert_eq!(
        found,
        json!({
            "facts": [{
                "id": "f1", "subject": "Max", "predicate": "lives_in", "object": "Berlin",
                "valid_from": "2020-01-01", "valid_to": null, "current": true,
                "state": "current", "retracted_at": null,
                "confidence": 0.75, "recorded_at": recorded, "superseded_by": null,
                "sources": [{ "drawer": "d1", "file": "notes.md", "agent": "claude",
                    "confidence": 0.75, "recorded_at": recorded }],
            }],
            "more": false,
        })
    );

    let replaced = env.json(&["fact", "supersede", "f1", "Hamburg", "--at", "2024-06-01"]);
    let expected = json!({ "old": "f1", "id": "f2", "created": true, "at": "2024-06-01" });
    assert_eq!(replaced, expected);
    for (at, id) in [("2024-05-31", "f1"), ("2024-06-01", "f2"), ("2024-06-01T00:00:00Z", "f2")] {
        assert_eq!(ids(&env.json(&["fact", "query", "Max", "--as-of", at])), [id], "{at}");
    }
    // By subject and predicate, without the object if there is only one.
    env.json(&["fact", "supersede", "Max", "lives_in", "Hamburg", "Bonn", "--at", "2025-01-01"]);
    env.json(&["fact", "supersede", "Max", "lives_in", "Rome", "--at", "2026-01-01"]);
    let ended = env.json(&["fact", "invalidate", "Max", "lives_in", "Rome", "--at", "2026-02-01"]);
    assert_eq!(ended, json!({ "id": "f4", "valid_to": "2026-02-01", "changed": true }));
    let again = env.json(&["fact", "invalidate", "f4", "--at", "2026-02-01"]);
    assert_eq!(again["changed"], false);

    assert_eq!(ids(&env.json(&["fact", "timeline", "max"])), ["f1", "f2", "f3", "f4"]);
    let page = env.json(&["fact", "timeline", "--limit", "2", "--offset", "1"]);
    assert_eq!((ids(&page), &page["more"]), (vec!["f2", "f3"], &json!(true)));
    let stats = env.json(&["fact", "stats"]);
    let expected = json!({ "facts": 4, "current": 0, "past": 4, "future": 0, "retracted": 0, "entities": 5,
        "predicates": 1 });
    assert_eq!(stats, expected);
}

#[test]
fn entities_have_types_and_aliases() {
    let env = TestEnv::new();
    let described = env.json(&["fact", "entity", "Robert", "--type", "person", "--alias", "Bob"]);
    let expected = json!({ "name": "Robert", "type": "person", "aliases": ["Bob"], "facts": 0 });
    assert_eq!(described, expected);
    env.json(&["fact", "add", "bob", "knows", "Eva"]);
    assert_eq!(ids(&env.json(&["fact", "query", "Robert", "--direction", "out"])), ["f1"]);
    assert_eq!(ids(&env.json(&["fact", "query", "Robert", "--direction", "in"])), [""; 0]);
    assert_eq!(ids(&env.json(&["fact", "query", "--predicate", "KNOWS"])), ["f1"]);
    let listed = env.json(&["fact", "entities", "--like", "o"]);
    let robert = json!({ "name": "Robert", "type": "person", "aliases": ["Bob"], "facts": 1 });
    assert_eq!(listed, json!({ "entities": [robert], "more": false }));
    assert_eq!(env.json(&["fact", "entity", "BOB"]), robert);
    env.fails(&["fact", "entity", "Eva", "--alias", "Bob"], 3, "already_exists");
    env.fails(&["fact", "entity", "Nobody"], 4, "not_found");
    let bare = env.json(&["fact", "entity", "Bob", "--type", "", "--no-alias", "bob"]);
    assert_eq!(bare, json!({ "name": "Robert", "type": null, "aliases": [], "facts": 1 }));
}

#[test]
fn text_output_is_a_table() {
    let env = TestEnv::new();
    assert_eq!(
        env.run(&["fact", "add", "Max", "is", "tall", "--confidence", "0.5"]).stdout,
        "added f1\n"
    );
    assert_eq!(env.run(&["fact", "add", "Max", "is", "tall"]).stdout, "f1 already exists\n");
    let more = env.run(&["fact", "add", "Max", "is", "tall", "--agent", "eva"]).stdout;
    assert_eq!(more, "f1 already exists; added what was new\n");
    env.run(&["fact", "add", "Max", "was", "small", "--from", "2000-01-01", "--to", "2010-01-01"]);
    env.run(&["fact", "add", "Max", "will", "retire", "--from", "2999-01-01"]);
    let shown = env.run(&["fact", "query", "Max"]);
    assert_eq!(shown.stderr, "");
    assert_eq!(
        shown.stdout,
        "ID  STATE    SUBJECT  PREDICATE  OBJECT  FROM        TO          CONFIDENCE\n\
         f1  current  Max      is         tall    -           -                  0.5\n\
         f3  future   Max      will       retire  2999-01-01  -                    1\n\
         f2  past     Max      was        small   2000-01-01  2010-01-01           1\n"
    );
    let page = env.run(&["fact", "query", "Max", "-n", "1"]).stdout;
    assert!(page.ends_with("there are more: use --offset 1\n"), "{page}");
    assert_eq!(env.run(&["fact", "query", "Eva"]).stdout, "no facts\n");
    let stats = env.run(&["fact", "stats"]).stdout;
    assert!(stats.starts_with("facts       3\n  current   1\n"), "{stats}");
    let entity = env.run(&["fact", "entity", "max", "--alias", "Maxi"]).stdout;
    assert_eq!(entity, "Max: unknown type, 3 facts\n  aliases: Maxi\n");
}

#[test]
fn errors_have_a_code_and_an_exit_status() {
    let env = TestEnv::new();
    for reading in [&["fact", "query", "Max"][..], &["fact", "stats"], &["fact", "timeline"]] {
        env.fails(reading, 4, "no_store");
    }
    env.fails(&["fact", "invalidate", "f1"], 4, "no_store");
    assert!(!env.store().exists(), "looking makes nothing");
    env.json(&["fact", "add", "a", "p", "b", "--from", "2020-01-01"]);
    let add = ["fact", "add", "a", "p", "c"];
    let long = "x".repeat(1_001);
    for (arguments, status, code) in [
        (&["--from", "yesterday"][..], 3, "bad_input"),
        (&["--from", "2024"], 3, "bad_input"),
        (&["--from", "2024-02-30"], 3, "bad_input"),
        (&["--from", "2024-01-01T10:00:00"], 3, "bad_input"),
        (&["--to", "01/02/2024"], 3, "bad_input"),
        (&["--from", "2024-01-02", "--to", "2024-01-01"], 3, "bad_input"),
        (&["--confidence", "nan"], 3, "bad_input"),
        (&["--confidence", "-1"], 3, "bad_input"),
        (&["--confidence", "2"], 3, "bad_input"),
        (&["--confidence", "high"], 2, "usage"),
        (&["--agent", &long], 3, "bad_input"),
        (&["d"], 2, "usage"),
        (&["--project"], 2, "usage"),
    ] {
        let error = env.fails(&[&add[..], arguments].concat(), status, code);
        if error["message"].as_str().unwrap().contains("is not a date") {
            assert!(error["message"].as_str().unwrap().contains("2026-01-31T09:30:00Z"), "{error}");
        }
    }
    for (arguments, status, code) in [
        (&["fact", "add", "", "p", "b"][..], 3, "bad_input"),
        (&["fact", "add", "a", "p"], 2, "usage"),
        (&["fact", "add", "a", "p", "b", "--to", "2030-01-01"], 3, "already_exists"),
        (&["fact", "query"], 2, "usage"),
        (&["fact", "query", "a", "--as-of", "now"], 3, "bad_input"),
        (&["fact", "query", "a", "--direction", "up"], 2, "usage"),
        (&["fact", "query", "a", "--limit", "0"], 2, "usage"),
        (&["fact", "invalidate", "f9"], 4, "not_found"),
        (&["fact", "invalidate", "nine"], 3, "bad_input"),
        (&["fact", "invalidate", "a", "p", "z"], 4, "not_found"),
        (&["fact", "invalidate", "f1", "--at", "2019-01-01"], 3, "bad_input"),
        (&["fact", "supersede", "f1"], 2, "usage"),
        (&["fact", "supersede", "f1", "B"], 3, "bad_input"),
        (&["fact", "supersede", "f9", "c"], 4, "not_found"),
    ] {
        env.fails(arguments, status, code);
    }
    assert_eq!(env.json(&["fact", "stats"])["facts"], 1);
}

#[test]
fn an_idempotency_key_makes_a_command_take_effect_once() {
    let env = TestEnv::new();
    let add = ["fact", "add", "a", "p", "b", "--key", "monday"];
    let first = env.json(&add);
    env.json(&["fact", "invalidate", "f1"]);
    assert_eq!(env.json(&add), first, "without the key it would be f2");
    env.fails(&["fact", "add", "a", "p", "c", "--key", "monday"], 3, "key_reused");
    assert_eq!(env.json(&["fact", "stats"])["facts"], 1);
}

#[test]
fn facts_go_to_the_users_store_unless_project_is_given() {
    let env = TestEnv::new();
    let project = env.path("project");
    fs::create_dir_all(project.join(".isolith")).unwrap();
    let run = |arguments: &[&str]| {
        let mut command = env.bare(arguments);
        let output = command.arg("--json").current_dir(&project).output().unwrap();
        let ran = Ran::of(&output);
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    };
    run(&["fact", "add", "a", "is", "users"]);
    run(&["fact", "add", "a", "is", "projects", "--project"]);
    assert!(env.path("home/.local/share/isolith/truth.sqlite").exists());
    assert!(project.join(".isolith/truth.sqlite").exists());
    assert_eq!(run(&["fact", "query", "a"])["facts"][0]["object"], "users");
    assert_eq!(run(&["fact", "query", "a", "--project"])["facts"][0]["object"], "projects");
    fs::remove_dir_all(project.join(".isolith")).unwrap();
    let mut command = env.bare(&["fact", "query", "a", "--project"]);
    command.current_dir(&project);
    env.fails_as(command, 4, "no_store");
}

/// The first process creates the store.
#[test]
fn sixteen_processes_add_facts_and_lose_none() {
    let env = TestEnv::new();
    let start = |arguments: &[&str]| -> Child {
        let mut command = env.command(arguments);
        command.arg("--json").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let finish = |child: Child| -> Value {
        let ran = Ran::of(&child.wait_with_output().unwrap());
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        ran.document()
    };
    let mut ids = BTreeSet::new();
    for round in 0..3 {
        let names: Vec<String> = (0..16).map(|number| format!("process {number}")).collect();
        let object = format!("round {round}");
        let own = names.iter().map(|name| start(&["fact", "add", name, "was_in", &object]));
        for added in own.collect::<Vec<_>>().into_iter().map(finish) {
            assert_eq!(added["created"], true, "{added}");
            assert!(ids.insert(added["id"].as_str().unwrap().to_owned()), "{added}");
        }
        // A fact that all of them add is stored once, with all of them as sources.
        let shared = names
            .iter()
            .map(|name| start(&["fact", "add", "all", "saw", &object, "--agent", name]));
        let added: Vec<Value> = shared.collect::<Vec<_>>().into_iter().map(finish).collect();
        let created = added.iter().filter(|added| added["created"] == true).count();
        assert_eq!(created, 1, "{added:?}");
        let all: BTreeSet<&str> = added.iter().map(|added| added["id"].as_str().unwrap()).collect();
        assert_eq!(all.len(), 1, "{all:?}");
    }
    let stats = env.json(&["fact", "stats"]);
    assert_eq!((&stats["facts"], &stats["current"]), (&json!(3 * 16 + 3), &json!(3 * 16 + 3)));
    for fact in env.json(&["fact", "query", "all"])["facts"].as_array().unwrap() {
        assert_eq!(fact["sources"].as_array().unwrap().len(), 16, "{fact}");
    }
    let report = env.json(&["doctor", "--full"]);
    assert_eq!(report["ok"], true, "{report}");
}

#[test]
fn a_damaged_store_keeps_its_facts() {
    let env = TestEnv::new();
    env.json(&["fact", "add", "Max", "lives_in", "Berlin", "--from", "2020-01-01"]);
    env.json(&["fact", "supersede", "f1", "Hamburg", "--at", "2024-06-01"]);
    let before = env.json(&["fact", "query", "Max"]);
    env.truth().execute_batch("UPDATE predicate SET folded = 'lost'").unwrap();
    let found = env.run(&["doctor", "--json"]);
    assert_eq!(found.status, Some(74), "{}", found.stdout);
    // Doubtful data is reported, and the run does not count as a success.
    let repaired = env.run(&["doctor", "--repair", "--json"]);
    assert_eq!(repaired.status, Some(74), "{}", repaired.stdout);
    let report = repaired.document();
    let message = report["repaired"].to_string();
    assert!(message.contains("and 2 facts"), "{message}");
    assert_eq!(report["lost"][0]["extent"], "doubtful", "{report}");
    assert_eq!(env.json(&["fact", "query", "Max", "--predicate", "lives_in"]), before);
}

#[test]
fn facts_are_retracted_listed_and_declared() {
    let env = TestEnv::new();
    env.json(&["fact", "add", "Max", "works_at", "Acme", "--from", "2020-01-01"]);
    env.json(&["fact", "add", "Eva", "works_at", "Acme", "--from", "2024-01-01"]);
    assert_eq!(ids(&env.json(&["fact", "list"])), ["f2", "f1"]);
    assert_eq!(ids(&env.json(&["fact", "search", "max WORKS"])), ["f1"]);
    let then = env.json(&["fact", "list", "--as-of", "2021-01-01", "--state", "future"]);
    assert_eq!((ids(&then), &then["facts"][0]["state"]), (vec!["f2"], &json!("future")));

    let declared = env.json(&["fact", "predicate", "works_at", "--single"]);
    assert_eq!(declared, json!({ "name": "works_at", "single_valued": true, "facts": 2 }));
    let refused = env.run(&["fact", "add", "Max", "works_at", "Initech"]);
    assert_eq!(refused.status, Some(3), "{}", refused.stderr);
    assert!(refused.stderr.contains("fact supersede f1"), "{}", refused.stderr);
    let listed = env.json(&["fact", "predicates"]);
    assert_eq!(listed["predicates"][0]["single_valued"], true);

    let done = env.json(&["fact", "retract", "Max", "works_at"]);
    assert_eq!((&done["id"], &done["changed"]), (&json!("f1"), &json!(true)));
    assert_eq!(ids(&env.json(&["fact", "query", "Max"])), Vec::<&str>::new());
    assert_eq!(ids(&env.json(&["fact", "list", "--state", "retracted"])), ["f1"]);
    let history = env.run(&["fact", "timeline", "Max"]);
    assert!(history.stdout.contains("retracted"), "{}", history.stdout);
    env.json(&["fact", "add", "Max", "works_at", "Initech"]);
}

#[test]
fn facts_are_imported_by_row() {
    let env = TestEnv::new();
    let file = env.write(
        "facts.jsonl",
        "{\"subject\": \"Max\", \"predicate\": \"lives_in\", \"object\": \"Berlin\", \"valid_from\": \"2020-01-01\"}\n\n\
         {\"subject\": \"Max\", \"predicate\": \"lives_in\", \"object\": \"Berlin\", \"valid_from\": \"2019-01-01\", \"valid_to\": \"2021-01-01\"}\n\
         {\"subject\": \"Eva\", \"predicate\": \"knows\", \"object\": \"Max\", \"agent\": \"crm\"}\n",
    );
    let import = || env.run(&["fact", "import", &file, "--json"]);
    for (created, unchanged) in [(2, 0), (0, 2)] {
        let ran = import();
        assert_eq!(ran.status, Some(3), "{}", ran.stderr);
        let receipt: Value = serde_json::from_str(&ran.stdout).unwrap();
        assert_eq!((&receipt["rows"], &receipt["created"]), (&json!(3), &json!(created)));
        assert_eq!(receipt["unchanged"], unchanged);
        assert_eq!(receipt["rejected"][0]["row"], 3);
        assert_eq!(receipt["rejected"][0]["code"], "already_exists");
    }
    // What cannot be read keeps the whole file out.
    let lines = "{\"subject\": \"A\", \"predicate\": \"b\", \"object\": \"C\"}\n{\"subject\": 7}\n\
                 {\"subject\": \"A\", \"predicate\": \"b\", \"object\": \"C\", \"valid_from\": \"soon\"}\n";
    let broken = env.write("broken.jsonl", lines);
    let ran = env.run(&["fact", "import", &broken]);
    assert_eq!(ran.status, Some(3));
    assert!(ran.stdout.contains("row 2: ") && ran.stdout.contains("row 3: "), "{}", ran.stdout);
    assert_eq!(ids(&env.json(&["fact", "query", "A"])), Vec::<&str>::new());
    assert_eq!(env.run(&["fact", "import", "missing.jsonl"]).status, Some(4));
}
