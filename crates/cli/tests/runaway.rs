//! Queries without end or bounds, asked as an agent asks them. Each must end in time, as
//! `timeout` or `too_large`, without a death, and leave the server as it was.
//!
//! `cargo test -p isolith --test runaway -- --nocapture` prints a table.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod test_env;

use std::fs;
use std::time::{Duration, Instant};

use agent::Agent;
use serde_json::{Value, json};
use test_env::TestEnv;

/// Seconds that a query has.
const DEADLINE: u64 = 3;

/// Maximum memory of the front.
const FRONT_BYTES: u64 = 100 << 20;

/// A text of 2^`power` letters, and twice as many.
const S20: &str = "reduce(s = 'ab', i IN range(1, 19) | s + s)";
const S24: &str = "reduce(s = 'ab', i IN range(1, 23) | s + s)";

/// `S20` and `S24` stand for the texts above.
const QUERIES: [&str; 72] = [
    // Values that share their parts, and values that nest.
    "RETURN reduce(m = {a: 1}, i IN range(1, 21) | {a: m, b: m})",
    "RETURN reduce(m = {a: 1}, i IN range(1, 99) | {a: m, b: m})",
    "RETURN reduce(l = [1], i IN range(1, 22) | [l, l])",
    "WITH S20 AS s RETURN reduce(l = [s, s], i IN range(1, 22) | [l, l])",
    "RETURN reduce(l = 1, i IN range(1, 20000) | [l])",
    "RETURN reduce(m = 1, i IN range(1, 20000) | {m: m})",
    "RETURN size(reduce(l = [], i IN range(1, 20000) | [l]))",
    "WITH reduce(m = {a: 1}, i IN range(1, 20) | {a: m, b: m}) AS m RETURN m = m",
    "WITH reduce(m = 1, i IN range(1, 30) | [m, m]) AS m RETURN DISTINCT m",
    "WITH reduce(m = 1, i IN range(1, 30) | [m, m]) AS m RETURN m AS m ORDER BY m",
    // Lists and maps.
    "RETURN [x IN range(1, 1000000) | {a: x}]",
    "RETURN [x IN range(1, 10000000) | {a: x, b: [x, x, x]}]",
    "RETURN range(1, 1000000000000)",
    "RETURN size(range(1, 9000000) + range(1, 9000000))",
    "RETURN [x IN range(1, 5000000) | toString(x)]",
    "WITH range(1, 3000000) AS a, range(1, 3000000) AS b, range(1, 3000000) AS c, range(1, 3000000) AS d RETURN size(a)",
    "WITH range(1, 9000000) AS a RETURN size(reverse(a))",
    "WITH range(1, 9000000) AS a RETURN size(a[1..8999999])",
    "RETURN reduce(l = [], x IN range(1, 100000000) | l + x)",
    "RETURN reduce(l = [1], x IN range(1, 40) | l + l)",
    "RETURN [x IN range(1, 100000) | range(1, x)]",
    "RETURN size([x IN range(1, 1000000) WHERE any(y IN range(1, 1000000) WHERE y = x + 0.5)])",
    "RETURN all(x IN range(1, 10000000) WHERE none(y IN range(1, 100) WHERE y > x * 1000))",
    // Texts.
    "RETURN reduce(s = 'ab', i IN range(1, 60) | s + s)",
    "WITH S24 AS s RETURN size(split(s, ''))",
    "WITH S24 AS s RETURN size(split(s, 'a'))",
    "WITH S24 AS s RETURN replace(s, 'a', s)",
    "WITH S24 AS s RETURN s",
    "WITH S24 AS s UNWIND range(1, 100000) AS x RETURN count(toUpper(s) + x)",
    "WITH S24 AS s UNWIND range(1, 100000) AS x RETURN count(s + x = s + 'b')",
    "WITH S24 AS s UNWIND range(1, 1000) AS x RETURN collect(s + x)",
    "WITH S24 AS s WITH s, s + 1 AS a, s + 2 AS b, s + 3 AS c, s + 4 AS d, s + 5 AS e, s + 6 AS f, s + 7 AS g, s + 8 AS h, s + 9 AS i, s + 10 AS j, s + 11 AS k, s + 12 AS l, s + 13 AS m, s + 14 AS n, s + 15 AS o, s + 16 AS p RETURN 1",
    "WITH S20 AS s UNWIND range(1, 1000000) AS x RETURN count(s CONTAINS 'abb')",
    "WITH S20 AS s UNWIND range(1, 1000000) AS x RETURN count(reverse(s))",
    "WITH S24 AS s UNWIND range(1, 100) AS x RETURN count(s =~ '(a|b|ab|ba)*(a{1,40}b?){1,40}c')",
    "UNWIND range(1, 10000000) AS x RETURN count('aaaa' =~ ('(a{1,60}){1,' + (x % 50 + 1) + '}'))",
    "RETURN 'a' =~ '((a{1000}){1000}){1000}'",
    // Rows that are kept, sorted and grouped.
    "UNWIND range(1, 8000000) AS x RETURN count(DISTINCT toString(x))",
    "UNWIND range(1, 8000000) AS x RETURN collect(x)",
    "UNWIND range(1, 8000000) AS x RETURN collect({a: x})",
    "UNWIND range(1, 8000000) AS x RETURN DISTINCT x",
    "UNWIND range(1, 8000000) AS x RETURN x ORDER BY -x",
    "UNWIND range(1, 8000000) AS x WITH toString(x % 1000) + x AS s ORDER BY s RETURN count(*)",
    "UNWIND range(1, 8000000) AS x RETURN x, count(*)",
    "UNWIND range(1, 8000000) AS x WITH [x, x] AS k, count(*) AS c RETURN max(c)",
    "UNWIND range(1, 8000000) AS x RETURN percentileCont(x, 0.5)",
    "UNWIND range(1, 8000000) AS x RETURN x UNION UNWIND range(1, 8000000) AS x RETURN -x AS x",
    "WITH range(1, 1000000) AS l UNWIND range(1, 100000) AS x WITH l + x AS k, count(*) AS c RETURN max(c)",
    "WITH range(1, 1000000) AS l UNWIND range(1, 100000) AS x WITH l, x ORDER BY l, x RETURN count(*)",
    "WITH range(1, 1000000) AS l UNWIND range(1, 100000) AS x RETURN count(l IN [l + 1, l + 2])",
    "WITH range(1, 1000000) AS l UNWIND range(1, 100000) AS x RETURN max(l + x)",
    // Answers that are too long.
    "UNWIND range(1, 100000000) AS x RETURN x",
    "WITH S20 AS s UNWIND range(1, 100000) AS x RETURN s",
    "UNWIND range(1, 1000000) AS x RETURN range(1, 1000)",
    "MATCH (a:N), (b:N), (c:N), (d:N) RETURN a, b, c, d",
    "MATCH p = (a:N)-[*1..6]-(b) RETURN p",
    // Work without end.
    "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b RETURN count(*)",
    "RETURN reduce(a = 0, x IN range(1, 10000000) | a + size([y IN range(1, 1000) | y]))",
    "MATCH (a), (b), (c), (d), (e), (f) RETURN count(*)",
    "MATCH (a)-[*]-(b) RETURN count(*)",
    "MATCH (a)-[r*]-(b) RETURN r",
    "MATCH (a)-[r*]-(b) RETURN collect(r)",
    "MATCH p = (a)-[*]-(b) RETURN max(length(p))",
    "MATCH (a:N {i: 1}), (b:N {i: 2}) MATCH p = shortestPath((a)-[*]-(b)) WHERE length(p) > 20 RETURN p",
    "MATCH (a:N {i: 1}), (b:N {i: 2}) MATCH p = allShortestPaths((a)-[*]-(b)) WHERE length(p) > 6 RETURN collect(p)",
    "MATCH (a:N), (b:N) RETURN [(a)-[*1..5]-() | [(b)-[*1..5]-() | 1]]",
    "MATCH (a:N) WHERE EXISTS { (a)-[*8..20]-(:Missing) } RETURN a",
    "MATCH (a:N), (b:N), (c:N) WITH collect([a, b, c]) AS l UNWIND l AS x UNWIND l AS y RETURN count(x = y)",
    // Changes.
    "UNWIND range(1, 100000000) AS x CREATE (:Big {x: x})",
    "MATCH (a), (b), (c) CREATE (a)-[:BIG]->(b) CREATE (b)-[:BIG]->(c)",
    "UNWIND range(1, 10000000) AS x MERGE (n:Big {x: x}) SET n.s = toString(x)",
    "UNWIND range(1, 30000000) AS x WITH collect(x) AS l MATCH (n:N) SET n.l = l",
];

fn memory(pid: u32, field: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// The code of the error, or `ok`; and how long it took.
fn outcome(agent: &mut Agent, query: &str) -> (String, Duration) {
    let start = Instant::now();
    let arguments = json!({ "query": query });
    let answer = agent.ask("tools/call", json!({ "name": "graph_query", "arguments": arguments }));
    let result = &answer["result"];
    let code = match &result["structuredContent"]["error"]["code"] {
        Value::String(code) => code.clone(),
        _ if result["isError"] == false || result["isError"].is_null() => "ok".to_owned(),
        _ => panic!("{query}: {answer}"),
    };
    (code, start.elapsed())
}

#[test]
fn runaway_queries_end_in_time_and_kill_nothing() {
    let env = TestEnv::new();
    let timeout = DEADLINE.to_string();
    let mut agent = Agent::greeted(env.command(&["mcp", "--timeout", &timeout]));
    let make = "UNWIND range(1, 40) AS i CREATE (:N {i: i})";
    agent.call("graph_query", json!({ "query": make }));
    let link = "MATCH (a:N), (b:N) WHERE a <> b CREATE (a)-[:R]->(b)";
    agent.call("graph_query", json!({ "query": link }));
    let (mut stopped, mut late, mut slowest) = (0, 0, Duration::ZERO);
    for query in QUERIES {
        let text = query.replace("S20", S20).replace("S24", S24);
        let (code, took) = outcome(&mut agent, &text);
        let shown: String = query.chars().take(90).collect();
        println!("{code:10} {:6.2} s  {shown}", took.as_secs_f64());
        assert!(["timeout", "too_large", "ok"].contains(&code.as_str()), "{query}: {code}");
        stopped += usize::from(code != "ok");
        late += usize::from(took > Duration::from_secs(DEADLINE).mul_f32(1.1));
        slowest = slowest.max(took);
        // The next query does not have to wait for leftovers of this one.
        let found = agent.call("graph_query", json!({ "query": "MATCH (n:N {i: 7}) RETURN n.i" }));
        assert_eq!(found["rows"], json!([[7]]), "after {query}");
    }
    let (peak, now) = (memory(agent.pid(), "VmHWM"), memory(agent.pid(), "VmRSS"));
    let workers: Vec<u64> = agent.workers().iter().map(|pid| memory(*pid, "VmRSS") >> 20).collect();
    println!(
        "{} queries, {stopped} stopped, {late} late, slowest {slowest:?}; the front took {} MB, has {} MB; workers have {workers:?} MB",
        QUERIES.len(),
        peak >> 20,
        now >> 20
    );
    // On a busy machine the answer is late, and nothing else: no worker was killed.
    let status = agent.call("health", json!({}));
    for store in status["stores"].as_array().unwrap() {
        assert_eq!(store["crashes"], json!({}), "{status}");
    }
    assert!(stopped >= 60, "{stopped} were stopped, the others are not runaways");
    assert!(slowest < Duration::from_secs(10 * DEADLINE), "{slowest:?}");
    assert!(peak <= FRONT_BYTES, "the front took {} MB", peak >> 20);
    assert_eq!(agent.leave(), Some(0));
}
