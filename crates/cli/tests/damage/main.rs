//! Random damage to the files of a store: every answer that changes must be reported, by the
//! read itself or by `doctor --full`. See docs/torture.md.
//!
//! Without arguments it is a test of a few trials.
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod harm;
mod questions;
mod segments;
mod store;
mod trial;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::{Mutex, MutexGuard, PoisonError};

use anyhow::{Context, Result, anyhow, ensure};
use clap::Parser;
use libtest_mimic::{Failed, Trial};
use serde::Serialize;

use trial::{Outcome, Silent};

#[derive(Parser)]
#[command(name = "damage")]
struct Arguments {
    /// Number of trials, each with one damaged place in its own copy
    #[arg(long, default_value_t = 500)]
    count: u32,
    /// Seed of random decisions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only this trial of the run
    #[arg(long)]
    trial: Option<u32>,
    /// Makes the store in this folder, and uses it again if it is there: with it a trial can be
    /// repeated to the byte
    #[arg(long)]
    keep: Option<PathBuf>,
    /// Trials at the same time
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u8).range(1..=64))]
    jobs: u8,
    /// One JSON document on standard output
    #[arg(long)]
    json: bool,
}

/// The results of all trials.
#[derive(Debug, Default, Serialize)]
struct Account {
    /// Trials.
    trials: u32,
    /// All answers were as before.
    same: u32,
    /// Answers changed, and all changed ones reported it themselves.
    reported_by_read: u32,
    /// An answer changed, and only the doctor reported it.
    reported_by_doctor: u32,
    /// An answer changed, and nothing reported it.
    silent: u32,
    /// Each of the silent ones.
    cases: Vec<Silent>,
}

fn main() -> ExitCode {
    if std::env::args().nth(1).as_deref() != Some("run") {
        let trials = vec![
            Trial::test("damage_is_prevented_or_reported", short_run),
            Trial::test("damaged_segments_change_no_answer", segments::change_no_answer),
        ];
        return libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code();
    }
    let arguments = Arguments::parse_from(std::env::args().skip(1));
    match run(&arguments).and_then(|account| print(&account, arguments.json)) {
        Ok(is_clean) => ExitCode::from(u8::from(!is_clean)),
        Err(error) => {
            eprintln!("damage: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// The run that is part of the test suite.
fn short_run() -> Result<(), Failed> {
    let run = || -> Result<()> {
        let arguments =
            Arguments { count: 20, seed: 16, trial: None, keep: None, jobs: 2, json: false };
        let account = run(&arguments)?;
        ensure!(account.cases.is_empty(), "silent: {:#?}", account.cases);
        // Otherwise nothing was shown.
        let noticed = account.reported_by_read + account.reported_by_doctor;
        ensure!(noticed >= 3, "too little was damaged: {account:#?}");
        Ok(())
    };
    run().map_err(|error| Failed::from(format!("{error:#}")))
}

fn run(arguments: &Arguments) -> Result<Account> {
    let place = tempfile::tempdir()?;
    let keep = arguments.keep.clone().unwrap_or_else(|| place.path().join("template"));
    let template = store::Template::open(&keep).context("cannot create the store")?;
    let before = template.ask_everything()?;
    let trials = match arguments.trial {
        Some(trial) => trial..trial + 1,
        None => 0..arguments.count,
    };
    let (next, account) = (Mutex::new(trials), Mutex::new(Account::default()));
    let work = || -> Result<()> {
        while let Some(number) = locked(&next).next() {
            let outcome = trial::run(&template, &before, arguments.seed, number)
                .with_context(|| format!("trial {number}"))?;
            let mut account = locked(&account);
            account.add(outcome);
            if !arguments.json && account.trials.is_multiple_of(20) {
                eprintln!("{} trials, {} silent", account.trials, account.silent);
            }
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..arguments.jobs).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            worker.join().unwrap_or_else(|_| Err(anyhow!("a trial panicked")))
        })
    })?;
    let mut account = account.into_inner().unwrap_or_else(PoisonError::into_inner);
    account.cases.sort_by_key(|case| case.trial);
    Ok(account)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Account {
    fn add(&mut self, outcome: Outcome) {
        self.trials += 1;
        match outcome {
            Outcome::Same => self.same += 1,
            Outcome::ReportedByRead => self.reported_by_read += 1,
            Outcome::ReportedByDoctor => self.reported_by_doctor += 1,
            Outcome::Silent(case) => {
                self.silent += 1;
                eprintln!("silent: {case}");
                self.cases.push(case);
            }
        }
    }
}

fn print(account: &Account, json: bool) -> Result<bool> {
    if json {
        println!("{}", serde_json::to_string(account)?);
    } else {
        println!("trials              {:>6}", account.trials);
        println!("same answers        {:>6}", account.same);
        println!("reported by reads   {:>6}", account.reported_by_read);
        println!("reported by doctor  {:>6}", account.reported_by_doctor);
        println!("silent              {:>6}", account.silent);
    }
    Ok(account.silent == 0)
}
