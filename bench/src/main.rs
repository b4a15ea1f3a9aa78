//! What worker processes, the store, indexing and searching code, the graph and the MCP
//! server cost, beside what the same work costs elsewhere.
//!
//! One command: `cargo xtask bench`. Every figure is measured in the same run as its
//! rival's, in alternating rounds, so that a busy machine is busy for both. `--quick`
//! takes fewer samples, `--only warm` (or another measurement) leaves out the others,
//! `--json` prints rows for programs. `--vectors FILE` gives the store real vectors;
//! `--repos FOLDER...` names the code that is indexed, without which that part is left
//! out, and `--program FILE` the `isolith` that does it, queries graphs and serves agents.

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
use table::{Row, Table};

/// What all measurements need.
struct Lab {
    runtime: Runtime,
    /// Python's executor of processes, in a process that lives as long as we do.
    executor: Python,
    /// Python's way to start a single process.
    spawner: Python,
    quick: bool,
}

impl Lab {
    /// `full`, or about a tenth of it in a quick run.
    fn count(&self, full: usize) -> usize {
        if self.quick { full.div_ceil(10) } else { full }
    }

    /// Runs `work` in a task, as a server's callers do, and not on this thread.
    fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = Result<T>> + Send + 'static,
    ) -> Result<T> {
        self.runtime.block_on(async { self.runtime.spawn(work).await? })
    }
}

type Measurement = fn(&mut Lab) -> Result<Vec<Row>>;

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

const OPTIONS: &str = "there are --quick, --json, --vectors FILE, --repos FOLDER..., \
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
        [first, order] if first == store::front::ARGUMENT => return store::front::run(order),
        [first, order] if first == code::front::ARGUMENT => return code::front::run(order),
        [first, order] if first == graph::front::ARGUMENT => return graph::front::run(order),
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
                other => bail!("no such option: {other} ({OPTIONS})"),
            }
        }
        Ok(options)
    }
}

fn measure_workers(quick: bool, only: &str) -> Result<Vec<Row>> {
    let chosen = || MEASUREMENTS.iter().filter(|(name, _)| name.starts_with(only));
    if chosen().next().is_none() {
        return Ok(Vec::new());
    }
    let mut lab = Lab {
        runtime: Builder::new_multi_thread().worker_threads(2).enable_all().build()?,
        executor: Python::start("executor.py"),
        spawner: Python::start("spawn.py"),
        quick,
    };
    let mut rows = Vec::new();
    for (name, measure) in chosen() {
        eprintln!("bench: {name}");
        rows.extend(measure(&mut lab)?);
    }
    Ok(rows)
}

/// How many tasks wanted to run in the last minute: what else the machine did.
fn load_average() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/loadavg").ok()?;
    text.split_whitespace().next()?.parse().ok()
}
