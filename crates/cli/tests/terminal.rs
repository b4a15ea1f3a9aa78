//! Hostile names and texts on a real terminal: they are seen, and do nothing.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::fs::File;
use std::io::Read;
use std::process::{Command, Stdio};

use project::Project;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use test_env::Ran;

/// Sets the title, clears the screen, turns the direction, has no width, is a C1 control.
const HOSTILE: &str = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\u{2066}\u{200b}\u{9b}31m";
const SHOWN: &str = r"\u{1b}]0;owned\u{7}\u{1b}[2J\u{202e}evil\u{2066}\u{200b}\u{9b}31m";

/// The output of a command on a terminal: standard output and error together.
fn on_terminal(mut command: Command) -> String {
    let front = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&front).unwrap();
    unlockpt(&front).unwrap();
    let name = ptsname(&front, Vec::new()).unwrap();
    let back = File::options().read(true).write(true).open(name.to_str().unwrap()).unwrap();
    command.stdout(Stdio::from(back.try_clone().unwrap())).stderr(Stdio::from(back));
    let mut child = command.spawn().unwrap();
    // The command holds the terminal's other side as long as it lives.
    drop(command);
    let (mut printed, mut some) = (Vec::new(), [0; 4096]);
    let mut front = File::from(front);
    // The end of a terminal is an error.
    while let Ok(count @ 1..) = front.read(&mut some) {
        printed.extend_from_slice(&some[..count]);
    }
    child.wait().unwrap();
    String::from_utf8(printed).unwrap()
}

/// Whether nothing acts on the terminal but line ends.
fn is_plain(printed: &str) -> bool {
    let odd = |letter: char| {
        letter.is_control() && !['\n', '\r', '\t'].contains(&letter)
            || matches!(letter, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    };
    !printed.contains(odd)
}

fn plain(project: &Project, arguments: &[&str]) -> String {
    let mut command = project.command(arguments);
    command.env("NO_COLOR", "1").env("TERM", "xterm");
    let printed = on_terminal(command);
    assert!(is_plain(&printed), "{arguments:?}: {printed:?}");
    printed
}

fn hostile_project() -> Project {
    let project = Project::empty();
    let code = format!("// {HOSTILE} zebra\nfn zebra() {{}}\n");
    project.write(&format!("src/{HOSTILE}.rs").replace("]0;", "]0"), code);
    project
}

#[test]
fn code_and_its_path_are_shown_escaped() {
    let project = hostile_project();
    project.write(&format!("{}.tfstate", HOSTILE.replace('/', "")), "{}");
    let indexed = plain(&project, &["index", "--quiet"]);
    assert!(indexed.contains(&format!("{SHOWN}.tfstate")), "{indexed:?}");
    let found = plain(&project, &["search", "zebra"]);
    assert!(found.contains(&format!("// {SHOWN} zebra")), "{found:?}");
    assert!(found.contains(&SHOWN.replace("]0;", "]0")), "{found:?}");
    let files = plain(&project, &["search", "zebra", "--files-only"]);
    assert!(files.contains(r"\u{202e}"), "{files:?}");
}

#[test]
fn pipes_get_unescaped_output() {
    let project = hostile_project();
    project.index(&[]);
    let found = project.run(&["search", "zebra"]);
    assert!(found.stdout.contains(&format!("// {HOSTILE} zebra")), "{:?}", found.stdout);
    let document = project.search(&["zebra"]);
    assert!(document["hits"][0]["snippet"].as_str().unwrap().contains(HOSTILE));
}

#[test]
fn only_our_own_colours_reach_the_terminal() {
    let project = hostile_project();
    project.index(&[]);
    let mut command = project.command(&["search", "zebra"]);
    command.env_remove("NO_COLOR").env("TERM", "xterm");
    let found = on_terminal(command);
    assert!(found.contains("\u{1b}[1;36m"), "{found:?}");
    assert!(found.contains(r"\u{1b}[2J"), "{found:?}");
    for theirs in ["\u{1b}[2J", "\u{1b}]", "\u{202e}", "\u{9b}"] {
        assert!(!found.contains(theirs), "{theirs:?} in {found:?}");
    }
}

#[test]
fn escaped_json_on_a_terminal_keeps_its_meaning() {
    let project = hostile_project();
    project.index(&[]);
    for flag in ["--json", "--jsonl"] {
        let printed = plain(&project, &["search", "zebra", flag]);
        let document: serde_json::Value = serde_json::from_str(&printed).unwrap();
        let hit = if flag == "--json" { &document["hits"][0] } else { &document };
        assert!(hit["snippet"].as_str().unwrap().contains(HOSTILE), "{printed:?}");
    }
}

#[test]
fn values_of_graphs_collections_and_memory_are_shown_escaped() {
    let project = hostile_project();
    project.index(&[]);
    let said = |ran: Ran| assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    let query = "CREATE (n:Thing {name: $name})";
    said(project.run(&["graph", "query", query, "--param-str", &format!("name={HOSTILE}")]));
    for format in ["table", "csv", "jsonl"] {
        let rows =
            plain(&project, &["graph", "query", "MATCH (n:Thing) RETURN n", "--format", format]);
        assert!(rows.contains("202e") && rows.contains("evil"), "{format}: {rows:?}");
    }
    let text = format!("a {HOSTILE}");
    let added = project.json(&["memory", "add", "--wing", "w", "--room", "r", &text]);
    let id = added["id"].as_str().unwrap();
    for command in [&["memory", "list"][..], &["memory", "search", "evil"], &["memory", "get", id]]
    {
        let listed = plain(&project, command);
        assert!(listed.contains(r"\u{202e}evil"), "{command:?}: {listed:?}");
    }
    let record = serde_json::json!({ "id": HOSTILE, "embedding": [1.0, 0.0], "document": HOSTILE });
    project.write("rows.jsonl", record.to_string());
    said(project.run(&["ingest", "rows.jsonl", "--collection", "c"]));
    let got = plain(&project, &["collection", "get", "c"]);
    assert!(got.contains(r"\u{202e}evil"), "{got:?}");
}

#[test]
fn errors_and_logs_are_shown_escaped() {
    let project = hostile_project();
    let missing = plain(&project, &["index", &format!("no\nsuch {HOSTILE}")]);
    assert!(missing.contains(SHOWN) && missing.contains("no\r\n  such"), "{missing:?}");
    let usage = plain(&project, &["search", "x", &format!("--{HOSTILE}")]);
    assert!(usage.contains(r"\u{202e}"), "{usage:?}");
    project.index(&[]);
    let mut command = project.command(&["search", "zebra", "--files-only"]);
    command.env("ISOLITH_LOG", "trace").env("TERM", "xterm");
    let logged = on_terminal(command);
    assert!(is_plain(&logged), "{logged:?}");
}
