//! Checks and salvage of memory: every readable text is kept.

use isolith_protocol::Recount;
use isolith_store::{Check, Checkpoint, Extent, StoreFolder, Truth, passages};
use isolith_types::{Drawer, DrawerFilter, DrawerOrder, DrawerPage, NewDrawer};

use crate::common::{TestStore, database, numbered, one, token, writer};
use crate::doctor::{damage_page, named, pages_of, problems, salvage};
use crate::memory::{add, drawer};

const DRAWERS: usize = 300;

/// The text of a drawer; some are long.
fn text(number: usize) -> String {
    let words = if number.is_multiple_of(10) { 400 } else { 20 };
    (0..words).map(|word| format!("word {number} {word} ")).collect()
}

fn content(number: usize) -> NewDrawer {
    NewDrawer {
        room: format!("room {}", number % 3),
        author: Some("Ada".to_owned()),
        tags: vec![format!("tag {number}")],
        ..drawer(&text(number))
    }
}

/// A closed store with many drawers and some records.
fn closed() -> (tempfile::TempDir, StoreFolder) {
    let mut store = TestStore::new();
    store.upsert(numbered(0..100));
    let drawers: Vec<NewDrawer> = (0..DRAWERS).map(content).collect();
    for batch in drawers.chunks(50) {
        store.one(add(batch.to_vec())).unwrap();
    }
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    (store.place, store.folder)
}

fn all(folder: &StoreFolder) -> Vec<Drawer> {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    let page =
        DrawerPage { order: DrawerOrder::Position, limit: u32::MAX, ..DrawerPage::default() };
    let snapshot = reader.snapshot().unwrap();
    let (drawers, total) = snapshot.drawers(&DrawerFilter::default(), &page, usize::MAX).unwrap();
    assert_eq!(total, drawers.len() as u64);
    drawers
}

/// The number of intact drawers. The others lack a part, or their wing and room.
fn sound(drawers: &[Drawer]) -> usize {
    let number = |drawer: &Drawer| {
        let word = drawer.text.split("word ").nth(1)?;
        word.split(' ').next()?.parse::<usize>().ok()
    };
    let mut count = 0;
    for drawer in drawers {
        let number = number(drawer).unwrap();
        let expected = content(number);
        let whole = drawer.text == expected.text;
        let tagged = drawer.tags == expected.tags || drawer.tags.is_empty();
        let placed = drawer.room == expected.room && tagged;
        assert!(placed || drawer.wing == "recovered", "{drawer:?}");
        // The rest is unchanged.
        let parts = passages(&expected.text);
        assert!(whole || parts.iter().filter(|part| drawer.text.contains(**part)).count() > 0);
        count += usize::from(whole && placed);
    }
    count
}

fn damage(folder: &StoreFolder, sql: &str) {
    let db = database(folder);
    db.pragma_update(None, "foreign_keys", false).unwrap();
    db.execute_batch(sql).unwrap();
}

#[test]
fn salvage_keeps_intact_memory() {
    let (_place, folder) = closed();
    let before = all(&folder);
    let report = salvage(&folder);
    assert_eq!((report.lost, report.lost_records), (vec![], 0));
    assert_eq!(all(&folder), before);
    // Numbering, positions and duplicate detection continue.
    let mut writer = writer(&folder).unwrap();
    let outcome = one(&mut writer, add(vec![content(7), content(DRAWERS)])).unwrap();
    assert_eq!((outcome.unchanged, outcome.inserted), (1, 1));
    assert_eq!(sound(&all(&folder)), DRAWERS + 1);
}

#[test]
fn checks_find_problems_of_drawers() {
    for (sql, check, says) in [
        ("UPDATE drawer SET passages = 9 WHERE number = 3", Check::Counts, "says 9 passages"),
        ("DELETE FROM passage WHERE drawer = 3", Check::Orphans, "has no passage"),
        ("DELETE FROM drawer WHERE number = 3", Check::Orphans, "has no drawer"),
        ("UPDATE passage SET row = 1 WHERE drawer = 3", Check::Orphans, "no record in the memory"),
        ("UPDATE drawer SET wing = 'x' WHERE number = 3", Check::Fields, "content hash"),
        ("UPDATE drawer SET tags = '[1]' WHERE number = 3", Check::Fields, "are malformed"),
        ("UPDATE drawer SET metadata = '{ }' WHERE number = 3", Check::Fields, "are malformed"),
    ] {
        let (_place, folder) = closed();
        damage(&folder, sql);
        let mut reader = Truth::open_reader(&folder, token()).unwrap();
        let found = reader.check(check, 10).unwrap();
        assert!(found.iter().any(|problem| problem.detail.contains(says)), "{sql}: {found:?}");
        drop(reader);
        // After a salvage, no problems remain.
        salvage(&folder);
        assert!(sound(&all(&folder)) >= DRAWERS - 1, "{sql}");
    }
    let (_place, folder) = closed();
    damage(&folder, "UPDATE drawer SET passages = 9");
    one(&mut writer(&folder).unwrap(), Recount).unwrap();
    assert_eq!(problems(&folder, Check::Counts), 0);
}

#[test]
fn readable_parts_of_memory_are_saved() {
    for table in ["record", "vector", "passage", "drawer", "passage_drawer", "drawer_time"] {
        let (_place, folder) = closed();
        let leaves = pages_of(&folder, table, "leaf");
        damage_page(&folder.truth(), leaves[leaves.len() / 2]);
        let report = salvage(&folder);
        let left = all(&folder);
        let sound = sound(&left);
        match table {
            // Texts on the page are lost.
            "record" => {
                assert!((DRAWERS - 30..DRAWERS).contains(&sound), "{sound}");
                assert!(report.lost.iter().any(|loss| loss.table == "record"));
            }
            // Texts, wings and rooms survive; authors and tags do not.
            "drawer" => {
                assert_eq!((sound, left.len()), (DRAWERS, DRAWERS));
                let partial = named(&report, "drawer", Extent::Partial);
                assert!((10..DRAWERS).contains(&partial.len()), "{}", partial.len());
                let without = left.iter().filter(|drawer| drawer.author.is_none());
                let mut without: Vec<String> = without.map(|drawer| drawer.id.clone()).collect();
                without.sort();
                assert_eq!(without, {
                    let mut all = partial;
                    all.sort();
                    all
                });
            }
            // Derived data is rebuilt.
            _ => assert_eq!(sound, DRAWERS, "{table}: {:?}", report.lost),
        }
    }
}

#[test]
fn a_drawer_that_lost_a_part_is_named() {
    let (_place, folder) = closed();
    let long = all(&folder).into_iter().find(|it| it.text == text(10)).unwrap();
    damage(
        &folder,
        "DELETE FROM record WHERE row = (SELECT min(row) + 1 FROM passage WHERE drawer = 11);
         DELETE FROM record WHERE row IN (SELECT row FROM passage WHERE drawer = 12);",
    );
    let gone = all(&folder).into_iter().find(|it| it.text.is_empty()).unwrap();
    let report = salvage(&folder);
    assert!(report.lost_ids.contains(&long.id) && report.lost_ids.contains(&gone.id));
    assert_eq!(named(&report, "drawer", Extent::Partial), std::slice::from_ref(&long.id));
    assert_eq!(named(&report, "drawer", Extent::Lost), [gone.id]);
    let left = all(&folder);
    assert_eq!((left.len(), sound(&left)), (DRAWERS - 1, DRAWERS - 2));
    let part = left.into_iter().find(|it| it.id == long.id).unwrap();
    let parts = passages(&long.text);
    assert_eq!(part.text, [&parts[..1], &parts[2..]].concat().concat());
}

#[test]
fn memory_whose_own_row_is_lost_is_recovered() {
    let (_place, folder) = closed();
    damage(&folder, "DELETE FROM collection WHERE kind = 'memory'");
    salvage(&folder);
    assert_eq!(sound(&all(&folder)), DRAWERS);
    // The next write sets the model.
    one(&mut writer(&folder).unwrap(), add(vec![content(DRAWERS)])).unwrap();
    let mut reader = Truth::open_reader(&folder, token()).unwrap();
    let state = reader.snapshot().unwrap().memory_state().unwrap().unwrap();
    assert_eq!(state.model.as_deref(), Some(crate::common::MODEL));
    assert_eq!(sound(&all(&folder)), DRAWERS + 1);
}

#[test]
fn drawers_that_survive_random_damage_are_unchanged() {
    for seed in 0..5 {
        let (_place, folder) = closed();
        let mut random = fastrand::Rng::with_seed(seed);
        let pages = std::fs::metadata(folder.truth()).unwrap().len() / 8192;
        for _ in 0..3 {
            damage_page(&folder.truth(), random.u64(2..=pages));
        }
        salvage(&folder);
        sound(&all(&folder));
    }
}
