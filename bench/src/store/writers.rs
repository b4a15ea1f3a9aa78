//! Small durable writes, compared with Python's sqlite3.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use super::front::{GO, Phase, READY};
use super::report::{WriteSummary, WriteTimes};
use super::{front, report, run_phase};
use crate::figure::{Figure, Goal, Rival};
use crate::python::rival;
use crate::table::{Comparison, Row};

const PROCESSES: usize = 16;
const CALLERS: usize = 64;
/// The sync time of a disk can change tenfold within seconds, so the sides alternate, and so does
/// which of them goes first.
const ROUNDS: usize = 6;
const QUICK_ROUNDS: usize = 2;
const SECONDS: f64 = 3.0;

const RATE_GOAL: f64 = 2.0;
const LONGEST_GOAL: Duration = Duration::from_secs(1);

const NOTES: &str = "\
Each write is one record with a document, a number and 8 floats, acknowledged when it is
  durable (FULL). Isolith: each process is a front with its own workers, folding in the
  background. Python: WAL, synchronous=FULL, BEGIN IMMEDIATE, one table, timeout 10 s.
";

pub(super) fn compare(folder: &Path, quick: bool) -> Result<Comparison> {
    let rounds = if quick { QUICK_ROUNDS } else { ROUNDS };
    let many = run_rounds(folder, PROCESSES, rounds)?;
    let one = run_rounds(folder, 1, rounds)?;
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
            .map(|row| Row { rival: Rival::None, ..row }),
    );
    let ratios = |turns: &RoundTotals| {
        turns.ratios.iter().map(|ratio| format!(" {ratio:.2}")).collect::<String>()
    };
    let notes = format!(
        "{NOTES}Ratio of writes by round: {PROCESSES} processes{}; 1 process{}.\n",
        ratios(&many),
        ratios(&one)
    );
    let what = "measurement".to_owned();
    Ok(Comparison { what, rival: "Python sqlite3".to_owned(), rows, notes })
}

/// The totals of all rounds.
struct RoundTotals {
    ours: WriteSummary,
    python: Option<WriteSummary>,
    /// Our writes divided by Python's, for each round.
    ratios: Vec<f64>,
}

fn run_rounds(folder: &Path, processes: usize, rounds: usize) -> Result<RoundTotals> {
    let (mut ours, mut theirs) = (WriteTimes::default(), Some(WriteTimes::default()));
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
        // A rival that failed once is skipped.
        theirs = theirs.zip(their_round).map(|(mut all, round)| {
            all.add(round);
            all
        });
    }
    let seconds = SECONDS * rounds as f64;
    Ok(RoundTotals {
        ours: ours.summary(seconds).context("nothing was written")?,
        python: theirs.and_then(|waits| waits.summary(seconds)),
        ratios,
    })
}

fn describe(
    name: &str,
    ours: &WriteSummary,
    python: Option<&WriteSummary>,
    goals: bool,
) -> Vec<Row> {
    let figure = |of: fn(&WriteSummary) -> Figure| Rival::from(python.map(of));
    let longest = Duration::from_secs_f64(ours.longest_seconds);
    let faster = python.filter(|_| goals).map(|python| {
        Goal::at_least(ours.per_second, RATE_GOAL * python.per_second, "2 times Python's")
    });
    let took = |what: &str, of: fn(&WriteSummary) -> f64, goal| Row {
        name: format!("{name}, {what}"),
        ours: Figure::seconds(of(ours)),
        rival: Rival::from(python.map(|python| Figure::seconds(of(python)))),
        goal,
    };
    vec![
        Row {
            name: format!("{name}, writes"),
            ours: Figure::Rate(ours.per_second),
            rival: figure(|wrote| Figure::Rate(wrote.per_second)),
            goal: faster,
        },
        Row {
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
            goals.then(|| Goal::within(longest, LONGEST_GOAL)),
        ),
    ]
}

/// Starts all fronts, and lets them write at the same time once each has written a first record.
fn write(store: &Path, fronts: usize, callers: usize) -> Result<WriteTimes> {
    let (store, seconds) = (store.to_owned(), SECONDS);
    run_phase::<()>(&Phase::Prepare { store: store.clone() })?;
    let mut running = Vec::new();
    for front in 0..fronts {
        running.push(Front::start(&Phase::Write {
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
        writeln!(front.input, "{GO}")?;
    }
    let mut waits = WriteTimes::default();
    for front in running {
        waits.add(front.finish()?);
    }
    if let Some(why) = &waits.why {
        eprintln!("bench:   {} writes failed, the first with: {why}", waits.failures);
    }
    Ok(waits)
}

struct Front {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Front {
    fn start(phase: &Phase) -> Result<Self> {
        let mut command = front(phase)?;
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let input = child.stdin.take().context("a front has no input")?;
        let output = child.stdout.take().context("a front has no output")?;
        Ok(Self { child, input, output: BufReader::new(output) })
    }

    fn wait_until_ready(&mut self) -> Result<()> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        ensure!(line.trim() == READY, "a front could not write its first record");
        Ok(())
    }

    fn finish(mut self) -> Result<WriteTimes> {
        let mut line = String::new();
        self.output.read_line(&mut line)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "a front failed: {status}");
        Ok(serde_json::from_str(&line)?)
    }
}

fn python(database: &Path, processes: usize) -> Option<WriteTimes> {
    let python = std::env::var_os("BENCH_PYTHON").unwrap_or_else(|| "python3".into());
    let mut command = Command::new(python);
    command.arg(rival("sqlite_writers.py")).arg(database);
    command.arg(processes.to_string()).arg(SECONDS.to_string());
    let waits = report(command);
    if let Err(error) = &waits {
        eprintln!("bench: skipping Python's sqlite3: {error:#}");
    }
    waits.ok()
}
