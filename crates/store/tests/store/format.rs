//! Compares docs/format.md with an actual store.

use std::collections::{BTreeMap, BTreeSet};

use std::os::unix::fs::PermissionsExt as _;

use isolith_protocol::{ChangeGraph, CypherQuery, ENCODING, RememberPoison, UpdateDrawer};
use isolith_store::{Checkpoint, schema_version};
use isolith_types::DrawerPatch;
use rusqlite::Connection;

use crate::common::{TestStore, bytes, database};
use crate::fill::{KEPT, LONG_WORD, LONG_WORDS, filled};
use crate::memory::{add, drawer, vectors};

const PAGE: &str = include_str!("../../../../docs/format.md");

/// A store with an empty log.
fn closed() -> TestStore {
    let mut store = filled();
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    store
}

/// The part of the page between two markers.
fn between(start: &str, end: &str) -> &'static str {
    PAGE.split_once(start).and_then(|(_, rest)| rest.split_once(end)).unwrap().0
}

/// A table, without `NOT NULL` and defaults, which the page omits.
#[derive(Debug, Default, PartialEq, Eq)]
struct Table {
    columns: Vec<String>,
    constraints: BTreeSet<String>,
    indexes: BTreeSet<String>,
    without_rowid: bool,
}

impl Table {
    fn add(&mut self, part: &str) {
        let plain = part.replace(" NOT NULL", "");
        let plain = plain.split(" DEFAULT ").next().unwrap_or_default();
        match plain.starts_with("PRIMARY KEY (") || plain.starts_with("UNIQUE (") {
            true => drop(self.constraints.insert(plain.to_owned())),
            false => self.columns.push(plain.to_owned()),
        }
    }

    /// Takes a line of the page: `name, name TYPE …`, a constraint, or an index.
    fn add_line(&mut self, line: &str) {
        if let Some(index) = line.strip_prefix("UNIQUE INDEX ") {
            self.indexes.insert(format!("UNIQUE {index}"));
        } else if let Some(index) = line.strip_prefix("INDEX ") {
            self.indexes.insert(index.to_owned());
        } else if line.starts_with("PRIMARY KEY (") || line.starts_with("UNIQUE (") {
            self.without_rowid |= line.ends_with(" WITHOUT ROWID");
            parts(line.trim_end_matches(" WITHOUT ROWID")).iter().for_each(|part| self.add(part));
        } else {
            let start = line.find(|c: char| c.is_ascii_uppercase()).unwrap();
            let (names, rest) = line.split_at(start);
            names.split(',').for_each(|name| self.add(&format!("{} {rest}", name.trim())));
        }
    }
}

/// Splits at commas outside parentheses and collapses blanks.
fn parts(text: &str) -> Vec<String> {
    let mut depth = 0;
    let cut = text.split(|c: char| {
        depth += i32::from(c == '(') - i32::from(c == ')');
        c == ',' && depth == 0
    });
    cut.map(|part| part.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

fn documented() -> BTreeMap<String, Table> {
    let mut tables = BTreeMap::<String, Table>::new();
    let mut name = String::new();
    for line in between("```sql\n", "```").lines() {
        let plain = line.split("--").next().unwrap_or_default();
        let plain = plain.split_whitespace().collect::<Vec<_>>().join(" ");
        if !line.starts_with(' ') && !plain.is_empty() {
            name = plain;
            tables.insert(name.clone(), Table::default());
        } else if !plain.is_empty() {
            tables.get_mut(&name).unwrap().add_line(&plain);
        }
    }
    tables
}

fn actual(db: &Connection) -> BTreeMap<String, Table> {
    let mut tables = BTreeMap::<String, Table>::new();
    let mut schema = db
        .prepare(
            "SELECT type, tbl_name, sql FROM sqlite_schema WHERE sql IS NOT NULL \
             AND name NOT LIKE 'sqlite%' ORDER BY type DESC, rowid",
        )
        .unwrap();
    let mut rows = schema.query([]).unwrap();
    while let Some(row) = rows.next().unwrap() {
        let (kind, name, sql): (String, String, String) =
            (row.get(0).unwrap(), row.get(1).unwrap(), row.get(2).unwrap());
        let table = tables.entry(name.clone()).or_default();
        if kind == "index" {
            let index = sql.trim_start_matches("CREATE ").replace("UNIQUE INDEX", "UNIQUE");
            let index = index.trim_start_matches("INDEX ").replace(&format!(" ON {name}"), "");
            table.indexes.insert(index);
            continue;
        }
        let (start, end) = (sql.find('(').unwrap(), sql.rfind(')').unwrap());
        parts(&sql[start + 1..end]).iter().for_each(|part| table.add(part));
        let options = &sql[end + 1..];
        assert!(options.contains("STRICT"), "{name}");
        table.without_rowid = options.contains("WITHOUT ROWID");
    }
    tables
}

#[test]
fn tables_match_format_md() {
    let store = closed();
    let (documented, actual) = (documented(), actual(&database(&store.folder)));
    for (name, table) in &actual {
        assert_eq!(documented.get(name), Some(table), "docs/format.md, table {name}");
    }
    assert_eq!(documented.len(), actual.len());
}

#[test]
fn files_in_the_store_match_format_md() {
    let store = filled();
    let block = between("## The folder\n\n```\n", "```");
    let lines = block.lines().filter(|line| !line.starts_with(' '));
    let listed: BTreeSet<&str> =
        lines.map(|line| line.split([' ', '/']).next().unwrap_or_default()).collect();
    let folder = &store.folder;
    let known = [
        folder.truth(),
        folder.seal(),
        folder.path().join("acknowledged"),
        folder.segments(),
        folder.quarantine(),
        folder.crashes(),
        folder.logs(),
        folder.run(),
        folder.lock_file(),
    ];
    let known = known.each_ref().map(|path| path.file_name().unwrap().to_str().unwrap());
    assert_eq!(listed, BTreeSet::from(known));
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let file = name.trim_end_matches("-wal").trim_end_matches("-shm");
        assert!(listed.contains(file), "{name}");
    }
    assert_eq!(folder.builder_lock(), folder.run().join("builder.lock"));
    assert!(folder.run().join("create.lock").exists());
}

#[test]
fn permissions_match_format_md() {
    fn check(path: &std::path::Path) {
        let about = path.symlink_metadata().unwrap();
        let expected = if about.is_dir() { 0o700 } else { 0o600 };
        assert_eq!(about.permissions().mode() & 0o777, expected, "{}", path.display());
        if about.is_dir() {
            std::fs::read_dir(path).unwrap().for_each(|entry| check(&entry.unwrap().path()));
        }
    }
    assert!(PAGE.contains("Folders are 0700, files 0600."));
    check(filled().folder.path());
}

/// `isolith-pages` has a test with a known value for this checksum.
#[test]
fn every_page_of_the_file_has_its_checksum() {
    let file = std::fs::read(closed().folder.truth()).unwrap();
    assert!(file.len() > 20 * 8192);
    for (number, page) in (1..).zip(file.chunks(8192)) {
        assert!(isolith_pages::is_sealed(page, number), "page {number}");
    }
}

/// 32 bytes of header, then frames of 24 bytes and a page each.
#[test]
fn pages_in_the_log_have_zeros_instead_of_checksums() {
    let store = filled();
    let log = std::fs::read(store.folder.path().join("truth.sqlite-wal")).unwrap();
    let frames = log[32..].chunks_exact(24 + 8192);
    assert!(frames.len() > 10);
    assert!(frames.clone().all(|frame| frame.ends_with(&[0; 8])));
}

#[test]
fn format_md_lists_every_schema_version() {
    let table = between("| Version | What changed |\n|---|---|\n", "\n\n");
    let versions: Vec<u32> =
        table.lines().map(|row| row.split('|').nth(1).unwrap().trim().parse().unwrap()).collect();
    assert_eq!(versions, (1..=schema_version()).collect::<Vec<_>>());
}

#[test]
fn the_file_header_matches_format_md() {
    let store = closed();
    let file = std::fs::read(store.folder.truth()).unwrap();
    let word = |at: usize| u32::from_be_bytes(*file[at..].first_chunk().unwrap());
    assert!(PAGE.contains("`application_id` is 0x49534C54 (\"ISLT\")"));
    assert_eq!((word(68), &file[68..72]), (0x4953_4C54, &b"ISLT"[..]));
    assert_eq!(word(60), schema_version());
    // The size of pages, WAL for writing and reading, the bytes that are reserved.
    assert_eq!((&file[16..18], &file[18..21]), (&8192_u16.to_be_bytes()[..], &[2, 2, 8][..]));
    // `auto_vacuum` is INCREMENTAL: there is a largest root page, and the flag is set.
    assert!(word(52) > 0 && word(64) == 1);
}

#[test]
fn the_mark_of_acknowledged_commits_matches_format_md() {
    let store = closed();
    let mark = std::fs::read(store.folder.path().join("acknowledged")).unwrap();
    let number = |at: usize| u64::from_le_bytes(*mark[at..].first_chunk().unwrap());
    let db = database(&store.folder);
    let (uuid, commits, change): (String, u64, u64) = db
        .query_row("SELECT uuid, commits, last_change FROM store", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!((mark.len(), &mark[..8]), (64, &b"ISLTACK1"[..]));
    assert_eq!(mark[8..24], blake3::hash(uuid.as_bytes()).as_bytes()[..16]);
    // The tests write with `synchronous=NORMAL`.
    assert_eq!((number(40), number(48)), (commits, change));
    assert!(number(24) <= commits && number(32) <= change);
    assert_eq!(mark[56..60], [0; 4]);
    assert_eq!(mark[60..], crc32c::crc32c(&mark[..60]).to_le_bytes());
}

fn strings(db: &Connection, sql: &str) -> Vec<String> {
    let mut query = db.prepare(sql).unwrap();
    query.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
}

fn blob(db: &Connection, sql: &str) -> Vec<u8> {
    db.query_row(sql, [], |row| row.get(0)).unwrap()
}

#[test]
fn ids_hashes_and_vectors_match_format_md() {
    let store = closed();
    let db = database(&store.folder);
    let ids_of = |kind: &str| {
        strings(&db, &format!("SELECT record.id FROM {kind} JOIN record USING (row) ORDER BY row"))
    };
    assert_eq!(ids_of("chunk"), ["00000001:0000", "00000001:0001", "00000002:0000"]);
    assert_eq!(ids_of("passage")[..2], ["00000001:0000", "00000002:0000"]);
    assert_eq!(blob(&db, "SELECT data FROM vector WHERE row = 1"), bytes([1.0, 2.0]));
    let metadata = strings(&db, "SELECT metadata FROM record WHERE id = 'a'");
    assert_eq!(metadata, [r#"{"n":1,"tags":["x","y"]}"#]);

    let text = LONG_WORD.repeat(LONG_WORDS);
    let mut hasher = blake3::Hasher::new();
    for part in ["ada", "work", "", &text] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    let hash = hasher.finalize();
    assert_eq!(blob(&db, "SELECT content FROM drawer WHERE number = 2"), hash.as_bytes());
    let id = strings(&db, "SELECT id FROM drawer WHERE number = 2").remove(0);
    assert_eq!(id, hash.to_hex()[..24]);
    let slices =
        "SELECT document FROM record JOIN passage USING (row) WHERE drawer = 2 ORDER BY row";
    let slices = strings(&db, slices);
    assert!(slices.len() > 1 && slices.concat() == text);
}

#[test]
fn node_encoding_matches_format_md() {
    let store = closed();
    let db = database(&store.folder);
    let number = |kind: u8, name: &str| -> u8 {
        let sql = "SELECT id FROM graph_name WHERE kind = ?1 AND name = ?2";
        let id: u32 = db.query_row(sql, (kind, name), |row| row.get(0)).unwrap();
        u8::try_from(id).ok().filter(|id| *id < 128).expect("it takes one byte as LEB128")
    };
    let (label, name) = (number(0, "Person"), number(2, "name"));
    // Authors that git names are persons, too.
    let node = format!(
        "FROM node_label JOIN node ON id = node WHERE label = {label} AND owner IS NULL ORDER BY id"
    );
    assert_eq!(blob(&db, &format!("SELECT labels {node}")), [label]);
    let mut pairs = BTreeMap::from([
        (name, b"\x04\x03Ada".to_vec()),
        (number(2, "age"), vec![2, 72]),
        (number(2, "tags"), [&b"\x05\x03\x04\x01x\x03"[..], &2.5_f64.to_le_bytes(), &[1]].concat()),
    ]);
    let mut left = &blob(&db, &format!("SELECT properties {node}"))[..];
    while let Some((key, rest)) = left.split_first() {
        let value = pairs.remove(key).unwrap();
        left = rest.strip_prefix(value.as_slice()).unwrap();
    }
    assert!(pairs.is_empty());
    let value = |key: u8| {
        let sql = "SELECT quote(value) FROM node_value JOIN node ON id = node \
                   WHERE owner IS NULL AND key = ?1 ORDER BY id";
        db.query_row(sql, [key], |row| row.get::<_, String>(0)).unwrap()
    };
    let found = [name, number(2, "age"), number(2, "tags")].map(value);
    assert_eq!(found, ["'Ada'", "36", "X'6C'"], "a list is the byte `l`");
    let edge = format!("SELECT properties FROM edge WHERE type = {}", number(1, "KNOWS"));
    // 1833 as zigzag is 3666: 0xD2 0x1C as LEB128.
    assert_eq!(blob(&db, &edge), [number(2, "since"), 2, 0xD2, 0x1C]);
}

#[test]
fn lookup_hashes_match_format_md() {
    let store = closed();
    let db = database(&store.folder);
    let bytes = blob(&db, "SELECT keys FROM code_lookup WHERE file = 1");
    let keys: Vec<u32> = bytes.as_chunks().0.iter().map(|key| u32::from_le_bytes(*key)).collect();
    assert!(keys.is_sorted() && bytes.len() == 4 * keys.len());
    let fnv = |text: &str| {
        text.bytes()
            .fold(0x811C_9DC5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
    };
    assert!(keys.contains(&fnv("file:app/util.py")), "{keys:?}");
    let modules = strings(&db, "SELECT name FROM code_module ORDER BY file");
    assert_eq!(modules, ["python:main", "python:util"]);
}

#[test]
fn receipts_match_format_md() {
    let store = closed();
    let db = database(&store.folder);
    let (request, result): (Vec<u8>, String) = db
        .query_row("SELECT request, result FROM receipt WHERE key = ?1", [KEPT.0], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .unwrap();
    let poison = r#"{"class":"crash"}"#.to_owned();
    let operation = RememberPoison { role: "parse".to_owned(), input: vec![1; 32], poison };
    let mut hasher = blake3::Hasher::new();
    hasher.update(b"remember_poison").update(&postcard::to_stdvec(&operation).unwrap());
    assert_eq!(request, hasher.finalize().as_bytes()[..16]);
    let result: serde_json::Value = serde_json::from_str(&result).unwrap();
    assert_eq!(result["encoding"], ENCODING);
    assert!(result.as_object().unwrap().keys().eq(["encoding", "reply"]), "{result}");
}

#[test]
fn columns_with_json_and_numbers_match_format_md() {
    let store = closed();
    let db = database(&store.folder);
    let keys = "SELECT name || ' ' || type FROM field_key ORDER BY name, type";
    assert_eq!(strings(&db, keys), ["n 0", "n 1", "ok 2", "tags 5"]);
    let symbols = strings(&db, "SELECT symbols FROM chunk ORDER BY row");
    let expected = ["[]", r#"[["main","function",2]]"#, r#"[["helper","function",1]]"#];
    assert_eq!(symbols, expected);
    let kinds = strings(&db, "SELECT DISTINCT kind FROM collection ORDER BY kind");
    assert_eq!(kinds, ["code", "memory", "records"]);
    let tags = strings(&db, "SELECT tags FROM drawer ORDER BY number");
    assert_eq!(tags[0], "[]");
}

#[test]
fn facts_match_format_md() {
    let store = closed();
    let db = database(&store.folder);
    assert_eq!(
        strings(&db, "SELECT folded FROM entity ORDER BY id"),
        ["max", "berlin", "köln", "eva", "rome"]
    );
    assert_eq!(strings(&db, "SELECT folded FROM alias"), ["maxi"]);
    assert_eq!(strings(&db, "SELECT folded FROM predicate"), ["lives in"]);
    // Superseded on 2022-05-01, in milliseconds since 1970.
    let ended: (i64, i64, bool) = db
        .query_row("SELECT valid_to, until, to_day FROM fact WHERE id = 1", [], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })
        .unwrap();
    assert_eq!(ended, (1_651_363_200_000, 1_651_363_200_000, true));
}

/// A text that comes back after its drawer was changed gets another id.
#[test]
fn ids_of_drawers_whose_id_is_taken_match_format_md() {
    let mut store = TestStore::new();
    let first = store.one(add(vec![drawer("first")])).unwrap().reply.drawers.remove(0).id;
    let patch = DrawerPatch { text: Some("second".to_owned()), ..DrawerPatch::default() };
    let (patch, vectors) = (Box::new(patch), vectors(["second"]));
    store.one(UpdateDrawer { id: first.clone(), patch, vectors }).unwrap();
    let again = store.one(add(vec![drawer("first")])).unwrap().reply.drawers.remove(0).id;
    let db = database(&store.folder);
    let content = blob(&db, &format!("SELECT content FROM drawer WHERE id = '{again}'"));
    let hex = |bytes: &[u8]| bytes[..12].iter().map(|it| format!("{it:02x}")).collect::<String>();
    assert_eq!(first, hex(&content));
    let mut hasher = blake3::Hasher::new();
    hasher.update(&content).update(&1_u64.to_le_bytes());
    assert_eq!(again, hex(hasher.finalize().as_bytes()));
}

#[test]
fn lookup_values_match_format_md() {
    let mut store = TestStore::new();
    let text = "CREATE (:V {v: 1}), (:V {v: 2.5}), (:V {v: false}), (:V {v: true}), \
                (:V {v: 0.0 / 0.0}), (:V {v: [1]}), (:V {v: $long})";
    // The last character that ends within 200 bytes is the 66th.
    let long = isolith_graph::Datum::Text("店".repeat(100));
    let parameters = BTreeMap::from([("long".to_owned(), long)]);
    let query = CypherQuery { text: text.to_owned(), parameters };
    store.one(ChangeGraph { query }).unwrap();
    let db = database(&store.folder);
    let values = strings(&db, "SELECT quote(value) FROM node_value ORDER BY node");
    let cut = format!("'{}'", "店".repeat(66));
    assert_eq!(values, ["1", "2.5", "X'66'", "X'74'", "X'6E'", "X'6C'", &cut]);
}
