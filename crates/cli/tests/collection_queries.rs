//! Questions to collections beyond the nearest: vectors as arguments.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use serde_json::{Value, json};
use test_env::TestEnv;

/// A collection `a` of two-dimensional vectors.
fn filled(records: &[Value]) -> TestEnv {
    let env = TestEnv::new();
    let lines: Vec<String> = records.iter().map(Value::to_string).collect();
    let file = env.write("rows.jsonl", lines.join("\n"));
    env.json(&["ingest", &file, "--collection", "a"]);
    env
}

fn animals() -> TestEnv {
    filled(&[
        json!({"id":"fox","vector":[0.9,0.1],"document":"The quick brown fox jumps","metadata":{"legs":4}}),
        json!({"id":"dog","vector":[0.5,0.5],"document":"A lazy dog, not quick at all","metadata":{"legs":4}}),
        json!({"id":"bird","vector":[0.1,0.9],"document":"A bird sings","metadata":{"legs":2}}),
        json!({"id":"fish","vector":[1,0],"document":null,"metadata":{"legs":0}}),
    ])
}

const QUERY: [&str; 3] = ["collection", "query", "a"];

#[test]
fn vectors_are_given_inline_and_errors_name_the_problem() {
    let env = animals();
    assert_eq!(env.ids(&[&QUERY[..], &["--vector", "[0, 1]", "--limit", "1"]].concat()), ["bird"]);
    for (vector, message) in [
        ("[1, 2, 3]", "a has vectors of dimension 2, the query vector has dimension 3"),
        ("[0, 0]", "invalid query vector: the zero vector has no cosine distance"),
        ("[]", "--vector: the vector is empty"),
        ("[1, NaN]", "--vector: NaN and Infinity are not numbers in JSON"),
        ("[1, 1e39]", "--vector: 1e39 does not fit in a 32-bit number"),
        ("[1, \"b\"]", "--vector: \"b\" is not a number"),
        ("[1", "--vector: the list is incomplete"),
    ] {
        let error = env.fails(&[&QUERY[..], &["--vector", vector]].concat(), 3, "bad_input");
        assert_eq!(error["message"], message);
    }
    let words = env.write("words", "[\"a\"]");
    let error = env.fails(&[&QUERY[..], &["--vector", &words]].concat(), 3, "bad_input");
    assert_eq!(error["message"], format!("{words}: \"a\" is not a number"));
    env.fails(&["collection", "query", "b", "--vector", "[1]"], 4, "not_found");
}
