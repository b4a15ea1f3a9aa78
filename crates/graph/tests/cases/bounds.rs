use std::cell::Cell;
use std::time::{Duration, Instant};

use isolith_graph::{Budget, Error, Flow, MemoryGraph, prepare};

use super::graph;

/// Queries without end, or nearly.
const ENDLESS: [&str; 6] = [
    "MATCH (a)-[*]-(b) RETURN count(*)",
    "MATCH (a)-[r*]-(b) RETURN r",
    "MATCH (a), (b), (c), (d), (e), (f) RETURN count(*)",
    "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b UNWIND range(1, 9) AS c RETURN count(*)",
    "RETURN size([x IN range(1, 1000000) WHERE any(y IN range(1, 1000000) WHERE y = x + 0.5)])",
    "RETURN reduce(a = 0, x IN range(1, 10000000) | a + size([y IN range(1, 1000) | y]))",
];

fn dense() -> MemoryGraph {
    graph("UNWIND range(1, 30) AS i CREATE (:N {i: i})")
        .also("MATCH (a:N), (b:N) WHERE a <> b CREATE (a)-[:R]->(b)")
}

trait Also {
    fn also(self, text: &str) -> Self;
}

impl Also for MemoryGraph {
    fn also(self, text: &str) -> Self {
        super::change(&self, text);
        self
    }
}

#[test]
fn endless_queries_stop_at_their_deadline() {
    let graph = dense();
    for text in ENDLESS {
        let start = Instant::now();
        let deadline = start + Duration::from_millis(100);
        let budget = Budget::unbounded().with_deadline(deadline);
        let result = prepare(text)
            .unwrap()
            .run(&graph, &Default::default(), &budget, &mut |_| Ok(Flow::Continue));
        assert!(matches!(result, Err(Error::Timeout)), "{text}: {result:?}");
        assert!(start.elapsed() < Duration::from_secs(5), "{text}: {:?}", start.elapsed());
    }
}

#[test]
fn endless_queries_can_be_cancelled() {
    let graph = dense();
    for text in ENDLESS {
        let asked = Cell::new(0);
        let cancelled = || {
            asked.set(asked.get() + 1);
            asked.get() > 3
        };
        let budget = Budget::unbounded().with_cancellation(&cancelled);
        let result = prepare(text)
            .unwrap()
            .run(&graph, &Default::default(), &budget, &mut |_| Ok(Flow::Continue));
        assert!(matches!(result, Err(Error::Cancelled)), "{text}: {result:?}");
    }
}

#[test]
fn memory_is_bounded() {
    let graph = dense();
    let texts = [
        "RETURN range(1, 1000000000000)",
        "UNWIND range(1, 300000) AS x RETURN collect(x)",
        "UNWIND range(1, 300000) AS x RETURN x ORDER BY x",
        "UNWIND range(1, 300000) AS x RETURN DISTINCT x",
        "UNWIND range(1, 300000) AS x RETURN x, count(*)",
        "UNWIND range(1, 300000) AS x WITH x, 1 AS y ORDER BY x RETURN count(*)",
        "RETURN reduce(s = 'ab', x IN range(1, 60) | s + s)",
        "MATCH (a), (b), (c) RETURN collect([a, b, c])",
        "MATCH (a), (b) RETURN [(a)-[*1..3]-() | 1]",
        "MATCH (a {i: 1}), (b {i: 2}) MATCH p = shortestPath((a)-[*]->(b)) WHERE length(p) > 9 RETURN p",
        "UNWIND range(1, 300000) AS x CREATE ({x: x})",
    ];
    for text in texts {
        let budget = Budget::unbounded()
            .with_memory(4 << 20)
            .with_deadline(Instant::now() + Duration::from_secs(30));
        let query = prepare(text).unwrap();
        let result =
            query.run_mut(&graph, &Default::default(), &budget, &mut |_| Ok(Flow::Continue));
        assert!(matches!(result, Err(Error::TooLarge(_))), "{text}: {result:?}");
    }
    let text = "UNWIND range(1, 100000) AS x WITH x ORDER BY x DESC LIMIT 3 RETURN collect(x)";
    let budget = Budget::unbounded().with_memory(4 << 20);
    let result = prepare(text)
        .unwrap()
        .run(&graph, &Default::default(), &budget, &mut |_| Ok(Flow::Continue));
    assert!(result.is_ok(), "only the best are kept: {result:?}");
}
