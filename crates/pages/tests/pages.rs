//! Databases that are written, read and damaged through the shim.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isolith_pages::{
    Checking, DamageKind, DatabasePart, PageDamage, is_checked, open, reserve, scan, seal,
    take_damage,
};
use rusqlite::{Connection, OpenFlags, ffi};
use tempfile::TempDir;

const PAGE: u64 = 4096;

struct TestDatabase {
    folder: TempDir,
}

impl TestDatabase {
    fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("db")
    }

    fn log(&self) -> PathBuf {
        self.folder.path().join("db-wal")
    }

    /// A new database with room for checksums.
    fn create(&self) -> Connection {
        let db = open(&self.path(), OpenFlags::default(), Checking::Every).unwrap();
        reserve(&db).unwrap();
        db.pragma_update(None, "page_size", PAGE as i64).unwrap();
        db.pragma_update(None, "synchronous", "OFF").unwrap();
        db.pragma_update(None, "auto_vacuum", "INCREMENTAL").unwrap();
        db.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())).unwrap();
        db.execute_batch(
            "CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data BLOB);
             CREATE INDEX item_name ON item (name)",
        )
        .unwrap();
        db
    }

    /// A closed database of a few hundred pages, some of them free, with an empty log.
    fn filled(&self) {
        let db = self.create();
        for id in 0..400 {
            insert(&db, id, 500 + (id as usize * 37) % 6000);
        }
        db.execute("DELETE FROM item WHERE id % 9 = 4", []).unwrap();
        db.close().unwrap();
    }

    fn open(&self, checking: Checking) -> Connection {
        open(&self.path(), OpenFlags::SQLITE_OPEN_READ_WRITE, checking).unwrap()
    }
}

fn insert(db: &Connection, id: i64, bytes: usize) {
    let data = vec![id as u8; bytes];
    db.execute("INSERT INTO item VALUES (?1, ?2, ?3)", (id, format!("item {id}"), data)).unwrap();
}

type Row = (i64, String, Vec<u8>);

fn rows(db: &Connection) -> rusqlite::Result<Vec<Row>> {
    db.prepare("SELECT id, name, data FROM item ORDER BY id")?
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect()
}

fn damages(db: &Connection) -> Vec<PageDamage> {
    let mut all = Vec::new();
    let verified = scan(db, &mut || true, &mut |damage| {
        all.push(damage);
        ControlFlow::Continue(())
    });
    assert!(verified.unwrap().is_some());
    all
}

fn assert_healthy(db: &Connection) {
    let says: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(says, "ok");
    assert_eq!(damages(db), []);
}

fn expect_damage<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> PageDamage {
    let Err(rusqlite::Error::SqliteFailure(error, _)) = result else { panic!("{result:?}") };
    assert_eq!(error.extended_code, ffi::SQLITE_IOERR_DATA);
    let damage = take_damage().unwrap();
    assert_eq!(take_damage(), None);
    damage
}

fn flip(path: &Path, byte: u64, bit: u32) {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut found = [0];
    file.read_exact_at(&mut found, byte).unwrap();
    file.write_all_at(&[found[0] ^ (1 << bit)], byte).unwrap();
}

#[test]
fn a_new_file_has_checksums_and_plain_sqlite_can_read_it() {
    let database = TestDatabase::new();
    database.filled();
    let db = database.open(Checking::Every);
    assert!(is_checked(&db).unwrap());
    assert_healthy(&db);
    let plain = Connection::open(database.path()).unwrap();
    assert_eq!(rows(&plain).unwrap(), rows(&db).unwrap());
}

#[test]
fn a_file_without_room_for_checksums_works_without_them() {
    let database = TestDatabase::new();
    let plain = Connection::open(database.path()).unwrap();
    plain.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data)").unwrap();
    insert(&plain, 1, 9000);
    drop(plain);
    let db = database.open(Checking::Every);
    assert!(!is_checked(&db).unwrap());
    insert(&db, 2, 9000);
    assert_eq!(scan(&db, &mut || true, &mut |_| ControlFlow::Continue(())).unwrap(), None);
    drop(db);
    assert_eq!(rows(&Connection::open(database.path()).unwrap()).unwrap().len(), 2);
}

/// Transactions that do not fit into the cache write pages to the log before they commit, read
/// them back, replace them there, and are partly rolled back.
#[test]
fn random_transactions_are_read_back() {
    for seed in 0..6 {
        let database = TestDatabase::new();
        let db = database.create();
        let reader = database.open(Checking::Every);
        let mut random = fastrand::Rng::with_seed(seed);
        db.pragma_update(None, "cache_size", 6).unwrap();
        db.pragma_update_and_check(None, "wal_autocheckpoint", 40, |_| Ok(())).unwrap();
        for _ in 0..12 {
            db.execute_batch("BEGIN IMMEDIATE").unwrap();
            for _ in 0..random.usize(1..60) {
                let id = random.i64(0..150);
                match random.u8(0..11) {
                    0..6 => {
                        db.execute("DELETE FROM item WHERE id = ?1", [id]).unwrap();
                        insert(&db, id, random.usize(0..12_000));
                    }
                    6 => drop(db.execute("UPDATE item SET name = name || 'x'", []).unwrap()),
                    7 => drop(db.execute("DELETE FROM item WHERE id < ?1", [id / 4]).unwrap()),
                    8 => db.execute_batch("SAVEPOINT here").unwrap(),
                    // Vacuuming moves pages.
                    9 => {
                        db.execute_batch("CREATE TABLE other (x UNIQUE); DROP TABLE other")
                            .unwrap();
                    }
                    // There may be no savepoint.
                    _ => drop(db.execute_batch("ROLLBACK TO here; RELEASE here")),
                }
                if random.u8(0..4) == 0 {
                    rows(&db).unwrap();
                }
            }
            let end = if random.u8(0..4) == 0 { "ROLLBACK" } else { "COMMIT" };
            db.execute_batch(end).unwrap();
            assert_eq!(rows(&db).unwrap(), rows(&reader).unwrap(), "seed {seed}");
            if random.bool() {
                db.execute_batch("PRAGMA incremental_vacuum(20)").unwrap();
            }
        }
        assert_healthy(&db);
        let expected = rows(&db).unwrap();
        drop((db, reader));
        let db = database.open(Checking::Every);
        assert_eq!(rows(&db).unwrap(), expected, "seed {seed}");
        assert_healthy(&db);
    }
}

#[test]
fn a_rollback_journal_works() {
    let database = TestDatabase::new();
    let db = open(&database.path(), OpenFlags::default(), Checking::Every).unwrap();
    reserve(&db).unwrap();
    db.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data)").unwrap();
    db.pragma_update(None, "cache_size", 5).unwrap();
    insert(&db, 1, 20_000);
    db.execute_batch("BEGIN").unwrap();
    (2..40).for_each(|id| insert(&db, id, 3_000));
    db.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rows(&db).unwrap().len(), 1);
    assert_healthy(&db);
    drop(db);
    let db = database.open(Checking::Every);
    assert!(is_checked(&db).unwrap());
    assert_healthy(&db);
}

/// Pages of a large copy leave the cache before the first one is written.
#[test]
fn a_copy_made_by_sqlite_has_checksums() {
    let database = TestDatabase::new();
    database.filled();
    let db = database.open(Checking::Every);
    db.pragma_update(None, "cache_size", 5).unwrap();
    let copy = database.folder.path().join("copy");
    db.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let copied = open(&copy, OpenFlags::default(), Checking::Every).unwrap();
    assert!(is_checked(&copied).unwrap());
    assert_healthy(&copied);
    assert_eq!(rows(&copied).unwrap(), rows(&db).unwrap());
}

#[test]
fn every_damaged_page_is_reported_and_none_is_read() {
    let database = TestDatabase::new();
    database.filled();
    let before = rows(&database.open(Checking::Every)).unwrap();
    let healthy = std::fs::read(database.path()).unwrap();
    let pages = healthy.len() as u64 / PAGE;
    assert!(pages > 200, "{pages}");
    let mut random = fastrand::Rng::with_seed(1);
    let mut noticed_by_reading = 0;
    for page in 2..=pages {
        std::fs::write(database.path(), &healthy).unwrap();
        flip(&database.path(), (page - 1) * PAGE + random.u64(..PAGE), random.u32(..8));
        let db = database.open(Checking::Every);
        let expected =
            PageDamage { page: page as u32, part: DatabasePart::File, fault: DamageKind::Mismatch };
        assert_eq!(damages(&db), [expected]);
        match rows(&db) {
            Ok(read) => assert_eq!(read, before, "page {page}"),
            failed => {
                assert_eq!(expect_damage(failed), expected);
                noticed_by_reading += 1;
            }
        }
    }
    assert!(noticed_by_reading > pages / 2, "{noticed_by_reading} of {pages}");
}

/// After the first damaged page, the log is made unreadable: pages that are in it are still
/// skipped, because they are known.
#[test]
fn the_log_is_read_once_however_many_pages_are_damaged() {
    let database = TestDatabase::new();
    database.filled();
    let db = database.open(Checking::Every);
    db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
    db.execute("UPDATE item SET data = zeroblob(length(data)) WHERE id > 200", []).unwrap();
    let log = std::fs::read(database.log()).unwrap();
    let in_log = |page: u32| {
        let mut frames = log[32..].chunks(PAGE as usize + 24);
        frames.any(|frame| frame[..4] == page.to_be_bytes())
    };
    let pages = std::fs::metadata(database.path()).unwrap().len() / PAGE;
    let (logged, others): (Vec<u32>, Vec<u32>) = (2..=pages as u32).partition(|page| in_log(*page));
    assert!(logged.len() > 50 && others.len() > 50, "{} and {}", logged.len(), others.len());
    assert!(others[0] < logged[logged.len() - 50]);
    for page in 2..=pages {
        flip(&database.path(), page * PAGE - 1, 0);
    }

    let mut found = Vec::new();
    scan(&db, &mut || true, &mut |damage| {
        if found.is_empty() {
            std::fs::write(database.log(), vec![0; log.len()]).unwrap();
        }
        found.push(damage.page);
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(found, others);
}

#[test]
fn damage_in_the_first_page_is_detected_except_in_its_reserved_size() {
    let database = TestDatabase::new();
    database.filled();
    let before = rows(&database.open(Checking::Every)).unwrap();
    for bit in 0..PAGE * 8 {
        // Only the header and the cells: much of the rest is unused.
        if (200 * 8..3600 * 8).contains(&bit) {
            continue;
        }
        flip(&database.path(), bit / 8, (bit % 8) as u32);
        let db = database.open(Checking::Every);
        let read = rows(&db);
        let _ = take_damage();
        // With a damaged number of reserved bytes, a file looks as if it had no checksums; the
        // caller must check `is_checked`.
        let knows = is_checked(&db).unwrap() || read.is_err();
        assert!(knows || bit / 8 == 20, "bit {bit}");
        if bit / 8 != 20 {
            assert!(read.is_err() || read.unwrap() == before, "bit {bit}");
        }
        drop(db);
        flip(&database.path(), bit / 8, (bit % 8) as u32);
    }
}

#[test]
fn swapped_and_missing_pages_are_detected() {
    let database = TestDatabase::new();
    database.filled();
    let healthy = std::fs::read(database.path()).unwrap();
    let at = |page: usize| (page - 1) * PAGE as usize..page * PAGE as usize;
    let mut swapped = healthy.clone();
    swapped[at(30)].copy_from_slice(&healthy[at(31)]);
    swapped[at(31)].copy_from_slice(&healthy[at(30)]);
    std::fs::write(database.path(), &swapped).unwrap();
    let found: Vec<_> = damages(&database.open(Checking::Every)).iter().map(|it| it.page).collect();
    assert_eq!(found, [30, 31]);

    let mut zeroed = healthy.clone();
    zeroed[at(40)].fill(0);
    std::fs::write(database.path(), &zeroed).unwrap();
    assert_eq!(damages(&database.open(Checking::Every)).len(), 1);

    std::fs::write(database.path(), &healthy).unwrap();
    let db = database.open(Checking::Every);
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
    let file = File::options().write(true).open(database.path()).unwrap();
    db.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema").unwrap();
    file.set_len(20 * PAGE).unwrap();
    let damage = expect_damage(rows(&db));
    assert_eq!((damage.fault, damage.page > 20), (DamageKind::Missing, true));
    drop(db);

    let pages = healthy.len() as u64 / PAGE;
    for length in [pages * PAGE - 1, (pages - 5) * PAGE, 50 * PAGE + 100, 3 * PAGE] {
        std::fs::write(database.path(), &healthy[..length as usize]).unwrap();
        let db = database.open(Checking::Every);
        // SQLite itself compares the number of pages with its header before it reads.
        let Err(rusqlite::Error::SqliteFailure(error, _)) = rows(&db) else { panic!("{length}") };
        let codes = [ffi::SQLITE_CORRUPT, ffi::SQLITE_IOERR_DATA];
        assert!(codes.contains(&error.extended_code), "{error}");
    }
}

#[test]
fn damage_in_a_log_in_use_is_detected_on_read_and_on_checkpoint() {
    for seed in 0..60 {
        let database = TestDatabase::new();
        let db = database.create();
        db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        (0..60).for_each(|id| insert(&db, id, 900));
        let before = rows(&db).unwrap();
        let frames = (std::fs::metadata(database.log()).unwrap().len() - 32) / (PAGE + 24);
        let mut random = fastrand::Rng::with_seed(seed);
        let frame = 32 + random.u64(..frames) * (PAGE + 24);
        flip(&database.log(), frame + 24 + random.u64(..PAGE), random.u32(..8));
        let other = database.open(Checking::Every);
        match rows(&other) {
            Ok(read) => assert_eq!(read, before, "seed {seed}"),
            failed => assert_eq!(expect_damage(failed).part, DatabasePart::Log),
        }
        // Damage in a page that was written again later has no effect.
        let copied: rusqlite::Result<i64> =
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        match copied {
            Ok(_) => {
                assert_eq!(rows(&database.open(Checking::Every)).unwrap(), before);
            }
            failed => assert_eq!(expect_damage(failed).part, DatabasePart::Log),
        }
    }
}

#[test]
fn interior_pages_can_be_read_for_salvage() {
    let database = TestDatabase::new();
    database.filled();
    let db = database.open(Checking::Every);
    let before = rows(&db).unwrap();
    let root: u32 = db
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'item'", [], |row| row.get(0))
        .unwrap();
    let root = u64::from(root);
    drop(db);
    // The last byte of the root page: its checksum.
    flip(&database.path(), root * PAGE - 1, 0);
    assert_eq!(u64::from(expect_damage(rows(&database.open(Checking::Every))).page), root);
    assert_eq!(rows(&database.open(Checking::Leaves)).unwrap(), before);

    let db = database.open(Checking::Leaves);
    let leaf: u32 = db
        .query_row(
            "SELECT pageno FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let leaf = u64::from(leaf);
    drop(db);
    flip(&database.path(), leaf * PAGE - 1, 0);
    assert_eq!(u64::from(expect_damage(rows(&database.open(Checking::Leaves))).page), leaf);
    assert_eq!(rows(&database.open(Checking::Nothing)).unwrap(), before);

    // Sealed by hand, as when pages are assembled from others.
    let file = File::options().read(true).write(true).open(database.path()).unwrap();
    for page in [root, leaf] {
        let mut content = vec![0; PAGE as usize];
        file.read_exact_at(&mut content, (page - 1) * PAGE).unwrap();
        seal(&mut content, page as u32);
        file.write_all_at(&content, (page - 1) * PAGE).unwrap();
    }
    assert_healthy(&database.open(Checking::Every));
}

/// SQLite without the shim copies the log into the file when it closes it, without checksums.
#[test]
fn pages_written_by_another_program_are_not_reported_as_mismatch() {
    let database = TestDatabase::new();
    database.filled();
    let db = database.open(Checking::Every);
    db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
    db.execute("UPDATE item SET name = name || 'x' WHERE id % 2 = 0", []).unwrap();
    (1_000..1_050).for_each(|id| insert(&db, id, 700));
    let before = rows(&db).unwrap();
    let config = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    db.set_db_config(config, true).unwrap();
    drop(db);
    let plain = Connection::open(database.path()).unwrap();
    assert_eq!(rows(&plain).unwrap(), before);
    plain.close().unwrap();

    let db = database.open(Checking::Every);
    assert_eq!(expect_damage(rows(&db)).fault, DamageKind::Unsealed);
    let found = damages(&database.open(Checking::Leaves));
    assert!(found.len() > 50, "{}", found.len());
    assert!(found.iter().all(|damage| damage.fault == DamageKind::Unsealed), "{found:?}");
    assert_eq!(rows(&database.open(Checking::Leaves)).unwrap(), before);
}
