//! Damages a page of every table and index in turn: rows that are lost or changed must be in the
//! report, and rows that an index still holds must be saved.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::FileExt;
use std::path::Path;

use isolith_protocol::{AddFact, ChangeGraph, CypherQuery, DescribeEntity, PutMode, Write};
use isolith_store::{Checkpoint, Extent, SalvageReport, SavedReport, StoreFolder};
use isolith_types::{EntityPatch, Metric, NewDrawer, NewFact, ParsedFile, Provenance};
use rusqlite::Connection;

use crate::common::{TestStore, add_root, file, numbered, put, put_files, write};
use crate::doctor::{damage_page, named, pages_of, salvage};
use crate::facts::fact;
use crate::memory::{add, drawer};

const PAGE: u64 = 8192;

/// A closed store with some of everything.
fn everything() -> TestStore {
    let mut store = TestStore::new();
    store.create("other", Metric::Cosine);
    store.upsert(numbered(0..600));
    store.one(put("other", numbered(0..10), PutMode::Upsert)).unwrap();
    let root = add_root(&mut store, "/project");
    let text = |number: usize| format!("fn function_{number}");
    let files: Vec<ParsedFile> = (0..150)
        .map(|number| file(&format!("src/file_{number:03}.rs"), &[&text(number), "mod rest"]))
        .collect();
    store.one(put_files(root, &files, 1.0)).unwrap();
    let drawers = (0..150_usize).map(|number| NewDrawer {
        source: number.is_multiple_of(2).then(|| format!("notes/{number}.md")),
        author: Some("Ada".to_owned()),
        tags: vec![format!("tag {number}")],
        ..drawer(&format!("drawer {number}: {}", "some words ".repeat(number % 40 + 1)))
    });
    store.one(add(drawers.collect())).unwrap();
    let said = |number: usize| {
        let said = format!("Person-{number:03} Works-At Company-{:02}", number % 20);
        NewFact { confidence: Some(0.75), ..fact(&said, "2020-01-01/2030-06-01") }
    };
    let witness = Provenance { agent: Some("witness".to_owned()), ..Provenance::default() };
    let again = |number| NewFact { provenance: witness.clone(), ..said(number) };
    let all = (0..200).map(said).chain((0..200).step_by(10).map(again));
    let writes: Vec<Write> = all.map(|fact| write(AddFact { fact })).collect();
    store.writer.apply(&writes, &[]).unwrap();
    for number in 0..30 {
        let patch = EntityPatch {
            name: format!("Person-{number:03}"),
            r#type: Some("person".to_owned()),
            add_aliases: vec![format!("Number {number}")],
            remove_aliases: Vec::new(),
        };
        store.one(DescribeEntity { patch }).unwrap();
    }
    let query = "UNWIND range(1, 300) AS n CREATE (:Left {n: n, name: 'left ' + n})\
                 -[:PAIR {n: n}]->(:Right {n: n, tags: ['a', 'b']})";
    let query = CypherQuery { text: query.to_owned(), ..CypherQuery::default() };
    store.one(ChangeGraph { query }).unwrap();
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    store
}

/// For each table, queries for a row's name in reports and for its content.
const CONTENT: [(&str, &str); 13] = [
    (
        "record",
        "SELECT r.id, c.name, r.metadata, r.document, hex(v.data) FROM record r \
         JOIN collection c ON c.id = r.collection LEFT JOIN vector v ON v.row = r.row \
         WHERE c.kind = 'records' ORDER BY r.row",
    ),
    ("collection", "SELECT name, id, dimension, metric, model, kind FROM collection"),
    ("root", "SELECT path, id FROM root"),
    // Not the hash: without it a file is indexed again.
    ("file", "SELECT path, id, root, language, chunks FROM file"),
    (
        "drawer",
        "SELECT d.id, d.wing, d.room, d.position, d.source, d.author, d.date, d.tags, d.metadata, \
         group_concat(r.document, '') FROM drawer d JOIN passage p ON p.drawer = d.number \
         JOIN record r ON r.row = p.row GROUP BY d.number ORDER BY r.row",
    ),
    ("entity", "SELECT folded, id, name, type, created_at FROM entity"),
    ("predicate", "SELECT folded, id, name FROM predicate"),
    ("alias", "SELECT folded, entity, name FROM alias"),
    (
        "fact",
        "SELECT 'f' || id, subject, predicate, object, valid_from, from_day, valid_to, to_day, \
         until, confidence, drawer, file, agent, recorded_at, superseded_by FROM fact",
    ),
    ("fact_source", "SELECT fact, id, confidence, agent FROM fact_source"),
    ("node", "SELECT id, hex(labels), hex(properties) FROM node WHERE owner IS NULL"),
    ("edge", "SELECT id, type, src, dst, hex(properties) FROM edge WHERE owner IS NULL"),
    ("graph_name", "SELECT name, kind, id FROM graph_name"),
];

/// All rows of a database, by table and name in reports.
fn content(truth: &Path) -> BTreeMap<&'static str, BTreeMap<String, Vec<String>>> {
    let db = Connection::open(truth).unwrap();
    let table = |sql: &str| {
        let mut statement = db.prepare(sql).unwrap();
        let columns = statement.column_count();
        let mut rows = statement.query([]).unwrap();
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        while let Some(row) = rows.next().unwrap() {
            let value = |at| match row.get::<_, rusqlite::types::Value>(at).unwrap() {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            };
            let said = (1..columns).map(value).collect::<Vec<_>>().join("|");
            all.entry(value(0)).or_default().push(said);
        }
        all
    };
    CONTENT.iter().map(|(name, sql)| (*name, table(sql))).collect()
}

/// The reported losses of a table.
fn reported(report: &SalvageReport, table: &str) -> (BTreeSet<String>, bool) {
    let of_table = |name: &str| name == table || (table == "record" && name == "vector");
    let losses = report.lost.iter().filter(|loss| of_table(&loss.table));
    let ids = losses.clone().flat_map(|loss| loss.ids.clone()).collect();
    // Texts whose drawer is lost are named by number.
    let unnamed = losses
        .clone()
        .any(|loss| loss.extent == Extent::Unknown || (loss.ids.is_empty() && loss.rows > 0));
    (ids, unnamed)
}

/// Fails if a row is missing or changed and not in the report.
fn compare(before: &Path, after: &StoreFolder, report: &SalvageReport, trial: &str) {
    let (before, after) = (content(before), content(&after.truth()));
    for (table, rows) in &before {
        let (ids, unnamed) = reported(report, table);
        for (name, said) in rows {
            if after[table].get(name) != Some(said) {
                let is_told = unnamed || ids.contains(name);
                assert!(is_told, "{trial}: {table} {name:?} changed silently\n{:#?}", report.lost);
            }
        }
        // No new rows, except for placeholder names.
        for name in after[table].keys() {
            let is_known = rows.contains_key(name) || name.contains("recovered");
            assert!(is_known || unnamed, "{trial}: {table} {name:?} is new");
        }
    }
}

fn copy_of(store: &TestStore) -> (tempfile::TempDir, StoreFolder) {
    let place = tempfile::tempdir().unwrap();
    let folder = StoreFolder::new(place.path().join("store"));
    folder.create().unwrap();
    std::fs::copy(store.folder.truth(), folder.truth()).unwrap();
    (place, folder)
}

/// Every table and index.
fn trees(folder: &StoreFolder) -> Vec<String> {
    let db = Connection::open(folder.truth()).unwrap();
    let mut statement =
        db.prepare("SELECT DISTINCT name FROM dbstat WHERE name NOT LIKE 'sqlite_s%'").unwrap();
    statement.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

#[test]
fn every_loss_by_a_damaged_page_is_reported() {
    let store = everything();
    let mut random = fastrand::Rng::with_seed(16);
    for tree in trees(&store.folder) {
        let mut pages = pages_of(&store.folder, &tree, "leaf");
        random.shuffle(&mut pages);
        pages.truncate(1);
        let inner = pages_of(&store.folder, &tree, "internal");
        // Which page of an index is damaged makes no difference.
        if !tree.contains("index") {
            pages.extend(inner.first());
        }
        for page in pages {
            let (_place, folder) = copy_of(&store);
            let trial = format!("{tree}, page {page}");
            match random.u8(..2) {
                0 => damage_page(&folder.truth(), page),
                _ => {
                    let file = std::fs::File::options().write(true).open(folder.truth()).unwrap();
                    file.write_all_at(&[0; PAGE as usize], (page - 1) * PAGE).unwrap();
                }
            }
            let report = salvage(&folder);
            compare(&store.folder.truth(), &folder, &report, &trial);
            // The report is kept for as long as the damaged truth is.
            let [(path, Some(saved))] = &SavedReport::all(&folder)[..] else { panic!("{trial}") };
            assert_eq!((path, &saved.lost), (&report.report, &report.lost), "{trial}");
            std::fs::remove_file(&report.kept_as).unwrap();
            assert_eq!(SavedReport::all(&folder), []);
        }
    }
}

#[test]
fn several_damaged_pages_lose_nothing_silently() {
    let store = everything();
    let pages = std::fs::metadata(store.folder.truth()).unwrap().len() / PAGE;
    for seed in 0..5 {
        let (_place, folder) = copy_of(&store);
        let mut random = fastrand::Rng::with_seed(seed);
        for _ in 0..4 {
            damage_page(&folder.truth(), random.u64(2..=pages));
        }
        let report = salvage(&folder);
        compare(&store.folder.truth(), &folder, &report, &format!("seed {seed}"));
    }
}

#[test]
fn a_bad_region_in_entities_loses_no_name() {
    let store = everything();
    let before = content(&store.folder.truth());
    let (_place, folder) = copy_of(&store);
    for page in pages_of(&folder, "entity", "leaf") {
        damage_page(&folder.truth(), page);
    }
    let report = salvage(&folder);
    let names = |content: &BTreeMap<_, BTreeMap<String, Vec<String>>>| {
        content["entity"].keys().cloned().collect::<Vec<_>>()
    };
    let after = content(&folder.truth());
    assert_eq!(names(&after), names(&before));
    assert!(after["entity"]["person-001"][0].contains("Person-001|person"), "{after:?}");
    assert_eq!(after["fact"], before["fact"]);
    // The report still lists what is missing.
    assert_eq!(named(&report, "entity", Extent::Partial).len(), before["entity"].len());
}
