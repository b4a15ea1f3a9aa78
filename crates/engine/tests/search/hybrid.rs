//! Hybrid queries of collections: both rankings fused, wherever records are.

use std::collections::HashMap;
use std::fs;
use std::path::Path;

use isolith_engine::{Engine, Hits, Like};
use isolith_types::{Code, Comparison, Filter, Metric, Scalar};
use libtest_mimic::Trial;

use crate::support::{Model, ids_of, open, segments, trial};

/// How many rows of each ranking are fused.
const CANDIDATES: usize = 200;

const WORDS: &str = "stones rivers";

pub fn trials() -> Vec<Trial> {
    vec![
        trial("hybrid_queries_fuse_both_rankings", fused_everywhere),
        trial("hybrid_queries_survive_damaged_segments", damaged),
        trial("hybrid_queries_have_errors_like_the_others", refused),
    ]
}

/// The ids and scores that the two rankings give, computed plainly.
fn expected(nearest: &[(String, f64)], by_keywords: &Hits, limit: usize) -> Vec<(String, f64)> {
    let mut scores: HashMap<&str, f64> = HashMap::new();
    let mut place = 0;
    for (at, hit) in by_keywords.hits.iter().take(CANDIDATES).enumerate() {
        let value = |at: usize| by_keywords.hits[at].score.unwrap();
        if at == 0 || value(at - 1) - value(at) > 1e-5 * value(at - 1) {
            place = at + 1;
        }
        *scores.entry(&hit.id).or_default() += 30.5 / (60.0 + place as f64);
    }
    for (at, (id, _)) in nearest.iter().take(CANDIDATES).enumerate() {
        *scores.entry(id).or_default() += 30.5 / (61.0 + at as f64);
    }
    let mut all: Vec<(String, f64)> =
        scores.into_iter().map(|(id, score)| (id.to_owned(), score)).collect();
    let arrival = |id: &str| id[1..].parse::<u64>().unwrap();
    all.sort_by(|a, b| {
        let equal = (a.1 - b.1).abs() < 1e-7;
        if equal { arrival(&a.0).cmp(&arrival(&b.0)) } else { b.1.total_cmp(&a.1) }
    });
    all.truncate(limit);
    all
}

async fn check(engine: &Engine, model: &Model, degraded: bool) {
    for vector in model.queries().iter().take(4) {
        let by_keywords = engine.keywords("c", WORDS, 10_000, None).await.unwrap();
        let like = Like::Vector(vector.clone());
        let found = engine.hybrid("c", &like, WORDS, 15, None).await.unwrap();
        assert_eq!(found.degraded.is_some(), degraded, "{:?}", found.degraded);
        let nearest = model.nearest(vector, usize::MAX);
        let wanted = expected(&nearest, &by_keywords, 15);
        let ids: Vec<String> = wanted.iter().map(|(id, _)| id.clone()).collect();
        assert_eq!(ids_of(&found), ids);
        for (hit, (id, score)) in found.hits.iter().zip(&wanted) {
            assert!((f64::from(hit.fused.unwrap()) - score).abs() < 1e-5, "{hit:?}: {score}");
            let (_, distance) = nearest.iter().find(|(other, _)| other == id).unwrap();
            assert!((f64::from(hit.distance.unwrap()) - distance).abs() < 1e-4, "{hit:?}");
            let by_keywords = by_keywords.hits.iter().find(|other| other.id == *id);
            assert_eq!(hit.score, by_keywords.and_then(|hit| hit.score), "{hit:?}");
            assert!(!hit.why.is_empty() && hit.document.is_some(), "{hit:?}");
            let why = hit.why.iter().any(|why| why.starts_with("keywords "));
            assert_eq!(why, hit.score.is_some(), "{hit:?}");
        }
    }
}

/// In the tail, in the base, in the delta, and with half of the records changed.
async fn fused_everywhere(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 64);
    model.create(&engine).await;
    let nothing = Like::Vector(model.queries()[0].clone());
    assert_eq!(engine.hybrid("c", &nothing, WORDS, 5, None).await.unwrap().hits, []);
    model.add(&engine, 500).await;
    check(&engine, &model, false).await;
    engine.fold("c", false, None).await.unwrap();
    check(&engine, &model, false).await;
    model.add(&engine, 20).await;
    engine.fold("c", false, None).await.unwrap();
    let places: Vec<u64> = (0..500).step_by(3).collect();
    model.replace(&engine, &places, 1).await;
    model.remove(&engine, &[1, 2, 4, 100, 505]).await;
    check(&engine, &model, false).await;

    // Filters narrow both rankings.
    let filter = Filter::Compare {
        key: "place".to_owned(),
        how: Comparison::Less,
        value: Scalar::Integer(40),
    };
    let query = model.queries()[1].clone();
    let mut few = model.clone();
    few.records.retain(|place, _| *place < 40);
    let words = engine.keywords("c", WORDS, 10_000, Some(filter.clone())).await.unwrap();
    let found = engine.hybrid("c", &Like::Vector(query.clone()), WORDS, 50, Some(filter)).await;
    let wanted = expected(&few.nearest(&query, usize::MAX), &words, 50);
    let wanted: Vec<String> = wanted.into_iter().map(|(id, _)| id).collect();
    assert_eq!(ids_of(&found.unwrap()), wanted);

    // Without known words, vectors decide alone.
    let found = engine.hybrid("c", &Like::Vector(query.clone()), "unheard", 10, None).await;
    let found = found.unwrap();
    model.check_nearest(&query, &found);
    assert!(found.hits.iter().all(|hit| hit.score.is_none() && hit.why.len() == 1));
    engine.close().await;
}

async fn damaged(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::L2, 64);
    model.create(&engine).await;
    model.add(&engine, 400).await;
    engine.fold("c", false, None).await.unwrap();
    model.add(&engine, 10).await;
    engine.close().await;
    for kind in ["vec", "txt"] {
        let file = segments(store).into_iter().find(|it| it.extension().unwrap() == kind).unwrap();
        fs::write(&file, b"damaged").unwrap();
        let engine = open(store);
        check(&engine, &model, true).await;
        let generation = engine.collection("c").await.unwrap().generation.unwrap();
        let marked = generation.segments.iter().filter(|it| it.quarantined.is_some());
        let marked: Vec<&str> = marked.map(|it| it.file.as_str()).collect();
        assert_eq!(marked, [file.file_name().unwrap().to_str().unwrap()]);
        engine.fold("c", false, None).await.unwrap();
        check(&engine, &model, false).await;
        engine.close().await;
    }
}

async fn refused(store: &Path) {
    let engine = open(store);
    let mut model = Model::new(Metric::Cosine, 4);
    model.create(&engine).await;
    model.add(&engine, 5).await;
    let text = Like::Text("text".to_owned());
    for (like, collection, expected) in [
        (&text, "c", Code::ModelUnavailable),
        (&Like::Vector(vec![1.0]), "c", Code::BadInput),
        (&Like::Vector(vec![0.0; 4]), "c", Code::BadInput),
        (&Like::Vector(vec![f32::NAN; 4]), "c", Code::BadInput),
        (&Like::Vector(vec![1.0; 4]), "none", Code::NotFound),
    ] {
        let failure = engine.hybrid(collection, like, "stones", 5, None).await.unwrap_err();
        assert_eq!(failure.code, expected, "{like:?}");
    }
    engine.close().await;
}
