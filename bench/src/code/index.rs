//! Full index runs, and runs after few or no changes.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::processes::{self, Usage};
use super::semble::Content;
use super::{Repository, changes};
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::table::Row;

const ROUNDS: usize = 3;
const CHANGED_FILES: usize = 10;
const QUESTION: &str = "where are errors handled";

const INDEX_GOAL: f64 = 10.0;
const MEMORY_GOAL: u64 = 250_000_000;
const UNCHANGED_GOAL: f64 = 20.0;

/// Part of the output of `isolith index --json`.
#[derive(Deserialize)]
struct IndexOutput {
    files: FileCounts,
    chunks: u64,
}

#[derive(Deserialize)]
struct FileCounts {
    indexed: u64,
    unchanged: u64,
}

#[derive(Default)]
struct RunStats {
    cpu: Samples,
    wall: Samples,
    peak: u64,
}

impl RunStats {
    fn add(&mut self, used: Usage, peak: u64) {
        self.cpu.push(used.cpu);
        self.wall.push(used.wall);
        self.peak = self.peak.max(peak);
    }

    fn cpu(&self) -> Option<Duration> {
        self.cpu.percentile(50)
    }

    fn wall(&self) -> Option<Duration> {
        self.wall.percentile(50)
    }
}

impl Repository {
    /// Indexes everything. Returns the number of files and the CPU time.
    pub(super) fn index(&mut self, rows: &mut Vec<Row>) -> Result<(u64, Duration)> {
        let (mut ours, mut semble, mut report) = (RunStats::default(), RunStats::default(), None);
        for _ in 0..if self.quick { 1 } else { ROUNDS } {
            eprintln!("bench:   {}: index", self.name);
            report = Some(self.index_once(&mut ours)?);
            eprintln!("bench:   {}: semble's index", self.name);
            self.semble.forget_index()?;
            self.semble_once(&mut semble, Content::Code);
        }
        let mut all = RunStats::default();
        // semble keeps this index separate from that of the code.
        self.semble_once(&mut all, Content::All);
        let report = report.context("no round was run")?;
        let full = ours.cpu().context("no round was run")?;
        let tenth = |rival: Duration| {
            let limit = rival.as_secs_f64() / INDEX_GOAL;
            Goal::at_most(full.as_secs_f64(), limit, "a tenth of semble's")
        };
        let figure = |took: Option<Duration>| Rival::from(took.map(Figure::Time));
        rows.extend([
            Row {
                name: "index, CPU".to_owned(),
                ours: Figure::Time(full),
                rival: figure(semble.cpu()),
                goal: semble.cpu().map(tenth),
            },
            Row {
                name: "index, CPU, semble on all text".to_owned(),
                ours: Figure::Time(full),
                rival: figure(all.cpu()),
                goal: None,
            },
            Row {
                name: "index, wall".to_owned(),
                ours: Figure::Time(ours.wall().unwrap_or_default()),
                rival: figure(semble.wall()),
                goal: None,
            },
            Row {
                name: "index, memory".to_owned(),
                ours: Figure::Bytes(ours.peak),
                rival: semble.cpu().map(|_| Figure::Bytes(semble.peak)).into(),
                goal: Some(Goal::at_most(ours.peak as f64, MEMORY_GOAL as f64, "250 MB")),
            },
            Row {
                name: "chunks in the index".to_owned(),
                ours: Figure::Count(report.chunks),
                rival: Rival::None,
                goal: None,
            },
        ]);
        Ok((report.files.indexed, full))
    }

    /// Reindexes without changes, then with some files changed.
    pub(super) fn change(&mut self, full: Duration, rows: &mut Vec<Row>) -> Result<()> {
        for (name, count) in [("no change", 0), ("10 files changed", CHANGED_FILES)] {
            let (mut ours, mut semble) = (RunStats::default(), RunStats::default());
            for round in 0..if self.quick { 1 } else { ROUNDS } {
                eprintln!("bench:   {}: {name}", self.name);
                changes::change(&self.code, count, &format!("changed_by_round_{round}"))?;
                let mut command = self.isolith("index", &self.store());
                let (report, used): (IndexOutput, Usage) =
                    processes::report(command.arg(&self.code))?;
                anyhow::ensure!(
                    report.files.indexed == count as u64 && report.files.unchanged > 0,
                    "{} files were indexed instead of {count}",
                    report.files.indexed
                );
                ours.add(used, 0);
                let search = self.semble.search(QUESTION, &self.code, Content::Code);
                if let Some(used) = self.semble.run(search) {
                    semble.add(used, 0);
                }
            }
            let cpu = ours.cpu().unwrap_or_default();
            let limit = full.as_secs_f64() / UNCHANGED_GOAL;
            let goal = Goal::at_most(cpu.as_secs_f64(), limit, "1/20 of a full run");
            rows.push(Row {
                name: format!("reindex, {name}, CPU"),
                ours: Figure::Time(cpu),
                rival: semble.cpu().map(Figure::Time).into(),
                goal: (count == 0).then_some(goal),
            });
            rows.push(Row {
                name: format!("reindex, {name}, wall"),
                ours: Figure::Time(ours.wall().unwrap_or_default()),
                rival: semble.wall().map(Figure::Time).into(),
                goal: None,
            });
        }
        Ok(())
    }

    fn index_once(&self, runs: &mut RunStats) -> Result<IndexOutput> {
        let store = self.store();
        if store.exists() {
            fs::remove_dir_all(&store)?;
        }
        let mut command = self.isolith("index", &store);
        let (output, used, peak) = processes::run_with_memory(command.arg(&self.code))?;
        runs.add(used, peak);
        Ok(serde_json::from_slice(&output)?)
    }

    fn semble_once(&mut self, runs: &mut RunStats, content: Content) {
        let Some(mut command) = self.semble.search(QUESTION, &self.code, content) else { return };
        let outcome = processes::run_with_memory(&mut command);
        if let Some((_, used, peak)) = self.semble.or_disable(outcome) {
            runs.add(used, peak);
        }
    }
}
