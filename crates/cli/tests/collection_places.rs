//! Where collections are: in a project's store and the user's, and in databases of Chroma's clients.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::process::Command;

use serde_json::{Value, json};
use test_env::{Ran, TestEnv};

const ROW: &str = r#"{"id":"a","embedding":[1,2,3],"metadata":{"n":1},"document":"one"}"#;

/// A folder with a project's store, and the home folder of the user.
struct Places {
    env: TestEnv,
}

impl Places {
    fn new() -> Self {
        let env = TestEnv::new();
        env.write("rows.jsonl", ROW);
        fs::create_dir(env.path("project")).unwrap();
        let places = Self { env };
        let users = ["ingest", "../rows.jsonl", "--collection", "mine", "--user"];
        places.json(&users);
        fs::create_dir(places.env.path("project/.isolith")).unwrap();
        places
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.env.bare(arguments);
        command.current_dir(self.env.path("project"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Ran {
        Ran::of(&self.command(arguments).output().unwrap())
    }

    fn json(&self, arguments: &[&str]) -> Value {
        let ran = self.run(&[arguments, &["--json"]].concat());
        assert_eq!(ran.status, Some(0), "{arguments:?}: {} {}", ran.stdout, ran.stderr);
        ran.document()
    }

    fn fails(&self, arguments: &[&str], status: i32, code: &str) -> Value {
        self.env.fails_as(self.command(arguments), status, code)
    }

    /// The names of collections and of their stores.
    fn listed(&self, more: &[&str]) -> Vec<(String, String)> {
        let listed = self.json(&[&["collection", "list"][..], more].concat());
        let text = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
        let collections = listed["collections"].as_array().unwrap().iter();
        collections.map(|it| (text(it, "name"), text(it, "store"))).collect()
    }
}

fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
    expected.iter().map(|(name, store)| ((*name).to_owned(), (*store).to_owned())).collect()
}

#[test]
fn a_project_reaches_the_users_collections() {
    let places = Places::new();
    // The project's store has no file yet.
    assert_eq!(places.listed(&[]), pairs(&[("mine", "user")]));
    places.json(&["ingest", "../rows.jsonl", "--collection", "theirs"]);
    assert!(places.env.path("project/.isolith/truth.sqlite").exists());
    assert_eq!(places.listed(&[]), pairs(&[("theirs", "project"), ("mine", "user")]));
    assert_eq!(places.listed(&["--user"]), pairs(&[("mine", "user")]));
    assert_eq!(places.listed(&["--project"]), pairs(&[("theirs", "project")]));
    let table = places.run(&["collection", "list"]).stdout;
    assert!(table.lines().next().unwrap().ends_with("STORE"), "{table}");

    for command in [
        &["collection", "count", "mine"][..],
        &["collection", "get", "mine"],
        &["collection", "query", "mine", "--keywords", "one"],
        &["export", "mine"],
    ] {
        let ran = places.run(command);
        assert_eq!(ran.status, Some(0), "{command:?} {}", ran.stderr);
        let note = "the project's store has no collection \"mine\"; reading that of the user's";
        assert!(ran.stderr.contains(note), "{}", ran.stderr);
        let narrowed = [command, &["--project"]].concat();
        assert_eq!(places.run(&narrowed).status, Some(4), "{narrowed:?}");
        let quiet = places.run(&[command, &["--user"]].concat());
        assert!(!quiet.stderr.contains("project"), "{}", quiet.stderr);
    }
    for command in [
        &["collection", "delete", "mine", "--yes"][..],
        &["collection", "rename", "mine", "other"],
        &["collection", "update", "mine", "--id", "a", "--metadata", "{\"n\":2}"],
    ] {
        let error = places.fails(command, 4, "not_found");
        assert!(error["hint"].as_str().unwrap().contains("--user"), "{error}");
    }
    // New collections are the project's, whatever the user's are called.
    places.json(&["collection", "create", "mine"]);
    assert_eq!(places.json(&["collection", "count", "mine"])["count"], 0);
    assert_eq!(places.json(&["collection", "count", "mine", "--user"])["count"], 1);
    places.fails(&["collection", "count", "nobody's"], 4, "not_found");
    let given = places.env.path("project/.isolith");
    let listed = places.json(&["collection", "list", "--store", given.to_str().unwrap()]);
    assert_eq!(listed["collections"][0]["store"], "given");
}

/// Creates a database and a collection in it, as Chroma's clients do.
fn with_database(env: &TestEnv) {
    env.json(&["collection", "create", "first"]);
    let db = env.truth();
    let uuid = "11111111-2222-4333-8444-555555555555";
    db.execute_batch(&format!(
        "INSERT INTO tenant (id, name, created_at) VALUES (5, 'team', 0);
         INSERT INTO database (id, uuid, tenant, name, created_at)
             VALUES (7, '{uuid}', 5, 'articles', 0);"
    ))
    .unwrap();
}

#[test]
fn commands_work_in_a_database() {
    let env = TestEnv::new();
    with_database(&env);
    let file = env.write("rows.jsonl", ROW);
    let run =
        |arguments: &[&str]| env.json(&[arguments, &["--database", "team/articles"]].concat());
    run(&["collection", "create", "notes", "--dimension", "3"]);
    let receipt = run(&["ingest", &file, "--collection", "notes"]);
    assert_eq!((&receipt["collection"], &receipt["count_after"]), (&json!("notes"), &json!(1)));
    run(&["ingest", &file, "--collection", "more"]);
    let listed = run(&["collection", "list"]);
    let names = listed["collections"].as_array().unwrap().iter().map(|it| &it["name"]);
    assert_eq!(names.collect::<Vec<_>>(), ["more", "notes"]);
    assert_eq!(env.json(&["collection", "list"])["collections"].as_array().unwrap().len(), 1);
    assert_eq!(run(&["collection", "count", "notes"])["count"], 1);
    let change = ["collection", "update", "notes", "--id", "a", "--metadata", r#"{"n":2}"#];
    assert_eq!(run(&change)["updated"], 1);
    let found = run(&["collection", "query", "notes", "--keywords", "one"]);
    assert_eq!(found["hits"][0]["metadata"], json!({"n": 2}));
    run(&["collection", "rename", "notes", "renamed"]);
    run(&["export", "renamed", "--out", "out.jsonl"]);
    let header = fs::read_to_string(env.path("out.jsonl")).unwrap();
    assert!(
        header.starts_with(r#"{"isolith_export":1,"collection":{"name":"renamed""#),
        "{header}"
    );
    run(&["import", "out.jsonl", "--collection", "copy"]);
    env.json(&["import", "out.jsonl"]);
    assert_eq!(env.count("renamed"), 1, "imported into the default database");
    let all = run(&["export", "--out", "all"]);
    assert_eq!(all["collections"].as_array().unwrap().len(), 3);
    run(&["collection", "delete", "renamed", "--id", "a"]);
    run(&["collection", "delete", "renamed"]);
    run(&["collection", "delete", "copy", "--yes"]);
    assert_eq!(run(&["collection", "list"])["collections"].as_array().unwrap().len(), 1);

    let other = |arguments: &[&str], status, code: &str| {
        env.fails(&[arguments, &["--database", "other"]].concat(), status, code)
    };
    for arguments in [
        &["collection", "list"][..],
        &["collection", "create", "x"],
        &["collection", "count", "more"],
        &["ingest", &file, "--collection", "x"],
    ] {
        let error = other(arguments, 4, "not_found");
        assert_eq!(error["message"], "there is no database other", "{arguments:?}");
    }
    env.fails(&["collection", "list", "--database", "team/"], 2, "usage");
    for hidden in ["@code", "@memory", "@7/more"] {
        let query = ["collection", "count", hidden, "--database", "team/articles"];
        env.fails(&query, 4, "not_found");
    }
}

#[test]
fn what_clients_attach_survives_export_and_import() {
    let env = TestEnv::new();
    let file = env.write("rows.jsonl", ROW);
    env.json(&["ingest", &file, "--collection", "notes", "--metric", "l2", "--model", "m"]);
    env.truth()
        .execute(
            "UPDATE collection SET metadata = '{\"k\":\"v\",\"n\":[1,2]}', \
             settings = '{\"hnsw\":{\"ef_search\":77}}' WHERE name = 'notes'",
            [],
        )
        .unwrap();
    env.json(&["export", "notes", "--out", "notes.jsonl"]);
    let exported = fs::read_to_string(env.path("notes.jsonl")).unwrap();
    let header: Value = serde_json::from_str(exported.lines().next().unwrap()).unwrap();
    assert_eq!(header["isolith_export"], 2);
    env.json(&["import", "notes.jsonl", "--collection", "copy"]);
    let attached = |name: &str| -> (Option<String>, String, String, String, u32) {
        let sql = "SELECT metadata, settings, metric, model, dimension FROM collection \
                   WHERE name = ?1";
        env.truth()
            .query_row(sql, [name], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?, row.get(4)?))
            })
            .unwrap()
    };
    assert_eq!(attached("copy"), attached("notes"));
    env.json(&["export", "copy", "--out", "copy.jsonl"]);
    let copied = fs::read_to_string(env.path("copy.jsonl")).unwrap();
    assert_eq!(copied, exported.replacen("\"name\":\"notes\"", "\"name\":\"copy\"", 1));

    // What a collection has stays when records are imported into it.
    env.json(&["collection", "create", "plain", "--metric", "l2"]);
    env.json(&["import", "notes.jsonl", "--collection", "plain"]);
    assert_eq!(env.count("plain"), 1);
    env.json(&["export", "plain", "--out", "plain.jsonl"]);
    let plain = fs::read_to_string(env.path("plain.jsonl")).unwrap();
    assert!(plain.starts_with(r#"{"isolith_export":1,"#), "{plain}");
    let old = r#"{"isolith_export":1,"collection":{"name":"old","dimension":3,"metric":"dot","model":null}}"#;
    let old = env.write("old.jsonl", format!("{old}\n{ROW}\n"));
    assert_eq!(env.json(&["import", &old])["inserted"], 1);
    let newer = exported.replacen("\"isolith_export\":2", "\"isolith_export\":3", 1);
    let newer = env.write("newer.jsonl", newer);
    let error = env.fails(&["import", &newer], 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("newer version"), "{error}");
    let bad = exported.replacen("[1,2]", "{}", 1);
    let bad = env.write("bad.jsonl", bad);
    env.fails(&["import", &bad], 3, "bad_input");
}
