//! What agents wait for: the MCP server's start, remembering and recalling, beside
//! MemPalace and beside a bare commit on the same disk.

mod client;
mod texts;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rusqlite::Connection;
use serde_json::{Value, json};

use crate::code::{family, pss};
use crate::figure::{Figure, Goal, Rival};
use crate::rivals::python_with;
use crate::samples::Samples;
use crate::table::{Beside, Comparison};
use client::Client;
use texts::Texts;

const NOTES: &str = "\
All by the clock, medians. start: from starting the process to the answer to tools/list.
bare commit: one row of a text and a kilobyte into a table of a SQLite file beside the
store, WAL and synchronous=FULL, in turns with the calls. idle memory: PSS of the server
and all its workers, 2 s after the last call.
";

/// How many drawers there are when memory is searched.
const DRAWERS: usize = 10_000;

/// So long a server is left alone before its memory is looked at.
const IDLE: Duration = Duration::from_secs(2);

/// What a call may take beyond a commit.
const BEYOND_COMMIT: Duration = Duration::from_millis(3);

pub(crate) fn measure(quick: bool, program: Option<PathBuf>) -> Result<Vec<Comparison>> {
    let bench = std::env::current_exe()?;
    let beside = bench.parent().context("the program is in no folder")?;
    let program = program.unwrap_or_else(|| beside.join("isolith"));
    ensure!(program.is_file(), "{} is missing: --program names another", program.display());
    // Not in the system's folder for temporary files, which may be in memory.
    let scratch = tempfile::Builder::new().prefix("bench-agents-").tempdir_in(beside)?;
    let rounds = if quick { 30 } else { 200 };
    let ours = ours(&program, scratch.path(), rounds)?;
    let rival = python_with("mempalace").and_then(|python| {
        let measured = mempalace(&python, scratch.path(), rounds.min(50));
        measured.inspect_err(|error| eprintln!("bench: MemPalace cannot take part: {error:#}")).ok()
    });
    Ok(vec![compare(&ours, rival.as_ref())])
}

/// What was seen of one side.
#[derive(Default)]
struct Seen {
    start: Option<Duration>,
    add: Option<Duration>,
    search: Option<Duration>,
    idle_bytes: Option<u64>,
}

/// What was seen of ours alone.
struct Own {
    seen: Seen,
    fact: Duration,
    commit: Duration,
}

fn ours(program: &Path, scratch: &Path, rounds: usize) -> Result<Own> {
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
    let bare = Bare::open(&home.join("bare.sqlite"))?;
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
    let seen = Seen {
        start: Some(start),
        add: Some(median(&adds)?),
        search: Some(search),
        idle_bytes: Some(idle(&client)),
    };
    Ok(Own { seen, fact: median(&facts)?, commit: median(&commits)? })
}

/// The same of MemPalace, as far as it comes: it fetches its model when it first needs it.
/// Its adding is far too slow to give it as many drawers.
fn mempalace(python: &Path, scratch: &Path, rounds: usize) -> Result<Seen> {
    let palace = scratch.join("palace");
    std::fs::create_dir(&palace)?;
    let server = || {
        let mut command = Command::new(python);
        command.args(["-m", "mempalace.mcp_server", "--palace"]).arg(&palace).env("HOME", &palace);
        command
    };
    let mut seen = Seen { start: Some(starts(server, 3)?), ..Seen::default() };
    let mut texts = Texts::new(1);
    let mut client = Client::start(&mut server())?;
    let mut add = |client: &mut Client| {
        let added = client.call("mempalace_add_drawer", &texts.drawer("mempalace_add_drawer"))?;
        let said = added["content"][0]["text"].as_str().unwrap_or_default();
        ensure!(!said.contains("\"success\": false"), "it stores nothing: {said}");
        Ok(())
    };
    if let Err(error) = add(&mut client) {
        eprintln!("bench: MemPalace starts, but {error:#}");
        return Ok(seen);
    }
    let mut adds = Samples::default();
    for _ in 0..rounds {
        timed(&mut adds, || add(&mut client))?;
    }
    seen.add = Some(median(&adds)?);
    seen.search = Some(searches(&mut client, "mempalace_search", &mut texts, rounds)?);
    seen.idle_bytes = Some(idle(&client));
    Ok(seen)
}

fn compare(ours: &Own, rival: Option<&Seen>) -> Comparison {
    let Own { seen, fact, commit } = ours;
    let took = |of: fn(&Seen) -> Option<Duration>| {
        (of(seen).unwrap_or_default(), Rival::from(rival.and_then(of).map(Figure::Took)))
    };
    let row = |name: &str, ours, rival, goal| Beside { name: name.to_owned(), ours, rival, goal };
    let timed = |name: &str, (ours, rival): (Duration, Rival), limit: Duration, goal: &str| {
        row(name, Figure::Took(ours), rival, Some(Goal::at_most(ours, limit).named(goal)))
    };
    let bytes = seen.idle_bytes.unwrap_or_default();
    let idle = Goal::no_more(bytes as f64, 60e6, "60 MB");
    let of_rival = Rival::from(rival.and_then(|seen| seen.idle_bytes).map(Figure::Bytes));
    let ms = Duration::from_millis;
    let rows = vec![
        timed("start to tools/list", took(|it| it.start), ms(20), "20 ms"),
        timed("memory_add", took(|it| it.add), *commit + BEYOND_COMMIT, "bare commit + 3 ms"),
        row("fact_add", Figure::Took(*fact), Rival::None, None),
        row("bare commit", Figure::Took(*commit), Rival::None, None),
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
        client.ask("tools/list", &json!({}))?;
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
    std::thread::sleep(IDLE);
    family(client.pid()).into_iter().filter_map(pss).sum()
}

/// A SQLite file with nothing around it.
struct Bare(Connection);

impl Bare {
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

/// Arguments by the names that a tool gives them.
fn drawer_of(tool: &str, text: &str, room: &str) -> Value {
    match tool {
        "memory_add" => json!({ "text": text, "wing": "bench", "room": room }),
        _ => json!({ "content": text, "wing": "bench", "room": room }),
    }
}
