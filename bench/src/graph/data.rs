//! The graph that both sides load and the questions that both answer: made once, as files,
//! so that both read the same bytes.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use serde::{Deserialize, Serialize};

/// How large the graph is.
#[derive(Clone, Copy)]
pub(super) struct Shape {
    pub nodes: usize,
    pub edges: usize,
}

/// The keys that are asked for.
#[derive(Serialize, Deserialize)]
pub(super) struct Questions {
    /// What is looked up; many, as one takes so little.
    pub points: Vec<i64>,
    /// Where walks begin.
    pub keys: Vec<i64>,
    /// Between which paths are sought.
    pub pairs: Vec<(i64, i64)>,
    /// The edges that are added one by one.
    pub inserts: Vec<(i64, i64)>,
}

const SEED: u64 = 7;
const POINTS: usize = 5000;
const KEYS: usize = 200;
const PAIRS: usize = 100;
const INSERTS: usize = 1000;

/// Makes `nodes.csv` (a key and a name), `edges.csv` (two keys), both with a header, and
/// `questions.json` in a folder. Every edge leads from any node to any other, or to itself.
pub(super) fn make(folder: &Path, shape: Shape) -> Result<()> {
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
    let questions = Questions {
        points: (0..POINTS).map(|_| pair().0).collect(),
        keys: (0..KEYS).map(|_| pair().0).collect(),
        pairs: (0..PAIRS).map(|_| pair()).collect(),
        inserts: (0..INSERTS).map(|_| pair()).collect(),
    };
    fs::write(folder.join("questions.json"), serde_json::to_string(&questions)?)?;
    Ok(())
}

/// The questions of a folder.
pub(super) fn questions(folder: &Path) -> Result<Questions> {
    Ok(serde_json::from_str(&fs::read_to_string(folder.join("questions.json"))?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_made_is_read_and_the_same_every_time() {
        let scratch = tempfile::tempdir().unwrap();
        let made = |folder: &str| {
            let folder = scratch.path().join(folder);
            make(&folder, Shape { nodes: 50, edges: 200 }).unwrap();
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
        let (one, other) = (questions(&one).unwrap(), questions(&other).unwrap());
        assert_eq!((one.keys, one.pairs), (other.keys, other.pairs));
        assert!(
            one.inserts.iter().all(|(from, to)| (0..50).contains(from) && (0..50).contains(to))
        );
    }
}
