//! A log truncated anywhere, as after a power loss, leaves a prefix of whole commits.

use isolith_protocol::{Page, PutMode, Selection};
use isolith_store::{Check, StoreFolder, Truth};

use crate::common::{TestStore, numbered, put, token};

const COMMITS: u32 = 24;
const CUTS: u64 = 1000;

#[test]
fn a_cut_log_leaves_a_prefix_of_the_commits() {
    let mut store = TestStore::new();
    for commit in 0..COMMITS {
        // Each commit adds records and replaces one of the commit before.
        let mut records = numbered(commit * 3..commit * 3 + 3);
        if commit > 0 {
            let mut replaced = numbered(commit * 3 - 1..commit * 3);
            replaced.documents[0] = Some(format!("replaced by {commit}"));
            records.ids.append(&mut replaced.ids);
            records.documents.append(&mut replaced.documents);
            records.metadatas.append(&mut replaced.metadatas);
            let vectors = [&records.vectors[..], &replaced.vectors[..]].concat();
            records.vectors = vectors.into();
        }
        store.one(put("c", records, PutMode::Upsert)).unwrap();
    }
    let folder = store.folder.clone();
    // Closing leaves the log as it is, so that the copies are what a power loss leaves.
    drop(store.writer);
    let truth = std::fs::read(folder.truth()).unwrap();
    let log = std::fs::read(folder.path().join("truth.sqlite-wal")).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let mut seen = std::collections::BTreeSet::new();
    let place = store.place.path().join("cut");
    let copy = StoreFolder::new(&place);
    copy.create().unwrap();
    for cut in 0..CUTS {
        std::fs::write(copy.truth(), &truth).unwrap();
        let length = if cut == 0 { log.len() } else { random.usize(0..log.len()) };
        std::fs::write(place.join("truth.sqlite-wal"), &log[..length]).unwrap();
        seen.insert(commits_in(&copy, cut % 50 == 0));
        std::fs::remove_file(place.join("truth.sqlite-shm")).unwrap();
    }
    assert_eq!(seen.last(), Some(&COMMITS));
    assert!(seen.len() as u32 > COMMITS / 2, "{seen:?}");
}

/// The number of commits in the store. Fails unless each is complete and nothing else is there.
fn commits_in(folder: &StoreFolder, thoroughly: bool) -> u32 {
    let mut reader = Truth::open_reader(folder, token()).unwrap();
    if thoroughly {
        for check in Check::ALL {
            assert_eq!(reader.check(check, 10).unwrap(), []);
        }
    }
    let snapshot = reader.snapshot().unwrap();
    let Ok(state) = snapshot.collection("c") else { return 0 };
    assert_eq!(state.records % 3, 0);
    let commits = (state.records / 3) as u32;
    let changes = if commits == 0 { 0 } else { u64::from(commits) * 4 - 1 };
    assert_eq!((state.last_change, snapshot.last_change().unwrap()), (changes, changes));
    let all = snapshot.get(state.id, &Selection::All, Page::default(), true).unwrap();
    for (number, stored) in (0..).zip(&all) {
        let commit = number / 3;
        let document = if number % 3 == 2 && commit + 1 < commits {
            format!("replaced by {}", commit + 1)
        } else {
            format!("text {number}")
        };
        assert_eq!(stored.record.document, Some(document));
        assert_eq!(stored.record.vector, [number as f32, 1.0]);
    }
    commits
}
