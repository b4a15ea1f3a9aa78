//! Environments that deny what a pool needs: each leads to a typed error, and the front survives.
//! Cases that do not apply to root run in an unprivileged front.

use std::path::PathBuf;

use isolate::{CallError, PoolSettings, StartError};
use libtest_mimic::Trial;

use crate::fronts::Front;
use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("hostile::a_role_that_refuses_to_start", refusal),
        trial("hostile::a_missing_program", missing_program),
        trial("hostile::a_file_that_is_not_a_program", not_a_program),
        trial("hostile::a_program_that_is_not_a_worker", not_a_worker),
        front("hostile::a_crash_folder_that_cannot_be_written", "unwritable-crash-folder"),
        front("hostile::a_crash_folder_that_vanishes", "vanishing-crash-folder"),
        front("hostile::a_full_process_table", "full-process-table"),
        front("hostile::no_more_descriptors", "no-descriptors"),
        Trial::test("hostile::closed_standard_streams", || {
            Front::start_closed("echo").expect_done();
            Ok(())
        }),
        Trial::test("hostile::blocked_signals", || {
            Front::start_blocking_signals("terminate-once").expect_done();
            Ok(())
        }),
        Trial::test("hostile::a_small_file_size_limit", || {
            Front::start_with_small_files("small-files").expect_done();
            Ok(())
        }),
        Trial::test("hostile::ignored_sigchld", || {
            Front::start_ignoring_sigchld("crash-once").expect_done();
            Ok(())
        }),
    ]
}

/// A trial that runs an unprivileged front.
fn front(name: &str, scenario: &'static str) -> Trial {
    Trial::test(name, move || {
        Front::start_unprivileged(scenario).expect_done();
        Ok(())
    })
}

async fn refusal() {
    let role = Settings { refuse: true, ..Settings::default() };
    let pool = pool_with(&role, PoolSettings::default(), isolate::Hooks::default());
    let error = call(&pool, Request::Descriptors).await.unwrap_err();
    let CallError::StartFailed { error: StartError::Refused(refusal), .. } = error else {
        panic!("{error}");
    };
    assert_eq!((refusal.code.as_str(), refusal.message.as_str()), ("told_to", "told to refuse"));
}

async fn start_error(program: PathBuf) -> CallError {
    let pool = pool(PoolSettings { program, ..PoolSettings::default() });
    call(&pool, Request::Descriptors).await.unwrap_err()
}

async fn missing_program() {
    let error = start_error("/nowhere/at/all".into()).await;
    assert!(
        matches!(&error, CallError::StartFailed { error: StartError::Program { .. }, .. }),
        "{error}"
    );
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
}

async fn not_a_program() {
    let scratch = tempfile::tempdir().unwrap();
    let file = scratch.path().join("notes.txt");
    std::fs::write(&file, "not a program").unwrap();
    let error = start_error(file).await;
    assert!(matches!(error, CallError::StartFailed { .. }), "{error}");
}

async fn not_a_worker() {
    let error = start_error("/bin/true".into()).await;
    let CallError::BreakerOpen { last, .. } = error else { panic!("{error}") };
    assert!(last.contains("start_failure"), "{last}");
}
