//! Tables of nodes and relationships, imported as a user does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use serde_json::{Value, json};
use test_env::TestEnv;

const NODES: [&str; 4] = ["--label", "Person", "--id", "id"];
const EDGES: [&str; 6] = ["--type", "KNOWS", "--from", "Person.id", "--to", "Person.id"];

fn nodes<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["graph", "import", "nodes", file], &NODES[..], more].concat()
}

fn edges<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["graph", "import", "edges", file], &EDGES[..], more].concat()
}

fn rows(env: &TestEnv, query: &str) -> Value {
    env.json(&["graph", "query", query])["rows"].clone()
}

#[test]
fn tables_become_a_graph() {
    let env = TestEnv::new();
    let people = env.write("people.csv", "\u{feff}id:int,name\r\n1,Ann\r\n2,\"Bob \"\"B\"\"\"\r\n");
    let known = env.write("knows.tsv", "from:int\tto:int\tsince:int\n1\t2\t1999\n2\t1\t\n");
    let made = env.run(&nodes(&people, &[]));
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let message = "2 rows in 0.";
    assert!(made.stdout.contains(message), "{}", made.stdout);
    assert!(made.stdout.contains("  2 new nodes, 4 properties set\n"), "{}", made.stdout);
    let made = env.json(&edges(&known, &["--delimiter", "tab"]));
    let counts = ["rows", "relationships_created", "properties_set"].map(|name| made[name].clone());
    assert_eq!((made["success"].clone(), json!(counts)), (json!(true), json!([2, 2, 1])));
    let all = "MATCH (a)-[k:KNOWS]->(b) RETURN a.name, k.since, b.name ORDER BY a.id";
    assert_eq!(rows(&env, all), json!([["Ann", 1999, "Bob \"B\""], ["Bob \"B\"", null, "Ann"]]));
    // Nodes by their id are there once, however often they come.
    let again = env.run(&nodes(&people, &[]));
    assert!(again.stdout.contains("  nothing changed\n"), "{}", again.stdout);
    assert_eq!(rows(&env, "MATCH (n) RETURN count(n)"), json!([[2]]));
    assert_eq!(env.json(&["doctor"])["ok"], true);
}

#[test]
fn invalid_files_are_refused_and_nothing_is_lost() {
    let env = TestEnv::new();
    let people = env.write("people.csv", "id:int,name\n1,Ann\n2,Bob\n");
    env.json(&nodes(&people, &[]));
    let wrong = env.write("wrong.csv", "id:int,name\n3,Cid\nfour,Dee\n");
    let error = env.fails(&nodes(&wrong, &[]), 3, "bad_input");
    assert_eq!(error["message"], "row 2: id is \"four\", which is not a whole number");
    let lost = env.write("lost.csv", "a:int,b:int\n1,2\n1,9\n");
    let error = env.fails(&edges(&lost, &[]), 3, "bad_input");
    assert_eq!(error["message"], "row 2: no such node: (:Person {id: 9})");
    let binary = env.write("binary.csv", b"\xff\xfe\0\n1,2\n");
    env.fails(&nodes(&binary, &[]), 3, "bad_input");
    env.fails(&nodes("none.csv", &[]), 4, "not_found");
    env.fails(&nodes(".", &[]), 3, "bad_input");
    assert_eq!(
        rows(&env, "MATCH (n) OPTIONAL MATCH (n)-[k]->() RETURN n.id, k"),
        json!([[1, null], [2, null]])
    );
    let skipped = env.run(&edges(&lost, &["--on-error", "skip"]));
    let message = "  1 row skipped:\n    row 2: no such node: (:Person {id: 9})\n";
    assert!(skipped.stdout.contains(message), "{}", skipped.stdout);
    assert_eq!(rows(&env, "MATCH (a)-[:KNOWS]->(b) RETURN a.id, b.id"), json!([[1, 2]]));
}

#[test]
fn a_long_file_is_imported_in_parts_exactly_once() {
    let env = TestEnv::new();
    let filler = "x".repeat(100_000);
    let mut text = "id:int,text\n".to_owned();
    for row in 0..400 {
        text.push_str(&format!("{row},\"{filler}\n\"\n"));
    }
    let file = env.write("long.csv", &text);
    let all = ["graph", "import", "nodes", &file, "--label", "Long", "--key", "once"];
    for repeated in [false, true] {
        let made = env.json(&all);
        assert_eq!((&made["rows"], &made["nodes_created"]), (&json!(400), &json!(400)));
        assert_eq!(made["repeated"], repeated);
    }
    let found = "MATCH (n:Long) RETURN count(n), sum(n.id), min(size(n.text)), max(size(n.text))";
    assert_eq!(rows(&env, found), json!([[400, 79_800, 100_001, 100_001]]));
    // A row without an end is reported as such.
    let endless = format!("id:int,text\n1,\"{}", "y\n".repeat(9 << 20));
    let file = env.write("endless.csv", &endless);
    let error = env.fails(&["graph", "import", "nodes", &file, "--label", "Long"], 3, "too_large");
    assert_eq!(error["message"], "row 1 is larger than 16 MB");
}

#[test]
fn a_query_that_changes_nothing_says_so() {
    let env = TestEnv::new();
    let create = "CREATE CONSTRAINT IF NOT EXISTS FOR (p:Person) REQUIRE p.name IS UNIQUE";
    for told in ["1 constraint added\n", "nothing changed\n"] {
        assert_eq!(env.run(&["graph", "query", create]).stderr, told);
    }
}
