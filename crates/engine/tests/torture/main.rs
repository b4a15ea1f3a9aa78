//! Many processes use one store, while they and their workers are killed and segments are
//! damaged. See docs/torture.md.
//!
//! The same program is the controlling process, the processes that use the store, and their
//! workers. Without arguments it is a test of a few seconds.

mod account;
mod arguments;
mod audit;
mod content;
mod control;
mod harm;
mod journal;
mod lane;
mod member;
mod scrap;
mod search;

use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use libtest_mimic::{Failed, Trial};

use arguments::{Arguments, Command, RunArguments};

fn main() -> ExitCode {
    isolate::worker_main(&isolith_engine::worker_roles());
    let first = std::env::args().nth(1);
    if !first.is_some_and(|first| first == "run" || first == "member") {
        let trials = vec![
            Trial::test("answers_are_compared_with_the_state_at_their_time", || {
                audit::what_can_have_been_seen();
                Ok(())
            }),
            Trial::test("a_tortured_store_loses_nothing_and_answers_correctly", short_run),
        ];
        return libtest_mimic::run(&libtest_mimic::Arguments::from_args(), trials).exit_code();
    }
    match Arguments::parse().command {
        Command::Member(arguments) => member::run(&arguments),
        Command::Run(arguments) => match run(&arguments) {
            Ok(clean) => ExitCode::from(u8::from(!clean)),
            Err(error) => {
                eprintln!("torture: {error:#}");
                ExitCode::FAILURE
            }
        },
    }
}

fn run(arguments: &RunArguments) -> Result<bool> {
    let account = control::run(arguments)?;
    if arguments.json {
        println!("{}", serde_json::to_string(&account)?);
    } else {
        account.print()?;
    }
    Ok(account.is_clean())
}

/// The run that is part of the tests.
fn short_run() -> Result<(), Failed> {
    let arguments = RunArguments { processes: 4, seconds: 8, seed: 4, json: false, keep: None };
    let run = || -> Result<()> {
        let account = control::run(&arguments).context("the run failed")?;
        ensure!(account.is_clean(), "{account:#?}");
        // Even a slow machine does this much; less would be no test.
        ensure!(account.kills >= 5 && account.damaged_files >= 1, "too little: {account:#?}");
        ensure!(account.reads >= 30 && account.writes >= 30, "too little: {account:#?}");
        Ok(())
    };
    run().map_err(|error| Failed::from(format!("{error:#}")))
}
