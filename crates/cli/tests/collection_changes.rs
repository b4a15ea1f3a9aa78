//! Changing records without vectors, and deleting collections.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use serde_json::{Value, json};
use test_env::TestEnv;

const ROWS: &str = r#"{"id":"a","embedding":[1,2,3],"metadata":{"n":1,"k":"x"},"document":"one"}
{"id":"b","embedding":[3,2,1],"metadata":{"n":2}}
"#;

fn record(env: &TestEnv, collection: &str, id: &str) -> Value {
    let found = env.json(&["collection", "get", collection, "--id", id, "--vectors"]);
    found["records"][0].clone()
}

#[test]
fn metadata_is_merged_and_the_rest_is_kept() {
    let env = TestEnv::new();
    let file = env.write("rows.jsonl", ROWS);
    env.json(&["ingest", &file, "--collection", "c"]);
    let update = |more: &[&str]| env.json(&[&["collection", "update", "c"][..], more].concat());
    let changed = update(&["--id", "a", "--metadata", r#"{"n":5,"k":null,"new":[1,2]}"#]);
    let counts = |updated, unchanged, missing| json!({"collection": "c", "updated": updated, "unchanged": unchanged, "missing": missing});
    assert_eq!(changed, counts(1, 0, 0));
    let expected = json!({
        "id": "a", "document": "one", "metadata": {"n": 5, "new": [1, 2]},
        "vector": [1.0, 2.0, 3.0],
    });
    assert_eq!(record(&env, "c", "a"), expected);
    let query = ["collection", "query", "c", "--keywords", "one", "--where", r#"{"n":5}"#];
    assert_eq!(env.ids(&query), ["a"]);
    assert_eq!(update(&["--id", "a", "--metadata", r#"{"n":5}"#]), counts(0, 1, 0));
    let several = ["--id", "a", "--id", "b", "--id", "z", "--document", "two"];
    assert_eq!(update(&several), counts(2, 0, 1));
    assert_eq!(record(&env, "c", "b")["document"], "two");
    let said = env.run(&["collection", "update", "c", "--id", "b", "--metadata", "{\"x\":1}"]);
    assert_eq!(said.stdout, "updated 1 record of c\n");

    let fails = |more: &[&str], status, code: &str| {
        env.fails(&[&["collection", "update"][..], more].concat(), status, code)
    };
    fails(&["c", "--id", "z", "--metadata", "{}"], 4, "not_found");
    fails(&["d", "--id", "a", "--metadata", "{}"], 4, "not_found");
    for bad in ["[]", "{", r#"{"a":{}}"#] {
        fails(&["c", "--id", "a", "--metadata", bad], 3, "bad_input");
    }
    fails(&["c", "--id", "a"], 2, "usage");
    fails(&["c", "--metadata", "{}"], 2, "usage");
}

#[test]
fn a_new_document_is_embedded_where_documents_are() {
    let env = TestEnv::new();
    let file = env.write("rows.jsonl", r#"{"id":"a","document":"roasting coffee beans"}"#);
    env.json(&["ingest", &file, "--collection", "c"]);
    let before = record(&env, "c", "a")["vector"].clone();
    let update = ["collection", "update", "c", "--id", "a"];
    env.json(&[&update[..], &["--metadata", r#"{"n":1}"#]].concat());
    assert_eq!(record(&env, "c", "a")["vector"], before);
    env.json(&[&update[..], &["--document", "a garden in summer"]].concat());
    assert_ne!(record(&env, "c", "a")["vector"], before);
    env.fails(&[&update[..], &["--document", "\u{301}"]].concat(), 3, "bad_input");
}

#[test]
fn deleting_a_collection_with_records_needs_consent() {
    let env = TestEnv::new();
    let file = env.write("rows.jsonl", ROWS);
    env.json(&["ingest", &file, "--collection", "c"]);
    let error = env.fails(&["collection", "delete", "c"], 2, "usage");
    assert_eq!(error["message"], "confirmation needed: Delete c with 2 records?");
    assert!(error["hint"].as_str().unwrap().contains("--yes"));
    let ran = env.run(&["collection", "delete", "c"]);
    assert_eq!((ran.status, ran.stdout.as_str()), (Some(2), ""));
    assert_eq!(env.count("c"), 2);
    assert_eq!(env.json(&["collection", "delete", "c", "--yes"])["deleted"], 2);
    // Nothing is lost with an empty one.
    env.json(&["collection", "create", "empty"]);
    assert_eq!(env.json(&["collection", "delete", "empty"])["deleted"], 0);
    env.json(&["ingest", &file, "--collection", "c"]);
    assert_eq!(env.json(&["collection", "delete", "c", "--id", "a"])["deleted"], 1);
}
