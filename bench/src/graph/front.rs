//! Our side: each phase is run by this program in a process of its own, with real workers. It
//! prints one JSON document.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Result, bail, ensure};
use isolith_engine::{
    CypherQuery, Datum, Engine, EngineOptions, GraphAnswer, GraphImport, Life, OnError, StorePlace,
    TableEnd, TableHolds,
};
use serde::{Deserialize, Serialize};
use tokio::runtime::Builder;

use super::data;
use super::report::{QueryKind, QueryStats, TimeSpent};
use crate::samples::{Samples, WARM_UP_CALLS};
use crate::store::usage;

/// Makes this program run a phase; a [`Phase`] in JSON follows.
pub(crate) const PHASE_FLAG: &str = "--graph-front";

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Phase {
    /// Load the graph into a new store.
    Load { data: PathBuf, store: PathBuf },
    /// Run all queries.
    Ask { data: PathBuf, store: PathBuf },
    /// Add edges, one per transaction.
    Insert { data: PathBuf, store: PathBuf },
}

pub(crate) fn run(phase: &str) -> Result<()> {
    let phase = serde_json::from_str(phase)?;
    // The same runtime as in the `isolith` command.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        Ok::<_, anyhow::Error>(match phase {
            Phase::Load { data, store } => serde_json::to_string(&load(&data, &store).await?)?,
            Phase::Ask { data, store } => serde_json::to_string(&ask(&data, &store).await?)?,
            Phase::Insert { data, store } => serde_json::to_string(&insert(&data, &store).await?)?,
        })
    })?;
    println!("{report}");
    Ok(())
}

/// Measures wall and CPU time from its start.
struct Stopwatch {
    started: Instant,
    before: std::time::Duration,
}

impl Stopwatch {
    fn start(engine: &Engine) -> Result<Self> {
        let before = usage::cpu_time(Some(engine))?;
        Ok(Self { started: Instant::now(), before })
    }

    fn spent(&self, engine: &Engine) -> Result<TimeSpent> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        let used = usage::cpu_time(Some(engine))? - self.before;
        Ok(TimeSpent { wall_seconds, cpu_seconds: used.as_secs_f64() })
    }
}

fn open(store: &Path) -> Result<Engine> {
    // With the default durability, FULL.
    let options = EngineOptions { create: true, life: Life::Server, ..EngineOptions::default() };
    Ok(Engine::open(&StorePlace::unchecked(store), options)?)
}

async fn query<const N: usize>(
    engine: &Engine,
    text: &str,
    parameters: [(&str, Datum); N],
) -> Result<GraphAnswer> {
    let parameters = parameters.map(|(name, value)| (name.to_owned(), value));
    let query = CypherQuery { text: text.to_owned(), parameters: BTreeMap::from(parameters) };
    Ok(engine.cypher(query, None).await?)
}

async fn load(data: &Path, store: &Path) -> Result<TimeSpent> {
    let engine = open(store)?;
    let watch = Stopwatch::start(&engine)?;
    let end = TableEnd { label: "P".to_owned(), key: "k".to_owned() };
    let nodes = TableHolds::Nodes { label: "P".to_owned(), key: Some("k".to_owned()) };
    let edges = TableHolds::Edges { kind: "E".to_owned(), from: end.clone(), to: end };
    for (file, holds) in [("nodes.csv", nodes), ("edges.csv", edges)] {
        let import = GraphImport {
            file: data.join(file),
            holds,
            delimiter: b',',
            on_error: OnError::Stop,
            key: None,
        };
        let imported = engine.import_graph(&import, |_, _| {}).await;
        if let Some(failure) = imported.error {
            bail!("{file}: {failure}");
        }
    }
    // Background work that loading causes is part of it.
    engine.settle().await;
    let spent = watch.spent(&engine)?;
    engine.close().await;
    Ok(spent)
}

async fn ask(data: &Path, store: &Path) -> Result<BTreeMap<QueryKind, QueryStats>> {
    let questions = data::query_keys(data)?;
    let engine = open(store)?;
    let mut answers = BTreeMap::new();
    for kind in QueryKind::ALL {
        let asked: Vec<(i64, i64)> = match kind {
            QueryKind::Shortest => questions.pairs.clone(),
            QueryKind::Top => vec![(0, 0); WARM_UP_CALLS],
            QueryKind::Point => questions.points.iter().map(|&key| (key, 0)).collect(),
            _ => questions.keys.iter().map(|&key| (key, 0)).collect(),
        };
        answers.insert(kind, measure(&engine, kind, &asked).await?);
    }
    engine.close().await;
    Ok(answers)
}

async fn measure(engine: &Engine, kind: QueryKind, asked: &[(i64, i64)]) -> Result<QueryStats> {
    for pair in asked.iter().take(WARM_UP_CALLS) {
        answer(engine, kind, *pair, &mut QueryStats::default()).await?;
    }
    let mut answers = QueryStats::default();
    let mut took = Samples::default();
    let watch = Stopwatch::start(engine)?;
    for pair in asked {
        let started = Instant::now();
        answer(engine, kind, *pair, &mut answers).await?;
        took.push(started.elapsed());
    }
    answers.cpu_seconds = watch.spent(engine)?.cpu_seconds / asked.len() as f64;
    answers.p50_seconds = took.percentile(50).unwrap_or_default().as_secs_f64();
    Ok(answers)
}

/// Runs a query once and adds the answer to the sums.
async fn answer(
    engine: &Engine,
    kind: QueryKind,
    (key, other): (i64, i64),
    sums: &mut QueryStats,
) -> Result<()> {
    let key = ("k", Datum::Integer(key));
    let answer = match kind {
        QueryKind::Top => query(engine, kind.cypher(), []).await?,
        QueryKind::Shortest => {
            query(engine, kind.cypher(), [key, ("l", Datum::Integer(other))]).await?
        }
        _ => query(engine, kind.cypher(), [key]).await?,
    };
    for row in answer.rows() {
        sums.rows += 1;
        for value in row? {
            sums.sum += match value {
                Datum::Integer(number) => number,
                Datum::Text(text) => text.len() as i64,
                _ => 0,
            };
        }
    }
    Ok(())
}

async fn insert(data: &Path, store: &Path) -> Result<TimeSpent> {
    let inserts = data::query_keys(data)?.inserts;
    let engine = open(store)?;
    let text = "MATCH (a:P {k: $a}), (b:P {k: $b}) CREATE (a)-[:E]->(b)";
    let add = async |(from, to)| {
        let ends = [("a", Datum::Integer(from)), ("b", Datum::Integer(to))];
        query(&engine, text, ends).await
    };
    for pair in inserts.iter().take(WARM_UP_CALLS) {
        add(*pair).await?;
    }
    let watch = Stopwatch::start(&engine)?;
    for pair in &inserts {
        let made = add(*pair).await?.stats.relationships_created;
        ensure!(made == 1, "{made} edges were created, not 1");
    }
    let spent = watch.spent(&engine)?;
    engine.close().await;
    let count = inserts.len() as f64;
    Ok(TimeSpent {
        wall_seconds: spent.wall_seconds / count,
        cpu_seconds: spent.cpu_seconds / count,
    })
}
