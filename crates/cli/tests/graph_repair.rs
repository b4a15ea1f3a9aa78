//! Repair of a damaged graph: nodes of users are saved, and what is derived from files is
//! restored when they are indexed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use project::Project;
use serde_json::Value;

fn rows(project: &Project, query: &str) -> Value {
    project.json(&["graph", "query", query])["rows"].clone()
}

/// All edges, by their ends.
fn edges(project: &Project) -> Value {
    let query = "MATCH (a)-[r]->(b) \
         RETURN type(r) AS t, labels(a), a.path AS p, a.name AS m, labels(b), b.path AS q, b.name AS n \
         ORDER BY t, p, m, q, n";
    rows(project, query)
}

#[test]
fn a_damaged_graph_is_repaired() {
    let project = Project::large(12);
    project.index(&[]);
    let about =
        "MATCH (f:Function {name: 'compute_3_1'}) CREATE (:Note {text: 'mine'})-[:ABOUT]->(f)";
    project.json(&["graph", "query", about]);
    let before = edges(&project);
    assert!(before.as_array().unwrap().len() > 40, "{before}");
    assert_eq!(project.json(&["doctor"])["ok"], true);

    project
        .truth()
        .execute_batch(
            "DELETE FROM node WHERE id % 3 = 0 AND owner > 0 \
               AND id NOT IN (SELECT dst FROM edge WHERE owner IS NULL); \
             DELETE FROM node_value WHERE node % 2 = 0; \
             DELETE FROM edge WHERE id % 5 = 0 AND owner IS NOT NULL; \
             UPDATE node SET properties = x'ff' WHERE id % 7 = 1 AND owner = 0;",
        )
        .unwrap();
    let ran = project.run(&["doctor", "--json"]);
    assert_eq!(ran.status, Some(74), "{} {}", ran.stdout, ran.stderr);
    let report = ran.document();
    for check in report["checks"].as_array().unwrap() {
        let damaged = ["orphans", "fields"].contains(&check["name"].as_str().unwrap());
        assert!(!damaged || check["status"] == "corrupt", "{check}");
    }
    let repaired = project.run(&["doctor", "--repair", "--json"]);
    assert_eq!(repaired.status, Some(74), "the loss is reported: {}", repaired.stdout);
    let kept = rows(&project, "MATCH (n:Note)-[:ABOUT]->(f) RETURN n.text, f.name");
    assert_eq!(kept, serde_json::json!([["mine", "compute_3_1"]]));
    project.index(&[]);
    assert_eq!(edges(&project), before);
    assert_eq!(project.json(&["doctor"])["ok"], true);
}
