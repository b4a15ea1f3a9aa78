//! Tests that queries read no more of the graph than necessary.

use std::cell::Cell;
use std::sync::Arc;

use isolith_graph::{
    Budget, Direction, Edge, Flow, Graph, Hop, KeyId, LabelId, LookupResult, MemoryGraph, TypeId,
    Value, prepare,
};
use isolith_types::Failure;

use super::{ask, change, graph};

/// A graph that counts reads.
struct Counted {
    graph: MemoryGraph,
    reads: Cell<usize>,
}

impl Counted {
    fn read(&self, count: usize) -> &MemoryGraph {
        self.reads.set(self.reads.get() + count);
        &self.graph
    }
}

#[test]
fn plans_are_described() {
    let graph = super::graph("CREATE (:P {n: 1})-[:KNOWS]->(:P {n: 2}), (:Q)");
    super::check(
        &graph,
        &[
            (
                "EXPLAIN MATCH (q:Q), (p:P {n: $n})-[r:KNOWS|LIKES]->(x) WHERE x.n > 1
                 OPTIONAL MATCH (x)-[*1..2]-(y) RETURN p.n AS n, count(y) ORDER BY n LIMIT 3",
                &[
                    r#""NodesByLabel" "q:Q, 1 node""#,
                    r#""NodesByLabel" "p:P, 2 nodes""#,
                    r#""Filter" "p.n""#,
                    r#""Expand" "(p)-[r:KNOWS|LIKES]->(x)""#,
                    r#""Filter" "x""#,
                    r#""Optional" "y""#,
                    r#""  VarLengthExpand" "(x)-[*1..2]-(y)""#,
                    r#""Aggregate" "n, count(y)""#,
                    r#""Sort" """#,
                    r#""Limit" """#,
                ],
            ),
            (
                "EXPLAIN CALL { CREATE (a:P)-[:T]->(b) } RETURN 1 AS x UNION RETURN 2 AS x",
                &[
                    r#""Call" """#,
                    r#""  Create" "(a:P), (b), (a)-[:T]->(b)""#,
                    r#""Project" "x""#,
                    r#""Union" """#,
                    r#""Project" "x""#,
                ],
            ),
            ("MATCH (n) RETURN count(n)", &["3"]),
        ],
    );
}

type Answer<T> = Result<T, Failure>;

impl Graph for Counted {
    fn label_id(&self, name: &str) -> Answer<Option<LabelId>> {
        self.graph.label_id(name)
    }
    fn type_id(&self, name: &str) -> Answer<Option<TypeId>> {
        self.graph.type_id(name)
    }
    fn key_id(&self, name: &str) -> Answer<Option<KeyId>> {
        self.graph.key_id(name)
    }
    fn labels(&self) -> Answer<Vec<Arc<str>>> {
        self.graph.labels()
    }
    fn relationship_types(&self) -> Answer<Vec<Arc<str>>> {
        self.graph.relationship_types()
    }
    fn property_keys(&self) -> Answer<Vec<Arc<str>>> {
        self.graph.property_keys()
    }
    fn label_name(&self, label: LabelId) -> Answer<Arc<str>> {
        self.graph.label_name(label)
    }
    fn type_name(&self, kind: TypeId) -> Answer<Arc<str>> {
        self.graph.type_name(kind)
    }
    fn key_name(&self, key: KeyId) -> Answer<Arc<str>> {
        self.graph.key_name(key)
    }
    fn node_count(&self, label: Option<LabelId>) -> Answer<u64> {
        self.graph.node_count(label)
    }
    fn edge_count(&self, kind: Option<TypeId>) -> Answer<u64> {
        self.graph.edge_count(kind)
    }
    fn has_node(&self, node: i64) -> Answer<bool> {
        self.read(1).has_node(node)
    }
    fn nodes(
        &self,
        label: Option<LabelId>,
        after: Option<i64>,
        limit: usize,
        found: &mut Vec<i64>,
    ) -> Answer<()> {
        let before = found.len();
        self.graph.nodes(label, after, limit, found)?;
        self.read(found.len() - before);
        Ok(())
    }
    fn lookup_estimate(&self, label: Option<LabelId>, key: KeyId) -> Answer<Option<u64>> {
        self.graph.lookup_estimate(label, key)
    }
    fn lookup(
        &self,
        label: Option<LabelId>,
        key: KeyId,
        value: &Value,
        found: &mut Vec<i64>,
    ) -> Answer<LookupResult> {
        self.read(1).lookup(label, key, value, found)
    }
    fn node_labels(&self, node: i64, labels: &mut Vec<LabelId>) -> Answer<()> {
        self.read(1).node_labels(node, labels)
    }
    fn has_label(&self, node: i64, label: LabelId) -> Answer<bool> {
        self.read(1).has_label(node, label)
    }
    fn node_property(&self, node: i64, key: KeyId) -> Answer<Value> {
        self.read(1).node_property(node, key)
    }
    fn node_properties(&self, node: i64) -> Answer<Vec<(KeyId, Value)>> {
        self.read(1).node_properties(node)
    }
    fn edges(
        &self,
        node: i64,
        direction: Direction,
        kinds: &[TypeId],
        found: &mut Vec<Hop>,
    ) -> Answer<()> {
        self.read(1).edges(node, direction, kinds, found)
    }
    fn degree(&self, node: i64, direction: Direction, kinds: &[TypeId]) -> Answer<u64> {
        self.read(1).degree(node, direction, kinds)
    }
    fn edge(&self, edge: i64) -> Answer<Option<Edge>> {
        self.read(1).edge(edge)
    }
    fn edge_property(&self, edge: i64, key: KeyId) -> Answer<Value> {
        self.read(1).edge_property(edge, key)
    }
    fn edge_properties(&self, edge: i64) -> Answer<Vec<(KeyId, Value)>> {
        self.read(1).edge_properties(edge)
    }
}

#[test]
fn queries_read_no_more_than_necessary() {
    let graph = graph("UNWIND range(1, 1000) AS i CREATE (:N {i: i, p: i % 10})");
    change(&graph, "MATCH (a:N), (b:N {i: a.i + 1}) CREATE (a)-[:NEXT]->(b)");
    change(&graph, "MATCH (a:N {i: 500}) SET a:Rare");
    let counted = Counted { graph, reads: Cell::new(0) };
    let table = [
        ("MATCH (n) RETURN id(n) LIMIT 1", 64),
        ("MATCH (n {i: 7}) RETURN n.i", 4),
        ("MATCH (n:N) WHERE n.i = 7 RETURN n.i", 5),
        ("MATCH (n:N) WHERE 7 = n.i AND n.p = 7 RETURN n.i", 6),
        ("MATCH (n) WHERE n.i IN [7, 8] RETURN n.i", 10),
        ("MATCH (n) WHERE id(n) = 7 RETURN n.i", 4),
        ("MATCH (a)-[:NEXT]->(b {i: 7}) RETURN a.i", 6),
        ("MATCH (a:N)-[:NEXT]->(b:N)-[:NEXT]->(c:Rare) RETURN a.i", 14),
        ("UNWIND [1, 2, 3] AS k MATCH (a {i: k})-[:NEXT]->(b) RETURN b.i", 14),
        ("MATCH (a {i: 1}) MATCH (b {i: a.i + 1}) RETURN b.i", 8),
        ("MATCH (a {i: 1}), (b {i: a.i + 1}) RETURN b.i", 8),
        ("MATCH (a {i: 1})-[:NEXT*1..3]->(b) RETURN count(DISTINCT b)", 8),
        ("MATCH (n)-[r:NEXT]->() RETURN count(r)", 2001),
    ];
    for (text, most) in table {
        counted.reads.set(0);
        let mut rows = 0;
        prepare(text)
            .unwrap()
            .run(&counted, &Default::default(), &Budget::unbounded(), &mut |_| {
                rows += 1;
                Ok(Flow::Continue)
            })
            .unwrap();
        assert!(rows > 0, "{text}");
        assert!(counted.reads.get() <= most, "{text}: {} reads", counted.reads.get());
    }
}

/// With an adjacency, relationships are counted without being listed, nodes with few of them are
/// skipped, and grouping by a property with distinct values compares nothing.
#[test]
fn shortcuts_for_the_highest_degrees_do_not_change_results() {
    let mut graph = graph(
        "UNWIND range(0, 599) AS k CREATE (:Other {k: k}) CREATE (:N {k: k, g: k % 7, \
         t: toString(k), some: CASE WHEN k % 5 = 0 THEN k END})",
    );
    change(
        &graph,
        "MATCH (a:N), (b:N) WHERE (a.k * a.k + 7 * b.k) % 97 = 3 AND b.k % (a.k % 9 + 1) = 0 \
         CREATE (a)-[:R]->(b)",
    );
    let queries = [
        "MATCH (n:N)-[r:R]->() RETURN n.k, count(r) AS d ORDER BY d DESC, n.k LIMIT 20",
        "MATCH (n:N)-[r]-() RETURN n.t, count(*) AS d ORDER BY d DESC, n.t SKIP 5 LIMIT 20",
        "MATCH (n:N)-[r:R]->() RETURN n.g, count(r) AS d ORDER BY d DESC, n.g LIMIT 3",
        "MATCH (n:N)-[r:R]->() RETURN n.some, count(r) AS d ORDER BY d DESC, n.some LIMIT 3",
        "MATCH (n:N)<-[r:R]-() RETURN n.k, n.g, count(r) ORDER BY count(r) DESC, n.k LIMIT 1",
        "MATCH (n:N)-[r:R]->() RETURN n.k, count(n.some) AS d ORDER BY d DESC, n.k LIMIT 9",
        "MATCH (n:N)-[r:R]->() RETURN n.k, count(r) AS d ORDER BY d, n.k LIMIT 20",
        "MATCH (n:N)-[r:R]->() WITH n, count(r) AS d ORDER BY d DESC, n.k LIMIT 9 \
         WHERE d > 1 RETURN n.k, d",
        "MATCH (n)-[r:R]->() RETURN n.k, count(r) AS d ORDER BY d DESC, n.k LIMIT 20",
    ];
    let slowly: Vec<_> = queries.iter().map(|text| ask(&graph, text).unwrap()).collect();
    graph.freeze();
    for (text, expected) in queries.iter().zip(slowly) {
        assert!(!expected.is_empty(), "{text}");
        assert_eq!(ask(&graph, text).unwrap(), expected, "{text}");
    }
    let fails = "MATCH (n:N)-[r:R]->() RETURN n.k, 1 / (n.k - 599), count(r) AS d \
                 ORDER BY d DESC LIMIT 1";
    assert!(ask(&graph, fails).is_err());
}
