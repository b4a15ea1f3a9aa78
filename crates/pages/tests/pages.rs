//! Databases that are written, read and damaged through the shim.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use isolith_pages::{
    Checking, Damage, Fault, Part, is_checked, open, reserve, scan, seal, take_damage,
};
use rusqlite::{Connection, OpenFlags, ffi};
use tempfile::TempDir;

const PAGE: u64 = 4096;

struct Place {
    folder: TempDir,
}

impl Place {
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

    /// A closed database of a few hundred pages, some of them free, nothing in the log.
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

fn damages(db: &Connection) -> Vec<Damage> {
    let mut all = Vec::new();
    let verified = scan(db, &mut || true, &mut |damage| {
        all.push(damage);
        ControlFlow::Continue(())
    });
    assert!(verified.unwrap().is_some());
    all
}

fn is_healthy(db: &Connection) {
    let says: String = db.query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(says, "ok");
    assert_eq!(damages(db), []);
}

fn is_damage<T: std::fmt::Debug>(result: rusqlite::Result<T>) -> Damage {
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
fn a_new_file_carries_checksums_and_plain_sqlite_reads_it() {
    let place = Place::new();
    place.filled();
    let db = place.open(Checking::Every);
    assert!(is_checked(&db).unwrap());
    is_healthy(&db);
    let plain = Connection::open(place.path()).unwrap();
    assert_eq!(rows(&plain).unwrap(), rows(&db).unwrap());
}

#[test]
fn a_file_without_room_for_checksums_is_read_and_written_without() {
    let place = Place::new();
    let plain = Connection::open(place.path()).unwrap();
    plain.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data)").unwrap();
    insert(&plain, 1, 9000);
    drop(plain);
    let db = place.open(Checking::Every);
    assert!(!is_checked(&db).unwrap());
    insert(&db, 2, 9000);
    assert_eq!(scan(&db, &mut || true, &mut |_| ControlFlow::Continue(())).unwrap(), None);
    drop(db);
    assert_eq!(rows(&Connection::open(place.path()).unwrap()).unwrap().len(), 2);
}

/// Transactions that do not fit into memory write pages to the log before they are committed,
/// read them back, replace them there, and are rolled back in part.
#[test]
fn whatever_is_written_is_read_again() {
    for seed in 0..6 {
        let place = Place::new();
        let db = place.create();
        let reader = place.open(Checking::Every);
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
                    // New pages take the places of others, which move.
                    9 => {
                        db.execute_batch("CREATE TABLE other (x UNIQUE); DROP TABLE other")
                            .unwrap();
                    }
                    // There may be none to go back to.
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
        is_healthy(&db);
        let expected = rows(&db).unwrap();
        drop((db, reader));
        let db = place.open(Checking::Every);
        assert_eq!(rows(&db).unwrap(), expected, "seed {seed}");
        is_healthy(&db);
    }
}

#[test]
fn a_rollback_journal_works_too() {
    let place = Place::new();
    let db = open(&place.path(), OpenFlags::default(), Checking::Every).unwrap();
    reserve(&db).unwrap();
    db.execute_batch("CREATE TABLE item (id INTEGER PRIMARY KEY, name TEXT, data)").unwrap();
    db.pragma_update(None, "cache_size", 5).unwrap();
    insert(&db, 1, 20_000);
    db.execute_batch("BEGIN").unwrap();
    (2..40).for_each(|id| insert(&db, id, 3_000));
    db.execute_batch("ROLLBACK").unwrap();
    assert_eq!(rows(&db).unwrap().len(), 1);
    is_healthy(&db);
    drop(db);
    let db = place.open(Checking::Every);
    assert!(is_checked(&db).unwrap());
    is_healthy(&db);
}

/// Pages of a large copy leave memory before the first one is written.
#[test]
fn a_copy_made_by_sqlite_carries_checksums_too() {
    let place = Place::new();
    place.filled();
    let db = place.open(Checking::Every);
    db.pragma_update(None, "cache_size", 5).unwrap();
    let copy = place.folder.path().join("copy");
    db.execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
    let copied = open(&copy, OpenFlags::default(), Checking::Every).unwrap();
    assert!(is_checked(&copied).unwrap());
    is_healthy(&copied);
    assert_eq!(rows(&copied).unwrap(), rows(&db).unwrap());
}

#[test]
fn every_damaged_page_is_named_and_none_is_read() {
    let place = Place::new();
    place.filled();
    let before = rows(&place.open(Checking::Every)).unwrap();
    let healthy = std::fs::read(place.path()).unwrap();
    let pages = healthy.len() as u64 / PAGE;
    assert!(pages > 200, "{pages}");
    let mut random = fastrand::Rng::with_seed(1);
    let mut noticed_by_reading = 0;
    for page in 2..=pages {
        std::fs::write(place.path(), &healthy).unwrap();
        flip(&place.path(), (page - 1) * PAGE + random.u64(..PAGE), random.u32(..8));
        let db = place.open(Checking::Every);
        let expected = Damage { page: page as u32, part: Part::File, fault: Fault::Mismatch };
        assert_eq!(damages(&db), [expected]);
        match rows(&db) {
            Ok(read) => assert_eq!(read, before, "page {page}"),
            failed => {
                assert_eq!(is_damage(failed), expected);
                noticed_by_reading += 1;
            }
        }
    }
    assert!(noticed_by_reading > pages / 2, "{noticed_by_reading} of {pages}");
}

#[test]
fn a_damaged_first_page_is_never_believed() {
    let place = Place::new();
    place.filled();
    let before = rows(&place.open(Checking::Every)).unwrap();
    for bit in 0..PAGE * 8 {
        // The header and the cells; much between them is not used.
        if (200 * 8..3600 * 8).contains(&bit) {
            continue;
        }
        flip(&place.path(), bit / 8, (bit % 8) as u32);
        let db = place.open(Checking::Every);
        let read = rows(&db);
        let _ = take_damage();
        // Without its number of reserved bytes a file looks like one that has no checksums:
        // whoever knows better has to ask.
        let knows = is_checked(&db).unwrap() || read.is_err();
        assert!(knows || bit / 8 == 20, "bit {bit}");
        if bit / 8 != 20 {
            assert!(read.is_err() || read.unwrap() == before, "bit {bit}");
        }
        drop(db);
        flip(&place.path(), bit / 8, (bit % 8) as u32);
    }
}

#[test]
fn pages_that_changed_places_or_are_gone_are_noticed() {
    let place = Place::new();
    place.filled();
    let healthy = std::fs::read(place.path()).unwrap();
    let at = |page: usize| (page - 1) * PAGE as usize..page * PAGE as usize;
    let mut swapped = healthy.clone();
    swapped[at(30)].copy_from_slice(&healthy[at(31)]);
    swapped[at(31)].copy_from_slice(&healthy[at(30)]);
    std::fs::write(place.path(), &swapped).unwrap();
    let found: Vec<_> = damages(&place.open(Checking::Every)).iter().map(|it| it.page).collect();
    assert_eq!(found, [30, 31]);

    let mut zeroed = healthy.clone();
    zeroed[at(40)].fill(0);
    std::fs::write(place.path(), &zeroed).unwrap();
    assert_eq!(damages(&place.open(Checking::Every)).len(), 1);

    std::fs::write(place.path(), &healthy).unwrap();
    let db = place.open(Checking::Every);
    db.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).unwrap();
    let file = File::options().write(true).open(place.path()).unwrap();
    db.execute_batch("BEGIN; SELECT 1 FROM sqlite_schema").unwrap();
    file.set_len(20 * PAGE).unwrap();
    let damage = is_damage(rows(&db));
    assert_eq!((damage.fault, damage.page > 20), (Fault::Missing, true));
    drop(db);

    let pages = healthy.len() as u64 / PAGE;
    for length in [pages * PAGE - 1, (pages - 5) * PAGE, 50 * PAGE + 100, 3 * PAGE] {
        std::fs::write(place.path(), &healthy[..length as usize]).unwrap();
        let db = place.open(Checking::Every);
        // SQLite itself compares the number of pages with its header before it reads.
        let Err(rusqlite::Error::SqliteFailure(error, _)) = rows(&db) else { panic!("{length}") };
        let codes = [ffi::SQLITE_CORRUPT, ffi::SQLITE_IOERR_DATA];
        assert!(codes.contains(&error.extended_code), "{error}");
    }
}

#[test]
fn a_damaged_log_in_use_is_noticed_when_it_is_read_and_when_it_is_copied() {
    for seed in 0..60 {
        let place = Place::new();
        let db = place.create();
        db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
        (0..60).for_each(|id| insert(&db, id, 900));
        let before = rows(&db).unwrap();
        let frames = (std::fs::metadata(place.log()).unwrap().len() - 32) / (PAGE + 24);
        let mut random = fastrand::Rng::with_seed(seed);
        let frame = 32 + random.u64(..frames) * (PAGE + 24);
        flip(&place.log(), frame + 24 + random.u64(..PAGE), random.u32(..8));
        let other = place.open(Checking::Every);
        match rows(&other) {
            Ok(read) => assert_eq!(read, before, "seed {seed}"),
            failed => assert_eq!(is_damage(failed).part, Part::Log),
        }
        // Damage in a page that was written again later does not matter to anybody.
        let copied: rusqlite::Result<i64> =
            other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0));
        match copied {
            Ok(_) => {
                assert_eq!(rows(&place.open(Checking::Every)).unwrap(), before);
            }
            failed => assert_eq!(is_damage(failed).part, Part::Log),
        }
    }
}

#[test]
fn what_leads_to_other_pages_may_be_read_for_salvage() {
    let place = Place::new();
    place.filled();
    let db = place.open(Checking::Every);
    let before = rows(&db).unwrap();
    let root: u32 = db
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'item'", [], |row| row.get(0))
        .unwrap();
    let root = u64::from(root);
    drop(db);
    // The last byte of the root: its checksum.
    flip(&place.path(), root * PAGE - 1, 0);
    assert_eq!(u64::from(is_damage(rows(&place.open(Checking::Every))).page), root);
    assert_eq!(rows(&place.open(Checking::Leaves)).unwrap(), before);

    let db = place.open(Checking::Leaves);
    let leaf: u32 = db
        .query_row(
            "SELECT pageno FROM dbstat WHERE name = 'item' AND pagetype = 'leaf' LIMIT 1",
            [],
            |row| row.get(0),
        )
        .unwrap();
    let leaf = u64::from(leaf);
    drop(db);
    flip(&place.path(), leaf * PAGE - 1, 0);
    assert_eq!(u64::from(is_damage(rows(&place.open(Checking::Leaves))).page), leaf);
    assert_eq!(rows(&place.open(Checking::Nothing)).unwrap(), before);

    // Sealed by hand, as when pages are put together from others.
    let file = File::options().read(true).write(true).open(place.path()).unwrap();
    for page in [root, leaf] {
        let mut content = vec![0; PAGE as usize];
        file.read_exact_at(&mut content, (page - 1) * PAGE).unwrap();
        seal(&mut content, page as u32);
        file.write_all_at(&content, (page - 1) * PAGE).unwrap();
    }
    is_healthy(&place.open(Checking::Every));
}

/// SQLite without the shim moves the log into the file when it closes it, without checksums.
#[test]
fn what_another_program_wrote_is_told_from_damage() {
    let place = Place::new();
    place.filled();
    let db = place.open(Checking::Every);
    db.pragma_update_and_check(None, "wal_autocheckpoint", 0, |_| Ok(())).unwrap();
    db.execute("UPDATE item SET name = name || 'x' WHERE id % 2 = 0", []).unwrap();
    (1_000..1_050).for_each(|id| insert(&db, id, 700));
    let before = rows(&db).unwrap();
    let config = rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
    db.set_db_config(config, true).unwrap();
    drop(db);
    let plain = Connection::open(place.path()).unwrap();
    assert_eq!(rows(&plain).unwrap(), before);
    plain.close().unwrap();

    let db = place.open(Checking::Every);
    assert_eq!(is_damage(rows(&db)).fault, Fault::Unsealed);
    let found = damages(&place.open(Checking::Leaves));
    assert!(found.len() > 50, "{}", found.len());
    assert!(found.iter().all(|damage| damage.fault == Fault::Unsealed), "{found:?}");
    assert_eq!(rows(&place.open(Checking::Leaves)).unwrap(), before);
}
