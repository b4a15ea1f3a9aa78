//! The graph segment: traversals give the same results with it, without it, and while it is
//! damaged.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolith_engine::{
    CypherQuery, Datum, Doctor, DoctorOptions, DoctorReport, Engine, EngineOptions, GraphAnswer,
};
use libtest_mimic::Trial;

use crate::support::{Programs, files_in, open, open_with, sealed, trial};

/// All faults that the trials inject.
pub const ALL: &[&str] = &[
    "graph.walk:crash",
    "graph.walk:bus",
    "graph.walk:panic",
    "graph.walk:hang",
    "graph.built:crash",
    "graph.built:kill",
    "graph.swapped:crash",
];

pub fn trials(programs: &Programs) -> Vec<Trial> {
    let with = |fault: &str| EngineOptions {
        program: Some(programs.with(fault)),
        deadline: Duration::from_secs(if fault.ends_with("hang") { 2 } else { 30 }),
        ..EngineOptions::default()
    };
    let mut trials = vec![
        trial("a_large_graph_is_traversed_with_a_segment", walked),
        trial("a_damaged_graph_segment_changes_no_answer", damaged),
        trial("the_doctor_rebuilds_the_graph_segment", repaired),
        trial("a_small_graph_has_no_segment", small),
    ];
    for fault in ALL {
        let options = with(fault);
        if fault.starts_with("graph.walk") {
            trials.push(trial(format!("{fault} quarantines the segment"), async move |store| {
                deadly_walk(store, options).await;
            }));
        } else {
            trials.push(trial(format!("{fault} loses nothing"), async move |store| {
                deadly_build(store, options).await;
            }));
        }
    }
    trials
}

/// 4,000 nodes in a ring, each with edges to the next ones: 12,000 edges.
const MAKE: &str = "UNWIND range(0, 3999) AS k CREATE (:N {k: k})";
const LINK: &str = "UNWIND range(0, 3999) AS k UNWIND [1, 2, 7] AS far \
    MATCH (a:N {k: k}), (b:N {k: (k + far) % 4000}) CREATE (a)-[:R {far: far}]->(b)";

/// Nodes reached from 0 in at most three hops: sums of one to three of 1, 2 and 7.
const WALK: &str = "MATCH (:N {k: 0})-[:R*1..3]->(b) RETURN DISTINCT b.k AS k ORDER BY k";
const WALKED: [i64; 15] = [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 21];

async fn run(engine: &Engine, text: &str) -> GraphAnswer {
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    engine.cypher(query, None).await.unwrap()
}

async fn check(engine: &Engine, and: &[i64]) -> GraphAnswer {
    let answer = run(engine, WALK).await;
    let found = answer.rows().map(|row| match row.unwrap()[..] {
        [Datum::Integer(k)] => k,
        ref other => panic!("{other:?}"),
    });
    let mut expected = [&WALKED, and].concat();
    expected.sort_unstable();
    assert_eq!(found.collect::<Vec<_>>(), expected);
    answer
}

fn segments(store: &Path) -> Vec<PathBuf> {
    let mut files = files_in(&store.join("segments"));
    files.retain(|file| file.extension().is_some_and(|it| it == "adj"));
    files
}

/// A store with a graph and its segment.
async fn filled(store: &Path) -> PathBuf {
    let engine = open(store);
    run(&engine, MAKE).await;
    run(&engine, LINK).await;
    engine.settle().await;
    engine.close().await;
    let segments = segments(store);
    assert_eq!(segments.len(), 1, "{segments:?}");
    segments[0].clone()
}

async fn walked(store: &Path) {
    let first = filled(store).await;
    let engine = open(store);
    assert_eq!(check(&engine, &[]).await.degraded, None);
    // New edges are found before they are in the segment, and after.
    run(&engine, "MATCH (a:N {k: 1}) CREATE (a)-[:R]->(:N {k: 5000})").await;
    assert_eq!(check(&engine, &[5000]).await.degraded, None);
    assert_eq!(segments(store), std::slice::from_ref(&first));
    engine.settle().await;
    let second = segments(store);
    assert!(second.len() == 1 && second[0] != first, "{second:?}");
    assert_eq!(check(&engine, &[5000]).await.degraded, None);
    // Changes of properties do not invalidate it.
    run(&engine, "MATCH (a:N {k: 5000}) SET a.k = 5001").await;
    check(&engine, &[5001]).await;
    engine.settle().await;
    assert_eq!(segments(store), second);
    engine.close().await;
}

async fn damaged(store: &Path) {
    let path = filled(store).await;
    let bytes = fs::read(&path).unwrap();
    for spoil in [Spoil::Flip, Spoil::Cut, Spoil::Remove] {
        let path = &segments(store)[0];
        match spoil {
            Spoil::Flip => {
                let mut bytes = bytes.clone();
                bytes[70_000] ^= 1;
                fs::write(path, bytes).unwrap();
            }
            Spoil::Cut => fs::write(path, &fs::read(path).unwrap()[..100_000]).unwrap(),
            Spoil::Remove => fs::remove_file(path).unwrap(),
        }
        let engine = open(store);
        let degraded = check(&engine, &[]).await.degraded.unwrap();
        assert!(degraded.contains("cannot be used"), "{spoil:?}: {degraded}");
        let degraded = check(&engine, &[]).await.degraded.unwrap();
        assert!(degraded.contains("quarantine"), "{spoil:?}: {degraded}");
        engine.settle().await;
        assert_eq!(check(&engine, &[]).await.degraded, None, "{spoil:?}");
        engine.close().await;
    }
}

#[derive(Debug, Clone, Copy)]
enum Spoil {
    Flip,
    Cut,
    Remove,
}

async fn repaired(store: &Path) {
    let path = filled(store).await;
    let mut bytes = fs::read(&path).unwrap();
    bytes[70_000] ^= 1;
    fs::write(&path, bytes).unwrap();
    let report = examined(store, false).await;
    assert!(!report.ok, "{report:?}");
    let report = examined(store, true).await;
    let told = report.repaired.iter().any(|it| it.contains("the segment of the graph from 12000"));
    assert!(report.ok && told, "{report:?}");
    let engine = open(store);
    assert_eq!(check(&engine, &[]).await.degraded, None);
    engine.close().await;
}

async fn examined(store: &Path, repair: bool) -> DoctorReport {
    let doctor =
        Doctor::open(&sealed(store), DoctorOptions { repair, ..DoctorOptions::default() }, |_| {});
    let doctor = doctor.unwrap();
    let report = doctor.run().await;
    doctor.close().await;
    report
}

async fn small(store: &Path) {
    filled(store).await;
    let engine = open(store);
    run(&engine, "MATCH (a:N) WHERE a.k > 1000 DETACH DELETE a").await;
    engine.settle().await;
    assert!(segments(store).is_empty());
    check(&engine, &[]).await;
    engine.close().await;
}

async fn deadly_walk(store: &Path, options: EngineOptions) {
    filled(store).await;
    let engine = open_with(store, options);
    let degraded = check(&engine, &[]).await.degraded.unwrap();
    assert!(degraded.contains("died"), "{degraded}");
    engine.close().await;
    assert_eq!(files_in(&store.join("quarantine")).len(), 1);
    let engine = open(store);
    assert!(check(&engine, &[]).await.degraded.unwrap().contains("quarantine"));
    engine.settle().await;
    assert_eq!(check(&engine, &[]).await.degraded, None);
    engine.close().await;
}

async fn deadly_build(store: &Path, options: EngineOptions) {
    filled(store).await;
    let engine = open_with(store, options);
    run(&engine, "MATCH (a:N {k: 1}) CREATE (a)-[:R]->(:N {k: 5000})").await;
    check(&engine, &[5000]).await;
    engine.settle().await;
    assert_eq!(check(&engine, &[5000]).await.degraded, None);
    engine.close().await;
    let engine = open(store);
    check(&engine, &[5000]).await;
    engine.settle().await;
    assert_eq!(check(&engine, &[5000]).await.degraded, None);
    engine.close().await;
}
