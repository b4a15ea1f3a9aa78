//! `isolith adopt`: checks a store that was created elsewhere, and trusts it.

use std::fmt::Write as _;
use std::process::ExitCode;

use isolith_engine::{DoctorOptions, ForeignStore, StorePlace, adopt, examine_foreign};
use isolith_types::{Code, Failure};
use serde_json::json;

use crate::output::Output;
use crate::session::{interrupted, setup};

/// Folders that are listed; the others are counted.
const LISTED: usize = 10;

pub(crate) fn run(store: &StorePlace, yes: bool, output: &Output) -> Result<ExitCode, Failure> {
    let (runtime, mut signals) = setup()?;
    let mut wait =
        |work: std::pin::Pin<Box<dyn Future<Output = Result<AdoptStep, Failure>> + '_>>| {
            runtime.block_on(async {
                tokio::select! {
                    done = work => done,
                    signal = signals.next() => Err(interrupted(signal)),
                }
            })
        };
    output.note(&format!("checking the store in {}", store.path().display()));
    let examine =
        async { examine_foreign(store, DoctorOptions::default()).await.map(AdoptStep::Examined) };
    let AdoptStep::Examined(examined) = wait(Box::pin(examine))? else { return Err(unexpected()) };
    refuse_damaged(&examined)?;
    let question = question(&examined, store);
    let consent = if yes { Some(true) } else { output.ask(&question) };
    match consent {
        Some(true) => {}
        Some(false) => {
            output.note("the store was not adopted");
            return Ok(ExitCode::SUCCESS);
        }
        None => {
            return Err(Failure::new(Code::Usage, format!("confirmation needed: {question}"))
                .with_hint("run it again with --yes to adopt the store"));
        }
    }
    let adopting = async { adopt(store, None).await.map(|()| AdoptStep::Adopted) };
    wait(Box::pin(adopting))?;
    let path = store.path().display();
    let outside: Vec<String> =
        examined.outside.iter().map(|folder| folder.display().to_string()).collect();
    let document = json!({ "store": path.to_string(), "adopted": true, "outside": outside });
    output.result(&document, &format!("adopted the store in {path}\n"))?;
    Ok(ExitCode::SUCCESS)
}

enum AdoptStep {
    Examined(ForeignStore),
    Adopted,
}

fn unexpected() -> Failure {
    Failure::new(Code::Failed, "unexpected result of the check")
}

fn refuse_damaged(examined: &ForeignStore) -> Result<(), Failure> {
    let report = &examined.report;
    match (&report.error, report.damaged_data()) {
        (Some(error), _) => Err(error.clone()),
        (None, Some(check)) => {
            let message = format!("the store is damaged: {}: {}", check.name, check.detail);
            Err(Failure::new(Code::Corrupt, message)
                .with_hint("start a new store with `isolith index --fresh`, or import into one"))
        }
        (None, None) => Ok(()),
    }
}

fn question(examined: &ForeignStore, store: &StorePlace) -> String {
    let mut text = String::new();
    if !examined.outside.is_empty() {
        text.push_str(
            "The store refers to folders outside its project, which servers would index:\n",
        );
        for folder in examined.outside.iter().take(LISTED) {
            let _ = writeln!(text, "  {}", folder.display());
        }
        if let more @ 1.. = examined.outside.len().saturating_sub(LISTED) {
            let _ = writeln!(text, "  and {more} more");
        }
    }
    let _ = write!(text, "Adopt the store in {}?", store.path().display());
    text
}
