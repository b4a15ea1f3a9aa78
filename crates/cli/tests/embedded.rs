//! Collections whose documents Isolith embeds.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use serde_json::{Value, json};
use test_env::TestEnv;

const NOTES: &str = r#"{"id":"a","document":"how to roast coffee beans","metadata":{"n":1}}
{"id":"b","text":"the database connection was closed","metadata":{"n":2}}
{"id":"c","document":"a garden needs water in summer","embedding":null}
"#;

/// The model of a collection.
fn model_of(env: &TestEnv, name: &str) -> Value {
    let listed = env.json(&["collection", "list"]);
    let found = listed["collections"].as_array().unwrap().iter().find(|it| it["name"] == name);
    found.unwrap()["model"].clone()
}

fn reasons(receipt: &Value) -> Vec<(u64, String)> {
    let rejected = receipt["rejected"].as_array().unwrap().iter();
    let one = |it: &Value| (it["row"].as_u64().unwrap(), it["reason"].as_str().unwrap().to_owned());
    rejected.map(one).collect()
}

#[test]
fn documents_without_vectors_are_embedded_at_ingest() {
    let env = TestEnv::new();
    let lists = json!({
        "ids": ["a", "b"], "embeddings": null, "metadatas": null,
        "documents": ["how to roast coffee beans", "the database connection was closed"],
    });
    let files = [env.write("lines.jsonl", NOTES), env.write("lists.json", lists.to_string())];
    for (file, count) in files.iter().zip([3, 2]) {
        let name = file.split('.').next().unwrap();
        let receipt = env.json(&["ingest", file, "--collection", name]);
        assert_eq!((&receipt["success"], &receipt["inserted"]), (&json!(true), &json!(count)));
        let again = env.json(&["ingest", file, "--collection", name]);
        assert_eq!(again["unchanged"], count);
        assert!(model_of(&env, name).as_str().unwrap().starts_with("static-code-256"));
        let query = ["collection", "query", name, "--text", "making coffee", "--limit", "1"];
        assert_eq!(env.ids(&query), ["a"]);
    }
    let more = env.write("more.jsonl", r#"{"id":"d","document":"trees in the garden"}"#);
    let receipt = env.json(&["ingest", &more, "--collection", "lines"]);
    assert_eq!((&receipt["inserted"], &receipt["count_after"]), (&json!(1), &json!(4)));
    env.json(&["collection", "create", "empty", "--model", "built-in"]);
    env.json(&["ingest", &more, "--collection", "empty"]);
    assert_eq!(env.ids(&["collection", "query", "empty", "--text", "plants"]), ["d"]);
}

#[test]
fn rows_that_do_not_fit_the_model_are_refused_one_by_one() {
    let env = TestEnv::new();
    let notes = env.write("notes.jsonl", NOTES);
    env.json(&["ingest", &notes, "--collection", "notes"]);
    let mixed = r#"{"id":"x","embedding":[1,2,3],"document":"a vector"}
{"id":"y","document":"only words"}
{"id":"z"}
{"id":"w","document":"\u0301"}
"#;
    let mixed = env.write("mixed.jsonl", mixed);
    let ran = env.run(&["ingest", &mixed, "--collection", "notes", "--json"]);
    assert_eq!(ran.status, Some(3));
    let message = ran.document()["error"]["message"].as_str().unwrap().to_owned();
    assert!(message.contains("row 1 (line 1): it has an embedding, but"), "{message}");
    let skip = ["--on-error", "skip"];
    let into = |name| [&["ingest", &mixed, "--collection", name][..], &skip].concat();
    let receipt = env.json(&into("notes"));
    assert_eq!((&receipt["inserted"], &receipt["rejected_rows"]), (&json!(1), &json!(3)));
    let own = "it has an embedding, but this collection embeds its documents itself";
    let missing = "document is missing, so there is nothing to embed";
    let wordless = "document has no words to embed";
    let expected = [(1, own), (3, missing), (4, wordless)];
    assert_eq!(reasons(&receipt), expected.map(|(row, reason)| (row, reason.to_owned())));

    // The first row decides for a new collection.
    let receipt = env.json(&into("vectors"));
    let mixed_rows = "embedding is missing; either all rows have one or none";
    let expected = [2, 3, 4].map(|row| (row, mixed_rows.to_owned()));
    assert_eq!(reasons(&receipt), expected);
    assert_eq!(model_of(&env, "vectors"), Value::Null);

    env.json(&["collection", "create", "other", "--model", "some-model"]);
    let receipt = env.json(&into("other"));
    let foreign = "embedding is missing, and this collection does not embed documents";
    assert_eq!(reasons(&receipt), [2, 3, 4].map(|row| (row, foreign.to_owned())));
    env.fails(&["ingest", &notes, "--collection", "other"], 3, "bad_input");
}

#[test]
fn vectors_of_the_built_in_model_are_accepted_on_request() {
    let env = TestEnv::new();
    let notes = env.write("notes.jsonl", NOTES);
    env.json(&["ingest", &notes, "--collection", "notes"]);
    env.json(&["export", "notes", "--out", "notes.export"]);
    env.fails(&["ingest", "notes.export", "--collection", "notes"], 3, "bad_input");
    let asserted = ["ingest", "notes.export", "--collection", "notes", "--model", "built-in"];
    assert_eq!(env.json(&asserted)["unchanged"], 3);
    let copy = env.json(&["import", "notes.export", "--collection", "copy"]);
    assert_eq!(copy["inserted"], 3);
    assert_eq!(model_of(&env, "copy"), model_of(&env, "notes"));
    assert_eq!(
        env.ids(&["collection", "query", "copy", "--text", "coffee", "--limit", "1"]),
        ["a"]
    );
}
