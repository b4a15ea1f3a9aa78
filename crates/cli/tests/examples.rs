//! The examples for users, run as they would run them. They need python3.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::path::{Path, PathBuf};
use std::process::Command;

use test_env::{Ran, TestEnv};

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Runs an example with this build of the program first on the path; returns what it prints.
fn run(env: &TestEnv, example: &str, arguments: &[&str]) -> String {
    let programs = Path::new(env!("CARGO_BIN_EXE_isolith")).parent().unwrap();
    let others = std::env::var("PATH").unwrap();
    let mut command = Command::new(examples().join(example));
    command.args(arguments).current_dir(env.path(".")).env("HOME", env.path("home"));
    command.env("PATH", format!("{}:{others}", programs.display()));
    for name in ["ISOLITH_STORE", "ISOLITH_LOG", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
        command.env_remove(name);
    }
    let ran = Ran::of(&command.output().unwrap());
    assert_eq!(ran.status, Some(0), "{example}: {} {}", ran.stdout, ran.stderr);
    ran.stdout
}

#[test]
fn a_folder_is_indexed_and_searched() {
    let env = TestEnv::new();
    env.write("parse.rs", "/// Reads a date.\nfn parse_date(text: &str) -> u32 { 0 }\n");
    env.write("print.rs", "fn print_report() {}\n");
    // Twice: the second time nothing has to be indexed.
    for _ in 0..2 {
        let found = run(&env, "search.py", &[".", "parse", "a", "date"]);
        assert!(found.starts_with("parse.rs:1  parse_date  "), "{found}");
    }
}

#[test]
fn a_script_remembers_and_recalls() {
    let env = TestEnv::new();
    for _ in 0..2 {
        let printed = run(&env, "memory.sh", &[]);
        assert!(printed.contains("\nWe deploy on Tuesdays, because"), "{printed}");
        assert!(printed.contains("Tuesday"), "{printed}");
    }
}

#[test]
fn the_configured_server_answers() {
    let env = TestEnv::new();
    env.write("parse.rs", "fn parse_date(text: &str) -> u32 { 0 }\n");
    std::fs::create_dir(env.path(".git")).unwrap();
    let tools = run(&env, "mcp_client.py", &[]);
    assert!(tools.contains("search_code: "), "{tools}");
    run(&env, "mcp_client.py", &["index_project"]);
    let found = run(&env, "mcp_client.py", &["search_code", r#"{"query": "parse_date"}"#]);
    assert!(found.contains("parse.rs"), "{found}");
}
