use isolith_graph::{Error, MemoryGraph, prepare};

use super::{ask, change, check, graph};

fn people() -> MemoryGraph {
    graph(
        "CREATE (a:P {n: 'a', x: 1})-[:KNOWS {w: 1}]->(b:P {n: 'b', x: 2})-[:KNOWS {w: 2}]->(c:P:Q {n: 'c'}),
                (a)-[:LIKES {w: 3}]->(c), (:R {n: 'd'}), ({n: 'e'})",
    )
}

#[test]
fn subqueries_are_values() {
    check(
        &people(),
        &[
            (
                "MATCH (p:P) RETURN p.n, COUNT { (p)-->() } ORDER BY p.n",
                &[r#""a" 2"#, r#""b" 1"#, r#""c" 0"#],
            ),
            (
                "MATCH (p:P) RETURN p.n, COLLECT { MATCH (p)-->(q) RETURN q.n ORDER BY q.n } AS l ORDER BY p.n",
                &[r#""a" ["b","c"]"#, r#""b" ["c"]"#, r#""c" []"#],
            ),
            ("RETURN COLLECT { UNWIND [1, null] AS x RETURN x }", &["[1,null]"]),
            (
                "MATCH (p:P) WHERE COUNT { MATCH (p)-->(q) WHERE q.x > p.x RETURN q } > 0 RETURN p.n",
                &[r#""a""#],
            ),
            (
                "MATCH (p:P) WHERE EXISTS { MATCH (p)-[:LIKES]->() RETURN 1 AS o UNION MATCH (p)<-[:LIKES]-() RETURN 1 AS o } RETURN p.n",
                &[r#""a""#, r#""c""#],
            ),
            ("RETURN COUNT { RETURN 1 AS x UNION RETURN 1 AS x }", &["1"]),
            ("RETURN COUNT { RETURN 1 AS x UNION ALL RETURN 1 AS x }", &["2"]),
            // Variables around a subquery stay visible after WITH.
            (
                "MATCH (p:P {n: 'a'}) RETURN COUNT { MATCH (q:P) WITH q.x AS x WHERE x > p.x RETURN x }",
                &["1"],
            ),
            ("WITH {a: 1} AS count RETURN count {.a}", &[r#"{"a":1}"#]),
        ],
    );
}

#[test]
fn calls_run_for_every_row() {
    check(
        &people(),
        &[
            (
                "MATCH (p:P) CALL { WITH p MATCH (p)-->(q) RETURN count(q) AS c } RETURN p.n, c ORDER BY p.n",
                &[r#""a" 2"#, r#""b" 1"#, r#""c" 0"#],
            ),
            (
                "MATCH (p:P) CALL (p) { MATCH (p)-->(q) RETURN q.n AS m ORDER BY m DESC LIMIT 1 } RETURN p.n, m ORDER BY p.n",
                &[r#""a" "c""#, r#""b" "c""#],
            ),
            (
                "MATCH (p:P) OPTIONAL CALL (*) { MATCH (p)-[:LIKES]->(q) RETURN q.n AS m } RETURN p.n, m ORDER BY p.n",
                &[r#""a" "c""#, r#""b" null"#, r#""c" null"#],
            ),
            (
                "UNWIND [1, 2] AS x CALL { WITH x RETURN x AS y UNION WITH x RETURN x * 10 AS y } RETURN x, y",
                &["1 1", "1 10", "2 2", "2 20"],
            ),
            ("CALL () { RETURN 1 AS x } RETURN x", &["1"]),
            (
                "UNWIND [3, 4] AS x CALL (x) { UNWIND range(1, x) AS y RETURN sum(y) AS s } RETURN s LIMIT 1",
                &["6"],
            ),
            ("CALL { UNWIND range(1, 1000000) AS x RETURN x } RETURN x LIMIT 2", &["1", "2"]),
        ],
    );
    let graph = people();
    let stats = change(
        &graph,
        "MATCH (p:P) CALL { WITH p CREATE (:Log {of: p.n}) } CALL (p) { SET p.seen = true RETURN p.n AS m } RETURN m",
    );
    assert_eq!((stats.nodes_created, stats.properties_set), (3, 6));
    check(&graph, &[("MATCH (l:Log) RETURN l.of ORDER BY l.of", &[r#""a""#, r#""b""#, r#""c""#])]);
}

#[test]
fn foreach_writes_for_every_element() {
    let graph = MemoryGraph::new();
    let stats = change(
        &graph,
        "CREATE (r:Root) FOREACH (x IN range(1, 3) | CREATE (r)-[:HAS]->(c:Leaf {x: x})
            FOREACH (y IN [1, 2] | MERGE (t:Tag {y: y}) ON CREATE SET t.of = x)
            SET c.done = true)",
    );
    assert_eq!((stats.nodes_created, stats.relationships_created), (6, 3));
    check(
        &graph,
        &[
            ("MATCH (:Root)-->(c:Leaf) WHERE c.done RETURN sum(c.x)", &["6"]),
            ("MATCH (t:Tag) RETURN t.y, t.of ORDER BY t.y", &["1 1", "2 1"]),
        ],
    );
    assert!(ask(&graph, "FOREACH (x IN [1] | RETURN x)").is_err());
    assert!(ask(&graph, "MATCH (n) FOREACH (x IN 1 | SET n.x = 1)").is_err());
    assert!(ask(&graph, "FOREACH (x IN [1] | CREATE ()) RETURN x").is_err());
}

#[test]
fn labels_and_types_can_be_expressions() {
    check(
        &people(),
        &[
            ("MATCH (n:Q|R) RETURN n.n ORDER BY n.n", &[r#""c""#, r#""d""#]),
            ("MATCH (n:P&!Q) RETURN n.n ORDER BY n.n", &[r#""a""#, r#""b""#]),
            ("MATCH (n:!(P|R)) RETURN n.n", &[r#""e""#]),
            ("MATCH (n:%) RETURN count(n)", &["4"]),
            ("MATCH (n) WHERE n:Q|R RETURN n.n ORDER BY n.n", &[r#""c""#, r#""d""#]),
            (
                "MATCH (n:P) RETURN [x IN [n] WHERE x:Q | x.n] AS l ORDER BY n.n",
                &["[]", "[]", r#"["c"]"#],
            ),
            ("MATCH ()-[r:!KNOWS]->() RETURN type(r)", &[r#""LIKES""#]),
            ("MATCH ({n: 'a'})-[r:!LIKES*]->(x) RETURN x.n", &[r#""b""#, r#""c""#]),
            (
                "MATCH ()-[r:KNOWS|LIKES WHERE r.w > 1]->(x WHERE x.n = 'c') RETURN r.w ORDER BY r.w",
                &["2", "3"],
            ),
            ("MATCH (a:P WHERE a.x = 1)-[:KNOWS]->{2}(b) RETURN b.n", &[r#""c""#]),
            ("MATCH (a {n: 'a'})-[:KNOWS]->+(b) RETURN b.n", &[r#""b""#, r#""c""#]),
            ("MATCH (a {n: 'a'})-[:KNOWS]->*(b) RETURN count(b)", &["3"]),
            ("MATCH (a:P) WHERE (a)-[:LIKES]->(:Q|R) RETURN a.n", &[r#""a""#]),
            ("OPTIONAL MATCH (n:None) RETURN n:P|Q", &["null"]),
        ],
    );
    assert!(ask(&people(), "CREATE (:A|B)").is_err());
    assert!(ask(&people(), "MERGE (:A {x: 1})-[:T WHERE true]->(:B)").is_err());
}

#[test]
fn conversions_have_forms_that_do_not_fail() {
    check(
        &MemoryGraph::new(),
        &[
            (
                "RETURN toIntegerOrNull('x'), toIntegerOrNull([1]), toFloatOrNull('1.5')",
                &["null null 1.5"],
            ),
            ("RETURN toStringOrNull({a: 1}), toBooleanOrNull('true')", &["null true"]),
            (
                "RETURN toIntegerList(['1', 'x', 2.5]), toStringList([1, true])",
                &[r#"[1,null,2] ["1","true"]"#],
            ),
            ("RETURN 'a' || 'b', [1] || [2], null || 'x'", &[r#""ab" [1,2] null"#]),
            ("RETURN size(randomUUID()), randomUUID() = randomUUID()", &["36 false"]),
            ("RETURN 1 AS Order", &["1"]),
        ],
    );
    assert!(ask(&MemoryGraph::new(), "RETURN 'a' || 1").is_err());
}

#[test]
fn procedures_list_the_names_of_a_graph() {
    check(
        &people(),
        &[
            ("CALL db.labels()", &[r#""P""#, r#""Q""#, r#""R""#]),
            ("CALL db.labels", &[r#""P""#, r#""Q""#, r#""R""#]),
            (
                "CALL db.labels() YIELD label AS l WHERE l > 'P' RETURN collect(l)",
                &[r#"["Q","R"]"#],
            ),
            ("CALL db.relationshipTypes() YIELD relationshipType RETURN count(*)", &["2"]),
            (
                "CALL db.propertyKeys() YIELD propertyKey AS k RETURN collect(k)",
                &[r#"["n","w","x"]"#],
            ),
        ],
    );
    assert!(ask(&people(), "CALL db.labels() YIELD name RETURN name").is_err());
    assert!(ask(&people(), "CALL db.labels(1)").is_err());
    assert!(ask(&people(), "CALL my.own()").is_err());
}

#[test]
fn invalid_subqueries_are_refused() {
    for text in [
        "RETURN COUNT { CREATE (n) }",
        "RETURN COLLECT { RETURN 1 AS a, 2 AS b }",
        "RETURN COLLECT { MATCH (n) }",
        "MATCH (a) CALL { RETURN 1 AS a } RETURN a",
        "MATCH (a) CALL { RETURN a AS b } RETURN b",
        "MATCH (a) CALL (b) { RETURN 1 AS x } RETURN x",
        "CALL { MATCH (n) } RETURN 1",
        "CALL { RETURN 1 AS x UNION RETURN 2 AS y } RETURN x",
        "CALL { RETURN 1 AS x } MATCH (y) RETURN x UNION RETURN 1 AS z",
    ] {
        assert!(matches!(prepare(text), Err(Error::Query(_))), "{text}: {:?}", prepare(text));
    }
}
