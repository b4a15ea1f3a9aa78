//! Eight processes in one graph, four that write and four that read, while workers are
//! killed at random: nothing is lost or half written, and no request is refused.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod test_env;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use agent::Agent;
use rustix::process::Signal;
use serde_json::json;
use test_env::{TestEnv, children, send, wait_until};

const WRITERS: usize = 4;
const READERS: usize = 4;

/// The content that each writer writes.
const WRITES: usize = 50;

/// Workers that are killed, one after every few writes.
const KILLS: usize = 24;

/// A pair that only makes sense as a whole: two nodes, an edge, and a node that all of
/// them share, whose count is the number of pairs.
const WRITE: &str = "MERGE (s:Shared {name: 'all'}) \
     ON CREATE SET s.pairs = 1 ON MATCH SET s.pairs = s.pairs + 1 \
     CREATE (a:Left {writer: $writer, n: $n})-[:PAIR {n: $n}]->(b:Right {writer: $writer, n: $n}) \
     CREATE (s)-[:HAS]->(a) RETURN id(a), id(b)";

/// As many of each, whenever one looks.
const READ: &str = "OPTIONAL MATCH (a:Left) WITH count(a) AS left \
     OPTIONAL MATCH (b:Right) WITH left, count(b) AS right \
     OPTIONAL MATCH (:Left)-[p:PAIR]->(:Right) WITH left, right, count(p) AS pairs \
     OPTIONAL MATCH (:Shared)-[h:HAS]->(:Left) WITH left, right, pairs, count(h) AS had \
     OPTIONAL MATCH (s:Shared) RETURN left, right, pairs, had, coalesce(sum(s.pairs), 0), count(s) <= 1";

/// Writes all of a writer's pairs.
fn write(env: &TestEnv, writer: usize, servers: &Mutex<Vec<u32>>, written: &AtomicUsize) {
    let mut agent = Agent::greeted(env.command(&["mcp"]));
    servers.lock().unwrap().push(agent.pid());
    for n in 0..WRITES {
        let params = json!({ "writer": writer, "n": n });
        let answer = agent.call("graph_query", json!({ "query": WRITE, "params": params }));
        assert_eq!(answer["stats"]["relationships_created"], 2, "{answer}");
        written.fetch_add(1, Ordering::SeqCst);
    }
    assert_eq!(agent.leave(), Some(0));
}

/// Looks until all is written: the pairs that were there, each time.
fn read(env: &TestEnv, servers: &Mutex<Vec<u32>>, written: &AtomicUsize) -> Vec<u64> {
    let mut agent = Agent::greeted(env.command(&["mcp"]));
    servers.lock().unwrap().push(agent.pid());
    let mut seen = Vec::new();
    loop {
        let acknowledged = written.load(Ordering::SeqCst);
        let answer = agent.call("graph_query", json!({ "query": READ }));
        let row = &answer["rows"][0];
        let pairs = row[0].as_u64().unwrap();
        assert_eq!(*row, json!([pairs, pairs, pairs, pairs, pairs, true]), "half written");
        assert!(
            pairs >= acknowledged as u64,
            "{acknowledged} were acknowledged, {pairs} are there"
        );
        seen.push(pairs);
        if acknowledged == WRITERS * WRITES {
            break;
        }
    }
    assert_eq!(agent.leave(), Some(0));
    seen
}

/// Kills a worker of some server after every few writes.
fn kill(servers: &Mutex<Vec<u32>>, written: &AtomicUsize) -> usize {
    let mut chance = fastrand::Rng::with_seed(7);
    let mut killed = 0;
    for kill in 1..=KILLS {
        wait_until(|| written.load(Ordering::SeqCst) >= kill * WRITERS * WRITES / (KILLS + 1));
        let servers = servers.lock().unwrap().clone();
        let workers: Vec<u32> = servers.iter().flat_map(|server| children(*server)).collect();
        if let Some(worker) = chance.choice(workers) {
            send(worker, Signal::KILL);
            killed += 1;
        }
    }
    killed
}

#[test]
fn eight_processes_share_a_graph_while_workers_crash() {
    let env = TestEnv::new();
    // The store, before anybody reads.
    env.json(&["graph", "query", "CREATE (:Begun)"]);
    let (servers, written) = (Mutex::default(), AtomicUsize::new(0));
    let (killed, seen) = std::thread::scope(|scope| {
        for writer in 0..WRITERS {
            let (env, servers, written) = (&env, &servers, &written);
            scope.spawn(move || write(env, writer, servers, written));
        }
        let readers: Vec<_> =
            (0..READERS).map(|_| scope.spawn(|| read(&env, &servers, &written))).collect();
        let killed = scope.spawn(|| kill(&servers, &written)).join().unwrap();
        let seen = readers.into_iter().map(|reader| reader.join().unwrap());
        (killed, seen.collect::<Vec<_>>())
    });
    assert!(killed > KILLS / 2, "only {killed} workers were killed");
    for pairs in &seen {
        assert!(pairs.is_sorted(), "what was there is gone: {pairs:?}");
        assert_eq!(*pairs.last().unwrap(), (WRITERS * WRITES) as u64);
    }
    let query = "MATCH (a:Left)-[p:PAIR]->(b:Right) WHERE a.writer = b.writer AND a.n = b.n AND p.n = a.n \
         RETURN a.writer AS writer, count(DISTINCT a.n) AS pairs ORDER BY writer";
    let each: Vec<_> = (0..WRITERS).map(|writer| json!([writer, WRITES])).collect();
    assert_eq!(env.json(&["graph", "query", query])["rows"], json!(each));
    assert_eq!(env.json(&["doctor"])["ok"], true);
}
