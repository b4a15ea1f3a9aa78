//! Random damage to the file: reads return what was written, or an error.

use std::fs::File;
use std::os::unix::fs::FileExt;

use isolith_protocol::{
    AddFact, ChangeGraph, CypherQuery, DeleteCollection, FinishIndex, Page, Selection, StoreError,
};
use isolith_store::{Check, Checkpoint, Snapshot, StoreFolder, Truth};
use isolith_types::{
    Code, DrawerFilter, DrawerPage, EntityQuery, FactQuery, Filter, NewDrawer, ParsedFile, Scalar,
};

use crate::common::{TestStore, add_root, file, numbered, put_files, token};
use crate::doctor::salvage;
use crate::facts::fact;
use crate::memory::{add, drawer};

const PAGE: usize = 8192;
const TRIALS: u64 = 320;

/// A store with some data of every kind.
fn filled() -> TestStore {
    let mut store = TestStore::new();
    store.upsert(numbered(0..600));
    let long = |number: usize| "words of a drawer ".repeat(1 + (number * 53) % 900);
    let drawers: Vec<NewDrawer> =
        (0..40).map(|number| drawer(&format!("{number} {}", long(number)))).collect();
    store.one(add(drawers)).unwrap();
    for number in 0..60 {
        let said = format!("subject-{number:04} works_at company-{:02}", number % 7);
        store.one(AddFact { fact: fact(&said, "2020-01-01") }).unwrap();
    }
    let query = "UNWIND range(1, 200) AS n CREATE (:Left {n: n, name: 'left ' + n})\
                 -[:PAIR {n: n}]->(:Right {f: n / 2.0})";
    store.one(ChangeGraph { query: cypher(query) }).unwrap();
    let root = add_root(&mut store, "/project");
    let texts = |number: usize| [format!("fn number_{number}"), "x".repeat(300 * number)];
    let files: Vec<ParsedFile> = (0..60)
        .map(|number| {
            let [one, two] = texts(number);
            file(&format!("src/file_{number:03}.rs"), &[&one, &two])
        })
        .collect();
    store.one(put_files(root, &files, 1.0)).unwrap();
    store.one(FinishIndex { root }).unwrap();
    // Free pages are part of the file too.
    store.one(DeleteCollection { name: "c".to_owned() }).unwrap();
    store.create("c", isolith_types::Metric::L2);
    store.upsert(numbered(0..400));
    store
}

fn cypher(text: &str) -> CypherQuery {
    CypherQuery { text: text.to_owned(), ..CypherQuery::default() }
}

type Answer = Result<String, StoreError>;

fn text<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Answer {
    result.map(|value| format!("{value:?}"))
}

fn records(snapshot: &Snapshot<'_>, selection: &Selection) -> Answer {
    let state = snapshot.collection("c")?;
    text(snapshot.get(state.id, selection, Page::default(), true))
}

fn graph(snapshot: &Snapshot<'_>, query: &str) -> Answer {
    let answer = snapshot.cypher(&cypher(query), None)?;
    let rows: Vec<_> = answer.rows().collect::<Result<_, _>>().unwrap();
    Ok(format!("{rows:?}"))
}

/// One query of every kind.
const QUESTIONS: [fn(&Snapshot<'_>) -> Answer; 13] = [
    |it| text(it.collections()),
    |it| records(it, &Selection::All),
    |it| records(it, &Selection::Ids(vec!["id-17".to_owned(), "id-333".to_owned()])),
    |it| {
        let values = vec![Scalar::Integer(3)];
        records(it, &Selection::Matching(Filter::In { key: "tenth".to_owned(), values }))
    },
    |it| text(it.drawers(&DrawerFilter::default(), &DrawerPage::default(), usize::MAX)),
    |it| text(it.taxonomy()),
    |it| text(it.facts(&FactQuery { limit: 1_000, ..FactQuery::default() })),
    |it| text(it.entities(&EntityQuery { limit: 1_000, ..EntityQuery::default() })),
    |it| graph(it, "MATCH (n) RETURN n ORDER BY id(n)"),
    |it| graph(it, "MATCH (:Left {name: 'left 77'})-[r:PAIR]->(m) RETURN r, m"),
    |it| text(it.roots()),
    |it| text(it.files(1, None, None, u64::MAX)),
    |it| {
        let paths = (0..60).map(|number| format!("src/file_{number:03}.rs"));
        text(paths.map(|path| it.chunks_of_file(1, &path)).collect::<Result<Vec<_>, _>>())
    },
];

fn answers(folder: &StoreFolder) -> Vec<Answer> {
    match Truth::open_reader(folder, token()) {
        Ok(mut reader) => QUESTIONS.iter().map(|question| question(&reader.snapshot()?)).collect(),
        Err(error) => QUESTIONS.iter().map(|_| Err(error.clone())).collect(),
    }
}

/// What `doctor --full` does about pages.
fn is_reported(folder: &StoreFolder) -> bool {
    match Truth::open_reader(folder, token()) {
        Err(StoreError::Corrupt { .. }) => true,
        reader => {
            let mut reader = reader.unwrap();
            [Check::Checksums, Check::Full]
                .iter()
                .any(|check| !reader.check(*check, 10).unwrap().is_empty())
        }
    }
}

/// The number of failed answers; all others must be unchanged.
fn compare(before: &[Answer], now: &[Answer], what: &str) -> usize {
    let mut failed = 0;
    for (number, (before, now)) in before.iter().zip(now).enumerate() {
        match now {
            Err(error) if error.to_failure().code == Code::Corrupt => failed += 1,
            _ => assert!(before == now, "{what}: question {number} was answered wrong: {now:?}"),
        }
    }
    failed
}

/// Damages the bytes in a random way.
fn damage_randomly(bytes: &mut Vec<u8>, random: &mut fastrand::Rng) -> &'static str {
    let place = random.usize(..bytes.len());
    let pages = bytes.len() / PAGE;
    let mut page = || random.usize(..pages) * PAGE;
    let (one, two) = (page(), page());
    match random.u8(0..7) {
        0 | 1 => {
            bytes[place] ^= 1 << random.u8(0..8);
            "a flipped bit"
        }
        2 => {
            // Most data is at the end of a page; the start is its header.
            bytes[one + random.usize(..200)] ^= 1 << random.u8(0..8);
            "a flipped bit in a header"
        }
        3 => {
            let end = bytes.len().min(place + random.usize(1..20_000));
            bytes[place..end].fill(0);
            "zeros"
        }
        4 => {
            let end = bytes.len().min(place + random.usize(1..600));
            bytes[place..end].fill_with(|| random.u8(..));
            "noise"
        }
        5 => {
            let other = bytes[two..two + PAGE].to_vec();
            bytes.copy_within(one..one + PAGE, two);
            bytes[one..one + PAGE].copy_from_slice(&other);
            "swapped pages"
        }
        _ => {
            bytes.truncate(place.max(1));
            "truncation"
        }
    }
}

#[test]
fn a_damaged_file_never_gives_wrong_answers() {
    let mut store = filled();
    assert!(store.writer.checkpoint(Checkpoint::Truncate).unwrap().complete);
    let (_place, folder) = (store.place, store.folder);
    drop(store.writer);
    let before = answers(&folder);
    assert!(before.iter().all(Result::is_ok), "{before:?}");
    assert!(!is_reported(&folder));
    let healthy = std::fs::read(folder.truth()).unwrap();
    let (mut seen, mut failed) = (0, 0);
    for seed in 0..TRIALS {
        let mut random = fastrand::Rng::with_seed(seed);
        let mut bytes = healthy.clone();
        let kind = damage_randomly(&mut bytes, &mut random);
        if bytes == healthy {
            continue;
        }
        std::fs::write(folder.truth(), &bytes).unwrap();
        let what = format!("seed {seed}, {kind}");
        failed += usize::from(compare(&before, &answers(&folder), &what) > 0);
        assert!(is_reported(&folder), "{what}: not reported");
        seen += 1;
    }
    assert!(seen > TRIALS * 9 / 10, "{seen}");
    assert!(failed > 150, "{failed} of {seen} were met by a question");
    std::fs::write(folder.truth(), &healthy).unwrap();
    assert_eq!(answers(&folder), before);
}

#[test]
fn a_damaged_log_in_use_never_gives_wrong_answers() {
    let store = filled();
    let folder = &store.folder;
    let before = answers(folder);
    let log = folder.path().join("truth.sqlite-wal");
    let log = File::options().read(true).write(true).open(log).unwrap();
    let length = log.metadata().unwrap().len();
    assert!(length > 100 * PAGE as u64, "{length}");
    let mut failed = 0;
    for seed in 0..200 {
        let mut random = fastrand::Rng::with_seed(seed);
        let (place, bit) = (random.u64(..length), random.u8(0..8));
        let mut byte = [0];
        log.read_exact_at(&mut byte, place).unwrap();
        log.write_all_at(&[byte[0] ^ (1 << bit)], place).unwrap();
        failed += usize::from(compare(&before, &answers(folder), &format!("seed {seed}")) > 0);
        log.write_all_at(&byte, place).unwrap();
    }
    assert!(failed > 5, "{failed}");
    assert_eq!(answers(folder), before);
}

/// SQLite without checksums moves the log into the file when it closes it.
#[test]
fn a_file_changed_by_another_program_is_repaired_without_loss() {
    let store = filled();
    let (_place, folder) = (store.place, store.folder);
    drop(store.writer);
    let before = answers(&folder);
    let other = rusqlite::Connection::open(folder.truth()).unwrap();
    other.query_row("SELECT count(*) FROM record", [], |_| Ok(())).unwrap();
    other.close().unwrap();
    assert!(compare(&before, &answers(&folder), "another program") > 0);
    assert!(is_reported(&folder));
    let report = salvage(&folder);
    assert_eq!((report.lost, report.lost_records), (vec![], 0));
    // Collection states are rewritten first: segments must be rebuilt.
    assert_eq!(answers(&folder)[1..], before[1..]);
}
