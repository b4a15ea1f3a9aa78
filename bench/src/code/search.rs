//! Questions to a new process each, and to a long-lived process.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use isolith_engine::{CodeSearch, Engine, EngineOptions, Life, StorePlace};
use serde::{Deserialize, Serialize};

use super::Repository;
use super::front::Phase;
use super::processes::{self, Usage};
use super::semble::Content;
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::store::usage;
use crate::table::Row;

/// Questions that apply to any code.
pub(super) const QUESTIONS: [&str; 20] = [
    "where are errors handled",
    "how is the configuration loaded",
    "parse command line arguments",
    "read a file into a buffer",
    "retry after a timeout",
    "write the response to the client",
    "validate user input",
    "cache of computed values",
    "how are events dispatched to listeners",
    "convert a string to a number",
    "register a new handler",
    "close the connection and release resources",
    "compare two versions",
    "format a date for display",
    "what happens when a task is cancelled",
    "iterate over children of a node",
    "lock shared state between threads",
    "render a template",
    "resolve a path relative to the root",
    "test that an exception is raised",
];

const LIMIT: u32 = 10;
const ROUNDS: usize = 10;

const COLD_GOAL: Duration = Duration::from_millis(50);
const RESIDENT_GOAL: Duration = Duration::from_millis(5);

/// The times of a long-lived process, on either side.
#[derive(Serialize, Deserialize)]
pub(super) struct QueryTimes {
    p50_seconds: f64,
    p99_seconds: f64,
    /// Per question.
    cpu_seconds: f64,
}

impl Repository {
    /// Adds the rows for semble and returns those for ripgrep.
    pub(super) fn search(&mut self, rows: &mut Vec<Row>) -> Result<Vec<Row>> {
        let (mut ours, mut semble, mut ripgrep) = (Vec::new(), Vec::new(), Vec::new());
        eprintln!("bench:   {}: {} questions to new processes", self.name, QUESTIONS.len());
        for question in QUESTIONS {
            ours.push(processes::run(self.isolith("search", &self.store()).arg(question))?.1);
            let command = self.semble.search(question, &self.code, Content::Code);
            semble.extend(self.semble.run(command));
            ripgrep.extend(self.grep(question));
        }
        let (cpu, wall) = medians(&ours).context("no question was asked")?;
        let goal = Some(Goal::within(cpu, COLD_GOAL));
        rows.push(row("search by a new process, CPU", cpu, medians(&semble).map(|it| it.0), goal));
        rows.push(row(
            "search by a new process, wall",
            wall,
            medians(&semble).map(|it| it.1),
            None,
        ));
        self.ask_resident(rows)?;
        let ripgrep = medians(&ripgrep);
        Ok(vec![
            row("search, CPU, vs. ripgrep for its words", cpu, ripgrep.map(|it| it.0), None),
            row("search, wall, vs. ripgrep for its words", wall, ripgrep.map(|it| it.1), None),
        ])
    }

    /// Searches for the longer words of a question; `None` if there is no match.
    fn grep(&self, question: &str) -> Option<Usage> {
        let mut command = self.semble.ripgrep();
        command.args(["--fixed-strings", "--ignore-case"]);
        for word in question.split(' ').filter(|word| word.len() > 3) {
            command.args(["-e", word]);
        }
        processes::run(command.arg(&self.code)).map(|(_, used)| used).ok()
    }

    fn ask_resident(&mut self, rows: &mut Vec<Row>) -> Result<()> {
        let rounds = if self.quick { ROUNDS / 5 } else { ROUNDS };
        let phase = Phase::Ask { store: self.store(), rounds, program: self.program.clone() };
        let (ours, _): (QueryTimes, Usage) = processes::report(&mut self.front(&phase)?)?;
        let questions = serde_json::to_string(&QUESTIONS)?;
        let (code, rounds) = (self.code.clone(), rounds.to_string());
        let arguments = [code.as_os_str(), questions.as_ref(), rounds.as_ref()];
        let semble: Option<QueryTimes> = self.semble.phase("ask", arguments);
        for (name, of, goal) in [
            ("resident, p50", (|it| it.p50_seconds) as fn(&QueryTimes) -> f64, true),
            ("resident, p99", |it| it.p99_seconds, false),
            ("resident, CPU", |it| it.cpu_seconds, true),
        ] {
            let took = Duration::from_secs_f64(of(&ours));
            let rival = semble.as_ref().map(|semble| Duration::from_secs_f64(of(semble)));
            rows.push(row(name, took, rival, goal.then(|| Goal::within(took, RESIDENT_GOAL))));
        }
        Ok(())
    }
}

/// Asks a long-lived engine, which is our side of [`Repository::ask_resident`].
pub(super) async fn ask(store: &Path, rounds: usize, program: PathBuf) -> Result<QueryTimes> {
    let options =
        EngineOptions { life: Life::Server, program: Some(program), ..EngineOptions::default() };
    let engine = Engine::open(&StorePlace::unchecked(store), options)?;
    let mut took = Samples::default();
    let mut before = Duration::ZERO;
    // The first round is a warm-up.
    for round in 0..=rounds {
        if round == 1 {
            took = Samples::default();
            before = usage::cpu_time(Some(&engine))?;
        }
        for question in QUESTIONS {
            let found = engine.search_code(&CodeSearch::new(question, LIMIT)).await?;
            anyhow::ensure!(!found.hits.is_empty(), "no hits for {question:?}");
            took.push(found.took);
        }
    }
    let used = usage::cpu_time(Some(&engine))? - before;
    engine.close().await;
    let at = |percent| took.percentile(percent).unwrap_or_default().as_secs_f64();
    Ok(QueryTimes {
        p50_seconds: at(50),
        p99_seconds: at(99),
        cpu_seconds: used.as_secs_f64() / (rounds * QUESTIONS.len()) as f64,
    })
}

/// The medians of CPU and wall time.
fn medians(runs: &[Usage]) -> Option<(Duration, Duration)> {
    let cpu: Samples = runs.iter().map(|used| used.cpu).collect();
    let wall: Samples = runs.iter().map(|used| used.wall).collect();
    Some((cpu.percentile(50)?, wall.percentile(50)?))
}

fn row(name: &str, ours: Duration, rival: Option<Duration>, goal: Option<Goal>) -> Row {
    let rival = Rival::from(rival.map(Figure::Time));
    Row { name: name.to_owned(), ours: Figure::Time(ours), rival, goal }
}
