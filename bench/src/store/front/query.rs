//! Queries, and what brute force says about the answers.

use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use isolith_engine::{Engine, Life};
use isolith_types::{Comparison, Filter, Scalar};

use super::{COLLECTION, open};
use crate::samples::{Samples, UNCOUNTED};
use crate::store::data::{Data, Share, record_id};
use crate::store::npy::Matrix;
use crate::store::report::{Answers, Asked, AskedOnce};
use crate::store::usage;

const LIMIT: u32 = 10;

pub(super) async fn query(data: Data, store: &Path, rounds: usize) -> Result<Asked> {
    let queries = data.queries()?;
    let engine = open(store, Life::OneShot)?;
    let mut measured = Vec::new();
    for share in Share::ALL {
        measured.push(measure(&engine, &queries, share, rounds).await?);
    }
    let pss_bytes = usage::memory_bytes(&engine)?;
    engine.close().await;
    // Brute force comes last: its memory is not the engine's.
    let vectors = data.vectors()?;
    let mut by_share = BTreeMap::new();
    for (share, (mut answers, found)) in Share::ALL.into_iter().zip(measured) {
        answers.recall = recall(&vectors, &queries, share, &found);
        by_share.insert(share.key().unwrap_or("all").to_owned(), answers);
    }
    Ok(Asked { queries: by_share, pss_bytes })
}

pub(super) async fn query_once(data: Data, store: &Path) -> Result<AskedOnce> {
    let queries = data.queries()?;
    let engine = open(store, Life::OneShot)?;
    let found = ask(&engine, &queries, Share::All, 0).await?;
    ensure!(found.len() == LIMIT as usize, "only {} hits", found.len());
    engine.close().await;
    Ok(AskedOnce { cpu_without_import_seconds: None })
}

async fn measure(
    engine: &Engine,
    queries: &Matrix,
    share: Share,
    rounds: usize,
) -> Result<(Answers, Vec<Vec<String>>)> {
    for at in 0..UNCOUNTED.min(queries.rows()) {
        ask(engine, queries, share, at).await?;
    }
    let mut found = Vec::new();
    let mut took = Samples::default();
    let before = usage::processor_time(Some(engine))?;
    for round in 0..rounds {
        for at in 0..queries.rows() {
            let started = Instant::now();
            let ids = ask(engine, queries, share, at).await?;
            took.push(started.elapsed());
            if round == 0 {
                found.push(ids);
            }
        }
    }
    let processor = usage::processor_time(Some(engine))? - before;
    let at = |percent| took.percentile(percent).context("nothing was asked");
    let answers = Answers {
        p50_seconds: at(50)?.as_secs_f64(),
        p99_seconds: at(99)?.as_secs_f64(),
        cpu_seconds: processor.as_secs_f64() / (rounds * queries.rows()) as f64,
        recall: 0.0,
    };
    Ok((answers, found))
}

async fn ask(engine: &Engine, queries: &Matrix, share: Share, at: usize) -> Result<Vec<String>> {
    let filter = share.key().map(|key| Filter::Compare {
        key: key.to_owned(),
        how: Comparison::Equal,
        value: Scalar::Integer((at % share.stride()) as i64),
    });
    let hits = engine.nearest(COLLECTION, queries.row(at), LIMIT, filter).await?;
    ensure!(hits.degraded.is_none(), "a degraded answer: {:?}", hits.degraded);
    Ok(hits.hits.into_iter().map(|hit| hit.id).collect())
}

/// The share of the true nearest that was found.
fn recall(vectors: &Matrix, queries: &Matrix, share: Share, found: &[Vec<String>]) -> f64 {
    let (mut hits, mut wanted) = (0, 0);
    for (at, ids) in found.iter().enumerate() {
        let rows = (at % share.stride()..vectors.rows()).step_by(share.stride());
        // All vectors are of unit length.
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

/// Several sums at once, which the compiler turns into vector instructions.
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
    fn recall_counts_what_brute_force_finds() {
        // Row r points to angle r; the query is nearest to the lowest rows.
        let vectors = Matrix {
            columns: 2,
            values: (0..40)
                .flat_map(|row| [(row as f32 / 30.0).cos(), (row as f32 / 30.0).sin()])
                .collect(),
        };
        let queries = Matrix { columns: 2, values: vec![1.0, 0.0] };
        let first: Vec<String> = (0..10).map(record_id).collect();
        assert_eq!(recall(&vectors, &queries, Share::All, &[first]), 1.0);
        let half: Vec<String> = (0..20).step_by(2).map(record_id).collect();
        assert_eq!(recall(&vectors, &queries, Share::All, &[half]), 0.5);
        // A tenth of forty is four rows.
        let tenth: Vec<String> = [0, 10, 20, 30].map(record_id).to_vec();
        assert_eq!(recall(&vectors, &queries, Share::Tenth, &[tenth]), 1.0);
    }

    #[test]
    fn products_have_a_rest() {
        let ones = vec![1.0; 35];
        assert_eq!(product(&ones, &ones), 35.0);
    }
}
