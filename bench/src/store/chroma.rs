//! A collection of 100,000 vectors, compared with Chroma's PersistentClient.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde::de::DeserializeOwned;

use super::data::{Data, Subset};
use super::front::Phase;
use super::report::{ColdQueryReport, FillReport, QueryReport, QueryStats, StepReport};
use super::{front, report, run_phase, usage};
use crate::figure::{Figure, Goal, Rival};
use crate::python::rival;
use crate::rivals::python_with;
use crate::table::{Comparison, Row};

const ROWS: usize = 100_000;
const QUERIES: usize = 400;
/// Many, because the CPU time of exited workers has a resolution of 10 ms.
const ROUNDS: usize = 10;
const CHROMA_ROUNDS: usize = 1;
const COLD_STARTS: usize = 40;
const CHROMA_COLD_STARTS: usize = 5;

const ADDS_GOAL: f64 = 10.0;
const RECALL_GOAL: f64 = 0.99;
const FILTERED_GOAL: f64 = 5.0;
const FILTER_COST_GOAL: f64 = 3.0;
const COLD_GOAL: Duration = Duration::from_millis(50);

pub(super) fn compare(folder: &Path, quick: bool, vectors: Option<&Path>) -> Result<Comparison> {
    let (rows, queries) = if quick { (ROWS / 10, QUERIES / 10) } else { (ROWS, QUERIES) };
    let data = Data::generate(folder.join("data"), rows, queries, vectors)?;
    let mut sides = ChromaBench {
        ours: folder.join("isolith"),
        chroma: Chroma { python: python_with("chromadb"), store: folder.join("chroma") },
        data,
        quick,
    };
    let mut rows = sides.fill()?;
    rows.extend(sides.query()?);
    rows.extend(sides.cold()?);
    rows.push(sides.step(&folder.join("steps"))?);
    let source = if vectors.is_some() { "real vectors and mixtures" } else { "synthetic clusters" };
    let notes = format!(
        "{} x {} ({source}), cosine, FULL, batches of 1,000 with a document and two numbers;\n\
         {queries} queries for the nearest 10, one at a time. CPU: user + system time of the front\n\
         and all its workers, and of the whole process for Chroma. ratio: above 1, ours is better.\n",
        sides.data.shape.rows, sides.data.shape.dimension
    );
    let what = "measurement".to_owned();
    Ok(Comparison { what, rival: "Chroma".to_owned(), rows, notes })
}

struct ChromaBench {
    data: Data,
    ours: PathBuf,
    chroma: Chroma,
    quick: bool,
}

/// Chroma, in a new process for each phase; skipped once it has failed.
struct Chroma {
    python: Option<PathBuf>,
    store: PathBuf,
}

impl Chroma {
    fn run_phase<T: DeserializeOwned>(
        &mut self,
        phase: &str,
        data: &Data,
        rounds: usize,
    ) -> Option<T> {
        eprintln!("bench:   Chroma: {phase}");
        let mut command = Command::new(self.python.as_ref()?);
        command.arg(rival("chroma_store.py")).arg(phase).arg(&data.folder).arg(&self.store);
        command.arg(rounds.to_string());
        match report(command) {
            Ok(report) => Some(report),
            Err(error) => {
                eprintln!("bench: skipping Chroma: {error:#}");
                self.python = None;
                None
            }
        }
    }
}

impl ChromaBench {
    fn fill(&mut self) -> Result<Vec<Row>> {
        let phase = Phase::Fill { data: self.data.folder.clone(), store: self.ours.clone() };
        let ours: FillReport = run_phase(&phase)?;
        let chroma: Option<FillReport> = self.chroma.run_phase("add", &self.data, 1);
        let count = self.data.shape.rows as f64;
        let rate = |name: &str, seconds: fn(&FillReport) -> f64, goal: bool| {
            let per_second = |filled: &FillReport| count / seconds(filled);
            let rival = chroma.as_ref().map(per_second);
            let limit = rival.filter(|_| goal).map(|rival| ADDS_GOAL * rival);
            Row {
                name: name.to_owned(),
                ours: Figure::Rate(per_second(&ours)),
                rival: rival.map(Figure::Rate).into(),
                goal: limit.map(|limit| Goal::at_least(per_second(&ours), limit, "10 times")),
            }
        };
        let bytes = |name: &str, of: fn(&FillReport) -> u64| Row {
            name: name.to_owned(),
            ours: Figure::Bytes(of(&ours)),
            rival: chroma.as_ref().map(|filled| Figure::Bytes(of(filled))).into(),
            goal: None,
        };
        let ingested = self.data.ingested_bytes()? as f64;
        let amplified = |filled: &FillReport| Figure::Times(filled.written_bytes as f64 / ingested);
        Ok(vec![
            rate("add, CPU", |filled| filled.added.cpu_seconds, true),
            rate("add until searchable, CPU", |filled| filled.searchable.cpu_seconds, true),
            rate("add, wall", |filled| filled.added.wall_seconds, false),
            rate("add until searchable, wall", |filled| filled.searchable.wall_seconds, false),
            bytes("disk", |filled| filled.disk_bytes),
            Row {
                name: "bytes written per byte ingested".to_owned(),
                ours: amplified(&ours),
                rival: chroma.as_ref().map(amplified).into(),
                goal: None,
            },
        ])
    }

    fn query(&mut self) -> Result<Vec<Row>> {
        let rounds = if self.quick { ROUNDS } else { 2 * ROUNDS };
        let (data, store) = (self.data.folder.clone(), self.ours.clone());
        let ours: QueryReport = run_phase(&Phase::Query { data, store, rounds })?;
        let chroma: Option<QueryReport> = self.chroma.run_phase("query", &self.data, CHROMA_ROUNDS);
        let mut rows = Vec::new();
        let Some(all) = ours.queries.get("all") else { return Ok(rows) };
        for subset in Subset::ALL {
            let key = subset.key().unwrap_or("all");
            let Some(answers) = ours.queries.get(key) else { continue };
            let rival = chroma.as_ref().and_then(|chroma| chroma.queries.get(key));
            rows.extend(compare_answers(subset, answers, rival, all));
        }
        rows.push(Row {
            name: "memory (PSS) after the queries".to_owned(),
            ours: Figure::Bytes(ours.pss_bytes),
            rival: chroma.map(|chroma| Figure::Bytes(chroma.pss_bytes)).into(),
            goal: None,
        });
        Ok(rows)
    }

    /// Times of whole processes, from start to exit.
    fn cold(&mut self) -> Result<Vec<Row>> {
        let count = |full: usize| if self.quick { full.div_ceil(4) } else { full };
        let (data, store) = (self.data.folder.clone(), self.ours.clone());
        let phase = Phase::QueryOnce { data, store };
        eprintln!("bench:   isolith: {phase:?}, many times");
        let ours = ColdStart::measure(count(COLD_STARTS), || {
            Ok(Some(report::<ColdQueryReport>(front(&phase)?)?))
        })?;
        let starts = count(CHROMA_COLD_STARTS);
        let chroma =
            ColdStart::measure(starts, || Ok(self.chroma.run_phase("cold", &self.data, 1)))?;
        let (Some(ours), chroma) = (ours, chroma) else { return Ok(Vec::new()) };
        let row = |name: &str, ours: Duration, rival: Option<Duration>, goal| Row {
            name: name.to_owned(),
            ours: Figure::Time(ours),
            rival: rival.map(Figure::Time).into(),
            goal,
        };
        let without_import = chroma.as_ref().and_then(|chroma| chroma.without_import);
        let goal = Some(Goal::within(ours.processor, COLD_GOAL));
        Ok(vec![
            row(
                "open and first query, CPU",
                ours.processor,
                chroma.as_ref().map(|c| c.processor),
                goal,
            ),
            row("  without Python's imports", ours.processor, without_import, None),
            row("open and first query, wall", ours.clock, chroma.as_ref().map(|c| c.clock), None),
        ])
    }

    fn step(&self, store: &Path) -> Result<Row> {
        let (data, store) = (self.data.folder.clone(), store.to_owned());
        let stepped: StepReport = run_phase(&Phase::Step { data, store })?;
        let times = stepped.written_bytes as f64 / self.data.ingested_bytes()? as f64;
        let StepReport { spent, generations, .. } = stepped;
        eprintln!(
            "bench:   steps of 100: {generations} generations, {:.1} s, {:.1} CPU-s",
            spent.wall_seconds, spent.cpu_seconds
        );
        Ok(Row {
            name: "bytes written per byte, steps of 100, folding".to_owned(),
            ours: Figure::Times(times),
            rival: Rival::None,
            goal: None,
        })
    }
}

fn compare_answers(
    subset: Subset,
    ours: &QueryStats,
    rival: Option<&QueryStats>,
    unfiltered: &QueryStats,
) -> Vec<Row> {
    let name = match subset {
        Subset::All => "query",
        Subset::Tenth => "query, 10 % match",
        Subset::Thousandth => "query, 0.1 % match",
    };
    let (part, text) = match subset {
        Subset::All => (1.0, "Chroma's"),
        _ => (FILTERED_GOAL, "a fifth of Chroma's"),
    };
    let took = |what: &str, of: fn(&QueryStats) -> f64, goal: bool| Row {
        name: format!("{name}, {what}"),
        ours: Figure::seconds(of(ours)),
        rival: rival.map(|rival| Figure::seconds(of(rival))).into(),
        goal: rival.filter(|_| goal).map(|rival| Goal::at_most(of(ours), of(rival) / part, text)),
    };
    let mut rows = vec![
        took("p50", |answers| answers.p50_seconds, true),
        took("p99", |answers| answers.p99_seconds, false),
        took("CPU", |answers| answers.cpu_seconds, true),
        Row {
            name: format!("{name}, recall@10"),
            ours: Figure::Share(ours.recall),
            rival: rival.map(|rival| Figure::Share(rival.recall)).into(),
            goal: Some(Goal::at_least(ours.recall, RECALL_GOAL, "0.99")),
        },
    ];
    if subset != Subset::All {
        let times = ours.cpu_seconds / unfiltered.cpu_seconds;
        let theirs = Rival::None;
        rows.push(Row {
            name: format!("{name}, CPU vs. no filter"),
            ours: Figure::Times(times),
            rival: theirs,
            goal: Some(Goal::at_most(times, FILTER_COST_GOAL, "3 times")),
        });
    }
    rows
}

/// Mean times of new processes that answer once and exit.
struct ColdStart {
    processor: Duration,
    clock: Duration,
    without_import: Option<Duration>,
}

impl ColdStart {
    fn measure(
        times: usize,
        mut start: impl FnMut() -> Result<Option<ColdQueryReport>>,
    ) -> Result<Option<Self>> {
        let (started, before) = (Instant::now(), usage::reaped_children_time()?);
        let mut without_import = Vec::new();
        for _ in 0..times {
            let Some(asked) = start()? else { return Ok(None) };
            without_import.extend(asked.cpu_without_import_seconds);
        }
        let mean = without_import.iter().sum::<f64>() / without_import.len() as f64;
        Ok(Some(Self {
            processor: (usage::reaped_children_time()? - before) / times as u32,
            clock: started.elapsed() / times as u32,
            without_import: mean.is_finite().then(|| Duration::from_secs_f64(mean)),
        }))
    }
}
