//! The graph beside Kuzu.
//!
//! Both load the same files and answer the same questions; that their answers agree is
//! checked. Every phase of either side is a process of its own that reports in JSON; the
//! phases of both alternate. All files are in one folder beside this program, on the same
//! disk, and are removed at the end.

mod data;
pub(crate) mod front;
mod report;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;

use crate::code::{Used, report as report_of, run};
use crate::figure::{Figure, Goal};
use crate::python::rival;
use crate::rivals::python_with;
use crate::samples::Samples;
use crate::table::{Beside, Comparison};
use data::Shape;
use front::Order;
use report::{Answers, Kind, Spent};

/// How often all questions are asked, by a new process each time.
const ROUNDS: usize = 3;
const COLD_STARTS: usize = 10;

/// A query may use so much of the processor's time, beside Kuzu.
const QUERY_PART: f64 = 10.0;
/// The same of a command line that has to start first.
const COLD_PART: f64 = 5.0;

const NOTES: &str = "\
CPU: user + system of the front and all its workers; of the whole process for Kuzu, whose
queries have their keys written into them, as parameters make them slower. load: the CSV
files, as `isolith graph import` does it and by COPY there; insert: each a durable
transaction. command line: a new process, from start to end; Kuzu's is Python.
";

pub(crate) fn measure(quick: bool, program: Option<PathBuf>) -> Result<Vec<Comparison>> {
    let bench = std::env::current_exe()?;
    let beside = bench.parent().context("the program is in no folder")?;
    let program = program.unwrap_or_else(|| beside.join("isolith"));
    ensure!(program.is_file(), "{} is missing: --program names another", program.display());
    // Not in the system's folder for temporary files, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-graph-").tempdir_in(beside)?;
    let part = if quick { 10 } else { 1 };
    let shape = Shape { nodes: 100_000 / part, edges: 500_000 / part };
    let data = scratch.path().join("data");
    data::make(&data, shape)?;
    let mut sides = Sides {
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

struct Sides {
    data: PathBuf,
    ours: PathBuf,
    program: PathBuf,
    kuzu: Kuzu,
}

/// Kuzu in a process for each phase; not available once it has failed.
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

    fn obey<T: DeserializeOwned>(&mut self, phase: &str, data: &Path) -> Option<(T, Used)> {
        eprintln!("bench:   Kuzu: {phase}");
        let report = report_of(&mut self.command(phase, data)?);
        if let Err(error) = &report {
            eprintln!("bench: Kuzu cannot take part: {error:#}");
            self.python = None;
        }
        report.ok()
    }
}

impl Sides {
    fn load(&mut self) -> Result<Vec<Beside>> {
        let (data, store) = (self.data.clone(), self.ours.clone());
        let ours: Spent = obey(&Order::Load { data, store })?;
        let kuzu = self.kuzu.obey("load", &self.data).map(|it| it.0);
        Ok(spent_rows("load", ours, kuzu))
    }

    fn ask(&mut self, rounds: usize) -> Result<Vec<Beside>> {
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..rounds {
            let (data, store) = (self.data.clone(), self.ours.clone());
            let answers: BTreeMap<Kind, Answers> = obey(&Order::Ask { data, store })?;
            ours.push(answers);
            let answers = self.kuzu.obey("ask", &self.data);
            theirs.extend(answers.map(|it: (BTreeMap<Kind, Answers>, Used)| it.0));
        }
        let mut rows = Vec::new();
        for kind in Kind::ALL {
            let of = |all: &[BTreeMap<Kind, Answers>]| {
                let answers = all.iter().filter_map(|answers| answers.get(&kind).cloned());
                answers.collect::<Vec<_>>()
            };
            rows.extend(compare(kind, &of(&ours), &of(&theirs))?);
        }
        Ok(rows)
    }

    fn insert(&mut self) -> Result<Vec<Beside>> {
        let (data, store) = (self.data.clone(), self.ours.clone());
        let ours: Spent = obey(&Order::Insert { data, store })?;
        let kuzu = self.kuzu.obey("insert", &self.data).map(|it| it.0);
        Ok(spent_rows("insert, durable", ours, kuzu))
    }

    /// The processor time of whole processes, from start to end.
    fn cold(&mut self, times: usize) -> Result<Vec<Beside>> {
        let key = data::questions(&self.data)?.keys[0];
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..times {
            let mut command = Command::new(&self.program);
            command.args(["graph", "query", "--json", "--quiet", "--store"]).arg(&self.ours);
            command.arg(Kind::Point.cypher()).args(["--param", &format!("k={key}")]);
            let (answer, used) = run(&mut command)?;
            let answer: serde_json::Value = serde_json::from_slice(&answer)?;
            ours.push(used);
            let Some((rows, used)) = self.kuzu.obey::<serde_json::Value>("cold", &self.data) else {
                continue;
            };
            ensure!(answer["rows"] == rows, "{} and {rows} differ", answer["rows"]);
            theirs.push(used);
        }
        let row = |name: &str, of: fn(&Used) -> Duration, goal: bool| {
            let median = |all: &[Used]| all.iter().map(of).collect::<Samples>().percentile(50);
            let (ours, theirs) = (median(&ours).unwrap_or_default(), median(&theirs));
            let limit = theirs.filter(|_| goal).map(|theirs| theirs.as_secs_f64() / COLD_PART);
            Beside {
                name: name.to_owned(),
                ours: Figure::Took(ours),
                rival: theirs.map(Figure::Took).into(),
                goal: limit.map(|limit| Goal::no_more(ours.as_secs_f64(), limit, "a fifth")),
            }
        };
        Ok(vec![
            row("command line, CPU", |used| used.cpu, true),
            row("command line, clock", |used| used.wall, false),
        ])
    }
}

/// Has a front do its phase.
fn obey<T: DeserializeOwned>(order: &Order) -> Result<T> {
    eprintln!("bench:   isolith: {order:?}");
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(front::ARGUMENT).arg(serde_json::to_string(order)?);
    Ok(report_of(&mut command).with_context(|| format!("{order:?} failed"))?.0)
}

/// A kind of questions: the medians of all rounds. All must have given the same answers.
fn compare(kind: Kind, ours: &[Answers], theirs: &[Answers]) -> Result<Vec<Beside>> {
    let mut all = ours.iter().chain(theirs).map(|answers| (answers.rows, answers.sum));
    let first = all.next().context("nothing was asked")?;
    for other in all {
        ensure!(other == first, "{}: the answers differ, {first:?} and {other:?}", kind.name());
    }
    let row = |what: &str, of: fn(&Answers) -> f64, goal: bool| {
        let median = |all: &[Answers]| {
            let samples: Samples =
                all.iter().map(|answers| Duration::from_secs_f64(of(answers))).collect();
            samples.percentile(50).map(|median| median.as_secs_f64())
        };
        let (ours, theirs) = (median(ours).unwrap_or_default(), median(theirs));
        let limit = theirs.filter(|_| goal).map(|theirs| theirs / QUERY_PART);
        Beside {
            name: format!("{}, {what}", kind.name()),
            ours: Figure::seconds(ours),
            rival: theirs.map(Figure::seconds).into(),
            goal: limit.map(|limit| Goal::no_more(ours, limit, "a tenth")),
        }
    };
    Ok(vec![row("CPU", |it| it.cpu_seconds, true), row("p50", |it| it.p50_seconds, false)])
}

fn spent_rows(name: &str, ours: Spent, theirs: Option<Spent>) -> Vec<Beside> {
    let row = |what: &str, of: fn(Spent) -> f64, goal: bool| Beside {
        name: format!("{name}, {what}"),
        ours: Figure::seconds(of(ours)),
        rival: theirs.map(|theirs| Figure::seconds(of(theirs))).into(),
        goal: theirs.filter(|_| goal).map(|theirs| Goal::no_more(of(ours), of(theirs), "Kuzu's")),
    };
    vec![row("CPU", |it| it.cpu_seconds, true), row("clock", |it| it.wall_seconds, false)]
}
