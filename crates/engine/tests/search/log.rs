//! The log of changes: kept short, and never deleted or damaged without a word.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use isolith_engine::{Doctor, DoctorOptions, Engine, EngineOptions, Life, PutMode, Records};
use isolith_types::{Code, Failure, Hint, Metric};
use libtest_mimic::Trial;

use crate::support::{Model, copy, open, open_with, sealed, trial};

pub fn trials() -> Vec<Trial> {
    vec![
        trial("a_server_that_rests_leaves_a_short_log", resting),
        trial("a_front_that_ends_leaves_a_short_log", ending),
        trial("a_log_deleted_under_a_server_is_noticed", deleted),
        trial("a_damaged_log_is_reported_and_read_past_its_damage", damaged),
        trial("a_log_that_is_gone_is_reported_with_what_it_cost", gone),
        trial("a_stopped_writer_is_named", stopped),
    ]
}

fn log_of(store: &Path) -> PathBuf {
    store.join("truth.sqlite-wal")
}

fn length(path: &Path) -> u64 {
    path.metadata().map_or(0, |metadata| metadata.len())
}

/// Waits for something that comes sooner or later.
async fn eventually(what: &str, mut look: impl FnMut() -> bool) {
    let start = Instant::now();
    while !look() {
        assert!(start.elapsed() < Duration::from_secs(60), "waited in vain: {what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn server() -> EngineOptions {
    EngineOptions { life: Life::Server, ..EngineOptions::default() }
}

async fn resting(store: &Path) {
    let engine = open_with(store, server());
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 20).await;
    assert!(length(&log_of(store)) > 0);
    eventually("an empty log", || length(&log_of(store)) == 0).await;
    // Everything is there, for it and for others.
    model.check_stored(&engine).await;
    model.add(&engine, 1).await;
    engine.close().await;
    model.check_stored(&open(store)).await;
}

async fn ending(store: &Path) {
    let engine = open_with(store, server());
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 20).await;
    engine.close().await;
    assert_eq!(length(&log_of(store)), 0);
    model.check_stored(&open(store)).await;
}

async fn refusal(engine: &Engine, model: &mut Model) -> Failure {
    let records = Records::from_records(vec![model.clone().grow(1)]);
    engine.put("c", records, PutMode::Upsert, None).await.unwrap_err()
}

async fn examine(store: &Path, repair: bool) -> isolith_engine::DoctorReport {
    let doctor =
        Doctor::open(&sealed(store), DoctorOptions { repair, ..Default::default() }, |_| {})
            .unwrap();
    let report = doctor.run().await;
    doctor.close().await;
    report
}

fn detail(report: &isolith_engine::DoctorReport, name: &str) -> String {
    let check = report.checks.iter().find(|check| check.name == name).unwrap();
    format!("{}: {}", check.status.name(), check.detail)
}

async fn deleted(store: &Path) {
    let engine = open_with(store, server());
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 20).await;
    model.check_stored(&engine).await;
    fs::remove_file(log_of(store)).unwrap();
    let report = examine(store, false).await;
    assert_eq!((report.ok, report.exit_status()), (false, 74), "{report:?}");
    assert!(detail(&report, "log").starts_with("corrupt: commits "), "{report:?}");
    // Nothing is acknowledged from here on, and nothing is answered.
    assert_eq!(refusal(&engine, &mut model).await.code, Code::StoreReplaced);
    assert_eq!(refusal(&engine, &mut model).await.code, Code::Corrupt);
    let codes =
        [engine.collections().await, engine.collections().await].map(|it| it.unwrap_err().code);
    assert_eq!(codes[1], Code::Corrupt, "{codes:?}");
    engine.close().await;
}

/// A store with commits that are in the log alone.
async fn with_log(store: &Path) -> Model {
    let live = store.with_extension("live");
    let engine = open(&live);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 10).await;
    engine.settle().await;
    assert_eq!(length(&log_of(&live)), 0);
    for _ in 0..5 {
        model.add(&engine, 10).await;
    }
    copy(&live, store);
    let _ = fs::remove_file(store.join("truth.sqlite-shm"));
    engine.close().await;
    model
}

async fn damaged(place: &Path) {
    let store = place.join("store");
    let model = with_log(&store).await;
    let mut log = fs::read(log_of(&store)).unwrap();
    let middle = log.len() / 3;
    log[middle] ^= 1;
    fs::write(log_of(&store), &log).unwrap();
    let engine = open(&store);
    let refused = engine.collections().await.unwrap_err();
    assert_eq!(refused.code, Code::Corrupt);
    assert!(refused.message.contains("acknowledged"), "{refused:?}");
    assert!(refused.hint == Some(Hint::RepairIdleStore), "{refused:?}");
    engine.close().await;
    let report = examine(&store, false).await;
    assert_eq!((report.ok, report.exit_status()), (false, 74), "{report:?}");
    let told = detail(&report, "log");
    assert!(told.contains("damaged at frame") && told.contains("records (r"), "{told}");
    assert!(told.contains("can recover all of it"), "{told}");
    assert_eq!(fs::read(log_of(&store)).unwrap(), log, "the evidence has changed");
    let report = examine(&store, true).await;
    assert_eq!((report.ok, report.exit_status()), (true, 0), "{report:?}");
    let repaired = report.repaired.join("\n");
    assert!(repaired.contains("recovered ") && !repaired.contains("lost"), "{repaired}");
    let engine = open(&store);
    model.check_stored(&engine).await;
    engine.close().await;
}

async fn gone(place: &Path) {
    let store = place.join("store");
    let mut model = with_log(&store).await;
    fs::remove_file(log_of(&store)).unwrap();
    let report = examine(&store, false).await;
    assert_eq!(report.exit_status(), 74, "{report:?}");
    assert!(detail(&report, "log").contains("cannot recover it"), "{report:?}");
    let report = examine(&store, true).await;
    let repaired = report.repaired.join("\n");
    assert!(repaired.contains("lost 5 acknowledged commits"), "{repaired}");
    assert!(repaired.contains("changes 11 to 60 of records"), "{repaired}");
    let engine = open(&store);
    model.records.retain(|place, _| *place < 10);
    model.check_stored(&engine).await;
    engine.close().await;
}

/// A process that holds SQLite's write lock and is stopped; ended with the value.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Stopped {
    fn with_write_lock(store: &Path) -> Self {
        let script = "import os, signal, sqlite3, sys\n\
                      db = sqlite3.connect(sys.argv[1], isolation_level=None)\n\
                      db.execute('BEGIN IMMEDIATE')\n\
                      os.kill(os.getpid(), signal.SIGSTOP)\n";
        let child = Command::new("python3")
            .args(["-c", script])
            .arg(store.join("truth.sqlite"))
            .stdin(Stdio::null())
            .spawn()
            .unwrap();
        Self(child)
    }

    fn is_stopped(&self) -> bool {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap();
        stat.rsplit_once(") ").is_some_and(|(_, after)| after.starts_with('T'))
    }
}

async fn stopped(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 3).await;
    engine.close().await;
    let holder = Stopped::with_write_lock(store);
    eventually("a stopped process", || holder.is_stopped()).await;
    let pid = holder.0.id();
    let options = EngineOptions { deadline: Duration::from_secs(2), ..EngineOptions::default() };
    let engine = open_with(store, options);
    let failure = refusal(&engine, &mut model).await;
    assert_eq!(failure.code, Code::Timeout, "{failure:?}");
    let named = format!("process {pid} (python3");
    assert!(failure.message.contains(&named), "{failure:?}");
    assert!(failure.message.contains("which is stopped"), "{failure:?}");
    let hint = failure.worded(Hint::for_terminal).hint;
    assert!(hint.contains(&format!("kill -CONT {pid}")), "{hint}");
    let status = engine.status().await;
    let lock = status.write_lock.unwrap();
    assert!(lock.pid == pid && lock.is_stopped() && lock.command.contains("sqlite3"), "{lock:?}");
    assert!(status.warnings.iter().any(|it| it.contains(&named)), "{:?}", status.warnings);
    let report = examine(store, false).await;
    let told = format!("being written by process {pid}, which is stopped");
    assert!(detail(&report, "locks").contains(&told), "{report:?}");
    // Reading goes on.
    model.check_stored(&engine).await;
    drop(holder);
    model.add(&engine, 1).await;
    engine.close().await;
}
