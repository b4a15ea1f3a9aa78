//! What is recovered from a damaged log, and how losses are reported.

use std::fs;
use std::ops::Range;

use isolith_protocol::{ChangeGraph, CypherQuery, PutMode};
use isolith_store::{Check, LogRecovery, MarkState, StoreFolder, Truth};

use crate::acknowledged::{LOG, Moment, busy_store, content};
use crate::common::{TestStore, numbered, one, put, token, writer};
use crate::doctor::{problems, salvage};

const FRAME: usize = 24 + 8192;

fn frame(number: usize) -> Range<usize> {
    32 + number * FRAME..32 + (number + 1) * FRAME
}

/// Repairs a store, which must report that it is behind.
fn recover(folder: &StoreFolder) -> LogRecovery {
    let said = Truth::examine_log(folder, token()).unwrap();
    let missing = said.missing.expect("it is said to be whole");
    assert!(Truth::open_reader(folder, token()).is_err());
    let log = fs::read(folder.path().join(LOG)).unwrap_or_default();
    let recovery = Truth::recover_log(folder, None, token()).unwrap().unwrap();
    assert_eq!(recovery.missing, missing);
    // The damaged files are kept as they were.
    let kept_as = match &recovery.kept_as {
        Some(kept_as) => kept_as.clone(),
        None => salvage(folder).kept_as,
    };
    assert!(kept_as.exists());
    let mut kept = kept_as.into_os_string();
    kept.push("-wal");
    assert_eq!(fs::read(kept).unwrap_or_default(), log);
    for check in Check::ALL {
        assert_eq!(problems(folder, check), 0, "{check:?}");
    }
    let now = Truth::examine_log(folder, token()).unwrap();
    assert_eq!((now.missing, now.mark), (None, MarkState::Sound));
    assert_eq!(Truth::recover_log(folder, None, token()).unwrap(), None);
    recovery
}

#[test]
fn a_flipped_bit_loses_nothing_or_the_loss_is_reported() {
    let mut salvaged = 0;
    let store = busy_store();
    let moment = Moment::of(&store.folder);
    let mut random = fastrand::Rng::with_seed(4);
    for copy in 0..40 {
        let mut log = moment.log().to_vec();
        let bit = match copy {
            // Magic, version, page size, salts and sums of the header.
            0..8 => copy * 32 + 5,
            // Page, size, salts and sums of frames, the last one included.
            8..14 => frame(9).start * 8 + (copy - 8) * 32 + 3,
            14..20 => (log.len() - FRAME) * 8 + (copy - 14) * 32 + 3,
            _ => random.usize(0..log.len() * 8),
        };
        log[bit / 8] ^= 1 << (bit % 8);
        let place = store.place.path().join(format!("copy-{copy}"));
        let folder = moment.with_log(&place, Some(&log));
        let recovery = recover(&folder);
        // The upper bits of words look alike to the checksum. What they were in is lost, and
        // named by the salvage.
        salvaged += usize::from(recovery.needs_salvage());
        if !recovery.needs_salvage() {
            assert_eq!(recovery.lost_commits(), 0, "{copy}: {recovery:?}");
            assert_eq!(content(&folder.truth()), moment.content, "{copy}");
        }
        fs::remove_dir_all(&place).unwrap();
    }
    assert!(salvaged < 4, "{salvaged}");
}

#[test]
fn a_page_with_a_newer_version_in_the_log_is_not_lost() {
    let mut store = busy_store();
    // Every commit writes the page of the store's row, so most frames were written again.
    for _ in 0..3 {
        store.upsert(numbered(0..2));
    }
    let moment = Moment::of(&store.folder);
    let mut log = moment.log().to_vec();
    let frames = (log.len() - 32) / FRAME;
    let page = |number: usize| moment.log()[frame(number)][..4].to_vec();
    let victim = (1..frames).find(|number| page(*number) == [0, 0, 0, 3]).unwrap();
    log[frame(victim)][100..5000].fill(0xA5);
    let folder = moment.with_log(&store.place.path().join("copy"), Some(&log));
    let recovery = recover(&folder);
    assert!(!recovery.needs_salvage() && recovery.lost_commits() == 0, "{recovery:?}");
    assert_eq!(recovery.missing.stops_at.unwrap() as usize, first_of_commit(&moment, victim) + 1);
    assert_eq!(content(&folder.truth()), moment.content);
}

/// The first frame of the commit that a frame belongs to: SQLite reads whole commits.
fn first_of_commit(moment: &Moment, number: usize) -> usize {
    let ends = |number: usize| moment.log()[frame(number)][4..8] != [0; 4];
    (0..number).rev().find(|number| ends(*number)).map_or(0, |end| end + 1)
}

#[test]
fn missing_rows_are_named() {
    let mut store = busy_store();
    let before = Moment::of(&store.folder);
    store.upsert(numbered(500..503));
    let add = "CREATE (:Late)-[:AFTER]->(:Later)".to_owned();
    let query = CypherQuery { text: add, ..Default::default() };
    store.one(ChangeGraph { query }).unwrap();
    let moment = Moment::of(&store.folder);
    let mut log = moment.log().to_vec();
    let first = (before.log().len() - 32) / FRAME;
    log[frame(first).start + 24 + 77] ^= 4;
    let folder = moment.with_log(&store.place.path().join("copy"), Some(&log));
    let missing = Truth::examine_log(&folder, token()).unwrap().missing.unwrap();
    assert_eq!(missing.to.commits - missing.from.commits + 1, 2);
    assert_eq!(missing.to.change - missing.from.change + 1, 3);
    assert_eq!((missing.stops_at, missing.beyond), (Some(first as u64 + 1), 2));
    assert_eq!(missing.recoverable_to, missing.to);
    let parts: Vec<String> = missing
        .parts
        .iter()
        .map(|part| format!("{} {}: {}", part.count, part.kind, part.ids.join(" ")))
        .collect();
    assert_eq!(parts[0], "3 records: id-500 id-501 id-502");
    assert!(parts[1].starts_with("2 nodes of the graph: "), "{parts:?}");
    assert!(parts[2].starts_with("1 relationships of the graph: "), "{parts:?}");
    // The same in the truth as it was, with nothing missing.
    let whole = moment.with_log(&store.place.path().join("whole"), Some(moment.log()));
    let state = Truth::examine_log(&whole, token()).unwrap();
    assert_eq!((state.missing, state.reached), (None, Some(missing.to)));
}

#[test]
fn unrecoverable_changes_are_counted() {
    let store = busy_store();
    let moment = Moment::of(&store.folder);
    let log = moment.log();
    let zeroed = |range: Range<usize>| {
        let mut log = log.to_vec();
        log[range].fill(0);
        log
    };
    let logs = [
        None,
        Some(Vec::new()),
        Some(log[..log.len() / 2].to_vec()),
        Some(log[..log.len() - 1].to_vec()),
        Some(zeroed(log.len() / 2..log.len())),
    ];
    for (number, log) in logs.iter().enumerate() {
        let place = store.place.path().join(format!("copy-{number}"));
        let folder = moment.with_log(&place, log.as_deref());
        let recovery = recover(&folder);
        assert!(recovery.lost_commits() > 0, "{number}: {recovery:?}");
        // The next write uses numbers that were never used.
        let mut writer = writer(&folder).unwrap();
        let put = put("c", numbered(900..901), PutMode::Upsert);
        let change = one(&mut writer, put).unwrap().collection.unwrap().last_change;
        assert!(change > recovery.missing.to.change);
    }
}

#[test]
fn zeroed_ranges_lose_nothing_silently() {
    let store = busy_store();
    let moment = Moment::of(&store.folder);
    let mut random = fastrand::Rng::with_seed(11);
    for copy in 0..12 {
        let mut log = moment.log().to_vec();
        let start = random.usize(0..log.len());
        let end = (start + random.usize(1..3 * FRAME)).min(log.len());
        log[start..end].fill(0);
        if log == moment.log() {
            continue;
        }
        let place = store.place.path().join(format!("copy-{copy}"));
        let folder = moment.with_log(&place, Some(&log));
        if Truth::open_reader(&folder, token()).is_ok() {
            assert_eq!(content(&folder.truth()), moment.content, "{copy}");
            continue;
        }
        let recovery = recover(&folder);
        let same = content(&folder.truth()) == moment.content;
        let said = recovery.needs_salvage() || recovery.lost_commits() > 0;
        assert!(same || said, "{copy}: {recovery:?}");
    }
}

#[test]
fn stores_without_marks_are_not_reported_as_behind() {
    let store = TestStore::new();
    let folder = store.folder.clone();
    drop(store.writer);
    fs::remove_file(folder.path().join("acknowledged")).unwrap();
    let state = Truth::examine_log(&folder, token()).unwrap();
    assert_eq!((state.mark, state.missing), (MarkState::None, None));
    fs::write(folder.path().join("acknowledged"), "nonsense").unwrap();
    let state = Truth::examine_log(&folder, token()).unwrap();
    assert_eq!((state.mark, state.missing), (MarkState::Damaged, None));
}

#[test]
fn rows_after_an_unreadable_page_are_saved_and_lost_ones_named() {
    let mut store = busy_store();
    let before = Moment::of(&store.folder);
    for step in 0..20 {
        store.upsert(numbered(1000 + step * 20..1020 + step * 20));
    }
    let moment = Moment::of(&store.folder);
    let mut log = moment.log().to_vec();
    // A page of the last commits that was not written again.
    let frames = (log.len() - 32) / FRAME;
    let page = |number: usize| moment.log()[frame(number)][..4].to_vec();
    let first = (before.log().len() - 32) / FRAME;
    let is_leaf = |number: usize| moment.log()[frame(number)][24] == 13;
    let victim = (first..frames)
        .find(|victim| is_leaf(*victim) && (victim + 1..frames).all(|it| page(it) != page(*victim)))
        .unwrap();
    log[frame(victim)][1000..7000].fill(0xA5);
    let folder = moment.with_log(&store.place.path().join("copy"), Some(&log));
    assert!(Truth::open_reader(&folder, token()).is_err());
    let recovery = Truth::recover_log(&folder, None, token()).unwrap().unwrap();
    assert!(recovery.needs_salvage(), "{recovery:?}");
    let report = salvage(&folder);
    let total = store.reader().snapshot().unwrap().collection("c").unwrap().records;
    assert!(!report.lost.is_empty() && report.records > before.records(), "{report:?}");
    assert_eq!(report.records + report.lost_records, total);
    // The newest record is there.
    let saved = content(&folder.truth());
    assert!(saved.contains("id-1399") && !saved.contains("id-1400"), "{report:?}");
}
