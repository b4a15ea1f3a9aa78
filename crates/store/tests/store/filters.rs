//! Filters, compared with a plain evaluation.

use isolith_protocol::{PutMode, Records, StoreError};
use isolith_types::{Comparison, Filter, Metadata, Metric, Scalar, Value};
use serde_json::{Map, Value as Json, json};

use crate::common::{TestStore, bytes, numbered, put};

pub(crate) const KEYS: [&str; 4] = ["a", "b", "ü", "list"];

type Pattern = (&'static str, fn(&str) -> bool);

/// Patterns, with what they mean.
const PATTERNS: [Pattern; 5] = [
    ("^a", |text| text.starts_with('a')),
    ("(?i)beta$", |text| text.to_lowercase().ends_with("beta")),
    ("γ+", |text| text.contains('γ')),
    ("^$", str::is_empty),
    (".", |text| !text.is_empty()),
];

#[test]
fn random_filters_match_a_plain_evaluation() {
    let mut store = TestStore::empty();
    let mut cases = 0;
    for seed in 0..12 {
        let mut random = fastrand::Rng::with_seed(seed);
        let name = format!("c{seed}");
        store.create(&name, Metric::L2);
        let mut records = random_records(&mut random, 60);
        store.one(put(&name, records.clone(), PutMode::Upsert)).unwrap();
        // Some are replaced, so their old fields must not match.
        let again = random_records(&mut random, 20);
        for at in 0..20 {
            records.documents[at].clone_from(&again.documents[at]);
            records.metadatas[at] = again.metadatas[at].clone();
        }
        store.one(put(&name, again, PutMode::Upsert)).unwrap();
        let mut reader = store.reader();
        let snapshot = reader.snapshot().unwrap();
        let collection = snapshot.collection(&name).unwrap().id;
        let first_row = snapshot.versions(collection, isolith_store::Scope::All).unwrap()[0].0;
        let metadatas: Vec<Entries> = records.metadatas.iter().map(Metadata::entries).collect();
        for _ in 0..350 {
            let filter = random_filter(&mut random, 0);
            let found = snapshot.rows_matching(collection, &filter).unwrap();
            let expected: Vec<u64> = (first_row..)
                .zip(records.ids.iter().zip(metadatas.iter().zip(&records.documents)))
                .filter(|(_, (id, (metadata, document)))| matches(&filter, id, metadata, document))
                .map(|(row, _)| row)
                .collect();
            assert_eq!(found, expected, "seed {seed}: {filter:?}");
            cases += 1;
        }
    }
    assert!(cases > 4000);
}

#[test]
fn a_filter_with_ten_thousand_values_works() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..3000));
    let mut values: Vec<Scalar> = (1000..11_000).map(Scalar::Integer).collect();
    values.push(Scalar::Text("x".to_owned()));
    let filter = Filter::In { key: "n".to_owned(), values };
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    assert_eq!(snapshot.rows_matching(1, &filter).unwrap(), (1001..=3000).collect::<Vec<_>>());
}

#[test]
fn bad_patterns_are_named() {
    let mut store = TestStore::new();
    store.upsert(numbered(0..1));
    let mut reader = store.reader();
    let snapshot = reader.snapshot().unwrap();
    for pattern in ["(", "(x{1000}){1000}"] {
        let filter = Filter::Not(Box::new(Filter::DocumentMatches(pattern.to_owned())));
        let StoreError::BadFilter(reason) = snapshot.rows_matching(1, &filter).unwrap_err() else {
            panic!("another error")
        };
        assert!(reason.starts_with(&format!("pattern {pattern:?}")), "{reason}");
    }
    let mut deep = Filter::DocumentContains(String::new());
    for _ in 0..100 {
        deep = Filter::Not(Box::new(deep));
    }
    assert!(matches!(snapshot.rows_matching(1, &deep), Err(StoreError::BadFilter(_))));
}

pub(crate) fn random_records(random: &mut fastrand::Rng, count: usize) -> Records {
    let metadata = |random: &mut fastrand::Rng| {
        let mut object = Map::new();
        for key in KEYS {
            if random.f32() < 0.7 {
                object.insert(key.to_owned(), random_value(random));
            }
        }
        Metadata::from_json(Json::Object(object)).unwrap()
    };
    Records {
        ids: (0..count).map(|n| format!("id-{n}")).collect(),
        documents: (0..count).map(|_| random_text(random)).collect(),
        metadatas: (0..count).map(|_| metadata(random)).collect(),
        dimension: 2,
        vectors: bytes((0..count * 2).map(|_| 1.0)).into(),
    }
}

fn random_text(random: &mut fastrand::Rng) -> Option<String> {
    let words = ["alpha", "Beta", "", "γάμμα", "a\0b", "alpha beta"];
    (random.f32() < 0.8).then(|| random.choice(words).unwrap().to_owned())
}

fn random_value(random: &mut fastrand::Rng) -> Json {
    if random.f32() < 0.25 {
        let length = random.usize(0..4);
        return (0..length).map(|_| random_scalar(random)).collect();
    }
    random_scalar(random)
}

fn random_scalar(random: &mut fastrand::Rng) -> Json {
    match random.u8(0..12) {
        0 => Json::Null,
        1 => json!(random.bool()),
        2 => json!(random.i64(-2..3)),
        3 => json!(random.i64(-2..3) as f64),
        4 => json!(0.5),
        5 => json!(-0.0),
        6 => json!(u64::MAX),
        7 => json!(9_007_199_254_740_993_i64),
        8 => json!(9_007_199_254_740_992.0),
        9 => json!("123"),
        10 => json!(i64::MAX),
        _ => json!(random_text(random).unwrap_or_default()),
    }
}

pub(crate) fn random_filter(random: &mut fastrand::Rng, depth: usize) -> Filter {
    let scalar = |random: &mut fastrand::Rng| {
        loop {
            if let Some(scalar) = Scalar::from_json(random_scalar(random)) {
                return scalar;
            }
        }
    };
    let key = random.choice(KEYS).unwrap().to_owned();
    let several = |random: &mut fastrand::Rng| {
        let count = random.usize(0..4);
        (0..count).map(|_| random_filter(random, depth + 1)).collect()
    };
    match random.u8(if depth < 3 { 0..12 } else { 4..12 }) {
        0 | 1 => Filter::And(several(random)),
        2 => Filter::Or(several(random)),
        3 => Filter::Not(Box::new(random_filter(random, depth + 1))),
        4..=6 => {
            let how = [
                Comparison::Equal,
                Comparison::Less,
                Comparison::AtMost,
                Comparison::Greater,
                Comparison::AtLeast,
            ];
            Filter::Compare { key, how: random.choice(how).unwrap(), value: scalar(random) }
        }
        7 => {
            let count = random.usize(0..5);
            Filter::In { key, values: (0..count).map(|_| scalar(random)).collect() }
        }
        8 => Filter::Contains { key, value: scalar(random) },
        9 => {
            let count = random.usize(0..4);
            Filter::Id((0..count).map(|_| format!("id-{}", random.u8(0..30))).collect())
        }
        10 => Filter::DocumentContains(random_text(random).unwrap_or_default()),
        _ => Filter::DocumentMatches(random.choice(PATTERNS).unwrap().0.to_owned()),
    }
}

pub(crate) type Entries = Vec<(String, Value)>;

pub(crate) fn matches(
    filter: &Filter,
    id: &str,
    metadata: &Entries,
    document: &Option<String>,
) -> bool {
    let value = |key: &str| metadata.iter().find(|(name, _)| name == key).map(|(_, value)| value);
    match filter {
        Filter::And(filters) => {
            filters.iter().all(|filter| matches(filter, id, metadata, document))
        }
        Filter::Or(filters) => filters.iter().any(|filter| matches(filter, id, metadata, document)),
        Filter::Not(filter) => !matches(filter, id, metadata, document),
        Filter::Compare { key, how, value: other } => match value(key) {
            Some(Value::One(scalar)) => compares(scalar, *how, other),
            _ => false,
        },
        Filter::In { key, values } => match value(key) {
            Some(Value::One(scalar)) => {
                values.iter().any(|other| compares(scalar, Comparison::Equal, other))
            }
            _ => false,
        },
        Filter::Contains { key, value: other } => match value(key) {
            Some(Value::Many(scalars)) => {
                scalars.iter().any(|scalar| compares(scalar, Comparison::Equal, other))
            }
            _ => false,
        },
        Filter::Id(ids) => ids.iter().any(|other| other == id),
        Filter::DocumentContains(text) => {
            document.as_ref().is_some_and(|document| document.contains(text))
        }
        Filter::DocumentMatches(pattern) => {
            let (_, matches) = PATTERNS.iter().find(|(known, _)| known == pattern).unwrap();
            document.as_ref().is_some_and(|document| matches(document))
        }
    }
}

fn compares(one: &Scalar, how: Comparison, other: &Scalar) -> bool {
    use std::cmp::Ordering::{Equal, Greater, Less};
    let order = match (one, other) {
        (Scalar::Text(one), Scalar::Text(other)) => one.cmp(other),
        (Scalar::Bool(one), Scalar::Bool(other)) => one.cmp(other),
        (Scalar::Text(_) | Scalar::Bool(_), _) | (_, Scalar::Text(_) | Scalar::Bool(_)) => {
            return false;
        }
        // Exact: halves of whole numbers fit, and all numbers here are below 2^100.
        (one, other) => doubled(one).cmp(&doubled(other)),
    };
    match how {
        Comparison::Equal => order == Equal,
        Comparison::Less => order == Less,
        Comparison::AtMost => order != Greater,
        Comparison::Greater => order == Greater,
        Comparison::AtLeast => order != Less,
    }
}

pub(crate) fn doubled(number: &Scalar) -> i128 {
    match number {
        Scalar::Integer(whole) => i128::from(*whole) * 2,
        Scalar::Float(number) => (number * 2.0) as i128,
        Scalar::Text(_) | Scalar::Bool(_) => unreachable!("not a number"),
    }
}
