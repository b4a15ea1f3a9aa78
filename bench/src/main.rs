//! Benchmarks of worker processes, the store, code indexing and search, the graph and the MCP
//! server, against other tools.
//!
//! Run with `cargo xtask bench`. Every figure is measured in the same run as its rival's, in
//! alternating rounds, so that load affects both. `--quick` takes fewer samples, `--only warm`
//! runs a single benchmark, `--json` prints JSON. `--vectors FILE` supplies real vectors for the
//! store. `--repos FOLDER...` names the code to index; without it, the code benchmark is skipped.
//! `--program FILE` names the `isolith` binary to measure.

mod agents;
mod code;
mod cold;
mod crash;
mod figure;
mod graph;
mod grid;
mod python;
mod rivals;
mod roles;
mod samples;
mod store;
mod table;
mod throughput;
mod warm;

use std::path::PathBuf;

use anyhow::{Result, bail, ensure};
use tokio::runtime::{Builder, Runtime};

use python::Python;
use roles::Bench;
use table::{Table, WorkerRow};

/// Shared by the benchmarks of workers.
struct Harness {
    runtime: Runtime,
    /// A long-lived Python process with a `ProcessPoolExecutor`.
    executor: Python,
    /// A long-lived Python process that spawns processes.
    spawner: Python,
    quick: bool,
}

impl Harness {
    /// `full`, or a tenth of it in a quick run.
    fn count(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(10) } else { full }
    }

    /// Runs `work` in a tokio task, as a server would, not on this thread.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.runtime.block_on(async { self.runtime.spawn(work).await? })
    }
}

type Measurement = fn(&mut Harness) -> Result<Vec<WorkerRow>>;

const MEASUREMENTS: [(&str, Measurement); 4] = [
    ("warm round trips", warm::measure),
    ("cold starts", cold::measure),
    ("crashes", crash::measure),
    ("throughput", throughput::measure),
];

const STORE: &str = "store";
const CODE: &str = "code";
const GRAPH: &str = "graph";
const AGENTS: &str = "agents";

const OPTIONS: &str = "options: --quick, --json, --vectors FILE, --repos FOLDER..., \
                       --program FILE and --only warm|cold|crash|throughput|store|code|graph|agents";

#[derive(Default)]
struct Options {
    quick: bool,
    json: bool,
    only: String,
    vectors: Option<PathBuf>,
    repos: Vec<PathBuf>,
    program: Option<PathBuf>,
}

fn main() -> Result<()> {
    let mut roles = vec![isolate::role::<Bench>()];
    roles.extend(isolith_engine::worker_roles());
    isolate::worker_main(&roles);

    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.as_slice() {
        [first, phase] if first == store::front::PHASE_FLAG => return store::front::run(phase),
        [first, phase] if first == code::front::PHASE_FLAG => return code::front::run(phase),
        [first, phase] if first == graph::front::PHASE_FLAG => return graph::front::run(phase),
        _ => {}
    }
    let Options { quick, json, only, vectors, repos, program } = Options::parse(arguments)?;
    let mut table = Table { load_before: load_average(), ..Table::default() };
    table.rows = measure_workers(quick, &only)?;
    if STORE.starts_with(&only) {
        eprintln!("bench: {STORE}");
        table.store = store::measure(quick, vectors.as_deref())?;
    }
    if CODE.starts_with(&only) && !repos.is_empty() {
        eprintln!("bench: {CODE}");
        table.code = code::measure(quick, &repos, program.clone())?;
    }
    if GRAPH.starts_with(&only) {
        eprintln!("bench: {GRAPH}");
        table.graph = graph::measure(quick, program.clone())?;
    }
    if AGENTS.starts_with(&only) {
        eprintln!("bench: {AGENTS}");
        table.agents = agents::measure(quick, program)?;
    }
    let measured = table.rows.len() + table.comparisons().count();
    ensure!(measured > 0, "nothing was measured ({OPTIONS})");
    table.load_after = load_average();
    if json {
        println!("{}", serde_json::to_string_pretty(&table)?);
    } else {
        print!("{table}");
    }
    Ok(())
}

impl Options {
    fn parse(arguments: Vec<String>) -> Result<Self> {
        let vectors = std::env::var_os("BENCH_VECTORS").map(PathBuf::from);
        let mut options = Self { vectors, ..Self::default() };
        let mut arguments = arguments.into_iter().peekable();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--quick" => options.quick = true,
                "--json" => options.json = true,
                "--only" => options.only = arguments.next().unwrap_or_default(),
                "--vectors" => options.vectors = arguments.next().map(PathBuf::from),
                "--program" => options.program = arguments.next().map(PathBuf::from),
                "--repos" => {
                    while let Some(folder) = arguments.next_if(|it| !it.starts_with("--")) {
                        options.repos.push(PathBuf::from(folder));
                    }
                }
                other => bail!("unknown option {other} ({OPTIONS})"),
            }
        }
        Ok(options)
    }
}

fn measure_workers(quick: bool, only: &str) -> Result<Vec<WorkerRow>> {
    let chosen = || MEASUREMENTS.iter().filter(|(name, _)| name.starts_with(only));
    if chosen().next().is_none() {
        return Ok(Vec::new());
    }
    let mut harness = Harness {
        runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        executor: Python::start("executor.py"),
        spawner: Python::start("spawn.py"),
        quick,
    };
    let mut rows = Vec::new();
    for (name, measure) in chosen() {
        eprintln!("bench: {name}");
        rows.extend(measure(&mut harness)?);
    }
    Ok(rows)
}

/// The load average of the last minute.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
