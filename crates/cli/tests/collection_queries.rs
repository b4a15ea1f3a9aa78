//! Questions to collections beyond the nearest: hybrid queries, sorted records, values of a key.
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
fn vectors_and_keywords_are_fused() {
    let env = animals();
    let ask = |more: &[&str]| env.json(&[&QUERY[..], more].concat());
    let both = ["--vector", "[1, 0.05]", "--keywords", "quick"];
    let found = ask(&both);
    let ids: Vec<&str> =
        found["hits"].as_array().unwrap().iter().map(|hit| hit["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["fox", "dog", "fish", "bird"], "{found}");
    assert_eq!(found["degraded"], Value::Null);
    let [fox, _, fish, bird] = [0, 1, 2, 3].map(|at| &found["hits"][at]);
    let why = |hit: &Value| hit["why"].as_array().unwrap().len();
    assert!(fox["score"].as_f64().unwrap() > 0.0 && why(fox) == 2, "{fox}");
    assert_eq!(fox["why"][1], "distance 0.00 (2nd)");
    assert!(fox["why"][0].as_str().unwrap().starts_with("keywords "), "{fox}");
    assert_eq!(fish["why"], json!(["distance 0.00 (1st)"]));
    assert!(fish["score"].is_null() && fish["fused"].as_f64().unwrap() == 0.5, "{fish}");
    assert!(bird["distance"].as_f64().unwrap() > 0.5 && bird["document"] == "A bird sings");
    let two_legs = ["--where", r#"{"legs":2}"#];
    assert_eq!(env.ids(&[&QUERY[..], &both, &two_legs].concat()), ["bird"]);
    assert_eq!(env.ids(&[&QUERY[..], &both, &["--limit", "1"]].concat()), ["fox"]);
    // Other queries have the same fields.
    let plain = &ask(&both[..2])["hits"][0];
    assert!(plain["fused"].is_null() && plain["why"] == json!([]), "{plain}");
    let text = env.run(&[&QUERY[..], &both].concat()).stdout;
    assert!(
        text.starts_with(" FUSED  ID") && text.contains("(1st), distance 0.00 (2nd)"),
        "{text}"
    );
}

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
    for (arguments, status, code) in [
        (&["--vector", "[1, 0]", "--text", "t"][..], 2, "usage"),
        (&["--limit", "3"], 2, "usage"),
        (&["--text", "t", "--keywords", "quick"], 3, "model_unavailable"),
    ] {
        env.fails(&[&QUERY[..], arguments].concat(), status, code);
    }
    env.fails(&["collection", "query", "b", "--vector", "[1]", "--keywords", "k"], 4, "not_found");
}

fn mixed() -> TestEnv {
    let record = |id: &str, metadata: Value| json!({"id":id,"vector":[1,0],"metadata":metadata});
    filled(&[
        record("none", json!({})),
        record("text b", json!({"k":"b"})),
        record("true", json!({"k":true})),
        record("two", json!({"k":2,"in":true})),
        record("list", json!({"k":["b",1]})),
        record("two again", json!({"k":2.0,"in":true})),
        record("text B", json!({"k":"B","in":true})),
        record("minus", json!({"k":-0.5,"in":true})),
        record("false", json!({"k":false})),
        record("null", json!({"k":null,"in":true})),
    ])
}

#[test]
fn records_are_sorted_by_a_key() {
    let env = mixed();
    let get = |more: &[&str]| {
        env.ids(&[&["collection", "get", "a", "--limit", "20"][..], more].concat()).join(", ")
    };
    let up = "minus, two, two again, text B, text b, false, true, none, list, null";
    assert_eq!(get(&["--sort", "k"]), up);
    let down = "true, false, text b, text B, two, two again, minus, none, list, null";
    assert_eq!(get(&["--sort", "k", "--descending"]), down);
    let some = ["--where", r#"{"in":true}"#];
    assert_eq!(get(&[&["--sort", "k"][..], &some].concat()), "minus, two, two again, text B, null");
    let page = ["--sort", "k", "--offset", "4", "--limit", "3"];
    assert_eq!(
        env.ids(&[&["collection", "get", "a"][..], &page].concat()).join(", "),
        "text b, false, true"
    );
    let named = ["--sort", "k", "--id", "two", "--id", "minus", "--id", "nobody"];
    assert_eq!(get(&named), "minus, two");
    assert!(get(&["--sort", "unknown"]).starts_with("none, text b, true, two"));
    env.fails(&["collection", "get", "a", "--descending"], 2, "usage");
    env.fails(&["collection", "get", "b", "--sort", "k"], 4, "not_found");
}

#[test]
fn values_of_a_key_are_counted() {
    let env = mixed();
    let values = |more: &[&str]| env.json(&[&["collection", "values", "a"][..], more].concat());
    let counted = |found: &Value| -> String {
        let values = found["values"].as_array().unwrap().iter();
        values.map(|it| format!("{}x{} ", it["value"], it["count"])).collect()
    };
    let all = values(&["k"]);
    assert_eq!(counted(&all), "2x2 \"b\"x2 -0.5x1 1x1 \"B\"x1 falsex1 truex1 ");
    assert_eq!(all["total"], 7);
    let few = values(&["k", "--limit", "2"]);
    assert_eq!((few["values"].as_array().unwrap().len(), &few["total"]), (2, &json!(7)));
    let some = values(&["k", "--where", r#"{"in":true}"#]);
    assert_eq!(counted(&some), "2x2 -0.5x1 \"B\"x1 ");
    assert_eq!(values(&["unknown"]), json!({ "values": [], "total": 0 }));
    let text = env.run(&["collection", "values", "a", "k", "--limit", "2"]).stdout;
    assert_eq!(
        text,
        "COUNT  VALUE\n    2  2\n    2  \"b\"\n5 more values: raise --limit to show them\n"
    );
    assert_eq!(env.run(&["collection", "values", "a", "unknown"]).stdout, "no values\n");
    env.fails(&["collection", "values", "b", "k"], 4, "not_found");
    env.fails(&["collection", "values", "a"], 2, "usage");
    env.fails(&["collection", "values", "a", "k", "--where", "["], 3, "bad_input");
    // What was deleted or replaced does not count.
    env.json(&["collection", "delete", "a", "--id", "two", "--id", "list"]);
    assert_eq!(counted(&values(&["k", "--limit", "1"])), "-0.5x1 ");
}
