//! Completion scripts and man pages as users and packagers make them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod support;

use std::fs;
use std::process::Command;

use support::{TestEnv, document, files_in};

fn isolith(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_isolith"));
    command.args(arguments);
    command
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = isolith(&["completions", shell]).output().unwrap();
        assert!(output.status.success());
        let script = String::from_utf8(output.stdout).unwrap();
        assert!(script.contains("drill") && script.contains("taxonomy"), "{shell}: {script}");
        let (status, document) =
            document(&isolith(&["completions", shell, "--json"]).output().unwrap());
        assert_eq!((status, document["script"].as_str()), (0, Some(script.as_str())), "{shell}");
    }
}

#[test]
fn every_command_has_a_man_page() {
    let env = TestEnv::new();
    let folder = env.store().join("share/man1");
    // Twice: pages that are there are replaced.
    for _ in 0..2 {
        let output = isolith(&["man", folder.to_str().unwrap()]).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8(output.stdout).unwrap().starts_with("wrote "));
    }
    let (_, written) =
        document(&isolith(&["man", folder.to_str().unwrap(), "--json"]).output().unwrap());
    assert_eq!(written["pages"].as_array().unwrap().len(), files_in(&folder).len());
    for name in ["isolith", "isolith-search", "isolith-memory-diary-write", "isolith-man"] {
        let page = fs::read_to_string(folder.join(format!("{name}.1"))).unwrap();
        assert!(page.contains(&format!(".TH {name} 1 ")), "{page}");
        for section in [".SH NAME", ".SH SYNOPSIS", ".SH OPTIONS"] {
            assert!(page.contains(section), "{name} has no {section}: {page}");
        }
    }
    assert!(!folder.join("isolith-help.1").exists());
}

#[test]
fn a_folder_that_cannot_be_created_is_an_error() {
    let output = isolith(&["man", "/proc/nowhere"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("/proc/nowhere"));
}
