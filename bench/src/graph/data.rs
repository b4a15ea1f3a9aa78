//! The graph that both sides load and the queries that both answer, written to files so that both
//! read the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use serde::{Deserialize, Serialize};

#[derive(Clone, Copy)]
pub(super) struct GraphSize {
    pub nodes: usize,
    pub edges: usize,
}

/// The keys used in queries.
#[derive(Serialize, Deserialize)]
pub(super) struct QueryKeys {
    /// Nodes to look up.
    pub points: Vec<i64>,
    /// Start nodes of traversals.
    pub keys: Vec<i64>,
    /// Ends of shortest paths.
    pub pairs: Vec<(i64, i64)>,
    /// Edges to add one by one.
    pub inserts: Vec<(i64, i64)>,
}

const SEED: u64 = 7;
const POINTS: usize = 5000;
const KEYS: usize = 200;
const PAIRS: usize = 100;
const INSERTS: usize = 1000;

/// Writes `nodes.csv` (a key and a name), `edges.csv` (two keys), both with a header, and
/// `questions.json` to a folder. The ends of edges are random.
pub(super) fn generate(folder: &Path, shape: GraphSize) -> Result<()> {
    fs::create_dir_all(folder)?;
    let mut rng = Rng::with_seed(SEED);
    let last = i64::try_from(shape.nodes)?;
    let mut nodes = "k:int,name\n".to_owned();
    for key in 0..last {
        writeln!(nodes, "{key},name-{key}")?;
    }
    fs::write(folder.join("nodes.csv"), nodes)?;
    let mut pair = || (rng.i64(0..last), rng.i64(0..last));
    let mut edges = "from:int,to:int\n".to_owned();
    for _ in 0..shape.edges {
        let (from, to) = pair();
        writeln!(edges, "{from},{to}")?;
    }
    fs::write(folder.join("edges.csv"), edges)?;
    let questions = QueryKeys {
        points: (0..POINTS).map(|_| pair().0).collect(),
        keys: (0..KEYS).map(|_| pair().0).collect(),
        pairs: (0..PAIRS).map(|_| pair()).collect(),
        inserts: (0..INSERTS).map(|_| pair()).collect(),
    };
    fs::write(folder.join("questions.json"), serde_json::to_string(&questions)?)?;
    Ok(())
}

/// Reads the keys that [`generate`] wrote.
pub(super) fn query_keys(folder: &Path) -> Result<QueryKeys> {
    Ok(serde_json::from_str(&fs::read_to_string(folder.join("questions.json"))?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_is_deterministic() {
        let scratch = tempfile::tempdir().unwrap();
        let made = |folder: &str| {
            let folder = scratch.path().join(folder);
            generate(&folder, GraphSize { nodes: 50, edges: 200 }).unwrap();
            folder
        };
        let (one, other) = (made("one"), made("other"));
        let lines = |folder: &Path, file: &str| -> Vec<String> {
            let text = fs::read_to_string(folder.join(file)).unwrap();
            text.lines().map(str::to_owned).collect()
        };
        assert_eq!(lines(&one, "nodes.csv")[8], "7,name-7");
        assert_eq!(lines(&one, "edges.csv").len(), 201);
        assert_eq!(lines(&one, "edges.csv"), lines(&other, "edges.csv"));
        let (one, other) = (query_keys(&one).unwrap(), query_keys(&other).unwrap());
        assert_eq!((one.keys, one.pairs), (other.keys, other.pairs));
        assert!(
            one.inserts.iter().all(|(from, to)| (0..50).contains(from) && (0..50).contains(to))
        );
    }
}
