//! The scripts of docs/switching, run on folders as other programs leave them. They need
//! python3, and nothing else that is not in its standard library.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::path::Path;
use std::process::Command;

use rusqlite::{Connection, params};
use serde_json::{Value, json};
use test_env::{Ran, TestEnv};

/// The tables of MemPalace 3.11 on Chroma 1.5.9, as far as texts and facts are in them.
const CHROMA: &str = "
    CREATE TABLE collections (id TEXT PRIMARY KEY, name TEXT NOT NULL, dimension INTEGER,
      database_id TEXT NOT NULL, config_json_str TEXT, schema_str TEXT, UNIQUE (name, database_id));
    CREATE TABLE segments (id TEXT PRIMARY KEY, type TEXT NOT NULL, scope TEXT NOT NULL,
      collection TEXT NOT NULL);
    CREATE TABLE embeddings (id INTEGER PRIMARY KEY, segment_id TEXT NOT NULL,
      embedding_id TEXT NOT NULL, seq_id BLOB NOT NULL,
      created_at TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, UNIQUE (segment_id, embedding_id));
    CREATE TABLE embedding_metadata (id INTEGER REFERENCES embeddings(id), key TEXT NOT NULL,
      string_value TEXT, int_value INTEGER, float_value REAL, bool_value INTEGER,
      PRIMARY KEY (id, key));
    INSERT INTO collections VALUES ('d', 'mempalace_drawers', 384, 'x', NULL, NULL),
      ('c', 'mempalace_closets', 384, 'x', NULL, NULL);
    INSERT INTO segments VALUES ('dv', 'urn:chroma:segment/vector/hnsw-local-persisted', 'VECTOR', 'd'),
      ('dm', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'd'),
      ('cm', 'urn:chroma:segment/metadata/sqlite', 'METADATA', 'c');
";
const GRAPH: &str = "
    CREATE TABLE entities (id TEXT PRIMARY KEY, name TEXT NOT NULL, type TEXT DEFAULT 'unknown',
      properties TEXT DEFAULT '{}', created_at TEXT DEFAULT CURRENT_TIMESTAMP);
    CREATE TABLE triples (id TEXT PRIMARY KEY, subject TEXT NOT NULL, predicate TEXT NOT NULL,
      object TEXT NOT NULL, valid_from TEXT, valid_to TEXT, confidence REAL DEFAULT 1.0,
      source_closet TEXT, source_file TEXT, source_drawer_id TEXT, adapter_name TEXT,
      extracted_at TEXT DEFAULT CURRENT_TIMESTAMP);
    INSERT INTO entities (id, name, type) VALUES ('anna', 'Anna', 'person'),
      ('berlin', 'Berlin', 'unknown'), ('lisbon', 'Lisbon', 'city');
";

fn record(chroma: &Connection, segment: &str, id: &str, text: &str, metadata: &Value) {
    chroma
        .execute(
            "INSERT INTO embeddings (segment_id, embedding_id, seq_id) VALUES (?1, ?2, x'01')",
            [segment, id],
        )
        .unwrap();
    let row = chroma.last_insert_rowid();
    let mut metadata = metadata.as_object().unwrap().clone();
    metadata.insert("chroma:document".to_owned(), json!(text));
    for (key, value) in &metadata {
        let whole = value.as_i64();
        let fraction = value.as_f64().filter(|_| whole.is_none());
        chroma
            .execute(
                "INSERT INTO embedding_metadata (id, key, string_value, int_value, float_value, bool_value) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                params![row, key, value.as_str(), whole, fraction, value.as_bool()],
            )
            .unwrap();
    }
}

/// A palace in `home/.mempalace`, as MemPalace's miner and server create it.
fn build_palace(folder: &Path) {
    let palace = folder.join("palace");
    fs::create_dir_all(&palace).unwrap();
    let chroma = Connection::open(palace.join("chroma.sqlite3")).unwrap();
    chroma.execute_batch(CHROMA).unwrap();
    let mined = |index: u64| {
        json!({
            "wing": "shop", "room": "general", "source_file": "/work/notes.md", "chunk_index": index,
            "chunk_total": 2, "added_by": "mempalace", "content_date": "2026-02-03",
            "filed_at": "2026-11-16T11:17:47.696231", "hall": "technical", "source_mtime": 17.5,
            "entities": "",
        })
    };
    let added = |index: u64| {
        json!({
            "wing": "anna", "room": "home", "source_file": "", "chunk_index": index,
            "parent_drawer_id": "drawer_anna_home_1", "added_by": "ben",
            "filed_at": "2026-11-17T09:00:00",
        })
    };
    record(&chroma, "dm", "drawer_shop_general_1", "We chose Postgres.", &mined(0));
    record(&chroma, "cm", "closet_shop_general_1", "postgres→drawer_shop_general_1", &json!({}));
    record(&chroma, "dm", "_reg_1", "", &json!({ "room": "_registry", "wing": "shop" }));
    record(&chroma, "dm", "drawer_anna_home_1_chunk_000001", "to Lisbon", &added(1));
    record(&chroma, "dm", "drawer_anna_home_1_chunk_000000", "Anna moved ", &added(0));
    record(&chroma, "dm", "drawer_shop_general_2", "Ben owns the deploy – ü.", &mined(1));
    let entry = json!({
        "wing": "wing_claude", "room": "diary", "type": "diary_entry", "agent": "claude",
        "topic": "design", "date": "2026-11-16", "hall": "hall_diary", "chunk_index": 0,
    });
    record(&chroma, "dm", "diary_1", "SESSION|chose.postgres", &entry);
    // It was changed to a longer text, whose last part came later.
    record(&chroma, "dm", "drawer_anna_home_1_chunk_000002", " in March.", &added(2));

    let graph = Connection::open(folder.join("knowledge_graph.sqlite3")).unwrap();
    graph.execute_batch(GRAPH).unwrap();
    for (id, object, from, to, confidence) in [
        ("t1", "berlin", Some("2020-05-01"), Some("2026-02-28"), 1.0),
        ("t2", "lisbon", Some("2026-03-01T10:00:00Z"), None, 0.8),
        ("t3", "lisbon", Some("last summer"), None, 1.0),
    ] {
        graph
            .execute(
                "INSERT INTO triples (id, subject, predicate, object, valid_from, valid_to, confidence, source_file) \
                 VALUES (?1, 'anna', 'lives_in', ?2, ?3, ?4, ?5, '/work/notes.md')",
                params![id, object, from, to, confidence],
            )
            .unwrap();
    }
}

fn bring_over(env: &TestEnv) -> Ran {
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/switching/from_mempalace.py");
    let mut command = Command::new("python3");
    command
        .arg(script)
        .args([env.path("home/.mempalace"), env.path("out")])
        .args(["--run", "--isolith", env!("CARGO_BIN_EXE_isolith"), "--store"])
        .arg(env.store())
        .env("HOME", env.path("home"))
        .env_remove("ISOLITH_STORE")
        .env_remove("XDG_STATE_HOME");
    Ran::of(&command.output().unwrap())
}

#[test]
fn a_palace_is_migrated_with_its_facts() {
    let env = TestEnv::new();
    build_palace(&env.path("home/.mempalace"));
    // Twice: the second time changes nothing.
    for _ in 0..2 {
        let ran = bring_over(&env);
        assert_eq!(ran.status, Some(1), "one fact cannot come over: {} {}", ran.stdout, ran.stderr);
        let message = "fact t3 is left out: 'last summer' is neither a day nor an instant";
        assert!(ran.stderr.contains(message), "{}", ran.stderr);
        assert!(!ran.stderr.contains("isolith: "), "{}", ran.stderr);
    }
    let listed = env.run(&["memory", "list", "--all", "--jsonl"]).stdout;
    let drawers: Vec<Value> =
        listed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let found: Vec<String> = drawers
        .iter()
        .map(|it| {
            let part = |key: &str| it[key].as_str().unwrap_or("-").to_owned();
            let tags = it["tags"].to_string();
            [
                part("wing"),
                part("room"),
                part("source"),
                part("author"),
                part("date"),
                tags,
                part("text"),
            ]
            .join(" | ")
        })
        .collect();
    assert_eq!(
        found,
        [
            "anna | home | mempalace:drawer_anna_home_1 | ben | 2026-11-17 | [] | Anna moved to Lisbon in March.",
            r#"claude | diary | mempalace:diary_1 | claude | 2026-11-16 | ["design"] | SESSION|chose.postgres"#,
            "shop | general | /work/notes.md#0 | - | 2026-02-03 | [] | We chose Postgres.",
            "shop | general | /work/notes.md#1 | - | 2026-02-03 | [] | Ben owns the deploy – ü.",
        ]
    );
    assert_eq!(
        drawers[2]["metadata"],
        json!({ "filed_at": "2026-11-16T11:17:47.696231", "hall": "technical", "mempalace_id": "drawer_shop_general_1" })
    );
    let facts = env.json(&["fact", "query", "Anna"]);
    let mut facts: Vec<String> = facts["facts"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            format!("{} {} {} {}", it["object"], it["valid_from"], it["valid_to"], it["confidence"])
        })
        .collect();
    facts.sort();
    assert_eq!(
        facts,
        [
            r#""Berlin" "2020-05-01" "2026-03-01" 1.0"#,
            r#""Lisbon" "2026-03-01T10:00:00Z" null 0.8"#,
        ]
    );
    assert_eq!(env.json(&["fact", "stats"])["facts"], 2);
}

#[test]
fn a_folder_that_is_not_a_palace_is_refused() {
    let env = TestEnv::new();
    fs::create_dir_all(env.path("home/.mempalace/palace")).unwrap();
    let ran = bring_over(&env);
    assert_eq!(ran.status, Some(1));
    assert!(ran.stderr.contains("is not a palace: it has no chroma.sqlite3"), "{}", ran.stderr);
    assert!(!env.store().exists());
}
