//! Output whose reader goes away: the command ends quietly, without a panic or an error.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod support;
mod test_env;

use std::io::Read;
use std::process::{Command, Stdio};

use project::Project;
use support::TestEnv;

/// How a command ends whose reader closes the pipe after this many bytes.
fn cut_off_after(bytes: usize, mut command: Command) -> (Option<i32>, String) {
    let (mut reader, writer) = std::io::pipe().unwrap();
    let child = command.stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
    // It holds the writing end, too.
    drop(command);
    reader.read_exact(&mut vec![0; bytes]).unwrap();
    drop(reader);
    let output = child.wait_with_output().unwrap();
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_closed_pipe_ends_a_command_quietly() {
    let env = TestEnv::with_docs(3_000);
    let rows = "UNWIND range(1, 100000) AS n RETURN n, 'some text'";
    let commands: &[&[&str]] = &[
        &["--help"],
        &["search", "--help"],
        &["--version"],
        &["completions", "bash"],
        &["completions", "zsh", "--json"],
        &["status"],
        &["doctor"],
        &["collection", "list", "--json"],
        &["collection", "get", "docs", "--limit", "1000"],
        &["export", "docs"],
        &["graph", "query", rows],
        &["graph", "query", rows, "--json"],
        &["graph", "query", rows, "--format", "csv"],
    ];
    for arguments in commands {
        // Before anything is written, and in the middle of it.
        for bytes in [0, 10] {
            let ended = cut_off_after(bytes, env.command(arguments));
            assert_eq!(ended, (Some(0), String::new()), "{arguments:?} cut off after {bytes}");
        }
    }
}

#[test]
fn a_closed_pipe_ends_commands_of_a_project_quietly() {
    let project = Project::sample();
    project.index(&[]);
    let drawers = project.folder().join("drawers.jsonl");
    let pages = project.folder().join("man");
    let lines: String = (0..200).map(|n| format!("{{\"text\": \"note {n}\"}}\n")).collect();
    std::fs::write(&drawers, lines).unwrap();
    let commands: &[&[&str]] = &[
        &["search", "retry"],
        &["search", "retry", "--json"],
        &["search", "retry", "--jsonl"],
        &["search", "retry", "--files-only"],
        &["graph", "hotspots", "--json"],
        &["index", "--quiet"],
        &["index", "--quiet", "--json"],
        &["memory", "import", "--quiet", drawers.to_str().unwrap()],
        &["memory", "list", "--jsonl", "--all"],
        &["memory", "list"],
        &["config", "show"],
        &["man", pages.to_str().unwrap()],
    ];
    for arguments in commands {
        for bytes in [0, 10] {
            let ended = cut_off_after(bytes, project.command(arguments));
            assert_eq!(ended, (Some(0), String::new()), "{arguments:?} cut off after {bytes}");
        }
    }
}

#[test]
fn errors_are_reported_even_if_the_pipe_is_closed() {
    let env = TestEnv::new();
    for arguments in [&["status"][..], &["status", "--json"]] {
        let (status, stderr) = cut_off_after(0, env.command(arguments));
        assert_eq!(status, Some(4), "{stderr}");
        assert!(stderr.contains("there is no store in"), "{stderr}");
    }
}

#[test]
fn a_full_disk_is_an_error() {
    let env = TestEnv::with_docs(3_000);
    for arguments in [&["completions", "bash"][..], &["export", "docs"], &["status", "--json"]] {
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = env.command(arguments).stdout(full).output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {stderr}");
        assert!(stderr.contains("No space left on device"), "{arguments:?}: {stderr}");
    }
}
