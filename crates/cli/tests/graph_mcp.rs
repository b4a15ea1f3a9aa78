//! The graph as an agent sees it: Cypher by `graph_query`.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod test_env;

use agent::Agent;
use serde_json::{Value, json};
use test_env::TestEnv;

fn agent_of(env: &TestEnv) -> Agent {
    Agent::greeted(env.command(&["mcp"]))
}

fn rows(agent: &mut Agent, query: &str) -> Value {
    agent.call("graph_query", json!({ "query": query }))["rows"].clone()
}

#[test]
fn writes_of_one_server_are_read_by_another() {
    let env = TestEnv::new();
    let mut writer = agent_of(&env);
    let error = writer.refused("graph_query", json!({ "query": "MATCH (n) RETURN n" }));
    assert_eq!(error["code"], "no_store");
    assert!(error["hint"].as_str().unwrap().contains("index_project"), "{error}");

    let query = "UNWIND $people AS p CREATE (a:Person {name: p.name})-[:KNOWS {since: 1999}]->(:Person {name: p.knows})";
    let people = json!([{ "name": "Ann", "knows": "Ben" }, { "name": "Cy", "knows": "Dee" }]);
    let made =
        writer.call("graph_query", json!({ "query": query, "params": { "people": people } }));
    assert_eq!((&made["columns"], &made["rows"]), (&json!([]), &json!([])), "{made}");
    assert_eq!(made["stats"]["nodes_created"], 4);
    assert_eq!(made["stats"]["relationships_created"], 2);

    let mut reader = agent_of(&env);
    let query = "MATCH p = (a:Person {name: $name})-[r]->(b) RETURN a, r, b.name, p";
    let found = reader.call("graph_query", json!({ "query": query, "params": { "name": "Ann" } }));
    assert_eq!(found["columns"], json!(["a", "r", "b.name", "p"]));
    assert_eq!(found["next"], Value::Null);
    let row = &found["rows"][0];
    assert_eq!(row[0]["labels"], json!(["Person"]), "{row}");
    assert_eq!(row[0]["properties"], json!({ "name": "Ann" }));
    assert_eq!((&row[1]["type"], &row[1]["start"]), (&json!("KNOWS"), &row[0]["id"]));
    assert_eq!((&row[2], &row[3]["nodes"][0]), (&json!("Ben"), &row[0]));
    // The command line has the same.
    let printed = env.json(&["graph", "query", query, "--param-str", "name=Ann"]);
    assert_eq!(&printed["rows"][0], row);
    assert_eq!((writer.leave(), reader.leave()), (Some(0), Some(0)));
}

#[test]
fn a_long_answer_comes_in_pages() {
    let env = TestEnv::new();
    let mut agent = agent_of(&env);
    rows(&mut agent, "UNWIND range(1, 250) AS n CREATE (:N {n: n})");
    let ask = json!({ "query": "MATCH (n:N) RETURN n.n ORDER BY n.n" });
    let mut page = agent.call("graph_query", ask);
    // It is the answer of then, whatever happens to the graph or its workers.
    rows(&mut agent, "MATCH (n:N) DELETE n");
    agent.workers().iter().for_each(|pid| test_env::send(*pid, rustix::process::Signal::KILL));
    let (mut seen, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let rows = page["rows"].as_array().unwrap();
        seen.extend(rows.iter().map(|row| row[0].as_u64().unwrap()));
        sizes.push(rows.len());
        let Some(next) = page["next"].as_str() else { break };
        page = agent.call("graph_query", json!({ "next": next, "limit": 120 }));
        assert_eq!(page["columns"], json!(["n.n"]));
    }
    assert_eq!(seen, (1..=250).collect::<Vec<_>>());
    assert_eq!(sizes, [100, 120, 30]);
    // A page is bounded in bytes too.
    let long = "UNWIND range(1, 40) AS n RETURN n, reduce(s = '', x IN range(1, 20000) | s + 'x')";
    let page = agent.call("graph_query", json!({ "query": long }));
    let count = page["rows"].as_array().unwrap().len();
    assert!((10..15).contains(&count) && page["next"].is_string(), "{count} rows");
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn errors_are_explained() {
    let env = TestEnv::new();
    let mut agent = agent_of(&env);
    let three =
        json!({ "query": "UNWIND [1, 2, 3] AS n CREATE (a:N {n: n}) RETURN n", "limit": 1 });
    let next = agent.call("graph_query", three)["next"].clone();
    let mut restarted = agent_of(&env);
    let error = restarted.refused("graph_query", json!({ "next": next }));
    assert_eq!(error["code"], "cursor_expired");
    assert!(error["hint"].as_str().unwrap().contains("again"), "{error}");
    let table = [
        (json!({ "next": "nonsense" }), "cursor_expired", "expired"),
        (json!({}), "bad_input", "either query or next"),
        (json!({ "query": "RETURN 1", "next": next }), "bad_input", "either query or next"),
        (json!({ "query": "RETURN 1", "limit": 1001 }), "bad_input", "1000"),
        (json!({ "query": "MATCH (n)\nRETRUN n" }), "bad_input", "line 2, column 1"),
        (json!({ "query": "RETURN $missing" }), "bad_input", "missing"),
        (json!({ "query": "RETURN 1/0" }), "bad_input", "zero"),
        (json!({ "query": "RETURN nothing(1)" }), "bad_input", "nothing"),
    ];
    for (arguments, code, words) in table {
        let error = agent.refused("graph_query", arguments.clone());
        assert_eq!(error["code"], code, "{arguments}: {error}");
        assert!(error["message"].as_str().unwrap().contains(words), "{arguments}: {error}");
    }
    let rest = agent.call("graph_query", json!({ "next": next }));
    assert_eq!(rest["rows"], json!([[2], [3]]), "the first server still has it");
    assert_eq!((agent.leave(), restarted.leave()), (Some(0), Some(0)));
}

#[test]
fn a_runaway_query_is_stopped_and_the_next_one_answered() {
    let env = TestEnv::new();
    let mut agent = Agent::greeted(env.command(&["mcp", "--timeout", "2"]));
    rows(&mut agent, "UNWIND range(1, 300) AS n CREATE (:N {n: n})");
    let endless = "MATCH (a:N), (b:N), (c:N), (d:N) WHERE a.n + b.n + c.n + d.n < 0 RETURN a";
    let error = agent.refused("graph_query", json!({ "query": endless }));
    assert_eq!(error["code"], "timeout", "{error}");
    assert_eq!(rows(&mut agent, "MATCH (n:N) RETURN count(n)"), json!([[300]]));
    // One that writes leaves nothing of it.
    let endless = "MATCH (a:N), (b:N), (c:N), (d:N) CREATE (:M {n: a.n})";
    let error = agent.refused("graph_query", json!({ "query": endless }));
    assert!(["timeout", "too_large"].contains(&error["code"].as_str().unwrap()), "{error}");
    assert_eq!(rows(&mut agent, "MATCH (n) RETURN count(n)"), json!([[300]]));
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn parameters_are_exact_or_refused() {
    let env = TestEnv::new();
    let mut agent = agent_of(&env);
    rows(&mut agent, "CREATE (:N {n: 1})");
    let ask = |value: Value| json!({ "query": "RETURN $x AS x", "params": { "x": value } });
    for wide in [json!(u64::MAX), json!(9_223_372_036_854_775_808_u64), json!([{ "id": 1e23 }])] {
        let error = agent.refused("graph_query", ask(wide.clone()));
        assert_eq!(error["code"], "bad_input", "{wide}: {error}");
        assert!(error["message"].as_str().unwrap().contains("64-bit"), "{error}");
    }
    let nested = |depth| (0..depth).fold(json!(1), |value, _| json!([value]));
    assert_eq!(agent.refused("graph_query", ask(nested(110)))["code"], "bad_input");
    let deep = agent.call("graph_query", ask(nested(100)));
    assert_eq!(deep["rows"], json!([[nested(100)]]));
    let exact = [json!(i64::MAX), json!(i64::MIN), json!(1.5e18), json!("1e23")];
    for value in exact {
        assert_eq!(agent.call("graph_query", ask(value.clone()))["rows"], json!([[value]]));
    }
    let query = ["graph", "query", "RETURN $x AS x"];
    for wide in ["x=12345678901234567890123", "x=[18446744073709551615]"] {
        let error = env.fails(&[&query[..], &["--param", wide]].concat(), 3, "bad_input");
        assert!(error["message"].as_str().unwrap().starts_with("--param x: "), "{error}");
    }
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn numbers_that_are_not_finite_are_shown_alike_everywhere() {
    let env = TestEnv::new();
    let mut agent = agent_of(&env);
    rows(&mut agent, "CREATE (:N {n: 1})");
    let query = "RETURN 0.0 / 0.0 AS a, 1.0 / 0.0 AS b, -1.0 / 0.0 AS c, sqrt(-1) AS d";
    let shown = json!([["NaN", "Infinity", "-Infinity", "NaN"]]);
    assert_eq!(rows(&mut agent, query), shown);
    assert_eq!(env.json(&["graph", "query", query])["rows"], shown);
    let csv = env.run(&["graph", "query", query, "--format", "csv"]).stdout;
    assert_eq!(csv, "a,b,c,d\r\nNaN,Infinity,-Infinity,NaN\r\n");
    let table = env.run(&["graph", "query", query]).stdout;
    assert!(table.ends_with("NaN  Infinity  -Infinity  NaN\n"), "{table}");
    assert_eq!(agent.leave(), Some(0));
}
