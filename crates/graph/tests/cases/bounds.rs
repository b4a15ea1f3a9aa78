use std::cell::Cell;
use std::time::{Duration, Instant};

use isolith_graph::{Budget, Error, Flow, MemoryGraph, prepare};

use super::graph;

/// Short queries with huge results, each in a different way. All fail with `too_large` under a
/// small memory limit, long before their deadline.
const LARGE: [&str; 34] = [
    "RETURN reduce(m = {a: 1}, i IN range(1, 21) | {a: m, b: m})",
    "RETURN reduce(m = {a: 1}, i IN range(1, 90) | {a: m, b: m})",
    "RETURN reduce(l = [1], i IN range(1, 60) | [l, l])",
    "RETURN size(reduce(l = [1], i IN range(1, 60) | l + l))",
    "RETURN reduce(l = [1], i IN range(1, 20000) | [l])",
    "RETURN reduce(m = {}, i IN range(1, 20000) | {m: m})",
    "RETURN size([x IN range(1, 60000) | {m: x}])",
    "WITH reduce(s = 'ab', i IN range(1, 22) | s + s) AS s RETURN size(split(s, ''))",
    "WITH reduce(s = 'ab', i IN range(1, 20) | s + s) AS s RETURN size(split(s, 'a'))",
    "WITH reduce(s = 'ab', i IN range(1, 20) | s + s) AS s RETURN replace(s, 'a', s)",
    "WITH reduce(s = 'ab', i IN range(1, 20) | s + s) AS s RETURN [s, toUpper(s), reverse(s)]",
    "WITH reduce(s = 'ab', i IN range(1, 20) | s + s) AS s WITH s, s + '1' AS a, s + '2' AS b RETURN 1",
    "UNWIND range(1, 1000) AS i WITH reduce(s = 'ab', j IN range(1, 14) | s + s) + i AS s RETURN collect(s)",
    "UNWIND range(1, 300000) AS x RETURN count(DISTINCT toString(x))",
    "UNWIND range(1, 300000) AS x RETURN collect(DISTINCT x)",
    "UNWIND range(1, 300000) AS x RETURN collect({x: x})",
    "UNWIND range(1, 300000) AS x RETURN percentileDisc(x, 0.5)",
    "UNWIND range(1, 300000) AS x WITH DISTINCT [x] AS l RETURN count(*)",
    "UNWIND range(1, 300000) AS x WITH {x: x} AS m, count(*) AS c RETURN max(c)",
    "UNWIND range(1, 300000) AS x RETURN x UNION UNWIND range(1, 300000) AS x RETURN -x AS x",
    "WITH range(1, 60000) AS a, range(1, 60000) AS b, range(1, 60000) AS c RETURN size(a)",
    "WITH range(1, 90000) AS a RETURN size(a + a)",
    "WITH range(1, 90000) AS a RETURN size(reverse(a))",
    "WITH range(1, 90000) AS a RETURN size(tail(a))",
    "WITH range(1, 90000) AS a RETURN size(a[1..89000])",
    "WITH [x IN range(1, 100) | range(1, 100)] AS a RETURN [x IN a | [y IN a | a]]",
    "MATCH (a)-[r*1..4]-(b) RETURN collect(r)",
    "MATCH p = (a)-[*1..4]-(b) RETURN collect(p)",
    "MATCH (a {i: 1}), (b {i: 2}) MATCH p = allShortestPaths((a)-[*]-(b)) WHERE length(p) > 3 RETURN collect(p)",
    "RETURN [x IN range(1, 300000) | 'text ' + x]",
    "UNWIND range(1, 300000) AS x WITH x ORDER BY x % 7, x RETURN count(*)",
    "UNWIND range(1, 300000) AS x WITH x, x AS y ORDER BY y SKIP 1 RETURN count(*)",
    "UNWIND range(1, 1000) AS x RETURN collect(range(1, 1000))",
    "RETURN 'a' =~ '((a{100}){100}){100}'",
];

/// Queries that practically never end.
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
        assert!(start.elapsed() < Duration::from_secs(20), "{text}: {:?}", start.elapsed());
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
    assert!(result.is_ok(), "only the rows within the limit are kept: {result:?}");
}

fn run(graph: &MemoryGraph, text: &str, budget: &Budget<'_>) -> isolith_graph::Result<u64> {
    let mut rows = 0;
    let mut count = |_| {
        rows += 1;
        Ok(Flow::Continue)
    };
    prepare(text)?.run(graph, &Default::default(), budget, &mut count)?;
    Ok(rows)
}

#[test]
fn every_way_to_use_memory_is_counted() {
    let graph = dense();
    for text in LARGE {
        let budget = Budget::unbounded()
            .with_memory(4 << 20)
            .with_deadline(Instant::now() + Duration::from_secs(30));
        let result = run(&graph, text, &budget);
        assert!(matches!(result, Err(Error::TooLarge(_))), "{text}: {result:?}");
    }
}

#[test]
fn memory_used_for_a_row_is_released_after_it() {
    let graph = dense();
    for text in [
        "UNWIND range(1, 20000) AS x RETURN size([y IN range(1, 1000) | y]) AS s",
        "UNWIND range(1, 2000) AS x WITH reduce(s = 'ab', j IN range(1, 14) | s + s) AS s RETURN size(s)",
        "UNWIND range(1, 500) AS x MATCH (a) WHERE EXISTS { (a)-[*1..2]->({i: 9}) } RETURN a",
        "UNWIND range(1, 100) AS x MATCH (a {i: 1}), (b {i: 2}) MATCH p = shortestPath((a)-[*]->(b)) RETURN p",
        "UNWIND range(1, 3000) AS x WITH x, collect(range(1, 10)) AS l RETURN size(l)",
    ] {
        let budget = Budget::unbounded().with_memory(4 << 20);
        let result = run(&graph, text, &budget);
        assert!(result.is_ok(), "{text}: {result:?}");
    }
}

#[test]
fn a_row_of_the_answer_is_bounded_in_size() {
    let graph = dense().also("MATCH (n:N) SET n.text = reduce(s = 'x', i IN range(1, 12) | s + s)");
    let texts = [
        "RETURN range(1, 100000)",
        "RETURN [x IN range(1, 3000) | {a: x}]",
        "MATCH (n) RETURN [x IN range(1, 30) | n]",
        "MATCH (n) WITH collect(n) AS l RETURN [x IN range(1, 10) | l]",
        "MATCH p = (a)-[*1..3]->() WITH collect(p)[..1000] AS l RETURN l",
        "WITH reduce(m = {a: 1}, i IN range(1, 12) | {a: m, b: m}) AS m RETURN m",
    ];
    for text in texts {
        let budget = Budget::unbounded().with_row_bytes(1 << 20);
        let result = run(&graph, text, &budget);
        let unbounded = run(&graph, text, &Budget::unbounded());
        assert!(unbounded.is_ok(), "{text}: {unbounded:?}");
        if text.contains("30) | n") {
            assert_eq!(result.unwrap(), 30, "each single row is small enough");
        } else {
            assert!(matches!(result, Err(Error::TooLarge(_))), "{text}: {result:?}");
        }
    }
}

#[test]
fn long_work_on_large_values_is_interrupted() {
    let graph = dense();
    let texts = [
        "UNWIND range(1, 900000) AS x WITH x ORDER BY toString(x % 1000) + x RETURN count(*)",
        "WITH range(1, 400000) AS l UNWIND range(1, 100000) AS x RETURN count(l = l + [])",
        "WITH range(1, 400000) AS l UNWIND range(1, 100000) AS x WITH l + x AS k, count(*) AS c RETURN max(c)",
        "WITH range(1, 400000) AS l UNWIND range(1, 100000) AS x RETURN count(l IN [l + 1, l + 2])",
        "WITH reduce(s = 'ab', i IN range(1, 22) | s + s) AS s UNWIND range(1, 100000) AS x RETURN count(toUpper(s))",
        "WITH reduce(s = 'ab', i IN range(1, 22) | s + s) AS s UNWIND range(1, 100000) AS x RETURN count(s CONTAINS 'bb')",
        "WITH reduce(s = 'ab', i IN range(1, 22) | s + s) AS s UNWIND range(1, 100000) AS x RETURN count(s =~ '(a|b|ab|ba)*(a{1,40}b?){1,40}c')",
        "UNWIND range(1, 1000000) AS x RETURN count('aaaa' =~ ('(a{1,60}){1,' + (x % 50 + 1) + '}'))",
    ];
    for text in texts {
        let start = Instant::now();
        let deadline = start + Duration::from_millis(200);
        let budget = Budget::unbounded().with_deadline(deadline);
        let result = run(&graph, text, &budget);
        assert!(matches!(result, Err(Error::Timeout)), "{text}: {result:?}");
        assert!(start.elapsed() < Duration::from_secs(10), "{text}: {:?}", start.elapsed());
    }
}

#[test]
fn long_and_short_texts_match_alike() {
    let graph = dense();
    let long = "reduce(s = 'ab', i IN range(1, 14) | s + s)";
    for (pattern, expected) in
        [("(ab)*", true), ("(ab)*a", false), ("a.*b", true), ("b.*", false), ("(?i)A[B-Z].+", true)]
    {
        for text in [long, "'abab'"] {
            let query = format!("WITH {text} AS s WHERE s =~ '{pattern}' RETURN size(s)");
            let found = run(&graph, &query, &Budget::unbounded()).unwrap();
            assert_eq!(found == 1, expected, "{query}");
        }
    }
}

#[test]
fn empty_names_are_refused() {
    let graph = dense();
    for text in [
        "CREATE (:``)",
        "MATCH (n:``) RETURN n",
        "MATCH ()-[:``]->() RETURN 1",
        "MATCH (n) RETURN n.``",
        "RETURN 1 AS ``",
        "MATCH (``) RETURN 1",
    ] {
        let result = prepare(text);
        assert!(matches!(result, Err(Error::Query(_))), "{text}: {result:?}");
    }
    assert!(run(&graph, "RETURN {``: 1}", &Budget::unbounded()).is_ok(), "map keys can be empty");
    let empty = isolith_graph::Datum::Map([(String::new(), isolith_graph::Datum::Null)].into());
    let parameters = [("map".to_owned(), empty)].into();
    for text in ["CREATE ({``: 1})", "MATCH (n {i: 1}) SET n += $map"] {
        let budget = Budget::unbounded();
        let query = prepare(text).unwrap();
        let result = query.run_mut(&graph, &parameters, &budget, &mut |_| Ok(Flow::Continue));
        assert!(matches!(result, Err(Error::Query(_))), "{text}: {result:?}");
    }
}
