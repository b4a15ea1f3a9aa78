//! Whole runs of the index, and runs after little or nothing has changed.

use std::fs;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::processes::{self, Used};
use super::semble::Content;
use super::{Repository, changes};
use crate::figure::{Figure, Goal, Rival};
use crate::samples::Samples;
use crate::table::Beside;

const ROUNDS: usize = 3;
const CHANGED_FILES: usize = 10;
const QUESTION: &str = "where are errors handled";

const INDEX_GOAL: f64 = 10.0;
const MEMORY_GOAL: u64 = 250_000_000;
const UNCHANGED_GOAL: f64 = 20.0;

/// Of what `isolith index --json` prints.
#[derive(Deserialize)]
struct Report {
    files: Files,
    chunks: u64,
}

#[derive(Deserialize)]
struct Files {
    indexed: u64,
    unchanged: u64,
}

#[derive(Default)]
struct Runs {
    cpu: Samples,
    wall: Samples,
    peak: u64,
}

impl Runs {
    fn add(&mut self, used: Used, peak: u64) {
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
    /// Indexes everything; returns the number of files and the processor time.
    pub(super) fn index(&mut self, rows: &mut Vec<Beside>) -> Result<(u64, Duration)> {
        let (mut ours, mut semble, mut report) = (Runs::default(), Runs::default(), None);
        for _ in 0..if self.quick { 1 } else { ROUNDS } {
            eprintln!("bench:   {}: index", self.name);
            report = Some(self.index_once(&mut ours)?);
            eprintln!("bench:   {}: semble's index", self.name);
            self.semble.forget_index()?;
            self.semble_once(&mut semble, Content::Code);
        }
        let mut all = Runs::default();
        // It keeps that apart from the index of the code.
        self.semble_once(&mut all, Content::All);
        let report = report.context("there was no round")?;
        let full = ours.cpu().context("there was no round")?;
        let tenth = |rival: Duration| {
            let limit = rival.as_secs_f64() / INDEX_GOAL;
            Goal::no_more(full.as_secs_f64(), limit, "a tenth of semble's")
        };
        let figure = |took: Option<Duration>| Rival::from(took.map(Figure::Took));
        rows.extend([
            Beside {
                name: "index, CPU".to_owned(),
                ours: Figure::Took(full),
                rival: figure(semble.cpu()),
                goal: semble.cpu().map(tenth),
            },
            Beside {
                name: "index, CPU, semble on all text too".to_owned(),
                ours: Figure::Took(full),
                rival: figure(all.cpu()),
                goal: None,
            },
            Beside {
                name: "index, clock".to_owned(),
                ours: Figure::Took(ours.wall().unwrap_or_default()),
                rival: figure(semble.wall()),
                goal: None,
            },
            Beside {
                name: "index, memory".to_owned(),
                ours: Figure::Bytes(ours.peak),
                rival: semble.cpu().map(|_| Figure::Bytes(semble.peak)).into(),
                goal: Some(Goal::no_more(ours.peak as f64, MEMORY_GOAL as f64, "250 MB")),
            },
            Beside {
                name: "chunks in the index".to_owned(),
                ours: Figure::Count(report.chunks),
                rival: Rival::None,
                goal: None,
            },
        ]);
        Ok((report.files.indexed, full))
    }

    /// Indexes again: unchanged, then with some files changed.
    pub(super) fn change(&mut self, full: Duration, rows: &mut Vec<Beside>) -> Result<()> {
        for (name, count) in [("no change", 0), ("10 files changed", CHANGED_FILES)] {
            let (mut ours, mut semble) = (Runs::default(), Runs::default());
            for round in 0..if self.quick { 1 } else { ROUNDS } {
                eprintln!("bench:   {}: {name}", self.name);
                changes::change(&self.code, count, &format!("changed_by_round_{round}"))?;
                let mut command = self.isolith("index", &self.store());
                let (report, used): (Report, Used) = processes::report(command.arg(&self.code))?;
                anyhow::ensure!(
                    report.files.indexed == count as u64 && report.files.unchanged > 0,
                    "{} files were indexed, not {count}",
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
            let goal = Goal::no_more(cpu.as_secs_f64(), limit, "a 20th of the whole");
            rows.push(Beside {
                name: format!("index again, {name}, CPU"),
                ours: Figure::Took(cpu),
                rival: semble.cpu().map(Figure::Took).into(),
                goal: (count == 0).then_some(goal),
            });
            rows.push(Beside {
                name: format!("index again, {name}, clock"),
                ours: Figure::Took(ours.wall().unwrap_or_default()),
                rival: semble.wall().map(Figure::Took).into(),
                goal: None,
            });
        }
        Ok(())
    }

    fn index_once(&self, runs: &mut Runs) -> Result<Report> {
        let store = self.store();
        if store.exists() {
            fs::remove_dir_all(&store)?;
        }
        let mut command = self.isolith("index", &store);
        let (output, used, peak) = processes::run_watched(command.arg(&self.code))?;
        runs.add(used, peak);
        Ok(serde_json::from_slice(&output)?)
    }

    fn semble_once(&mut self, runs: &mut Runs, content: Content) {
        let Some(mut command) = self.semble.search(QUESTION, &self.code, content) else { return };
        let outcome = processes::run_watched(&mut command);
        if let Some((_, used, peak)) = self.semble.or_leave(outcome) {
            runs.add(used, peak);
        }
    }
}
