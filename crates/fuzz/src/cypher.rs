use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use isolith_graph::{Budget, Datum, Flow, MemoryGraph, prepare};

/// The graph that queries run on.
const GRAPH: &str = "CREATE (a:A {k: 1, n: 'xa'})-[:R {w: 1}]->(b:B {k: 2})-[:R]->(c:A {k: 3}), \
                     (c)-[:S]->(a), (b)-[:R]->(b), (:B)";

/// Cypher: queries that can be parsed run on a small graph with a time and memory limit.
pub fn cypher(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let Ok(query) = prepare(text) else { return false };
    let graph = MemoryGraph::new();
    run(GRAPH, &graph, &BTreeMap::new());
    let parameters = BTreeMap::from([("p".to_owned(), Datum::Integer(1))]);
    let start = Instant::now();
    let budget =
        Budget::unbounded().with_deadline(start + Duration::from_millis(50)).with_memory(4 << 20);
    let result = query.run_mut(&graph, &parameters, &budget, &mut |_| Ok(Flow::Continue));
    assert!(start.elapsed() < Duration::from_secs(5), "the deadline was ignored");
    result.is_ok()
}

fn run(text: &str, graph: &MemoryGraph, parameters: &BTreeMap<String, Datum>) {
    let query = prepare(text).expect("the query is valid");
    let sink = &mut |_| Ok(Flow::Continue);
    query.run_mut(graph, parameters, &Budget::unbounded(), sink).expect("there are no limits");
}
