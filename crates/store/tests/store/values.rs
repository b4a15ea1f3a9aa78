//! Sorting by a key and counting its values, compared with a plain evaluation.

use std::cmp::Ordering;

use isolith_protocol::{Page, PutMode, Records, Selection, Sort};
use isolith_store::Snapshot;
use isolith_types::{Filter, Metadata, Metric, Scalar, Value};

use crate::common::{TestStore, bytes, put};
use crate::filters::{Entries, KEYS, doubled, matches, random_filter, random_records};

struct Model {
    records: Records,
    metadatas: Vec<Entries>,
}

impl Model {
    fn value(&self, at: usize, key: &str) -> Option<&Value> {
        self.metadatas[at].iter().find(|(name, _)| name == key).map(|(_, value)| value)
    }

    fn matching(&self, filter: Option<&Filter>) -> Vec<usize> {
        let Records { ids, documents, .. } = &self.records;
        let passes = |at: &usize| {
            filter.is_none_or(|it| matches(it, &ids[*at], &self.metadatas[*at], &documents[*at]))
        };
        (0..ids.len()).filter(passes).collect()
    }

    fn sorted(&self, sort: &Sort, filter: Option<&Filter>) -> Vec<String> {
        let single = |at: usize| match self.value(at, &sort.key) {
            Some(Value::One(scalar)) => Some(scalar),
            _ => None,
        };
        let mut all = self.matching(filter);
        all.sort_by(|a, b| match (single(*a), single(*b)) {
            (Some(a), Some(b)) if sort.descending => order(b, a),
            (Some(a), Some(b)) => order(a, b),
            (a, b) => b.is_some().cmp(&a.is_some()),
        });
        all.into_iter().map(|at| self.records.ids[at].clone()).collect()
    }

    fn counts(&self, key: &str, filter: Option<&Filter>) -> Vec<(Scalar, u64)> {
        let mut counts: Vec<(Scalar, u64)> = Vec::new();
        for at in self.matching(filter) {
            let mut scalars = match self.value(at, key) {
                Some(Value::One(scalar)) => vec![scalar],
                Some(Value::Many(scalars)) => scalars.iter().collect(),
                None => Vec::new(),
            };
            scalars.sort_by(|a, b| order(a, b));
            scalars.dedup_by(|a, b| order(a, b).is_eq());
            for scalar in scalars {
                match counts.iter_mut().find(|(known, _)| order(known, scalar).is_eq()) {
                    Some((_, count)) => *count += 1,
                    None => counts.push((scalar.clone(), 1)),
                }
            }
        }
        counts.sort_by(|(a, one), (b, other)| other.cmp(one).then_with(|| order(a, b)));
        counts
    }
}

/// The order that docs/collections.md promises.
fn order(one: &Scalar, other: &Scalar) -> Ordering {
    let kind = |scalar: &Scalar| match scalar {
        Scalar::Integer(_) | Scalar::Float(_) => 0,
        Scalar::Text(_) => 1,
        Scalar::Bool(_) => 2,
    };
    match (one, other) {
        (Scalar::Text(one), Scalar::Text(other)) => one.cmp(other),
        (Scalar::Bool(one), Scalar::Bool(other)) => one.cmp(other),
        _ if kind(one) == 0 && kind(other) == 0 => doubled(one).cmp(&doubled(other)),
        _ => kind(one).cmp(&kind(other)),
    }
}

fn sorted_ids(
    snapshot: &Snapshot<'_>,
    collection: u64,
    which: &Selection,
    sort: &Sort,
    page: Page,
) -> Vec<String> {
    let found = snapshot.get_sorted(collection, which, Some(sort), page, false).unwrap();
    found.into_iter().map(|stored| stored.record.id).collect()
}

#[test]
fn random_sorts_and_counts_match_a_plain_evaluation() {
    let mut store = TestStore::empty();
    for seed in 0..10 {
        let mut random = fastrand::Rng::with_seed(seed);
        let name = format!("c{seed}");
        store.create(&name, Metric::L2);
        let records = random_records(&mut random, 60);
        store.one(put(&name, records.clone(), PutMode::Upsert)).unwrap();
        let metadatas = records.metadatas.iter().map(Metadata::entries).collect();
        let model = Model { records, metadatas };
        let mut reader = store.reader();
        let snapshot = reader.snapshot().unwrap();
        let collection = snapshot.collection(&name).unwrap().id;
        for _ in 0..150 {
            let key = random.choice([&KEYS[..], &["none"]].concat()).unwrap();
            let filter = random.bool().then(|| random_filter(&mut random, 1));
            let which = filter.clone().map_or(Selection::All, Selection::Matching);
            let sort = Sort { key: key.to_owned(), descending: random.bool() };
            let expected = model.sorted(&sort, filter.as_ref());
            let all = sorted_ids(&snapshot, collection, &which, &sort, Page::default());
            assert_eq!(all, expected, "seed {seed}: {sort:?} {filter:?}");
            let page = Page { offset: random.u64(0..70), limit: random.u64(0..70), after_row: 0 };
            let part = sorted_ids(&snapshot, collection, &which, &sort, page);
            let expected = expected.into_iter().skip(page.offset as usize);
            let expected: Vec<String> = expected.take(page.limit as usize).collect();
            assert_eq!(part, expected, "seed {seed}: {sort:?} {page:?} {filter:?}");

            let expected = model.counts(key, filter.as_ref());
            let limit = random.u32(1..20);
            let found = snapshot.count_values(collection, key, filter.as_ref(), limit).unwrap();
            let shown = &expected[..expected.len().min(limit as usize)];
            let same =
                |(a, b): (&(Scalar, u64), &(Scalar, u64))| order(&a.0, &b.0).is_eq() && a.1 == b.1;
            assert!(
                found.values.len() == shown.len() && found.values.iter().zip(shown).all(same),
                "seed {seed}: {key} {filter:?}: {found:?}, not {shown:?}"
            );
            assert_eq!(found.total, expected.len() as u64, "{found:?}");
        }
    }
}

#[test]
fn ids_are_sorted_once_each() {
    let mut store = TestStore::new();
    let row =
        |id: &str, n: u32| (id.to_owned(), Metadata::parse(&format!(r#"{{"n":{n}}}"#)).unwrap());
    let (ids, metadatas) = [row("a", 3), row("b", 1), row("c", 2)].into_iter().unzip();
    let vectors = bytes([1.0; 6]).into();
    store.upsert(Records { ids, documents: vec![None; 3], metadatas, dimension: 2, vectors });
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    let which = ["c", "a", "nobody", "c", "b"].map(str::to_owned);
    let which = Selection::Ids(which.to_vec());
    let sort = Sort { key: "n".to_owned(), descending: false };
    assert_eq!(sorted_ids(&snapshot, 1, &which, &sort, Page::default()), ["b", "c", "a"]);
    let page = Page { after_row: 1, ..Page::default() };
    assert_eq!(sorted_ids(&snapshot, 1, &which, &sort, page), ["b", "c"], "a is in row 1");
    let other = Sort { key: "none".to_owned(), descending: true };
    assert_eq!(sorted_ids(&snapshot, 1, &which, &other, Page::default()), ["a", "b", "c"]);
}
