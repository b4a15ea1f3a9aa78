//! What an index run makes of parsers that loop, hang or take their time.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use isolith_engine::{CypherQuery, Datum, EngineOptions, IndexOptions, IndexReport};
use isolith_types::DatabaseName;
use libtest_mimic::Trial;
use rustix::process::{Pid, Signal};
use tempfile::TempDir;

use crate::support::{Programs, open, open_with, trial};

/// Every fault that a trial asks for.
pub const ALL: &[&str] = &["parse.poison.rs:busy_loop", "parse.poison.rs:hang"];

pub fn trials(programs: &Programs) -> Vec<Trial> {
    let mut trials = vec![trial("a_busy_machine_makes_the_same_index", same_under_load)];
    for fault in ALL {
        let options =
            EngineOptions { program: Some(programs.with(fault)), ..EngineOptions::default() };
        trials.push(trial(format!("{fault} costs the symbols of the file"), async move |store| {
            endless_parser(store, options).await;
        }));
    }
    trials
}

/// Only a file that loops or hangs reaches these limits.
async fn endless_parser(store: &Path, options: EngineOptions) {
    let project = tempfile::tempdir().unwrap();
    fs::write(project.path().join("poison.rs"), "pub fn nightshade() { belladonna() }\n").unwrap();
    let engine = open_with(store, options);
    let limits = IndexOptions {
        parse_deadline: Duration::from_secs(5),
        file_cpu: Duration::from_secs(1),
        ..IndexOptions::new(project.path())
    };
    let report = engine.index(&limits, Arc::new(|_| {})).await.unwrap();
    assert_eq!(report.files.failed, 1);
    assert_eq!(report.problems[0].code, "parser_died");
    assert_eq!(report.chunks, 1, "it is indexed as text");
}

/// One parser on a quiet machine, and several on a busy one that are stopped and continued at
/// any moment.
async fn same_under_load(store: &Path) {
    let project = project();
    let quiet = indexed(&store.join("quiet"), project.path(), 1).await;
    assert!(quiet.report.chunks > 200 && quiet.edges.len() > 200);
    for round in 0..3 {
        let load = Load::begin();
        let busy = indexed(&store.join(format!("busy{round}")), project.path(), 4).await;
        drop(load);
        assert_eq!(busy.report.chunks, quiet.report.chunks);
        assert!(busy.export == quiet.export, "round {round}: the exports differ");
        assert!(busy.edges == quiet.edges, "round {round}: the graphs differ");
    }
}

/// Files that take long to parse come first, so that later batches are parsed sooner.
fn project() -> TempDir {
    let project = tempfile::tempdir().unwrap();
    for file in 0..12 {
        let function = |n: u32| {
            format!(
                "/// Adds {n}.\npub fn add_{file}_{n}(a: &[(u32, Vec<u8>)]) -> u64 {{\n    \
                 a.iter().map(|(x, y)| u64::from(*x) * y.len() as u64).sum::<u64>() + \
                 add_{file}_{}(a)\n}}\n\n",
                n + 1
            )
        };
        let text: String = (0..60).map(function).collect();
        fs::write(project.path().join(format!("a{file:02}.rs")), text).unwrap();
    }
    for file in 0..40 {
        let text = format!("Notes on subject {file}.\n\n").repeat(400);
        fs::write(project.path().join(format!("b{file:02}.txt")), text).unwrap();
    }
    project
}

struct Index {
    report: IndexReport,
    export: Vec<u8>,
    edges: Vec<Vec<Datum>>,
}

async fn indexed(store: &Path, project: &Path, parsers: usize) -> Index {
    let engine = open(store);
    let options = IndexOptions { parsers, ..IndexOptions::new(project) };
    let report = engine.index(&options, Arc::new(|_| {})).await.unwrap();
    assert_eq!(report.problems.len(), 0, "{:?}", report.problems);
    let mut export = Vec::new();
    engine.export(&DatabaseName::default(), "@code", &mut export, &|_, _| {}).await.unwrap();
    let text =
        "MATCH (a)-[r]->(b) RETURN id(a), id(r), id(b), type(r), r.line, a.id, b.id ORDER BY id(r)";
    let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
    let answer = engine.cypher(query, None).await.unwrap();
    let edges = answer.rows().map(Result::unwrap).collect();
    Index { report, export, edges }
}

/// Keeps the processors busy, and the parsers from running smoothly.
struct Load {
    over: Arc<AtomicBool>,
    threads: Vec<thread::JoinHandle<()>>,
}

impl Load {
    fn begin() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let until = || {
            let over = Arc::clone(&over);
            move || over.load(Ordering::Relaxed)
        };
        let mut threads = Vec::new();
        for _ in 0..4 {
            let is_over = until();
            threads.push(thread::spawn(move || {
                while !is_over() {
                    std::hint::spin_loop();
                }
            }));
        }
        let is_over = until();
        threads.push(thread::spawn(move || {
            while !is_over() {
                for pid in parsers() {
                    let _ = rustix::process::kill_process(pid, Signal::STOP);
                    thread::sleep(Duration::from_millis(30));
                    let _ = rustix::process::kill_process(pid, Signal::CONT);
                }
                thread::sleep(Duration::from_millis(1));
            }
        }));
        Self { over, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// The parsers of this process.
fn parsers() -> Vec<Pid> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = fs::read_to_string(entry.path().join("stat")) else { continue };
        // The process, its name in brackets, its state, its parent.
        let mut words = stat.split(' ');
        let (pid, name, _, parent) = (words.next(), words.next(), words.next(), words.next());
        if name == Some("(parse)") && parent == Some(&own) {
            found.extend(pid.and_then(|pid| pid.parse().ok()).and_then(Pid::from_raw));
        }
    }
    found
}
