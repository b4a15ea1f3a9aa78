//! Randomly mutated queries: each returns a result or an error, in time, and never panics.
//!
//! `MUTATIONS=200000 cargo test -p isolith-graph --test mutations` tries more of them.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use fastrand::Rng;
use isolith_graph::{Budget, Datum, Flow, MemoryGraph, prepare};

const QUERIES: [&str; 27] = [
    "MATCH (a:A {k: 1})-[r:R*1..3]->(b) WHERE b.k > 0 RETURN DISTINCT b.k AS x ORDER BY x SKIP 1 LIMIT 2",
    "MATCH p = (a)-[:R]-(b)<-[s:S]-(c), (d) WHERE NOT (a)-->(d) RETURN p, count(*), collect(s.w)",
    "OPTIONAL MATCH (a)-[r]->(b) WITH a, count(r) AS n WHERE n > 1 RETURN a.k, n",
    "UNWIND [1, 2, null, [3]] AS x WITH x ORDER BY x DESC RETURN collect(x)[0..2], size([1, 2])",
    "CREATE (a:A {k: 7, l: [1, 'x']})-[r:R {w: 1.5}]->(b) SET a.k = a.k + 1, b:B REMOVE a.l RETURN a, r, b",
    "MERGE (a:A {k: $p}) ON CREATE SET a.c = 1 ON MATCH SET a += {c: a.c + 1} RETURN a.c",
    "MATCH (n) DETACH DELETE n",
    "MATCH (a)-[r:R]->(b) DELETE r RETURN type(r), id(a)",
    "RETURN CASE WHEN 1 < 2 THEN 'a' ELSE null END AS c, CASE 3 WHEN 3 THEN [x IN range(1, 3) | x ^ 2] END",
    "RETURN all(x IN [1, 2] WHERE x > 0) AND none(y IN [] WHERE y) OR single(z IN [1] WHERE z = 1)",
    "RETURN reduce(a = 0, x IN [1, 2, 3] | a + x), {a: 1, b: {c: $p}}.b.c, [1, 2, 3][-1]",
    "MATCH (a {k: 1}), (b {k: 2}) MATCH p = shortestPath((a)-[:R*..5]-(b)) RETURN length(p), nodes(p)",
    "MATCH (a) RETURN a {.k, .*, z: 1} AS m, [(a)-[:R]->(b) WHERE b.k = 1 | b.k] AS l",
    "MATCH (a) WHERE EXISTS { MATCH (a)-->(b) WITH count(b) AS n WHERE n > 1 RETURN n } RETURN a",
    "RETURN 'it''s \\u0041 \\n' + \"q\", `odd name`, 0x1F, 0o7, 1e-3, .5, -9223372036854775808",
    "RETURN 1 AS a UNION ALL RETURN 2 AS a UNION RETURN 3 AS a",
    "MATCH (a)-[r]->(b) WITH a, r, b MATCH (a)-[r]->(c) RETURN startNode(r) = a, endNode(r).k, c",
    "MATCH (a) WITH a.k % 2 AS odd, min(a.k) AS m, avg(a.k) AS v ORDER BY m RETURN odd, m, v",
    "MATCH (a)-[r*0..2]-(b) RETURN [x IN r | type(x)], a:A:B, labels(b), keys(a), properties(b)",
    "RETURN substring('hello', 1, 2), split('a,b', ','), replace('a', 'a', 'b'), toInteger('7'), trim(' x ')",
    "RETURN percentileCont(1, 0.5), stDev(2), count(DISTINCT 3), sum(1.5), max([1]), collect(null)",
    "RETURN -7 / 2, 7 % 3, 2 ^ 3 ^ 2, 1 + 2 * 3 - 4, NOT true XOR false, 1 <> 2, 1 <= 2 < 3",
    "MATCH (a) WHERE a.k IN [1, 2] AND a.n STARTS WITH 'x' OR a.n =~ 'y.*' RETURN a.k IS NOT NULL",
    "WITH 1 AS x, 2 AS y WHERE x < y RETURN *, x + y AS z // done",
    "RETURN date('2024-02-29') + duration({months: 1.5, days: -3}) * 2 AS d, duration('P1Y2M3DT4H5.6S') / 3",
    "CREATE (e {at: datetime({year: 2024, week: 9, dayOfWeek: 4, hour: 7, timezone: 'Europe/Paris'})}) RETURN e.at.epochMillis",
    "RETURN date.truncate('week', date('2024-202'), {dayOfWeek: 2}), duration.between(time('10:00Z'), localdatetime('2024W093T214032.1'))",
];

#[test]
fn mutated_queries_end_with_a_result_or_an_error() {
    let count: u64 = std::env::var("MUTATIONS").ok().and_then(|it| it.parse().ok()).unwrap_or(4000);
    let parameters = BTreeMap::from([("p".to_owned(), Datum::Integer(1))]);
    let original = graph();
    let (mut answered, mut slowest) = (0, Duration::ZERO);
    for seed in 0..count {
        let mut rng = Rng::with_seed(seed);
        let text = mutated(&mut rng);
        let graph = original.clone();
        let start = Instant::now();
        let budget = Budget::unbounded()
            .with_deadline(start + Duration::from_millis(50))
            .with_memory(16 << 20);
        // A panic would fail the test.
        if let Ok(query) = prepare(&text) {
            let result = query.run_mut(&graph, &parameters, &budget, &mut |_| Ok(Flow::Continue));
            answered += usize::from(result.is_ok());
        }
        slowest = slowest.max(start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(20), "seed {seed}: {text}");
    }
    assert!(answered > 0, "no query succeeded; slowest {slowest:?}");
}

fn graph() -> MemoryGraph {
    let graph = MemoryGraph::new();
    let text =
        "CREATE (a:A {k: 1, n: 'xa'})-[:R {w: 1}]->(b:B {k: 2})-[:R]->(c:A {k: 3})-[:S]->(a),
                (a)-[:S {w: 2}]->(c), (b)-[:R]->(b), (:B)";
    let sink = &mut |_| Ok(Flow::Continue);
    prepare(text).unwrap().run_mut(&graph, &BTreeMap::new(), &Budget::unbounded(), sink).unwrap();
    graph
}

/// One of the queries after some random mutations.
fn mutated(rng: &mut Rng) -> String {
    let mut tokens = tokens(QUERIES[rng.usize(0..QUERIES.len())]);
    for _ in 0..rng.usize(1..4) {
        let at = rng.usize(0..tokens.len());
        match rng.u8(..8) {
            0 => {
                tokens.remove(at);
            }
            1 => tokens.insert(at, tokens[at].clone()),
            2 => {
                let other = rng.usize(0..tokens.len());
                tokens.swap(at, other);
            }
            3 => {
                let other = self::tokens(QUERIES[rng.usize(0..QUERIES.len())]);
                tokens[at] = other[rng.usize(0..other.len())].clone();
            }
            4 => {
                let other = self::tokens(QUERIES[rng.usize(0..QUERIES.len())]);
                let from = rng.usize(0..other.len());
                let to = rng.usize(from..other.len()).min(from + 12);
                tokens.splice(at..at, other[from..to].iter().cloned());
            }
            5 => {
                let letters: Vec<char> = tokens[at].chars().collect();
                let keep = rng.usize(0..letters.len() + 1);
                tokens[at] = letters[..keep].iter().collect();
            }
            6 => {
                let odd = [
                    "",
                    "((",
                    "*",
                    "..",
                    "-",
                    "'",
                    "`",
                    "$",
                    "é",
                    "\0",
                    "99999999999999999999",
                    "null",
                    "[",
                    "{",
                    "}",
                    "/*",
                    "|",
                    "<-",
                    "0x",
                    "1.e",
                    "WHERE",
                    "count(*)",
                    "[*]",
                ];
                tokens.insert(at, odd[rng.usize(0..odd.len())].to_owned());
            }
            _ => tokens.truncate(at.max(1)),
        }
        if tokens.is_empty() {
            tokens.push(String::new());
        }
    }
    tokens.concat()
}

/// Splits a query into words, blanks and symbols.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens: Vec<String> = Vec::new();
    let mut in_word = false;
    for letter in text.chars() {
        let word = letter.is_alphanumeric() || letter == '_';
        match tokens.last_mut() {
            Some(token) if word && in_word => token.push(letter),
            _ => tokens.push(letter.to_string()),
        }
        in_word = word;
    }
    tokens
}
