//! Our side: each phase is a front of its own, this program started again, with real
//! workers. It prints one document of JSON.

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
use super::report::{Answers, Kind, Spent};
use crate::samples::{Samples, UNCOUNTED};
use crate::store::usage;

/// The argument that makes this program a front; an [`Order`] in JSON follows.
pub(crate) const ARGUMENT: &str = "--graph-front";

/// What a front is to do.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum Order {
    /// Load the graph into a new store.
    Load { data: PathBuf, store: PathBuf },
    /// Answer all questions.
    Ask { data: PathBuf, store: PathBuf },
    /// Add edges, each in a transaction of its own.
    Insert { data: PathBuf, store: PathBuf },
}

pub(crate) fn run(order: &str) -> Result<()> {
    let order = serde_json::from_str(order)?;
    // As the command has it.
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(async {
        Ok::<_, anyhow::Error>(match order {
            Order::Load { data, store } => serde_json::to_string(&load(&data, &store).await?)?,
            Order::Ask { data, store } => serde_json::to_string(&ask(&data, &store).await?)?,
            Order::Insert { data, store } => serde_json::to_string(&insert(&data, &store).await?)?,
        })
    })?;
    println!("{report}");
    Ok(())
}

/// What was used since then.
struct Watch {
    started: Instant,
    before: std::time::Duration,
}

impl Watch {
    fn start(engine: &Engine) -> Result<Self> {
        let before = usage::processor_time(Some(engine))?;
        Ok(Self { started: Instant::now(), before })
    }

    fn spent(&self, engine: &Engine) -> Result<Spent> {
        let wall_seconds = self.started.elapsed().as_secs_f64();
        let used = usage::processor_time(Some(engine))? - self.before;
        Ok(Spent { wall_seconds, cpu_seconds: used.as_secs_f64() })
    }
}

fn open(store: &Path) -> Result<Engine> {
    // Durability is FULL unless asked otherwise; a benchmark of ours does not ask.
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

async fn load(data: &Path, store: &Path) -> Result<Spent> {
    let engine = open(store)?;
    let watch = Watch::start(&engine)?;
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
    // What loading leaves to be done belongs to it.
    engine.settle().await;
    let spent = watch.spent(&engine)?;
    engine.close().await;
    Ok(spent)
}

async fn ask(data: &Path, store: &Path) -> Result<BTreeMap<Kind, Answers>> {
    let questions = data::questions(data)?;
    let engine = open(store)?;
    let mut answers = BTreeMap::new();
    for kind in Kind::ALL {
        let asked: Vec<(i64, i64)> = match kind {
            Kind::Shortest => questions.pairs.clone(),
            Kind::Top => vec![(0, 0); UNCOUNTED],
            Kind::Point => questions.points.iter().map(|&key| (key, 0)).collect(),
            _ => questions.keys.iter().map(|&key| (key, 0)).collect(),
        };
        answers.insert(kind, measure(&engine, kind, &asked).await?);
    }
    engine.close().await;
    Ok(answers)
}

async fn measure(engine: &Engine, kind: Kind, asked: &[(i64, i64)]) -> Result<Answers> {
    for pair in asked.iter().take(UNCOUNTED) {
        answer(engine, kind, *pair, &mut Answers::default()).await?;
    }
    let mut answers = Answers::default();
    let mut took = Samples::default();
    let watch = Watch::start(engine)?;
    for pair in asked {
        let started = Instant::now();
        answer(engine, kind, *pair, &mut answers).await?;
        took.push(started.elapsed());
    }
    answers.cpu_seconds = watch.spent(engine)?.cpu_seconds / asked.len() as f64;
    answers.p50_seconds = took.percentile(50).unwrap_or_default().as_secs_f64();
    Ok(answers)
}

/// Asks once and adds what came back to the sums.
async fn answer(
    engine: &Engine,
    kind: Kind,
    (key, other): (i64, i64),
    sums: &mut Answers,
) -> Result<()> {
    let key = ("k", Datum::Integer(key));
    let answer = match kind {
        Kind::Top => query(engine, kind.cypher(), []).await?,
        Kind::Shortest => query(engine, kind.cypher(), [key, ("l", Datum::Integer(other))]).await?,
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

async fn insert(data: &Path, store: &Path) -> Result<Spent> {
    let inserts = data::questions(data)?.inserts;
    let engine = open(store)?;
    let text = "MATCH (a:P {k: $a}), (b:P {k: $b}) CREATE (a)-[:E]->(b)";
    let add = async |(from, to)| {
        let ends = [("a", Datum::Integer(from)), ("b", Datum::Integer(to))];
        query(&engine, text, ends).await
    };
    for pair in inserts.iter().take(UNCOUNTED) {
        add(*pair).await?;
    }
    let watch = Watch::start(&engine)?;
    for pair in &inserts {
        let made = add(*pair).await?.stats.relationships_created;
        ensure!(made == 1, "{made} edges were made");
    }
    let spent = watch.spent(&engine)?;
    engine.close().await;
    let count = inserts.len() as f64;
    Ok(Spent { wall_seconds: spent.wall_seconds / count, cpu_seconds: spent.cpu_seconds / count })
}
