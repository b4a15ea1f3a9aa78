//! Latency of the MCP server: start, writes and searches of memory, compared with MemPalace and
//! with a bare commit on the same disk.

mod client;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::code::{process_tree, pss};
use crate::figure::{Figure, Goal, Rival};
use crate::rivals::python_with;
use crate::samples::Samples;
use crate::table::{Comparison, Row};
use client::Client;
use texts::Texts;

const NOTES: &str = "\
Medians of wall time. start: from starting the process to the answer to tools/list.
bare commit: inserts a text and 1 kB into a table of a SQLite file next to the store,
WAL and synchronous=FULL, alternating with the calls. idle memory: PSS of the server
and all its workers, 2 s after the last call.
";

/// Number of drawers in the store.
const DRAWERS: usize = 10_000;

/// How long a server is idle before its memory is measured.
const IDLE_TIME: Duration = Duration::from_secs(2);

/// How much longer than a bare commit a call may take.
const COMMIT_OVERHEAD: Duration = Duration::from_millis(3);

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
    let scratch = tempfile::Builder::new().prefix("bench-agents-").tempdir_in(beside)?;
    let rounds = if quick { 30 } else { 200 };
    let ours = ours(&program, scratch.path(), rounds)?;
    let rival = python_with("mempalace").and_then(|python| {
        let measured = mempalace(&python, scratch.path(), rounds.min(50));
        measured.inspect_err(|error| eprintln!("bench: skipping MemPalace: {error:#}")).ok()
    });
    Ok(vec![compare(&ours, rival.as_ref())])
}

/// The figures of one side; `None` if not measured.
#[derive(Default)]
struct McpFigures {
    start: Option<Duration>,
    add: Option<Duration>,
    search: Option<Duration>,
    idle_bytes: Option<u64>,
}

/// Our figures, with those that have no counterpart.
struct OurFigures {
    figures: McpFigures,
    fact: Duration,
    commit: Duration,
}

fn ours(program: &Path, scratch: &Path, rounds: usize) -> Result<OurFigures> {
    let home = scratch.join("isolith");
    std::fs::create_dir(&home)?;
    let server = || {
        let mut command = Command::new(program);
        command.arg("mcp").current_dir(&home).env("XDG_DATA_HOME", &home);
        command
    };
    let mut texts = Texts::new(1);
    let drawers = home.join("drawers.jsonl");
    std::fs::write(&drawers, texts.drawers(DRAWERS))?;
    let mut import = Command::new(program);
    import.args(["memory", "import", "--format", "drawers", "--quiet"]).arg(&drawers);
    ensure!(import.env("XDG_DATA_HOME", &home).output()?.status.success(), "{import:?} failed");
    let start = starts(server, rounds.min(50))?;
    let bare = BareDatabase::open(&home.join("bare.sqlite"))?;
    let mut client = Client::start(&mut server())?;
    client.call("memory_add", &texts.drawer("memory_add"))?;
    let (mut adds, mut facts, mut commits) = Default::default();
    for round in 0..rounds {
        timed(&mut adds, || client.call("memory_add", &texts.drawer("memory_add")))?;
        timed(&mut commits, || bare.commit(&texts.sentence()))?;
        let fact = json!({ "subject": "bench", "predicate": "ran", "object": round.to_string() });
        timed(&mut facts, || client.call("fact_add", &fact))?;
    }
    let search = searches(&mut client, "memory_search", &mut texts, rounds)?;
    let figures = McpFigures {
        start: Some(start),
        add: Some(median(&adds)?),
        search: Some(search),
        idle_bytes: Some(idle(&client)),
    };
    Ok(OurFigures { figures, fact: median(&facts)?, commit: median(&commits)? })
}

/// Measures MemPalace as far as it works: it downloads its model on first use. It is far too slow
/// at adding to get as many drawers.
fn mempalace(python: &Path, scratch: &Path, rounds: usize) -> Result<McpFigures> {
    let palace = scratch.join("palace");
    std::fs::create_dir(&palace)?;
    let server = || {
        let mut command = Command::new(python);
        command.args(["-m", "mempalace.mcp_server", "--palace"]).arg(&palace).env("HOME", &palace);
        command
    };
    let mut figures = McpFigures { start: Some(starts(server, 3)?), ..McpFigures::default() };
    let mut texts = Texts::new(1);
    let mut client = Client::start(&mut server())?;
    let mut add = |client: &mut Client| {
        let added = client.call("mempalace_add_drawer", &texts.drawer("mempalace_add_drawer"))?;
        let answer = added["content"][0]["text"].as_str().unwrap_or_default();
        ensure!(!answer.contains("\"success\": false"), "it cannot add drawers: {answer}");
        Ok(())
    };
    if let Err(error) = add(&mut client) {
        eprintln!("bench: MemPalace starts, but {error:#}");
        return Ok(figures);
    }
    let mut adds = Samples::default();
    for _ in 0..rounds {
        timed(&mut adds, || add(&mut client))?;
    }
    figures.add = Some(median(&adds)?);
    figures.search = Some(searches(&mut client, "mempalace_search", &mut texts, rounds)?);
    figures.idle_bytes = Some(idle(&client));
    Ok(figures)
}

fn compare(ours: &OurFigures, rival: Option<&McpFigures>) -> Comparison {
    let OurFigures { figures, fact, commit } = ours;
    let took = |of: fn(&McpFigures) -> Option<Duration>| {
        (of(figures).unwrap_or_default(), Rival::from(rival.and_then(of).map(Figure::Time)))
    };
    let row = |name: &str, ours, rival, goal| Row { name: name.to_owned(), ours, rival, goal };
    let timed = |name: &str, (ours, rival): (Duration, Rival), limit: Duration, goal: &str| {
        row(name, Figure::Time(ours), rival, Some(Goal::within(ours, limit).named(goal)))
    };
    let bytes = figures.idle_bytes.unwrap_or_default();
    let idle = Goal::at_most(bytes as f64, 60e6, "60 MB");
    let of_rival = Rival::from(rival.and_then(|figures| figures.idle_bytes).map(Figure::Bytes));
    let ms = Duration::from_millis;
    let rows = vec![
        timed("start to tools/list", took(|it| it.start), ms(20), "20 ms"),
        timed("memory_add", took(|it| it.add), *commit + COMMIT_OVERHEAD, "bare commit + 3 ms"),
        row("fact_add", Figure::Time(*fact), Rival::None, None),
        row("bare commit", Figure::Time(*commit), Rival::None, None),
        timed("memory_search", took(|it| it.search), ms(5), "5 ms"),
        row("idle memory", Figure::Bytes(bytes), of_rival, Some(idle)),
    ];
    let what = format!("MCP, {DRAWERS} drawers");
    Comparison { what, rival: "MemPalace".to_owned(), rows, notes: NOTES.to_owned() }
}

fn starts(server: impl Fn() -> Command, rounds: usize) -> Result<Duration> {
    let mut samples = Samples::default();
    for _ in 0..rounds {
        let started = Instant::now();
        let mut client = Client::start(&mut server())?;
        client.request("tools/list", &json!({}))?;
        samples.push(started.elapsed());
    }
    median(&samples)
}

fn searches(client: &mut Client, tool: &str, texts: &mut Texts, rounds: usize) -> Result<Duration> {
    let mut samples = Samples::default();
    for _ in 0..rounds {
        let question = json!({ "query": texts.question(), "limit": 10 });
        timed(&mut samples, || client.call(tool, &question))?;
    }
    median(&samples)
}

fn timed<T>(samples: &mut Samples, work: impl FnOnce() -> Result<T>) -> Result<()> {
    let started = Instant::now();
    work()?;
    samples.push(started.elapsed());
    Ok(())
}

fn median(samples: &Samples) -> Result<Duration> {
    samples.percentile(50).context("nothing was measured")
}

fn idle(client: &Client) -> u64 {
    std::thread::sleep(IDLE_TIME);
    process_tree(client.pid()).into_iter().filter_map(pss).sum()
}

/// A plain SQLite file.
struct BareDatabase(Connection);

impl BareDatabase {
    fn open(path: &Path) -> Result<Self> {
        let file = Connection::open(path)?;
        file.pragma_update(None, "journal_mode", "WAL")?;
        file.pragma_update(None, "synchronous", "FULL")?;
        file.execute_batch("CREATE TABLE note (text TEXT, vector BLOB)")?;
        Ok(Self(file))
    }

    fn commit(&self, text: &str) -> Result<()> {
        self.0.execute("INSERT INTO note VALUES (?1, ?2)", (text, [7; 1024]))?;
        Ok(())
    }
}

/// The arguments of the tool that adds a drawer.
fn drawer_arguments(tool: &str, text: &str, room: &str) -> Value {
    match tool {
        "memory_add" => json!({ "text": text, "wing": "bench", "room": room }),
        _ => json!({ "content": text, "wing": "bench", "room": room }),
    }
}
