//! Questions: to a new process each, and to one that lives on.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use isolith_engine::{CodeSearch, Engine, EngineOptions, Life, StorePlace};
use serde::{Deserialize, Serialize};

use super::Repository;
use super::front::Order;
use super::processes::{self, Used};
use super::semble::Content;
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::store::usage;
use crate::table::Beside;

/// Such as may be asked of any code: questions, words and names.
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

/// What answering took, on either side.
#[derive(Serialize, Deserialize)]
pub(super) struct Answered {
    p50_seconds: f64,
    p99_seconds: f64,
    /// Of one question.
    cpu_seconds: f64,
}

impl Repository {
    /// Adds rows beside semble; returns those beside ripgrep.
    pub(super) fn search(&mut self, rows: &mut Vec<Beside>) -> Result<Vec<Beside>> {
        let (mut ours, mut semble, mut ripgrep) = (Vec::new(), Vec::new(), Vec::new());
        eprintln!("bench:   {}: {} questions to new processes", self.name, QUESTIONS.len());
        for question in QUESTIONS {
            ours.push(processes::run(self.isolith("search", &self.store()).arg(question))?.1);
            let command = self.semble.search(question, &self.code, Content::Code);
            semble.extend(self.semble.run(command));
            ripgrep.extend(self.grep(question));
        }
        let (cpu, wall) = medians(&ours).context("there were no questions")?;
        let goal = Some(Goal::at_most(cpu, COLD_GOAL));
        rows.push(row("search by a new process, CPU", cpu, medians(&semble).map(|it| it.0), goal));
        rows.push(row(
            "search by a new process, clock",
            wall,
            medians(&semble).map(|it| it.1),
            None,
        ));
        self.ask_resident(rows)?;
        let ripgrep = medians(&ripgrep);
        Ok(vec![
            row("search, CPU, beside ripgrep for its words", cpu, ripgrep.map(|it| it.0), None),
            row("search, clock, beside ripgrep for its words", wall, ripgrep.map(|it| it.1), None),
        ])
    }

    /// The longer words of a question as they are written. That none was found is fine.
    fn grep(&self, question: &str) -> Option<Used> {
        let mut command = self.semble.ripgrep();
        command.args(["--fixed-strings", "--ignore-case"]);
        for word in question.split(' ').filter(|word| word.len() > 3) {
            command.args(["-e", word]);
        }
        processes::run(command.arg(&self.code)).map(|(_, used)| used).ok()
    }

    fn ask_resident(&mut self, rows: &mut Vec<Beside>) -> Result<()> {
        let rounds = if self.quick { ROUNDS / 5 } else { ROUNDS };
        let order = Order::Ask { store: self.store(), rounds, program: self.program.clone() };
        let (ours, _): (Answered, Used) = processes::report(&mut self.front(&order)?)?;
        let questions = serde_json::to_string(&QUESTIONS)?;
        let (code, rounds) = (self.code.clone(), rounds.to_string());
        let arguments = [code.as_os_str(), questions.as_ref(), rounds.as_ref()];
        let semble: Option<Answered> = self.semble.phase("ask", arguments);
        for (name, of, goal) in [
            ("resident, p50", (|it| it.p50_seconds) as fn(&Answered) -> f64, true),
            ("resident, p99", |it| it.p99_seconds, false),
            ("resident, CPU", |it| it.cpu_seconds, true),
        ] {
            let took = Duration::from_secs_f64(of(&ours));
            let rival = semble.as_ref().map(|semble| Duration::from_secs_f64(of(semble)));
            rows.push(row(name, took, rival, goal.then(|| Goal::at_most(took, RESIDENT_GOAL))));
        }
        Ok(())
    }
}

/// Our side of a resident's questions.
pub(super) async fn ask(store: &Path, rounds: usize, program: PathBuf) -> Result<Answered> {
    let options =
        EngineOptions { life: Life::Server, program: Some(program), ..EngineOptions::default() };
    let engine = Engine::open(&StorePlace::unchecked(store), options)?;
    let mut took = Samples::default();
    let mut before = Duration::ZERO;
    // The first round does not count.
    for round in 0..=rounds {
        if round == 1 {
            took = Samples::default();
            before = usage::processor_time(Some(&engine))?;
        }
        for question in QUESTIONS {
            let found = engine.search_code(&CodeSearch::new(question, LIMIT)).await?;
            anyhow::ensure!(!found.hits.is_empty(), "nothing was found for {question:?}");
            took.push(found.took);
        }
    }
    let used = usage::processor_time(Some(&engine))? - before;
    engine.close().await;
    let at = |percent| took.percentile(percent).unwrap_or_default().as_secs_f64();
    Ok(Answered {
        p50_seconds: at(50),
        p99_seconds: at(99),
        cpu_seconds: used.as_secs_f64() / (rounds * QUESTIONS.len()) as f64,
    })
}

/// Processor and clock.
fn medians(runs: &[Used]) -> Option<(Duration, Duration)> {
    let cpu: Samples = runs.iter().map(|used| used.cpu).collect();
    let wall: Samples = runs.iter().map(|used| used.wall).collect();
    Some((cpu.percentile(50)?, wall.percentile(50)?))
}

fn row(name: &str, ours: Duration, rival: Option<Duration>, goal: Option<Goal>) -> Beside {
    let rival = Rival::from(rival.map(Figure::Took));
    Beside { name: name.to_owned(), ours: Figure::Took(ours), rival, goal }
}
