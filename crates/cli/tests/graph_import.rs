//! Tables of nodes and relationships, imported as a user does.
#![allow(clippy::unwrap_used, clippy::panic)]

mod place;

use place::Place;
use serde_json::{Value, json};

const NODES: [&str; 4] = ["--label", "Person", "--id", "id"];
const EDGES: [&str; 6] = ["--type", "KNOWS", "--from", "Person.id", "--to", "Person.id"];

fn nodes<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["graph", "import", "nodes", file], &NODES[..], more].concat()
}

fn edges<'a>(file: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    [&["graph", "import", "edges", file], &EDGES[..], more].concat()
}

fn rows(place: &Place, query: &str) -> Value {
    place.json(&["graph", "query", query])["rows"].clone()
}

#[test]
fn tables_become_a_graph() {
    let place = Place::new();
    let people =
        place.write("people.csv", "\u{feff}id:int,name\r\n1,Ann\r\n2,\"Bob \"\"B\"\"\"\r\n");
    let known = place.write("knows.tsv", "from:int\tto:int\tsince:int\n1\t2\t1999\n2\t1\t\n");
    let made = place.run(&nodes(&people, &[]));
    assert_eq!(made.status, Some(0), "{}", made.stderr);
    let told = "2 rows in 0.";
    assert!(made.stdout.contains(told), "{}", made.stdout);
    assert!(made.stdout.contains("  2 new nodes, 4 properties set\n"), "{}", made.stdout);
    let made = place.json(&edges(&known, &["--delimiter", "tab"]));
    let counts = ["rows", "relationships_created", "properties_set"].map(|name| made[name].clone());
    assert_eq!((made["success"].clone(), json!(counts)), (json!(true), json!([2, 2, 1])));
    let all = "MATCH (a)-[k:KNOWS]->(b) RETURN a.name, k.since, b.name ORDER BY a.id";
    assert_eq!(rows(&place, all), json!([["Ann", 1999, "Bob \"B\""], ["Bob \"B\"", null, "Ann"]]));
    // Nodes by their id are there once, however often they come.
    let again = place.run(&nodes(&people, &[]));
    assert!(again.stdout.contains("  nothing changed\n"), "{}", again.stdout);
    assert_eq!(rows(&place, "MATCH (n) RETURN count(n)"), json!([[2]]));
    assert_eq!(place.json(&["doctor"])["ok"], true);
}

#[test]
fn invalid_files_are_refused_and_nothing_is_lost() {
    let place = Place::new();
    let people = place.write("people.csv", "id:int,name\n1,Ann\n2,Bob\n");
    place.json(&nodes(&people, &[]));
    let wrong = place.write("wrong.csv", "id:int,name\n3,Cid\nfour,Dee\n");
    let error = place.fails(&nodes(&wrong, &[]), 3, "bad_input");
    assert_eq!(error["message"], "row 2: id is \"four\", which is not a whole number");
    let lost = place.write("lost.csv", "a:int,b:int\n1,2\n1,9\n");
    let error = place.fails(&edges(&lost, &[]), 3, "bad_input");
    assert_eq!(error["message"], "row 2: no such node: (:Person {id: 9})");
    let binary = place.write("binary.csv", b"\xff\xfe\0\n1,2\n");
    place.fails(&nodes(&binary, &[]), 3, "bad_input");
    place.fails(&nodes("none.csv", &[]), 4, "not_found");
    place.fails(&nodes(".", &[]), 3, "bad_input");
    assert_eq!(
        rows(&place, "MATCH (n) OPTIONAL MATCH (n)-[k]->() RETURN n.id, k"),
        json!([[1, null], [2, null]])
    );
    let skipped = place.run(&edges(&lost, &["--on-error", "skip"]));
    let told = "  1 row skipped:\n    row 2: no such node: (:Person {id: 9})\n";
    assert!(skipped.stdout.contains(told), "{}", skipped.stdout);
    assert_eq!(rows(&place, "MATCH (a)-[:KNOWS]->(b) RETURN a.id, b.id"), json!([[1, 2]]));
}

#[test]
fn a_long_file_is_imported_in_parts_exactly_once() {
    let place = Place::new();
    let filler = "x".repeat(100_000);
    let mut text = "id:int,text\n".to_owned();
    for row in 0..400 {
        text.push_str(&format!("{row},\"{filler}\n\"\n"));
    }
    let file = place.write("long.csv", &text);
    let all = ["graph", "import", "nodes", &file, "--label", "Long", "--key", "once"];
    for repeated in [false, true] {
        let made = place.json(&all);
        assert_eq!((&made["rows"], &made["nodes_created"]), (&json!(400), &json!(400)));
        assert_eq!(made["repeated"], repeated);
    }
    let found = "MATCH (n:Long) RETURN count(n), sum(n.id), min(size(n.text)), max(size(n.text))";
    assert_eq!(rows(&place, found), json!([[400, 79_800, 100_001, 100_001]]));
    // A row that never ends is told as such.
    let endless = format!("id:int,text\n1,\"{}", "y\n".repeat(9 << 20));
    let file = place.write("endless.csv", &endless);
    let error =
        place.fails(&["graph", "import", "nodes", &file, "--label", "Long"], 3, "too_large");
    assert_eq!(error["message"], "row 1 is larger than 16 MB");
}
