//! Queries, and their recall compared with brute force.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use isolith_engine::{Engine, Life};
use isolith_types::{Comparison, Filter, Scalar};

use super::{COLLECTION, open};
use crate::samples::{Samples, WARM_UP_CALLS};
use crate::store::data::{Data, Subset, record_id};
use crate::store::npy::Matrix;
use crate::store::report::{ColdQueryReport, QueryReport, QueryStats};
use crate::store::usage;

const LIMIT: u32 = 10;

pub(super) async fn query(data: Data, store: &Path, rounds: usize) -> Result<QueryReport> {
    let queries = data.queries()?;
    let engine = open(store, Life::OneShot)?;
    let mut measured = Vec::new();
    for subset in Subset::ALL {
        measured.push(measure(&engine, &queries, subset, rounds).await?);
    }
    let pss_bytes = usage::memory_bytes(&engine)?;
    engine.close().await;
    // Brute force comes last, so that its memory is not counted.
    let vectors = data.vectors()?;
    let mut by_subset = BTreeMap::new();
    for (subset, (mut answers, found)) in Subset::ALL.into_iter().zip(measured) {
        answers.recall = recall(&vectors, &queries, subset, &found);
        by_subset.insert(subset.key().unwrap_or("all").to_owned(), answers);
    }
    Ok(QueryReport { queries: by_subset, pss_bytes })
}

pub(super) async fn query_once(data: Data, store: &Path) -> Result<ColdQueryReport> {
    let queries = data.queries()?;
    let engine = open(store, Life::OneShot)?;
    let found = ask(&engine, &queries, Subset::All, 0).await?;
    ensure!(found.len() == LIMIT as usize, "only {} hits", found.len());
    engine.close().await;
    Ok(ColdQueryReport { cpu_without_import_seconds: None })
}

async fn measure(
    engine: &Engine,
    queries: &Matrix,
    subset: Subset,
    rounds: usize,
) -> Result<(QueryStats, Vec<Vec<String>>)> {
    for at in 0..WARM_UP_CALLS.min(queries.rows()) {
        ask(engine, queries, subset, at).await?;
    }
    let mut found = Vec::new();
    let mut took = Samples::default();
    let before = usage::cpu_time(Some(engine))?;
    for round in 0..rounds {
        for at in 0..queries.rows() {
            let started = Instant::now();
            let ids = ask(engine, queries, subset, at).await?;
            took.push(started.elapsed());
            if round == 0 {
                found.push(ids);
            }
        }
    }
    let processor = usage::cpu_time(Some(engine))? - before;
    let at = |percent| took.percentile(percent).context("no query was run");
    let answers = QueryStats {
        p50_seconds: at(50)?.as_secs_f64(),
        p99_seconds: at(99)?.as_secs_f64(),
        cpu_seconds: processor.as_secs_f64() / (rounds * queries.rows()) as f64,
        recall: 0.0,
    };
    Ok((answers, found))
}

async fn ask(engine: &Engine, queries: &Matrix, subset: Subset, at: usize) -> Result<Vec<String>> {
    let filter = subset.key().map(|key| Filter::Compare {
        key: key.to_owned(),
        how: Comparison::Equal,
        value: Scalar::Integer((at % subset.stride()) as i64),
    });
    let hits = engine.nearest(COLLECTION, queries.row(at), LIMIT, filter).await?;
    ensure!(hits.degraded.is_none(), "degraded answer: {:?}", hits.degraded);
    Ok(hits.hits.into_iter().map(|hit| hit.id).collect())
}

/// The share of the true nearest neighbors that were found.
fn recall(vectors: &Matrix, queries: &Matrix, subset: Subset, found: &[Vec<String>]) -> f64 {
    let (mut hits, mut wanted) = (0, 0);
    for (at, ids) in found.iter().enumerate() {
        let rows = (at % subset.stride()..vectors.rows()).step_by(subset.stride());
        // All vectors have unit length.
        let mut ranked: Vec<(f32, usize)> =
            rows.map(|row| (product(vectors.row(row), queries.row(at)), row)).collect();
        ranked.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        ranked.truncate(LIMIT as usize);
        let ids: HashSet<&str> = ids.iter().map(String::as_str).collect();
        wanted += ranked.len();
        hits += ranked.iter().filter(|(_, row)| ids.contains(record_id(*row).as_str())).count();
    }
    hits as f64 / wanted as f64
}

/// The dot product. Separate sums let the compiler use SIMD instructions.
fn product(one: &[f32], other: &[f32]) -> f32 {
    let mut sums = [0f32; 16];
    for (a, b) in one.chunks_exact(16).zip(other.chunks_exact(16)) {
        for (sum, (a, b)) in sums.iter_mut().zip(a.iter().zip(b)) {
            *sum += a * b;
        }
    }
    let whole = one.len() - one.len() % 16;
    let rest = one[whole..].iter().zip(&other[whole..]).map(|(a, b)| a * b).sum::<f32>();
    sums.iter().sum::<f32>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recall_is_relative_to_brute_force() {
        // WorkerRow r points to angle r; the query is nearest to the lowest rows.
        let vectors = Matrix {
            columns: 2,
            values: (0..40)
                .flat_map(|row| [(row as f32 / 30.0).cos(), (row as f32 / 30.0).sin()])
                .collect(),
        };
        let queries = Matrix { columns: 2, values: vec![1.0, 0.0] };
        let first: Vec<String> = (0..10).map(record_id).collect();
        assert_eq!(recall(&vectors, &queries, Subset::All, &[first]), 1.0);
        let half: Vec<String> = (0..20).step_by(2).map(record_id).collect();
        assert_eq!(recall(&vectors, &queries, Subset::All, &[half]), 0.5);
        // A tenth of forty is four rows.
        let tenth: Vec<String> = [0, 10, 20, 30].map(record_id).to_vec();
        assert_eq!(recall(&vectors, &queries, Subset::Tenth, &[tenth]), 1.0);
    }

    #[test]
    fn products_include_the_remainder() {
        let ones = vec![1.0; 35];
        assert_eq!(product(&ones, &ones), 35.0);
    }
}
