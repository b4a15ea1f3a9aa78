//! Measures the CPU time of queries on an in-memory graph of 100,000 nodes and 500,000 relationships, with and
//! without its adjacency: `cargo run --release -p isolith-graph --example speed`.

use std::collections::BTreeMap;

use fastrand::Rng;
use isolith_graph::{Budget, Datum, Flow, GraphMut, MemoryGraph, Value, prepare};

const NODES: i64 = 100_000;
const EDGES: usize = 500_000;

const QUERIES: [(&str, &str, u32); 9] = [
    ("point", "MATCH (n:N {k: $k}) RETURN n.name", 1000),
    ("2 hops", "MATCH (n:N {k: $k})-[:R]->()-[:R]->(m) RETURN m.k", 1000),
    ("1..4 distinct", "MATCH (n:N {k: $k})-[:R*1..4]->(m) RETURN DISTINCT m.k", 200),
    ("1..4 count", "MATCH (n:N {k: $k})-[:R*1..4]->(m) RETURN count(DISTINCT m)", 200),
    (
        "shortest",
        "MATCH (a:N {k: $k}), (b:N {k: $l}) RETURN length(shortestPath((a)-[:R*]->(b)))",
        200,
    ),
    ("top 20", "MATCH (n)-[r:R]->() RETURN n.k, count(r) AS d ORDER BY d DESC LIMIT 20", 5),
    ("top 20 nodes", "MATCH (n:N)-[r]->() RETURN n, count(r) AS d ORDER BY d DESC LIMIT 20", 5),
    ("all edges", "MATCH ()-[r:R]->() RETURN count(r)", 5),
    (
        "unwind",
        "UNWIND range($k, $k + 999) AS k MATCH (n:N {k: k % 100000})-[:R]->(m) RETURN count(m)",
        20,
    ),
];

fn main() -> Result<(), isolith_graph::Error> {
    let mut graph = MemoryGraph::new();
    let mut rng = Rng::with_seed(7);
    for k in 0..NODES {
        let name = Value::text(format!("node {k}"));
        graph.create_node(&["N".into()], &[("k".into(), k.into()), ("name".into(), name)])?;
    }
    for _ in 0..EDGES {
        graph.create_edge("R", rng.i64(0..NODES), rng.i64(0..NODES), &[])?;
    }
    for frozen in [false, true] {
        if frozen {
            graph.freeze();
        }
        for (name, text, times) in QUERIES {
            let query = prepare(text)?;
            let mut rows = 0_u64;
            let start = cpu();
            for _ in 0..times {
                let mut number = || Datum::Integer(rng.i64(0..NODES));
                let parameters =
                    BTreeMap::from([("k".to_owned(), number()), ("l".to_owned(), number())]);
                query.run(&graph, &parameters, &Budget::unbounded(), &mut |_| {
                    rows += 1;
                    Ok(Flow::Continue)
                })?;
            }
            let each = (cpu() - start) / f64::from(times);
            let rows = rows / u64::from(times);
            println!("{name:16} adjacency {frozen:5} {each:9.4} ms {rows:6} rows");
        }
    }
    let start = cpu();
    for (_, text, _) in QUERIES.iter().cycle().take(9000) {
        prepare(text)?;
    }
    println!("{:16} {:9.4} ms", "prepare", (cpu() - start) / 9000.0);
    Ok(())
}

/// The CPU time of this thread, in milliseconds.
fn cpu() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds: f64 = text.split(' ').next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
    nanoseconds / 1e6
}
