//! Stores of every version of the schema, as earlier builds left them.
//!
//! Versions 1 to 3 are SQL; from version 4 on, a fixture is the file itself, compressed with LZ4,
//! written by the last build of its version (in 4 to 9, the number of rows of the segment was
//! corrected afterwards). Fixtures never change: stores like them are in use.

use std::path::PathBuf;

use isolith_graph::Datum;
use isolith_protocol::{CypherQuery, Page, PutMode, Selection};
use isolith_store::{
    Check, Checkpoint, Durability, Snapshot, StoreFolder, Truth, WriterOptions, schema_version,
};
use isolith_types::{CollectionKind, DrawerFilter, DrawerPage};
use rusqlite::Connection;

use crate::common::{bytes, database, numbered, one, put, token, version, writer};
use crate::doctor::salvage;
use crate::fill::{KEPT, LONG_WORD, LONG_WORDS, filled};

const BLESS: &str = "ISOLITH_BLESS=1 cargo test -p isolith-store --test store fixtures";
/// The first version with a fixture that [`filled`] made.
const FIRST_FILE: u32 = 4;
/// The last version after which files were marked to be parsed again.
const PARSED_AGAIN: u32 = 10;
/// The first version that records the parser of a file.
const FIRST_WITH_PARSER: u32 = 11;

/// The first version with dates, times and durations.
const FIRST_WITH_DATES: u32 = 16;
const DATES: &str = "MATCH (a {born: date('1791-12-26')}) RETURN a.born, a.met, a.worked";
const DATES_FOUND: [&str; 1] = [concat!(
    r#""1791-12-26" ["1833-06-05T20:00-00:01:15[Europe/London]","20:00Z"] "#,
    r#""P1Y2M3DT4.5S""#
)];

fn path(version: u32) -> PathBuf {
    let name = format!("tests/fixtures/version-{version}.sqlite.lz4");
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// A store as an earlier program left it.
fn fixture(version: u32) -> (tempfile::TempDir, StoreFolder) {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path());
    folder.create().unwrap();
    let sql = match version {
        1 => include_str!("../fixtures/version-1.sql").to_owned(),
        2 => include_str!("../fixtures/version-2.sql").to_owned(),
        3 => [include_str!("../fixtures/version-2.sql"), include_str!("../fixtures/version-3.sql")]
            .concat(),
        _ => {
            let packed = std::fs::read(path(version)).unwrap();
            let bytes = lz4_flex::decompress_size_prepended(&packed).unwrap();
            std::fs::write(folder.truth(), bytes).unwrap();
            return (place, folder);
        }
    };
    Connection::open(folder.truth()).unwrap().execute_batch(&sql).unwrap();
    (place, folder)
}

/// The version and the reserved bytes that the header of the file states.
fn header(folder: &StoreFolder) -> (u32, u8) {
    let bytes = std::fs::read(folder.truth()).unwrap();
    (u32::from_be_bytes(*bytes[60..].first_chunk().unwrap()), bytes[20])
}

#[test]
fn every_schema_version_has_a_fixture() {
    let newest = path(schema_version());
    if std::env::var_os("ISOLITH_BLESS").is_some() && !newest.exists() {
        let mut store = filled();
        assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
        let bytes = std::fs::read(store.folder.truth()).unwrap();
        std::fs::write(&newest, lz4_flex::compress_prepend_size(&bytes)).unwrap();
    }
    for version in FIRST_FILE..=schema_version() {
        assert!(
            path(version).exists(),
            "schema version {version} has no fixture: describe it in docs/format.md, and add one \
             with `{BLESS}`"
        );
    }
    for version in 1..=schema_version() {
        let (_place, folder) = fixture(version);
        let reserved = if version < 8 { 0 } else { 8 };
        assert_eq!(header(&folder), (version, reserved), "the fixture of version {version}");
    }
}

#[test]
fn every_schema_version_is_migrated_and_healthy() {
    for version in 1..=schema_version() {
        let (_place, folder) = fixture(version);
        let mut reader = Truth::open_reader(&folder, token()).unwrap();
        for check in Check::ALL {
            assert_eq!(reader.check(check, 10).unwrap(), [], "version {version}, {check:?}");
        }
        if version >= FIRST_FILE {
            check_content(version, &reader.snapshot().unwrap());
        }
        drop(reader);
        let mut writer = writer(&folder).unwrap();
        let added = one(&mut writer, put("c", numbered(3..4), PutMode::Upsert)).unwrap();
        assert_eq!(added.count_after, 3, "version {version}");
        assert!(writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
        assert_eq!(header(&folder), (schema_version(), 8));
    }
}

/// A damaged store may be of an earlier version, and is not migrated before it is salvaged.
#[test]
fn every_schema_version_can_be_salvaged() {
    for version in FIRST_FILE..=schema_version() {
        let (_place, folder) = fixture(version);
        let report = salvage(&folder);
        // The first builds with a graph stored lookups in another form; files are parsed again.
        let is_expected = |table: &str| version == 5 && table == "code_lookup";
        let lost: Vec<_> = report.lost.iter().filter(|loss| !is_expected(&loss.table)).collect();
        assert!(lost.is_empty(), "version {version}: {lost:?}");
        let mut reader = Truth::open_reader(&folder, token()).unwrap();
        let snapshot = reader.snapshot().unwrap();
        check_facts(&snapshot);
        check_memory(&snapshot);
        if version >= FIRST_WITH_DATES {
            let query = CypherQuery { text: DATES.to_owned(), ..CypherQuery::default() };
            let answer = snapshot.cypher(&query, None).unwrap();
            assert_eq!(answer.count, 1, "version {version}");
        }
        let files = snapshot.files(1, None, None, 10).unwrap();
        let parsers: Vec<u32> = files.iter().map(|file| file.parser).collect();
        assert_eq!(parsers, [u32::from(version >= FIRST_WITH_PARSER); 2], "version {version}");
        assert_eq!(snapshot.collection("c").unwrap().records, 2);
    }
}

/// The checks below also hold for a store of the current version.
#[test]
fn a_store_of_the_current_version_matches_the_fixtures() {
    let store = filled();
    let mut reader = store.reader();
    for check in Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    check_content(schema_version(), &reader.snapshot().unwrap());
}

fn check_content(version: u32, snapshot: &Snapshot<'_>) {
    check_records(snapshot);
    check_code(version, snapshot);
    check_facts(snapshot);
    check_memory(snapshot);
    check_graph(version, snapshot);
}

fn check_records(snapshot: &Snapshot<'_>) {
    let state = snapshot.collection("c").unwrap();
    let all = snapshot.get(state.id, &Selection::All, Page::default(), true).unwrap();
    let shown: Vec<_> = all
        .iter()
        .map(|stored| {
            let record = &stored.record;
            let text = record.document.as_deref().unwrap();
            (record.id.as_str(), text, record.metadata.as_str().to_owned(), record.vector.clone())
        })
        .collect();
    let [a, b] = [r#"{"n":1,"tags":["x","y"]}"#, r#"{"n":2.5,"ok":true}"#].map(str::to_owned);
    let expected = [("a", "alpha", a, vec![1.0, 2.0]), ("b", "bêta", b, vec![3.0, -4.0])];
    assert_eq!(shown, expected);
    let generation = state.generation.unwrap();
    assert_eq!((generation.number, generation.base_to), (1, 3));
    assert_eq!(generation.segments[0].file, "c1-1-base-0123abcd.vec");
    assert_eq!(snapshot.tombstones(state.id).unwrap(), [(2, 2), (3, 3)]);
    assert!(snapshot.receipt(KEPT).unwrap().is_some());
    assert_eq!(snapshot.poisons().unwrap()[0].role, "parse");
}

fn check_code(made_by: u32, snapshot: &Snapshot<'_>) {
    let root = &snapshot.roots().unwrap()[0];
    assert_eq!((root.path.as_str(), root.files, root.chunks), ("/project", 2, 3));
    assert!(root.indexed_at.is_some());
    let (file, chunks) = snapshot.chunks_of_file(root.id, "app/main.py").unwrap().unwrap();
    let texts = ["import helper", "fn main"];
    let known = version(&texts);
    let is_due = made_by < PARSED_AGAIN;
    let expected = if is_due { ([0; 32], 0) } else { (known.hash, known.modified) };
    assert_eq!((file.version.hash, file.version.modified), expected, "version {made_by}");
    assert_eq!(file.parser, 1);
    assert_eq!((file.language.as_str(), file.author.as_deref()), ("rust", Some("Ada")));
    let found: Vec<_> = chunks.iter().filter_map(|chunk| chunk.text.as_deref()).collect();
    assert_eq!(found, texts);
    assert_eq!(chunks[1].symbols[0].name, "main");
    let code = snapshot.code_state().unwrap().unwrap();
    let rows: Vec<u64> = chunks.iter().map(|chunk| chunk.row).collect();
    assert_eq!(snapshot.tail(code.id, 0).unwrap().len(), 3);
    let mut vectors = Vec::new();
    snapshot.vectors(&rows, &mut |_, _, vector| vectors.push(vector.to_vec())).unwrap();
    assert_eq!(vectors, texts.map(|text| bytes([text.len() as f32, 1.0])));
}

fn check_facts(snapshot: &Snapshot<'_>) {
    let facts = snapshot.fact_timeline(Some("MAXI"), None, 10, 0).unwrap();
    let [berlin, cologne] = facts.as_slice() else { panic!("{facts:?}") };
    assert_eq!((berlin.object.as_str(), cologne.object.as_str()), ("Berlin", "Köln"));
    assert_eq!(berlin.valid_from.unwrap().to_string(), "2020-01-01");
    assert_eq!((berlin.valid_to, cologne.current), (cologne.valid_from, true));
    assert_eq!(berlin.superseded_by.as_ref(), Some(&cologne.id));
}

fn check_memory(snapshot: &Snapshot<'_>) {
    let page = DrawerPage { limit: 10, ..DrawerPage::default() };
    let (drawers, _) = snapshot.drawers(&DrawerFilter::default(), &page, usize::MAX).unwrap();
    let mut texts: Vec<_> = drawers.iter().map(|drawer| drawer.text.as_str()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["We met at noon.", &LONG_WORD.repeat(LONG_WORDS)]);
    assert!(drawers.iter().all(|drawer| drawer.wing == "ada" && drawer.room == "work"));
    assert!(snapshot.memory_state().unwrap().unwrap().records > 2);
}

fn check_graph(version: u32, snapshot: &Snapshot<'_>) {
    let rows = |text: &str| -> Vec<String> {
        let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
        let answer = snapshot.cypher(&query, None).unwrap();
        let shown = |row: Vec<Datum>| {
            row.iter().map(|cell| cell.to_json().to_string()).collect::<Vec<_>>().join(" ")
        };
        answer.rows().map(|row| shown(row.unwrap())).collect()
    };
    let facts = "MATCH (a {name: 'Max'})-[r]->(b) RETURN type(r), b.name ORDER BY b.name";
    assert_eq!(rows(facts), [r#""lives_in" "Berlin""#, r#""lives_in" "Köln""#]);
    let entities = "MATCH (e:Entity {name: 'Max'}) RETURN e.aliases";
    assert_eq!(rows(entities), [r#"["Maxi"]"#]);
    if version > FIRST_FILE {
        let known =
            "MATCH (a:Person)-[r:KNOWS]->(b:Engineer) RETURN a.age, a.tags, r.since, b.name";
        assert_eq!(rows(known), [r#"36 ["x",2.5,true] 1833 "Charles""#]);
        if version >= FIRST_WITH_DATES {
            assert_eq!(rows(DATES), DATES_FOUND);
        }
        let calls = "MATCH (a)-[:CALLS]->(b) RETURN a.name, b.name";
        assert_eq!(rows(calls), [r#""main" "helper""#]);
    }
}

#[test]
fn a_store_of_version_1_is_still_read() {
    let (_place, folder) = fixture(1);
    let mut writer = Truth::open_writer(
        &folder,
        WriterOptions { durability: Durability::Full, create: false },
        token(),
    )
    .unwrap();
    let outcome = one(&mut writer, put("c", numbered(3..4), PutMode::Upsert)).unwrap();
    assert_eq!(outcome.count_after, 3);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    for check in isolith_store::Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    let snapshot = reader.snapshot().unwrap();
    let state = snapshot.collection("c").unwrap();
    assert_eq!(state.kind, CollectionKind::Records);
    assert_eq!(state.generation.unwrap().segments[0].file, "c1-1-base.vec");
    assert_eq!(snapshot.tombstones(1).unwrap(), [(3, 3)]);
    assert_eq!(snapshot.code_state().unwrap(), None);
    assert_eq!(snapshot.roots().unwrap(), []);
}

#[test]
fn a_collection_of_version_1_is_renamed_if_its_name_is_reserved() {
    for name in ["@code", "@memory"] {
        let (_place, folder) = fixture(1);
        let db = database(&folder);
        db.execute("UPDATE collection SET name = ?1", [name]).unwrap();
        drop(db);
        let mut reader = Truth::open_reader(&folder, token()).unwrap();
        let snapshot = reader.snapshot().unwrap();
        assert_eq!(snapshot.code_state().unwrap(), None);
        assert_eq!(snapshot.memory_state().unwrap(), None);
        assert_eq!(snapshot.collection(&format!("was-{name}-1")).unwrap().records, 2);
    }
}

#[test]
fn a_store_of_version_2_is_still_read() {
    let (_place, folder) = fixture(2);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    for check in isolith_store::Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.collection("c").unwrap().records, 2);
    let code = snapshot.code_state().unwrap().unwrap();
    assert_eq!((code.records, code.kind), (2, CollectionKind::Code));
    let root = &snapshot.roots().unwrap()[0];
    assert_eq!((root.files, root.chunks, root.indexed_at), (1, 2, Some(1_700_000_000_500)));
    let (file, chunks) = snapshot.chunks_of_file(1, "src/main.rs").unwrap().unwrap();
    // It counts as changed, because its definitions are not stored yet.
    assert_eq!((file.version.hash, file.version.modified), ([0; 32], 0));
    assert_eq!(file.changed_at, Some(1_600_000_000_000));
    assert_eq!(chunks[1].symbols[0].name, "main");
    assert_eq!(chunks[1].text.as_deref(), Some("fn main() {}"));
    assert_eq!(snapshot.fact_stats(None).unwrap().facts, 0);
}

#[test]
fn a_store_of_version_3_is_still_read() {
    let (_place, folder) = fixture(3);
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    for check in isolith_store::Check::ALL {
        assert_eq!(reader.check(check, 10).unwrap(), [], "{check:?}");
    }
    let snapshot = reader.snapshot().unwrap();
    let facts = snapshot.fact_timeline(Some("MAXI"), None, 10, 0).unwrap();
    let [berlin, cologne] = facts.as_slice() else { panic!("{facts:?}") };
    assert_eq!((berlin.object.as_str(), cologne.object.as_str()), ("Berlin", "Köln"));
    assert_eq!(berlin.valid_from.unwrap().to_string(), "2020-01-01");
    assert_eq!((berlin.valid_to, cologne.current), (cologne.valid_from, true));
    assert_eq!(berlin.superseded_by.as_ref(), Some(&cologne.id));
    assert_eq!((berlin.confidence, berlin.sources[0].confidence), (0.5, 1.0));
    assert_eq!(berlin.sources[1].file.as_deref(), Some("notes.md"));
}
