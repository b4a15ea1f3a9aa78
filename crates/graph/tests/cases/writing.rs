use isolith_graph::{Budget, Flow, MemoryGraph, Stats, prepare};

use super::{ask, change, check, graph};

#[test]
fn a_clause_does_not_match_what_it_creates() {
    let graph = graph("CREATE (:F), (:F), (:F)");
    let stats = change(&graph, "MATCH (f:F) CREATE (:F)");
    assert_eq!(stats, Stats { nodes_created: 3, labels_added: 3, ..Stats::default() });
    check(&graph, &[("MATCH (f:F) RETURN count(f)", &["6"])]);
}

#[test]
fn merge_sees_what_earlier_rows_created() {
    check(
        &MemoryGraph::new(),
        &[(
            "UNWIND [{k:1},{k:2},{k:1}] AS r MERGE (m:M {k:r.k}) \
             ON CREATE SET m.c=1 ON MATCH SET m.c=m.c+1 WITH DISTINCT m RETURN m.k, m.c",
            &["1 2", "2 1"],
        )],
    );
}

#[test]
fn merge_creates_the_whole_pattern_or_nothing() {
    let graph = graph("CREATE (:A {n: 1}), (:B {n: 2})");
    let text = "MATCH (a:A), (b:B) MERGE p = (a)-[r:R {w: 1}]->(b) RETURN length(p), r.w";
    check(&graph, &[(text, &["1 1"]), (text, &["1 1"])]);
    let stats = change(&graph, "MATCH (a:A) MERGE (a)-[:R]->(:B {n: 3})");
    assert_eq!((stats.nodes_created, stats.relationships_created), (1, 1));
    check(&graph, &[("MATCH (:A)-[:R]->(b) RETURN b.n ORDER BY b.n", &["2", "3"])]);
}

#[test]
fn properties_and_labels_can_be_changed() {
    let graph = graph("CREATE (:A {x: 1, y: 2})");
    check(
        &graph,
        &[
            (
                "MATCH (n:A) SET n.x = n.x + 1, n.z = [1, 2], n:B RETURN n.x, n.z, labels(n)",
                &[r#"2 [1,2] ["A","B"]"#],
            ),
            (
                "MATCH (n:A) SET n += {x: null, w: 5} RETURN properties(n)",
                &[r#"{"w":5,"y":2,"z":[1,2]}"#],
            ),
            (
                "MATCH (n:A) SET n = {q: 1} REMOVE n:B RETURN properties(n), labels(n)",
                &[r#"{"q":1} ["A"]"#],
            ),
            ("MATCH (n:A) REMOVE n.q RETURN properties(n)", &["{}"]),
            ("OPTIONAL MATCH (n:None) SET n.x = 1 REMOVE n:A DELETE n RETURN n", &["null"]),
        ],
    );
}

#[test]
fn a_node_with_relationships_is_not_deleted() {
    let graph = graph("CREATE (:A)-[:R]->(:B)");
    let error = ask(&graph, "MATCH (a:A) DELETE a").unwrap_err().to_string();
    assert!(error.contains("DETACH DELETE"), "{error}");
    check(&graph, &[("MATCH (n) RETURN count(n)", &["2"])]);
    let stats = change(&graph, "MATCH (a:A)-[r]->() DELETE a, r");
    assert_eq!((stats.nodes_deleted, stats.relationships_deleted), (1, 1));
    change(&graph, "MATCH (n) DETACH DELETE n");
    check(&graph, &[("MATCH (n) RETURN count(n)", &["0"])]);
}

#[test]
fn reading_a_deleted_node_fails() {
    let graph = graph("CREATE (:A {x: 1})-[:R]->(:B)");
    let error = ask(&graph, "MATCH (a:A) DETACH DELETE a RETURN a.x").unwrap_err().to_string();
    assert!(error.contains("is deleted"), "{error}");
}

#[test]
fn all_rows_are_written_even_if_few_are_read() {
    let graph = MemoryGraph::new();
    let query = prepare("UNWIND range(1, 5) AS i CREATE (n {i: i}) RETURN n.i").unwrap();
    let mut seen = 0;
    let sink = &mut |_| {
        seen += 1;
        Ok(Flow::Stop)
    };
    query.run_mut(&graph, &Default::default(), &Budget::unbounded(), sink).unwrap();
    assert_eq!(seen, 1);
    check(
        &graph,
        &[
            ("MATCH (n) RETURN count(n)", &["5"]),
            ("CREATE (n:L) RETURN n LIMIT 0", &[]),
            ("MATCH (n:L) RETURN count(n)", &["1"]),
        ],
    );
}

#[test]
fn a_writing_query_needs_a_writable_graph() {
    let query = prepare("CREATE (n)").unwrap();
    assert!(query.is_write());
    let graph = MemoryGraph::new();
    let result =
        query.run(&graph, &Default::default(), &Budget::unbounded(), &mut |_| Ok(Flow::Continue));
    assert!(result.unwrap_err().to_string().contains("opened for reading"));
}
