//! Quoted words, and names that are qualified, incomplete or misspelled, as a user searches them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod project;
mod test_env;

use std::fmt::Write;

use agent::Agent;
use project::Project;
use serde_json::{Value, json};

/// The phrase "budget of retry" is in one place, and its words are everywhere.
fn indexed() -> Project {
    let project = Project::sample();
    for file in 0..230 {
        let mut text = String::new();
        for function in 0..3 {
            let name = format!("retry_budget_{file}_{function}");
            write!(
                text,
                "/// The retry budget: retry, budget, retry.\npub fn {name}() -> u32 {{\n    \
                 // budget retry budget retry\n    let retry = {function};\n    \
                 let budget = retry + 1;\n    retry * budget\n}}\n\n"
            )
            .unwrap();
        }
        project.write(&format!("src/many/m{file}.rs"), text);
    }
    project.write(
        "src/limits.rs",
        "/// Bounds work.\npub struct WorkLimits {\n    pub steps: u32,\n}\n\nimpl WorkLimits {\n    \
         /// The Budget of RETRY (a+(b)*c) is \"fixed\" -> here, für alle.\n    \
         pub fn remaining_steps(&self) -> u32 {\n        self.steps\n    }\n}\n",
    );
    project.write(
        "src/other.rs",
        "pub struct OtherLimits;\n\nimpl OtherLimits {\n    /// Counts all remaining steps of the other \
         limits.\n    pub fn remaining_steps(&self) -> u32 {\n        1\n    }\n}\n",
    );
    project.index(&[]);
    project
}

fn paths(found: &Value) -> Vec<&str> {
    found["hits"].as_array().unwrap().iter().map(|hit| hit["path"].as_str().unwrap()).collect()
}

fn why(hit: &Value) -> Vec<&str> {
    hit["why"].as_array().unwrap().iter().map(|why| why.as_str().unwrap()).collect()
}

#[test]
fn quoted_words_must_occur() {
    let project = indexed();
    for mode in ["hybrid", "keyword", "vector"] {
        for query in [
            "\"budget of retry\"",
            "\"BUDGET of\" retry",
            "where is the \"budget of retry\"?",
            "retry budget \"(a+(b)*c)\"",
            "retry budget \"is \\\"fixed\\\"\"",
            "\"-> here\" budget",
            "\"für alle\" retry",
            "\"Bounds work\" \"budget of retry\"",
        ] {
            let found = project.search(&["--mode", mode, query]);
            assert_eq!(paths(&found)[0], "src/limits.rs", "{mode} {query}");
            assert!(!paths(&found).iter().any(|it| it.starts_with("src/many")), "{mode} {query}");
            assert_eq!((&found["weak"], &found["missing"]), (&json!(false), &json!([])));
            assert!(why(&found["hits"][0]).contains(&"has the quoted text"));
        }
    }
    let many = project.search(&["\"retry budget\"", "-n", "300"]);
    assert_eq!(many["hits"].as_array().unwrap().len(), 230);
    let plain = project.search(&["budget of retry"]);
    assert!(plain["hits"].as_array().unwrap().len() > 1);
}

#[test]
fn what_nothing_contains_is_reported() {
    let project = indexed();
    for (query, missing) in [
        ("\"retry of budget\" retry", json!(["retry of budget"])),
        ("\"retry budget\" \"no such words\"", json!(["no such words"])),
        ("\"Bounds work\" \"retry budget\"", json!(["Bounds work", "retry budget"])),
    ] {
        let found = project.search(&[query]);
        assert_eq!((paths(&found), &found["missing"]), (vec![], &missing), "{query}");
        assert_eq!(found["weak"], true);
    }
    let text = project.run(&["search", "\"retry of budget\""]);
    assert_eq!((text.status, text.stdout.as_str()), (Some(0), "no results\n"));
    assert!(text.stderr.contains("nothing contains \"retry of budget\""), "{}", text.stderr);

    // Filters apply to it.
    let query = "\"budget of retry\"";
    assert_eq!(paths(&project.search(&[query, "--path", "src/many"])), Vec::<&str>::new());
    assert_eq!(paths(&project.search(&[query, "--lang", "python"])), Vec::<&str>::new());
    assert_eq!(paths(&project.search(&[query, "--path", "*.rs"])), ["src/limits.rs"]);
    let found = project.search(&[query, "--symbol", "remaining_steps"]);
    assert_eq!(paths(&found), ["src/limits.rs"]);
}

#[test]
fn quotes_may_be_part_of_a_message() {
    let project = indexed();
    project.write(
        "src/columns.rs",
        "pub fn check(name: &str) -> String {\n    format!(\"column \\\"{name}\\\" does not exist\")\n}\n\n\
         pub fn flag(name: &str) -> String {\n    format!(\"this flag is not known: {name:?}\")\n}\n",
    );
    project.index(&[]);
    for query in [
        "column \"user_id\" does not exist",
        "column \"retry\" does not exist",
        "this flag is not known: \"user_id\"",
    ] {
        let found = project.search(&[query]);
        assert_eq!(paths(&found)[0], "src/columns.rs", "{query}");
        assert_eq!((&found["weak"], &found["missing"]), (&json!(false), &json!([])), "{query}");
    }
    let found = project.search(&["column \"user_id\" does not open"]);
    assert_eq!((paths(&found), &found["missing"]), (vec![], &json!(["user_id"])));
}

#[test]
fn any_quotes_are_accepted() {
    let project = indexed();
    let mib = "\"".repeat(100_000);
    let parts = "\"retry\" ".repeat(10_000);
    for query in
        ["\"", "\"\"", "\" \"", "retry \"budget", "retry\" budget", "say(\"retry\")", &mib, &parts]
    {
        let found = project.search(&["--limit", "3", query]);
        assert_eq!(found["missing"], json!([]), "{}", &query[..query.len().min(40)]);
    }
    let unbalanced = project.search(&["retry \"budget"]);
    assert!(!paths(&unbalanced).is_empty());
    for query in ["\"\u{0}\"", "\"[\"", "\"(?i)\"", "\"\\\"", "\"a|b\"", "\"\u{202e}\" \"日本\""]
    {
        if !query.contains('\0') {
            project.search(&[query]);
        }
    }
}

#[test]
fn changed_files_are_searched_for_quoted_words() {
    let project = indexed();
    project.write("src/new.rs", "pub fn added() {\n    // the budget of retry\n}\n");
    project.write("src/limits.rs", "pub struct WorkLimits;\n");
    project.index(&[]);
    assert_eq!(paths(&project.search(&["\"budget of retry\""])), ["src/new.rs"]);
}

#[test]
fn names_find_their_definition() {
    let project = indexed();
    for (query, path, reason) in [
        ("WorkLimits::remaining_steps", "src/limits.rs", "defines remaining_steps"),
        ("OtherLimits.remaining_steps", "src/other.rs", "defines remaining_steps"),
        ("other#remaining_steps", "src/other.rs", "defines remaining_steps"),
        ("WorkLim", "src/limits.rs", "like WorkLimits"),
        ("WorkLimtis", "src/limits.rs", "like WorkLimits"),
        ("WorkLimit", "src/limits.rs", "like WorkLimits"),
        ("WrkLimits", "src/limits.rs", "like WorkLimits"),
        ("WorkLimitss", "src/limits.rs", "like WorkLimits"),
        ("WorkLimots", "src/limits.rs", "like WorkLimits"),
        ("how does WorkLimtis bound work", "src/limits.rs", "like WorkLimits"),
        ("WorkLimits::remaning_steps", "src/limits.rs", "like remaining_steps"),
    ] {
        let found = project.search(&[query]);
        let hit = &found["hits"][0];
        assert_eq!(hit["path"], path, "{query}: {found:#}");
        assert!(why(hit).contains(&reason), "{query}: {hit:#}");
    }
    // What is defined, or occurs, is not corrected.
    for query in ["RetryPolicy", "WrokLimsit", "qqqqqq"] {
        let found = project.search(&[query]);
        let hits = found["hits"].as_array().unwrap();
        assert!(
            hits.iter().all(|hit| !why(hit).iter().any(|it| it.starts_with("like"))),
            "{query}"
        );
    }
}

#[test]
fn agents_may_quote_words() {
    let project = indexed();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let found = agent.call("search_code", json!({ "query": "\"budget of retry\" steps" }));
    assert_eq!(paths(&found), ["src/limits.rs"]);
    assert_eq!(found["missing"], Value::Null);
    let none = agent.call("search_code", json!({ "query": "\"retry of budget\"" }));
    assert_eq!((paths(&none), &none["weak"]), (vec![], &json!(true)));
    assert_eq!(none["missing"], "nothing contains \"retry of budget\"");
    let like = agent.call("search_code", json!({ "query": "WorkLimtis" }));
    assert_eq!(like["hits"][0]["why"].as_array().unwrap().last(), Some(&json!("like WorkLimits")));
    assert_eq!(agent.leave(), Some(0));
}
