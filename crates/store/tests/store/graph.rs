//! The graph in the database: Cypher over SQLite agrees with Cypher in memory, and write queries
//! are atomic and applied once.

use std::collections::BTreeMap;

use isolith_graph::{Adjacency, Budget, Datum, Flow, Graph, MemoryGraph, prepare};
use isolith_protocol::{
    ChangeGraph, CypherQuery, GraphAnswer, GraphSegmentEntry, Key, QuarantineGraphSegment,
    StoreError, SwapGraphSegment,
};
use isolith_store::{AdjacencySource, GraphLists};
use isolith_types::Code;

use crate::common::TestStore;

fn query(text: &str) -> CypherQuery {
    CypherQuery { text: text.to_owned(), parameters: BTreeMap::new() }
}

fn change(store: &mut TestStore, text: &str) -> Result<GraphAnswer, StoreError> {
    let outcome = store.one(ChangeGraph { query: query(text) })?;
    Ok(outcome.reply.graph.expect("it changes something"))
}

fn read(store: &TestStore, text: &str) -> Vec<Vec<Datum>> {
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let answer =
        snapshot.cypher(&query(text), None).unwrap_or_else(|error| panic!("{text}: {error}"));
    answer.rows().collect::<Result<_, _>>().unwrap()
}

/// The edges of all nodes as a build of the graph's segment reads them.
struct Built(GraphLists);

impl AdjacencySource for Built {
    fn adjacency(&self) -> Option<Adjacency<'_>> {
        let GraphLists { nodes, out, incoming } = &self.0;
        Some(Adjacency { nodes, out: out.as_csr(), incoming: incoming.as_csr() })
    }
}

fn read_with_lists(store: &TestStore, text: &str) -> Vec<Vec<Datum>> {
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let lists = Built(snapshot.graph_lists().unwrap());
    assert!(lists.adjacency().unwrap().check());
    snapshot.cypher(&query(text), Some(&lists)).unwrap().rows().collect::<Result<_, _>>().unwrap()
}

fn integers(rows: &[Vec<Datum>]) -> Vec<Vec<i64>> {
    let number = |datum: &Datum| match datum {
        Datum::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    };
    rows.iter().map(|row| row.iter().map(number).collect()).collect()
}

#[test]
fn created_nodes_and_edges_are_found() {
    let mut store = TestStore::empty();
    let made = change(&mut store, "CREATE (:F {n: 1})-[:R {w: 2}]->(:F:G {n: 2.0, t: ['a', 'b']})");
    let stats = made.unwrap().stats;
    assert_eq!((stats.nodes_created, stats.relationships_created), (2, 1));
    assert_eq!((stats.labels_added, stats.properties_set), (3, 4));
    for (text, expected) in [
        ("MATCH (n:F) RETURN count(*)", 2),
        ("MATCH (n:G) RETURN count(*)", 1),
        ("MATCH (n {n: 2}) RETURN count(*)", 1),
        ("MATCH (n:F {n: 1}) RETURN count(*)", 1),
        ("MATCH (n {t: ['a', 'b']}) RETURN count(*)", 1),
        ("MATCH ()-[r:R {w: 2}]->() RETURN count(r)", 1),
        ("MATCH ()--() RETURN count(*)", 2),
        ("MATCH (n) WHERE NOT (n.t = 1) RETURN count(*)", 1),
        ("MATCH (n:Nothing) RETURN count(*)", 0),
    ] {
        assert_eq!(integers(&read(&store, text)), [[expected]], "{text}");
    }
    change(&mut store, "MATCH (f:F) CREATE (:F)").unwrap();
    assert_eq!(integers(&read(&store, "MATCH (n:F) RETURN count(*)")), [[4]]);
    change(&mut store, "MATCH (n:G) REMOVE n:G, n.t SET n.n = 7, n:H").unwrap();
    assert_eq!(read(&store, "MATCH (n:G) RETURN n").len(), 0);
    assert_eq!(read(&store, "MATCH (n {n: 2}) RETURN n").len(), 0);
    assert_eq!(read(&store, "MATCH (n:H {n: 7}) WHERE n.t IS NULL RETURN n").len(), 1);
    change(&mut store, "MATCH (n) DETACH DELETE n").unwrap();
    assert_eq!(integers(&read(&store, "MATCH (n) RETURN count(*)")), [[0]]);
    assert_eq!(integers(&read(&store, "MATCH ()-[r]->() RETURN count(*)")), [[0]]);
}

#[test]
fn labels_are_read_with_and_without_properties() {
    let mut store = TestStore::empty();
    let make = "CREATE (h:Hub) WITH h UNWIND range(1, 150) AS k CREATE (h)-[:E]->(n {k: k}) \
                WITH n WHERE n.k % 3 = 0 SET n:Third";
    change(&mut store, make).unwrap();
    change(&mut store, "MATCH (n {k: 6}) REMOVE n:Third").unwrap();
    change(&mut store, "MATCH (n {k: 7}) SET n:Third, n.k = 700").unwrap();
    // Few enough to be read one by one, and more.
    for first in [5, 30, 150] {
        let expected: Vec<i64> = (1..=first)
            .filter(|k| k % 3 == 0 && *k != 6)
            .chain((first >= 7).then_some(7))
            .collect();
        let found = format!("MATCH (:Hub)-[:E]->(n) WITH n ORDER BY id(n) LIMIT {first} ");
        let rows = read(&store, &format!("{found} MATCH (n:Third) RETURN count(n)"));
        assert_eq!(integers(&rows), [[expected.len() as i64]], "{first}");
        let rows = read(&store, &format!("{found} MATCH (n:Third) RETURN sum(n.k % 697)"));
        let sum: i64 = expected.iter().map(|k| if *k == 7 { 3 } else { *k }).sum();
        assert_eq!(integers(&rows), [[sum]], "{first}");
        let rows = read(&store, &format!("{found} RETURN sum(size(labels(n)) * n.k % 697)"));
        assert_eq!(integers(&rows), [[sum]], "{first}");
    }
}

#[test]
fn a_query_that_fails_changes_nothing() {
    let mut store = TestStore::empty();
    change(&mut store, "CREATE (:A {x: 1})-[:R]->(:A {x: 0})").unwrap();
    for (text, words) in [
        ("MATCH (n:A) SET n.y = 1 / n.x", "zero"),
        ("CREATE (:B) WITH 1 AS one RETURN 9223372036854775807 + one", "too large"),
        ("MATCH (n:A {x: 1}) DELETE n", "still has a relationship"),
    ] {
        let error = change(&mut store, text).unwrap_err();
        let failure = error.to_failure();
        assert_eq!(failure.code, Code::BadInput, "{text}: {failure}");
        assert!(failure.message.contains(words), "{text}: {failure}");
    }
    assert_eq!(integers(&read(&store, "MATCH (n) RETURN count(*)")), [[2]]);
    assert_eq!(integers(&read(&store, "MATCH (n) WHERE n.y IS NOT NULL RETURN count(*)")), [[0]]);
}

#[test]
fn a_query_with_a_key_is_applied_once() {
    let mut store = TestStore::empty();
    let mut run =
        |text: &str, key: &str| store.keyed(Key::of_text(key), ChangeGraph { query: query(text) });
    let create = "CREATE (n:A {x: 0.0 / 0.0, t: 'short'}) RETURN n.x, n.t";
    let first = run(create, "one").unwrap();
    let again = run(create, "one").unwrap();
    assert!(again.repeated && !first.repeated);
    let rows = |answer: &GraphAnswer| format!("{:?}", answer.rows().collect::<Vec<_>>());
    assert_eq!(rows(again.graph.as_ref().unwrap()), rows(first.graph.as_ref().unwrap()));
    let long = "UNWIND range(1, 1000) AS i CREATE (n:B {i: i}) RETURN n";
    assert!(!run(long, "two").unwrap().reply.graph.unwrap().forgotten);
    let again = run(long, "two").unwrap().reply.graph.unwrap();
    assert!(again.forgotten, "too long to be remembered");
    assert_eq!((again.count, again.stats.nodes_created), (1000, 1000));
    assert_eq!(run("CREATE (:C)", "two").unwrap_err(), StoreError::KeyReused);
    assert_eq!(integers(&read(&store, "MATCH (n) RETURN count(*)")), [[1001]]);
}

#[test]
fn the_writer_does_not_run_read_only_queries() {
    let mut store = TestStore::empty();
    let outcome = store.one(ChangeGraph { query: query("MATCH (n) RETURN n.set") }).unwrap();
    assert_eq!(outcome.graph, None);
    let mut reader = store.reader();
    let error = reader.snapshot().unwrap().cypher(&query("CREATE (:A)"), None).unwrap_err();
    assert_eq!(error.to_failure().code, Code::BadInput);
}

/// Applies random changes to both graphs and compares the answers to random queries.
#[test]
fn database_and_in_memory_graph_agree() {
    let mut random = fastrand::Rng::with_seed(7);
    for round in 0..12 {
        let (mut store, memory) = (TestStore::empty(), MemoryGraph::new());
        for _ in 0..25 {
            let text = random_change(&mut random);
            let ours = change(&mut store, &text).map(|answer| answer.stats);
            let theirs = in_memory(&memory, &text);
            match (ours, theirs) {
                (Ok(ours), Ok((_, theirs))) => assert_eq!(ours, theirs, "{round}: {text}"),
                (Err(_), Err(_)) => {}
                (ours, theirs) => panic!("{round}: {text}: {ours:?}, {theirs:?}"),
            }
            let text = random_question(&mut random);
            let rows = sorted(read(&store, &text));
            let (theirs, _) = in_memory(&memory, &text).unwrap();
            assert_eq!(rows, sorted(theirs), "{round}: {text}");
            assert_eq!(rows, sorted(read_with_lists(&store, &text)), "{round}, lists: {text}");
        }
        let counted = "MATCH (n) RETURN count(*)";
        assert_eq!(
            integers(&read(&store, counted)),
            [[i64::try_from(memory.node_count(None).unwrap()).unwrap()]]
        );
    }
}

#[test]
fn a_graph_segment_is_current_only_at_its_change_number() {
    let mut store = TestStore::empty();
    let state = |store: &TestStore| store.reader().snapshot().unwrap().graph_state().unwrap();
    change(&mut store, "CREATE (:A)-[:R]->(:A)").unwrap();
    let before = state(&store);
    assert_eq!((before.nodes, before.edges, &before.segment), (2, 1, &None));
    let entry = |change, file: &str| GraphSegmentEntry {
        change,
        edges: 1,
        file: file.to_owned(),
        bytes: 1,
        checksum: 1,
        quarantined: None,
    };
    let swap = |entry| SwapGraphSegment { entry };
    let swapped = store.one(swap(Some(entry(before.change, "one")))).unwrap();
    assert!(swapped.swapped && swapped.obsolete_files.is_empty());
    assert_eq!(state(&store).current().unwrap().file, "one");
    // Edges make it outdated; properties and labels do not.
    change(&mut store, "MATCH (a:A) SET a.x = 1, a:B").unwrap();
    assert!(state(&store).current().is_some());
    change(&mut store, "MATCH ()-[r:R]->() DELETE r").unwrap();
    assert!(state(&store).current().is_none());
    let late = store.one(swap(Some(entry(before.change, "late")))).unwrap();
    assert!(!late.swapped);
    let now = state(&store).change;
    let swapped = store.one(swap(Some(entry(now, "two")))).unwrap();
    assert_eq!(swapped.obsolete_files, ["one"]);
    let quarantine =
        |file: &str| QuarantineGraphSegment { file: file.to_owned(), reason: "damaged".to_owned() };
    assert_eq!(store.one(quarantine("one")).unwrap().updated, 0);
    assert!(state(&store).current().is_some());
    assert_eq!(store.one(quarantine("two")).unwrap().updated, 1);
    assert!(state(&store).current().is_none() && state(&store).is_quarantined());
    assert_eq!(store.one(swap(None)).unwrap().obsolete_files, ["two"]);
    assert_eq!(state(&store).segment, None);
}

type Answered = (Vec<Vec<Datum>>, isolith_graph::Stats);

fn in_memory(graph: &MemoryGraph, text: &str) -> isolith_graph::Result<Answered> {
    let mut rows = Vec::new();
    let stats =
        prepare(text)?.run_mut(graph, &BTreeMap::new(), &Budget::unbounded(), &mut |row| {
            rows.push(row);
            Ok(Flow::Continue)
        })?;
    Ok((rows, stats))
}

fn sorted(rows: Vec<Vec<Datum>>) -> Vec<String> {
    let mut rows: Vec<String> = rows.iter().map(|row| format!("{row:?}")).collect();
    rows.sort();
    rows
}

fn random_change(random: &mut fastrand::Rng) -> String {
    let label = ["A", "B", "C"][random.usize(..3)];
    let kind = ["R", "S"][random.usize(..2)];
    let (x, y) = (random.i64(0..6), random.i64(0..6));
    match random.usize(..10) {
        0 | 1 => format!("CREATE (:{label} {{k: {x}}})-[:{kind} {{w: {y}}}]->(:A {{k: {y}}})"),
        2 => {
            format!("MERGE (n:{label} {{k: {x}}}) ON CREATE SET n.c = 1 ON MATCH SET n.c = n.c + 1")
        }
        3 => {
            format!("MATCH (a {{k: {x}}}), (b {{k: {y}}}) MERGE (a)-[r:{kind}]->(b) SET r.w = {x}")
        }
        4 => format!("MATCH (a {{k: {x}}}) CREATE (a)-[:{kind}]->(a)"),
        5 => format!("MATCH (n {{k: {x}}}) SET n:{label}, n.t = 'text {y}', n.l = [{x}, {y}]"),
        6 => format!("MATCH (n:{label}) REMOVE n:{label}, n.t"),
        7 => format!("MATCH ()-[r:{kind} {{w: {x}}}]->() DELETE r"),
        8 => format!("MATCH (n:{label} {{k: {x}}}) SET n.k = {y}.0, n += {{t: null, b: true}}"),
        _ => format!("MATCH (n {{k: {x}}}) WITH n LIMIT 1 DETACH DELETE n"),
    }
}

fn random_question(random: &mut fastrand::Rng) -> String {
    let label = ["A", "B", "C"][random.usize(..3)];
    let kind = ["R", "S"][random.usize(..2)];
    let x = random.i64(0..6);
    match random.usize(..9) {
        0 => format!("MATCH (n:{label}) RETURN n.k, n.t, n.l, n.b, n.c"),
        1 => format!("MATCH (n {{k: {x}}}) RETURN labels(n), n.k"),
        2 => format!("MATCH (a:{label})-[r:{kind}]->(b) RETURN a.k, r.w, b.k"),
        3 => format!("MATCH (a {{k: {x}}})-[r]-(b) RETURN type(r), b.k"),
        4 => format!("MATCH (a {{k: {x}}})-[:{kind}*1..3]->(b) RETURN b.k"),
        5 => "MATCH (a) RETURN a.k, count { (a)--() }"
            .replace("count { (a)--() }", "size([(a)--(b) | b])"),
        6 => format!("MATCH (n:{label}) RETURN count(*), sum(n.k), min(n.t)"),
        7 => format!("MATCH (n {{t: 'text {x}'}}) RETURN count(n)"),
        _ => format!(
            "UNWIND range(0, 5) AS i OPTIONAL MATCH (n:{label} {{k: i}}) RETURN i, count(n)"
        ),
    }
}

/// A reader's cache is valid until the next write.
#[test]
fn a_reader_with_a_warm_cache_sees_every_change() {
    let mut store = TestStore::empty();
    change(&mut store, "UNWIND range(1, 300) AS k CREATE (:P {k: k, name: 'n' + toString(k)})")
        .unwrap();
    change(&mut store, "MATCH (a:P), (b:P) WHERE a.k % b.k = 0 CREATE (a)-[:E]->(b)").unwrap();
    let questions = [
        "MATCH (a:P)-[r:E]->() RETURN a.k, count(r) AS d ORDER BY d DESC, a.k LIMIT 3",
        "MATCH (a:P {k: 60})-[:E*1..3]->(b:P) RETURN DISTINCT b.name, b:Q ORDER BY b.name",
        "MATCH (n) RETURN sum(n.k), count(n.name), count(*)",
        "MATCH (n:Q) RETURN n.k",
        "MATCH (a:P) WHERE a.k < 5 RETURN a.name, a:Q",
    ];
    let changes = [
        "MATCH (n:P {k: 60}) SET n.name = 'sixty', n:Q",
        "MATCH (n:P {k: 1}) SET n.k = 1001",
        "MATCH (n:P {k: 2}) SET n.k = 3",
        "MATCH (n:P {k: 240}) DETACH DELETE n",
        "MATCH (n:P {k: 60}) REMOVE n:P, n.k",
        "CREATE (:P:Q {k: 1})",
        "MATCH (n:P) WHERE n.k > 50 REMOVE n:P",
    ];
    let mut reader = store.reader();
    for text in [""].into_iter().chain(changes) {
        if !text.is_empty() {
            change(&mut store, text).unwrap();
        }
        for question in questions.iter().cycle().take(4 * questions.len()) {
            let answer = reader.snapshot().unwrap().cypher(&query(question), None).unwrap();
            let rows: Vec<Vec<Datum>> = answer.rows().collect::<Result<_, _>>().unwrap();
            assert_eq!(rows, read(&store, question), "{question} after {text}");
        }
    }
}
