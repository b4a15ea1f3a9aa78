//! Small durable writes, beside Python's sqlite3.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::front::{GO, Order, READY};
use super::report::{Waits, Wrote};
use super::{front, obey, report};
use crate::figure::{Figure, Goal, Rival};
use crate::python::rival;
use crate::table::{Beside, Comparison};

const PROCESSES: usize = 16;
const CALLERS: usize = 64;
/// A disk may take ten times as long to sync as it did a few seconds before, so the
/// sides take turns, and the first turn changes sides.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 2;
const SECONDS: f64 = 3.0;

const RATE_GOAL: f64 = 2.0;
const LONGEST_GOAL: Duration = Duration::from_secs(1);

const NOTES: &str = "\
Each write is one record with a document, a number and 8 floats, acknowledged when it is
  durable (FULL). Isolith: each process is a front with its own workers, folding in the
  background. Python: WAL, synchronous=FULL, BEGIN IMMEDIATE, one table, timeout of 10 s.
";

pub(super) fn compare(folder: &Path, quick: bool) -> Result<Comparison> {
    let rounds = if quick { QUICK_ROUNDS } else { ROUNDS };
    let many = take_turns(folder, PROCESSES, rounds)?;
    let one = take_turns(folder, 1, rounds)?;
    let mut rows = Vec::new();
    let name = format!("{PROCESSES} processes");
    rows.extend(describe(&name, &many.ours, many.python.as_ref(), true));
    rows.extend(describe("1 process", &one.ours, one.python.as_ref(), false));
    let grouped = write(&folder.join("writers-grouped"), 1, CALLERS)?;
    let grouped = grouped.summary(SECONDS).context("nothing was written")?;
    let name = format!("1 process, {CALLERS} callers");
    rows.extend(
        describe(&name, &grouped, None, false)
            .into_iter()
            .map(|row| Beside { rival: Rival::None, ..row }),
    );
    let ratios =
        |turns: &Turns| turns.ratios.iter().map(|ratio| format!(" {ratio:.2}")).collect::<String>();
    let notes = format!(
        "{NOTES}Ratios of writes, round by round: {PROCESSES} processes{}; 1 process{}.\n",
        ratios(&many),
        ratios(&one)
    );
    let what = "measurement".to_owned();
    Ok(Comparison { what, rival: "Python sqlite3".to_owned(), rows, notes })
}

/// All rounds together.
struct Turns {
    ours: Wrote,
    python: Option<Wrote>,
    /// Our writes divided by Python's, for each round.
    ratios: Vec<f64>,
}

fn take_turns(folder: &Path, processes: usize, rounds: usize) -> Result<Turns> {
    let (mut ours, mut theirs) = (Waits::default(), Some(Waits::default()));
    let mut ratios = Vec::new();
    for round in 0..rounds {
        let store = folder.join(format!("writers-{processes}-{round}"));
        let database = store.with_extension("sqlite");
        let (our_round, their_round) = if round % 2 == 0 {
            let our_round = write(&store, processes, 1)?;
            (our_round, python(&database, processes))
        } else {
            let their_round = python(&database, processes);
            (write(&store, processes, 1)?, their_round)
        };
        if let Some(their_round) = &their_round {
            ratios.push(our_round.done() as f64 / their_round.done() as f64);
        }
        ours.add(our_round);
        // A rival that failed once has no figures.
        theirs = theirs.zip(their_round).map(|(mut all, round)| {
            all.add(round);
            all
        });
    }
    let seconds = SECONDS * rounds as f64;
    Ok(Turns {
        ours: ours.summary(seconds).context("nothing was written")?,
        python: theirs.and_then(|waits| waits.summary(seconds)),
        ratios,
    })
}

fn describe(name: &str, ours: &Wrote, python: Option<&Wrote>, goals: bool) -> Vec<Beside> {
    let figure = |of: fn(&Wrote) -> Figure| Rival::from(python.map(of));
    let longest = Duration::from_secs_f64(ours.longest_seconds);
    let faster = python.filter(|_| goals).map(|python| {
        Goal::no_less(ours.per_second, RATE_GOAL * python.per_second, "2 times Python's")
    });
    let took = |what: &str, of: fn(&Wrote) -> f64, goal| Beside {
        name: format!("{name}, {what}"),
        ours: Figure::seconds(of(ours)),
        rival: Rival::from(python.map(|python| Figure::seconds(of(python)))),
        goal,
    };
    vec![
        Beside {
            name: format!("{name}, writes"),
            ours: Figure::Rate(ours.per_second),
            rival: figure(|wrote| Figure::Rate(wrote.per_second)),
            goal: faster,
        },
        Beside {
            name: format!("{name}, failures"),
            ours: Figure::Count(ours.failures),
            rival: figure(|wrote| Figure::Count(wrote.failures)),
            goal: goals.then(|| Goal::zero(ours.failures)),
        },
        took("wait p50", |wrote| wrote.p50_seconds, None),
        took("wait p99", |wrote| wrote.p99_seconds, None),
        took(
            "longest wait",
            |wrote| wrote.longest_seconds,
            goals.then(|| Goal::at_most(longest, LONGEST_GOAL)),
        ),
    ]
}

/// All fronts start at the same time, once each of them has written a first record.
fn write(store: &Path, fronts: usize, callers: usize) -> Result<Waits> {
    let (store, seconds) = (store.to_owned(), SECONDS);
    obey::<()>(&Order::Prepare { store: store.clone() })?;
    let mut running = Vec::new();
    for front in 0..fronts {
        running.push(Front::start(&Order::Write {
            store: store.clone(),
            front,
            callers,
            seconds,
        })?);
    }
    for front in &mut running {
        front.wait_until_ready()?;
    }
    for front in &mut running {
        writeln!(front.orders, "{GO}")?;
    }
    let mut waits = Waits::default();
    for front in running {
        waits.add(front.finish()?);
    }
    if let Some(why) = &waits.why {
        eprintln!("bench:   {} writes failed, the first: {why}", waits.failures);
    }
    Ok(waits)
}

struct Front {
    child: Child,
    orders: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Front {
    fn start(order: &Order) -> Result<Self> {
        let mut command = front(order)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let orders = child.stdin.take().context("a front has no input")?;
        let answers = child.stdout.take().context("a front has no output")?;
        Ok(Self { child, orders, answers: BufReader::new(answers) })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        ensure!(line.trim() == READY, "a front could not write its first record");
        Ok(())
    }

    fn finish(mut self) -> Result<Waits> {
        let mut line = String::new();
        self.answers.read_line(&mut line)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "a front failed: {status}");
        Ok(serde_json::from_str(&line)?)
    }
}

fn python(database: &Path, processes: usize) -> Option<Waits> {
    let python = std::env::var_os("BENCH_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.arg(rival("sqlite_writers.py")).arg(database);
    command.arg(processes.to_string()).arg(SECONDS.to_string());
    let waits = report(command);
    if let Err(error) = &waits {
        eprintln!("bench: Python's sqlite3 cannot take part: {error:#}");
    }
    waits.ok()
}
