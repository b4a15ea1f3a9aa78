//! `isolith graph import --from-kuzu`, with programs in the place of Python that report what the script
//! in `src/graph/kuzu/read.py` does, or die. The Python package's tests copy a real database.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};
use test_env::TestEnv;

/// A program that is called as Python is: `-c SCRIPT DATABASE FOLDER`.
fn program(env: &TestEnv, body: &str) -> String {
    let name = env.write("python", format!("#!/bin/sh\n{body}\n"));
    std::fs::set_permissions(env.path(&name), PermissionsExt::from_mode(0o755)).unwrap();
    format!("./{name}")
}

/// Writes two tables as the script does.
const TWO_TABLES: &str = r#"
printf 'name:string,age:int\nAnn,41\nBob,7\n' > "$4/1.csv"
printf '<from>:string,<to>:string\nAnn,Bob\n' > "$4/2.csv"
tr '\n' ' ' <<END && echo
{"kind": "nodes", "table": "Person", "key": "name", "notes": ["Person.x: MAP is kept as text in JSON"],
"constraints": ["CREATE CONSTRAINT Person IF NOT EXISTS FOR (n:Person) REQUIRE n.name IS NODE KEY"],
"file": "$4/1.csv", "rows": 2}
END
tr '\n' ' ' <<END && echo
{"kind": "edges", "table": "KNOWS", "from": ["Person", "name"], "to": ["Person", "name"], "notes": [],
"constraints": ["CREATE CONSTRAINT KNOWS IF NOT EXISTS FOR ()-[n:KNOWS]->() REQUIRE (:Person)-[n]->(:Person)"],
"file": "$4/2.csv", "rows": 1}
END
"#;

fn import(python: &str) -> [&str; 6] {
    ["graph", "import", "--from-kuzu", ".", "--python", python]
}

fn rows(env: &TestEnv, query: &str) -> Value {
    env.json(&["graph", "query", query])["rows"].clone()
}

#[test]
fn tables_are_copied_with_their_constraints() {
    let env = TestEnv::new();
    let python = program(&env, &format!("{TWO_TABLES}echo '{{\"kind\": \"end\"}}'"));
    let copied = env.json(&import(&python));
    assert_eq!(copied["success"], true, "{copied}");
    assert_eq!(copied["tables"][0]["created"], 2, "{copied}");
    let kind = "relationships from Person to Person";
    assert_eq!(copied["tables"][1]["kind"], kind, "{copied}");
    assert_eq!(copied["notes"], json!(["Person.x: MAP is kept as text in JSON"]));
    let all = "MATCH (a)-[:KNOWS]->(b) RETURN a.name, a.age, b.name";
    assert_eq!(rows(&env, all), json!([["Ann", 41, "Bob"]]));
    env.fails(&["graph", "query", "CREATE (:Person {name: 'Ann'})"], 3, "bad_input");

    let again = env.run(&import(&python));
    assert_eq!(again.stdout.matches("copied before").count(), 2, "{}", again.stdout);
    let counts = "MATCH (n) OPTIONAL MATCH (n)-[k]->() RETURN count(DISTINCT n), count(k)";
    assert_eq!(rows(&env, counts), json!([[2, 1]]));
    // What was deleted is copied again.
    env.json(&["graph", "query", "MATCH (n) DETACH DELETE n"]);
    env.json(&import(&python));
    assert_eq!(rows(&env, counts), json!([[2, 1]]));
    // Relationships of a changed table cannot be told apart.
    env.json(&["graph", "query", "MATCH (a {name: 'Bob'}) CREATE (a)-[:KNOWS]->(a)"]);
    let error = env.fails(&import(&python), 3, "already_exists");
    let message = "KNOWS has 1 relationship from :Person to :Person, but the graph has 2 already";
    assert_eq!(error["message"], message);
}

#[test]
fn nothing_is_imported_if_reading_the_database_fails() {
    let env = TestEnv::new();
    let refused = r#"echo '{"kind": "refused", "message": "no kuzu here", "hint": "install it"}'"#;
    for (end, code, message) in [
        ("kill -SEGV $$", 1, "was killed by signal 11"),
        ("echo 'Traceback: oh' >&2; exit 1", 1, "ended with exit status: 1:\nTraceback: oh"),
        ("echo nonsense", 1, "cannot read what Python reports"),
        ("true", 1, "ended with exit status: 0"),
        (refused, 3, "no kuzu here"),
    ] {
        let python = program(&env, &format!("{TWO_TABLES}{end}"));
        let failed = env.run(&import(&python));
        assert_eq!(failed.status, Some(code), "{end}: {}", failed.stderr);
        assert!(failed.stderr.contains(message), "{end}: {}", failed.stderr);
    }
    assert!(!env.store().exists(), "a store was created");
    env.fails(&["graph", "import", "--from-kuzu", "none"], 4, "not_found");
    env.fails(&import("no-such-python"), 3, "bad_input");
}
