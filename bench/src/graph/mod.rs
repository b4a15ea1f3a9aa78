//! The graph compared with Kuzu.
//!
//! Both load the same files and run the same queries, and their answers must agree. Every phase of
//! either side is a separate process that reports in JSON, and the sides alternate. All files are
//! in one folder next to this program and are removed at the end.

mod data;
pub(crate) mod front;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use crate::code::{Usage, report as report_of, run};
use crate::figure::{Figure, Goal};
use crate::python::rival;
use crate::rivals::python_with;
use crate::samples::Samples;
use crate::table::{Comparison, Row};
use data::GraphSize;
use front::Phase;
use report::{QueryKind, QueryStats, TimeSpent};

/// How often all queries are run, by a new process each time.
const ROUNDS: usize = 3;
const COLD_STARTS: usize = 10;

/// A query should use this many times less CPU time than Kuzu's.
const QUERY_GOAL: f64 = 10.0;
/// The same for a command line, including its start.
const COLD_GOAL: f64 = 5.0;

const NOTES: &str = "\
CPU: user + system time of the front and all its workers, and of the whole process for
Kuzu. Kuzu's queries contain their keys as literals, because parameters make them slower.
load: the CSV files, with `isolith graph import` and COPY. insert: one durable transaction
each. command line: a new process, from start to exit; Kuzu's is Python.
";

pub(crate) fn measure(quick: bool, program: Option<PathBuf>) -> Result<Vec<Comparison>> {
    let bench = std::env::current_exe()?;
    let beside = bench.parent().context("cannot find the folder of this program")?;
    let program = program.unwrap_or_else(|| beside.join("isolith"));
    ensure!(
        program.is_file(),
        "{} does not exist; pass its path with --program",
        program.display()
    );
    // Not in the system's temporary folder, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-graph-").tempdir_in(beside)?;
    let part = if quick { 10 } else { 1 };
    let shape = GraphSize { nodes: 100_000 / part, edges: 500_000 / part };
    let data = scratch.path().join("data");
    data::generate(&data, shape)?;
    let mut sides = GraphBench {
        data,
        ours: scratch.path().join("isolith"),
        program,
        kuzu: Kuzu { python: python_with("kuzu"), store: scratch.path().join("kuzu") },
    };
    let mut rows = sides.load()?;
    let asked = sides.ask(if quick { 1 } else { ROUNDS })?;
    rows.splice(0..0, asked);
    rows.extend(sides.insert()?);
    rows.extend(sides.cold(if quick { 2 } else { COLD_STARTS })?);
    let what = format!("graph, {} nodes, {} edges", shape.nodes, shape.edges);
    Ok(vec![Comparison { what, rival: "Kuzu".to_owned(), rows, notes: NOTES.to_owned() }])
}

struct GraphBench {
    data: PathBuf,
    ours: PathBuf,
    program: PathBuf,
    kuzu: Kuzu,
}

/// Kuzu, in a new process for each phase; skipped once it has failed.
struct Kuzu {
    python: Option<PathBuf>,
    store: PathBuf,
}

impl Kuzu {
    fn command(&self, phase: &str, data: &Path) -> Option<Command> {
        let mut command = Command::new(self.python.as_ref()?);
        command.arg(rival("kuzu_graph.py")).arg(phase).arg(data).arg(&self.store);
        Some(command)
    }

    fn run_phase<T: DeserializeOwned>(&mut self, phase: &str, data: &Path) -> Option<(T, Usage)> {
        eprintln!("bench:   Kuzu: {phase}");
        let report = report_of(&mut self.command(phase, data)?);
        if let Err(error) = &report {
            eprintln!("bench: skipping Kuzu: {error:#}");
            self.python = None;
        }
        report.ok()
    }
}

impl GraphBench {
    fn load(&mut self) -> Result<Vec<Row>> {
        let (data, store) = (self.data.clone(), self.ours.clone());
        let ours: TimeSpent = run_phase(&Phase::Load { data, store })?;
        let kuzu = self.kuzu.run_phase("load", &self.data).map(|it| it.0);
        Ok(spent_rows("load", ours, kuzu))
    }

    fn ask(&mut self, rounds: usize) -> Result<Vec<Row>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (data, store) = (self.data.clone(), self.ours.clone());
            let answers: BTreeMap<QueryKind, QueryStats> = run_phase(&Phase::Ask { data, store })?;
            ours.push(answers);
            let answers = self.kuzu.run_phase("ask", &self.data);
            theirs.extend(answers.map(|it: (BTreeMap<QueryKind, QueryStats>, Usage)| it.0));
        }
        let mut rows = Vec::new();
        for kind in QueryKind::ALL {
            let of = |all: &[BTreeMap<QueryKind, QueryStats>]| {
                let answers = all.iter().filter_map(|answers| answers.get(&kind).cloned());
                answers.collect::<Vec<_>>()
            };
            rows.extend(compare(kind, &of(&ours), &of(&theirs))?);
        }
        Ok(rows)
    }

    fn insert(&mut self) -> Result<Vec<Row>> {
        let (data, store) = (self.data.clone(), self.ours.clone());
        let ours: TimeSpent = run_phase(&Phase::Insert { data, store })?;
        let kuzu = self.kuzu.run_phase("insert", &self.data).map(|it| it.0);
        Ok(spent_rows("insert, durable", ours, kuzu))
    }

    /// Times of whole processes, from start to exit.
    fn cold(&mut self, times: usize) -> Result<Vec<Row>> {
        let key = data::query_keys(&self.data)?.keys[0];
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let mut command = Command::new(&self.program);
            command.args(["graph", "query", "--json", "--quiet", "--store"]).arg(&self.ours);
            command.arg(QueryKind::Point.cypher()).args(["--param", &format!("k={key}")]);
            let (answer, used) = run(&mut command)?;
            let answer: serde_json::Value = serde_json::from_slice(&answer)?;
            ours.push(used);
            let Some((rows, used)) = self.kuzu.run_phase::<serde_json::Value>("cold", &self.data)
            else {
                continue;
            };
            ensure!(answer["rows"] == rows, "{} and {rows} differ", answer["rows"]);
            theirs.push(used);
        }
        let row = |name: &str, of: fn(&Usage) -> Duration, goal: bool| {
            let median = |all: &[Usage]| all.iter().map(of).collect::<Samples>().percentile(50);
            let (ours, theirs) = (median(&ours).unwrap_or_default(), median(&theirs));
            let limit = theirs.filter(|_| goal).map(|theirs| theirs.as_secs_f64() / COLD_GOAL);
            Row {
                name: name.to_owned(),
                ours: Figure::Time(ours),
                rival: theirs.map(Figure::Time).into(),
                goal: limit.map(|limit| Goal::at_most(ours.as_secs_f64(), limit, "a fifth")),
            }
        };
        Ok(vec![
            row("command line, CPU", |used| used.cpu, true),
            row("command line, wall", |used| used.wall, false),
        ])
    }
}

/// Runs a phase of our side in a new process.
fn run_phase<T: DeserializeOwned>(phase: &Phase) -> Result<T> {
    eprintln!("bench:   isolith: {phase:?}");
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(front::PHASE_FLAG).arg(serde_json::to_string(phase)?);
    Ok(report_of(&mut command).with_context(|| format!("{phase:?} failed"))?.0)
}

/// The rows of a kind of query: medians of all rounds. Fails unless all answers agree.
fn compare(kind: QueryKind, ours: &[QueryStats], theirs: &[QueryStats]) -> Result<Vec<Row>> {
    let mut all = ours.iter().chain(theirs).map(|answers| (answers.rows, answers.sum));
    let first = all.next().context("no query was run")?;
    for other in all {
        ensure!(other == first, "{}: answers differ: {first:?} and {other:?}", kind.name());
    }
    let row = |what: &str, of: fn(&QueryStats) -> f64, goal: bool| {
        let median = |all: &[QueryStats]| {
            let samples: Samples =
                all.iter().map(|answers| Duration::from_secs_f64(of(answers))).collect();
            samples.percentile(50).map(|median| median.as_secs_f64())
        };
        let (ours, theirs) = (median(ours).unwrap_or_default(), median(theirs));
        let limit = theirs.filter(|_| goal).map(|theirs| theirs / QUERY_GOAL);
        Row {
            name: format!("{}, {what}", kind.name()),
            ours: Figure::seconds(ours),
            rival: theirs.map(Figure::seconds).into(),
            goal: limit.map(|limit| Goal::at_most(ours, limit, "a tenth")),
        }
    };
    Ok(vec![row("CPU", |it| it.cpu_seconds, true), row("p50", |it| it.p50_seconds, false)])
}

fn spent_rows(name: &str, ours: TimeSpent, theirs: Option<TimeSpent>) -> Vec<Row> {
    let row = |what: &str, of: fn(TimeSpent) -> f64, goal: bool| Row {
        name: format!("{name}, {what}"),
        ours: Figure::seconds(of(ours)),
        rival: theirs.map(|theirs| Figure::seconds(of(theirs))).into(),
        goal: theirs.filter(|_| goal).map(|theirs| Goal::at_most(of(ours), of(theirs), "Kuzu's")),
    };
    vec![row("CPU", |it| it.cpu_seconds, true), row("wall", |it| it.wall_seconds, false)]
}
