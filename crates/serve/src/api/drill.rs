//! The endpoint for a drill: faults in real workers, in a process and a folder of their own.

use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use isolith_types::{Code, Failure, counted};
use rustix::process::{Pid, Signal, kill_process};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::sync::watch;
use tokio::time::timeout;

use super::endpoint::{Endpoint, Verb};
use crate::progress::ProgressStep;
use crate::tool::Call;

/// Numbers of faults: by default each kind once, and at most.
const COUNT: (u32, u32) = (28, 280);

/// How long a drill that is told to stop may take to clean up.
const GRACE: Duration = Duration::from_secs(10);

/// Whether a drill is running. Two would measure each other.
static RUNNING: AtomicBool = AtomicBool::new(false);

pub(super) fn endpoints() -> Vec<Endpoint> {
    vec![
        Endpoint::new(
            (Verb::Post, "/drill"),
            "drill",
            "Inject faults into workers of a scratch folder, and check how each is handled",
            drill,
        )
        .job(),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DrillArguments {
    /// Number of faults, spread evenly over all kinds: 1 to 280, by default 28, each kind once.
    #[schemars(range(min = 1, max = 280))]
    count: Option<u32>,
}

/// What a drill found. The job's progress has an item for each fault.
#[derive(Serialize, JsonSchema)]
struct DrillReport {
    /// Whether every fault was classified correctly, and no job lost or duplicated.
    passed: bool,
    seed: u64,
    injected: u64,
    misclassified: u64,
    lost: u64,
    duplicated: u64,
    /// Number of processes that were left behind.
    orphans: u64,
    slowest_recovery_ms: f64,
    by_kind: Vec<FaultKind>,
}

#[derive(Serialize, Deserialize, JsonSchema)]
struct FaultKind {
    kind: String,
    injected: u64,
    classified_as: String,
    /// What was done about it.
    action: String,
    /// Median.
    recovery_ms: f64,
    slowest_recovery_ms: f64,
}

/// The report as the program prints it.
#[derive(Deserialize)]
struct Printed {
    seed: u64,
    injected: u64,
    misclassified: u64,
    lost: u64,
    duplicated: u64,
    orphans: u64,
    slowest_recovery_ms: f64,
    by_kind: Vec<FaultKind>,
}

impl From<Printed> for DrillReport {
    fn from(printed: Printed) -> Self {
        let Printed { seed, injected, misclassified, lost, duplicated, orphans, .. } = printed;
        Self {
            passed: [misclassified, lost, duplicated, orphans] == [0; 4],
            seed,
            injected,
            misclassified,
            lost,
            duplicated,
            orphans,
            slowest_recovery_ms: printed.slowest_recovery_ms,
            by_kind: printed.by_kind,
        }
    }
}

async fn drill(call: Call, arguments: DrillArguments) -> Result<DrillReport, Failure> {
    let count = arguments.count.unwrap_or(COUNT.0);
    if !(1..=COUNT.1).contains(&count) {
        let message = format!("count must be from 1 to {}", COUNT.1);
        return Err(Failure::new(Code::BadInput, message));
    }
    let _turn = Turn::take()?;
    call.progress.during(|steps| async move { run(count, steps).await }).await
}

/// The right to run a drill, until dropped.
struct Turn;

impl Turn {
    fn take() -> Result<Self, Failure> {
        match RUNNING.swap(true, Ordering::AcqRel) {
            false => Ok(Self),
            true => Err(Failure::new(Code::QueueFull, "a drill is running already")
                .with_hint("GET /v1/jobs lists it; wait until it has ended")),
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        RUNNING.store(false, Ordering::Release);
    }
}

async fn run(count: u32, steps: watch::Sender<ProgressStep>) -> Result<DrillReport, Failure> {
    let failed = |error: &dyn std::fmt::Display| {
        Failure::new(Code::Failed, format!("cannot run the drill: {error}"))
    };
    let program = std::env::current_exe().map_err(|error| failed(&error))?;
    let mut child = Command::new(program)
        .args(["drill", "--jsonl", "--quiet", "--count", &count.to_string()])
        .env_remove("ISOLITH_TOKEN")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(|error| failed(&error))?;
    let output = child.stdout.take();
    let drill = Running(Some(child));
    let last = follow(output, count, &steps).await.map_err(|error| failed(&error))?;
    drop(drill);
    let printed: Printed = serde_json::from_str(&last)
        .map_err(|_| failed(&"it ended without a report; `isolith drill` shows more"))?;
    Ok(printed.into())
}

/// Reports each fault; returns the last line, which is the report.
async fn follow(
    output: Option<ChildStdout>,
    count: u32,
    steps: &watch::Sender<ProgressStep>,
) -> std::io::Result<String> {
    let Some(output) = output else { return Ok(String::new()) };
    let (mut lines, mut last) = (BufReader::new(output).lines(), String::new());
    while let Some(line) = lines.next_line().await? {
        if let Ok(fault @ Value::Object(_)) = serde_json::from_str::<Value>(&line)
            && fault.get("fault").is_some()
        {
            steps.send_modify(|step| {
                step.stage = "injecting";
                step.done += 1;
                step.total = count.into();
                step.fraction = step.done as f64 / f64::from(count);
                step.message = format!("{} of {}", step.done, counted(count, "fault"));
                step.items.push(fault);
            });
        }
        last = line;
    }
    Ok(last)
}

/// A drill, which is stopped when dropped: it ends its workers and removes its folder.
struct Running(Option<Child>);

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut child) = self.0.take() else { return };
        let id = child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        if let Some(id) = id {
            // It may have ended.
            let _ = kill_process(id, Signal::TERM);
        }
        tokio::spawn(async move {
            if timeout(GRACE, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        });
    }
}
