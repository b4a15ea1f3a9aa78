//! `isolith ingest`: what it refuses, what it reports, and how it continues after it was
//! interrupted.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::io::Write;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::{Value, json};
use test_env::{Ran, Running, TestEnv, send, vector};

/// The receipt of an ingest that fails like this.
fn refused(env: &TestEnv, file: &str, more: &[&str], status: i32, code: &str) -> Value {
    let arguments = [&["ingest", file, "--collection", "a", "--json"][..], more].concat();
    let ran = env.run(&arguments);
    let receipt = ran.document();
    let found = (ran.status, receipt["error"]["code"].as_str());
    assert_eq!(found, (Some(status), Some(code)), "{file}: {receipt} {}", ran.stderr);
    assert_eq!(receipt["success"], false);
    receipt
}

#[test]
fn an_invalid_file_is_refused_completely() {
    let env = TestEnv::new();
    let good = env.write_rows("good", 0..3, 3);
    env.json(&["ingest", &good, "--collection", "a"]);
    let fine = r#"{"id":"x","embedding":[1,2,3]}"#;
    let row = |text: &str| format!("{fine}\n{text}\n");
    for (name, content, reason) in [
        ("empty", Vec::new(), "empty"),
        ("blank", b" \n\n\t".to_vec(), "empty"),
        ("binary", (0..9_999_u32).map(|i| ((i * 7_919) >> 3) as u8).collect(), "binary"),
        ("text", b"just a note".to_vec(), "not"),
        ("dimension", row(r#"{"id":"y","embedding":[1,2]}"#).into(), "row 2"),
        ("nan", row(r#"{"id":"y","embedding":[1,NaN,2]}"#).into(), "row 2"),
        ("infinite", row(r#"{"id":"y","embedding":[1,1e39,2]}"#).into(), "row 2"),
        ("long", row(r#"{"id":"y","embedding":[1,2e18,2]}"#).into(), "row 2"),
        ("zeros", row(r#"{"id":"y","embedding":[0,0,0]}"#).into(), "row 2"),
        ("twice", row(fine).into(), "row 2"),
        ("nested", row(r#"{"id":"y","embedding":[1,2,3],"metadata":{"a":{}}}"#).into(), "row 2"),
        ("no id", row(r#"{"embedding":[1,2,3]}"#).into(), "row 2"),
        ("cut off", row(r#"{"id":"y","embedding":[1,2"#).into(), "row 2"),
        (
            "broken",
            [row(r#"{"id":"y","embedding":[1,2,3],"document":""#).as_bytes(), b"\xFF\"}"].concat(),
            "row 2",
        ),
        ("lists", br#"{"ids":["x","y"],"embeddings":[[1,2,3]]}"#.to_vec(), "length"),
    ] {
        let file = env.write(name, content);
        let receipt = refused(&env, &file, &[], 3, "bad_input");
        let message = receipt["error"]["message"].as_str().unwrap();
        assert!(message.contains(reason), "{name}: {message}");
        assert_eq!((&receipt["inserted"], &receipt["count_after"]), (&json!(0), &json!(3)));
    }
    assert_eq!(env.count("a"), 3);
}

#[test]
fn only_regular_files_are_read() {
    let env = TestEnv::new();
    env.json(&["collection", "create", "a"]);
    rustix::fs::mknodat(
        rustix::fs::CWD,
        env.path("pipe"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    for name in ["pipe", "home", "/dev/zero", "/dev/null"] {
        refused(&env, name, &[], 3, "bad_input");
    }
    refused(&env, "nowhere", &[], 4, "not_found");
}

#[test]
fn a_line_without_end_is_refused_within_bounded_memory() {
    let env = TestEnv::new();
    let begun = r#"{"id":"x","embedding":[1,2],"document":""#;
    let mut content = vec![b'a'; 100 << 20];
    content[..begun.len()].copy_from_slice(begun.as_bytes());
    let file = env.write("long", content);
    let receipt = refused(&env, &file, &[], 3, "bad_input");
    assert_eq!(receipt["retries"], 0, "no worker died of it: {receipt}");
}

#[test]
fn invalid_rows_are_skipped_and_reported_on_request() {
    let env = TestEnv::new();
    let file = env.write(
        "mixed",
        concat!(
            r#"{"id":"one","embedding":[1,2]}"#,
            "\n",
            r#"{"id":"two","embedding":[1]}"#,
            "\n",
            "\n",
            r#"{"id":"one","embedding":[3,4]}"#,
            "\n",
            r#"{"id":"four","embedding":[1,null]}"#,
            "\n",
            r#"{"id":"five","embedding":[5,6]}"#,
        ),
    );
    let skip = ["ingest", &file, "--collection", "a", "--on-error", "skip"];
    let receipt = env.json(&skip);
    let rows: Vec<&Value> =
        receipt["rejected"].as_array().unwrap().iter().map(|it| &it["row"]).collect();
    assert_eq!(rows, [&json!(2), &json!(3), &json!(4)], "{receipt}");
    assert_eq!((&receipt["rows"], &receipt["inserted"]), (&json!(5), &json!(2)));
    let again = env.json(&skip);
    assert_eq!((&again["unchanged"], &again["inserted"]), (&json!(2), &json!(0)));
    assert_eq!(again["rejected"], receipt["rejected"]);
    let text = env.run(&skip).stdout;
    assert!(text.contains("3 rows skipped") && text.contains("row 2:"), "{text}");
}

#[test]
fn add_refuses_what_upsert_replaces() {
    let env = TestEnv::new();
    let first = env.write_rows("first", 0..4, 2);
    env.json(&["ingest", &first, "--collection", "a"]);
    let changed = env.write(
        "changed",
        "{\"id\":\"r1\",\"embedding\":[9,9]}\n{\"id\":\"new\",\"embedding\":[8,8]}",
    );
    let receipt = refused(&env, &changed, &["--add"], 3, "already_exists");
    assert_eq!((&receipt["inserted"], &receipt["count_after"]), (&json!(0), &json!(4)));
    let receipt = env.json(&["ingest", &first, "--collection", "a", "--add"]);
    assert_eq!(receipt["unchanged"], 4, "the same content is not a conflict");
    let skipping = ["ingest", &changed, "--collection", "a", "--add", "--on-error", "skip"];
    let receipt = env.json(&skipping);
    assert_eq!((&receipt["inserted"], &receipt["rejected"][0]["row"]), (&json!(1), &json!(1)));
    let receipt = env.json(&["ingest", &changed, "--collection", "a", "--upsert"]);
    assert_eq!((&receipt["updated"], &receipt["unchanged"]), (&json!(1), &json!(1)));
    let stored = env.json(&["collection", "get", "a", "--id", "r1", "--vectors"]);
    assert_eq!(stored["records"][0]["vector"], json!([9.0, 9.0]));
    assert_eq!(stored["records"][0]["document"], Value::Null, "upsert replaces the whole record");
}

#[test]
fn parallel_lists_equal_jsonl() {
    let env = TestEnv::new();
    let lines = env.write_rows("lines", 0..50, 4);
    env.json(&["ingest", &lines, "--collection", "lines"]);
    let rows: Vec<Value> = (0..50).map(|number| test_env::row(number, 4)).collect();
    let list = |key: &str| -> Vec<&Value> { rows.iter().map(|row| &row[key]).collect() };
    let lists = json!({
        "documents": list("document"), "metadatas": list("metadata"),
        "embeddings": list("embedding"), "ids": list("id"),
    });
    let bare = env.write("bare", lists.to_string());
    let ready = env.write(
        "ready",
        format!(r#"{{"made by":{{"x":[1,{{}}]}},"chromadb_ready":{lists},"more":null}}"#),
    );
    let get = |name: &str| {
        env.json(&["collection", "get", name, "--vectors", "--limit", "100"])["records"].clone()
    };
    for (name, file) in [("bare", &bare), ("ready", &ready)] {
        assert_eq!(env.json(&["ingest", file, "--collection", name])["inserted"], 50);
        assert_eq!(get(name), get("lines"), "{name}");
    }
}

#[test]
fn vectors_of_another_kind_are_refused() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..3, 2);
    let flags = ["--collection", "a", "--metric", "l2", "--model", "m1"];
    env.json(&[&["ingest", &file][..], &flags].concat());
    refused(&env, &file, &["--metric", "dot"], 3, "already_exists");
    refused(&env, &file, &["--model", "m2"], 3, "model_mismatch");
    let wider = env.write_rows("wider", 0..3, 3);
    refused(&env, &wider, &[], 3, "bad_input");
    assert_eq!(env.count("a"), 3);
}

/// Rows that take long enough to be interrupted.
const ROWS: u64 = 3_000;

fn start_loading(env: &TestEnv, file: &str, name: &str) -> Running {
    Running::start(env.command(&["ingest", file, "--collection", name, "--json"]))
}

/// An interrupt does not wait until the whole file is validated.
#[test]
fn checking_can_be_interrupted() {
    let env = TestEnv::new();
    env.json(&["collection", "create", "a"]);
    let file = env.path("large");
    let large = fs::File::create(&file).unwrap();
    let line = format!("{}\n", test_env::row(1, 64)).repeat(1_000);
    (0..40).for_each(|_| (&large).write_all(line.as_bytes()).unwrap());
    let mut running = start_loading(&env, "large", "a");
    assert!(running.prints("checking"));
    let begun = Instant::now();
    running.signal(Signal::INT);
    let ran = running.finish();
    assert_eq!(ran.status, Some(130), "{}", ran.stdout);
    assert!(begun.elapsed() < Duration::from_secs(20), "it took {:?}", begun.elapsed());
    assert_eq!(env.count("a"), 0);
}

/// Every row once, as it was in the file.
fn assert_complete(env: &TestEnv, name: &str) {
    assert_eq!(env.count(name), ROWS);
    let truth = env.truth();
    let (records, ids, vectors): (u64, u64, u64) = truth
        .query_row(
            "SELECT count(*), count(DISTINCT record.id), count(vector.row) FROM record \
             JOIN collection ON collection.id = record.collection \
             LEFT JOIN vector ON vector.row = record.row WHERE name = ?1",
            [name],
            |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)),
        )
        .unwrap();
    assert_eq!((records, ids, vectors), (ROWS, ROWS, ROWS));
    let last = format!("r{}", ROWS - 1);
    let stored = env.json(&["collection", "get", name, "--id", &last, "--vectors"]);
    let stored: Vec<f32> = serde_json::from_value(stored["records"][0]["vector"].clone()).unwrap();
    assert_eq!(stored, vector(ROWS - 1, 16));
}

#[test]
fn an_interrupted_load_continues() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..ROWS, 16);
    for (signal, status) in
        [(Signal::INT, Some(130)), (Signal::TERM, Some(143)), (Signal::KILL, None)]
    {
        let name = format!("{signal:?}");
        let mut running = start_loading(&env, &file, &name);
        assert!(running.prints("writing"));
        running.signal(signal);
        let ran = running.finish();
        assert_eq!(ran.status, status, "{name}: {}", ran.stdout);
        let written = env.count(&name);
        assert!(written > 0 && written < ROWS, "{name}: {written}");
        if status.is_some() {
            let receipt = ran.document();
            assert_eq!(receipt["success"], false);
            assert_eq!(receipt["inserted"], written, "the receipt says what is kept: {receipt}");
        }
        let receipt = env.json(&["ingest", &file, "--collection", &name]);
        assert!(receipt["resumed_at"].as_u64().unwrap() >= written, "{receipt}");
        assert_eq!(receipt["inserted"], ROWS, "{receipt}");
        assert_complete(&env, &name);
    }
}

#[test]
fn a_load_survives_the_crash_of_any_worker() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..ROWS, 16);
    let mut running = start_loading(&env, &file, "a");
    let mut killed = 0;
    let mut roles = ["store-writer", "intake", "store-reader"].iter().cycle();
    while running.prints("writing") {
        for pid in running.workers(roles.next().unwrap()) {
            send(pid, Signal::KILL);
            killed += 1;
        }
    }
    let ran = running.finish();
    assert_eq!(ran.status, Some(0), "{}", ran.stdout);
    let receipt = ran.document();
    assert_eq!(receipt["inserted"], ROWS, "{receipt}");
    assert_complete(&env, "a");
    let reports = test_env::files_in(&env.store().join("crashes"));
    // The last ones may have ended by themselves before they were killed.
    assert!(killed >= 2 && reports.len() >= 2, "{killed} deaths, {} reports", reports.len());
}

#[test]
fn a_load_whose_builder_is_killed_is_complete() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..ROWS, 16);
    let running = start_loading(&env, &file, "a");
    send(running.worker("store-builder"), Signal::KILL);
    let ran = running.finish();
    assert_eq!(ran.status, Some(0), "{}", ran.stdout);
    assert_complete(&env, "a");
    let listed = &env.json(&["collection", "list"])["collections"][0];
    assert_eq!((&listed["generation"], &listed["tail"]), (&json!(1), &json!(0)));
}

#[test]
fn concurrent_loads_of_a_file_write_it_once() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..ROWS, 16);
    let both = [start_loading(&env, &file, "a"), start_loading(&env, &file, "a")];
    for running in both {
        let ran = running.finish();
        assert_eq!(ran.status, Some(0), "{}", ran.stdout);
        let receipt = ran.document();
        let counted = ["inserted", "unchanged"].map(|key| receipt[key].as_u64().unwrap());
        assert_eq!(
            (counted.iter().sum::<u64>(), &receipt["updated"]),
            (ROWS, &json!(0)),
            "{receipt}"
        );
    }
    assert_complete(&env, "a");
}

/// The reader of the result is gone, or the disk it is written to is full.
#[test]
fn a_load_is_kept_even_if_its_receipt_cannot_be_printed() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..10, 2);
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = env.command(&["ingest", &file, "--collection", "a", "--json"]);
    let output = command.stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(Ran::of(&output).status, Some(1));
    assert_eq!(env.count("a"), 10);
}
