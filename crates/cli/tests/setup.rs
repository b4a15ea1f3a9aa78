//! `isolith setup` with the real program, in homes of its own.
#![allow(clippy::unwrap_used, clippy::panic)]

mod place;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use place::{Place, Ran, files_in};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};

const CURSOR: &str = "home/.cursor/mcp.json";

/// Where each agent keeps its servers, and how such a file may look.
const FILES: [(&str, &str, &str); 8] = [
    (
        "claude-code",
        "home/.claude.json",
        "{\n  \"numStartups\": 7,\n  \"mcpServers\": {},\n  \"projects\": {}\n}",
    ),
    (
        "claude-desktop",
        "home/.config/Claude/claude_desktop_config.json",
        "{\n\t\"mcpServers\": {\n\t\t\"fs\": { \"command\": \"npx\" }\n\t}\n}\n",
    ),
    ("cursor", CURSOR, "{ // mine\r\n  \"mcpServers\": {\r\n    // none\r\n  },\r\n}\r\n"),
    ("codex", "home/.codex/config.toml", "# mine\nmodel = \"m\"\n\n[mcp_servers.x]\ncommand = 'y'"),
    ("windsurf", "home/.codeium/windsurf/mcp_config.json", "{}\n"),
    ("devin", "home/.config/devin/mcp_config.json", "{\"mcpServers\":{\"x\":{\"url\":\"y\"}}}"),
    ("gemini", "home/.gemini/settings.json", "\u{feff}{\n    \"theme\": \"Dracula\"\n}\n"),
    (
        "vscode",
        "home/.config/Code/User/mcp.json",
        "{\n  \"inputs\": [],\n  \"servers\": {\n  }\n}\n",
    ),
];

fn setup(place: &Place, arguments: &[&str]) -> Command {
    let mut command = place.bare(&[&["setup"], arguments].concat());
    for name in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"] {
        command.env_remove(name);
    }
    command
}

fn run(place: &Place, arguments: &[&str]) -> Ran {
    Ran::of(&setup(place, arguments).output().unwrap())
}

/// Exit status and document.
fn json(place: &Place, arguments: &[&str]) -> (i32, Value) {
    let ran = run(place, &[arguments, &["--json"]].concat());
    (ran.status.unwrap(), ran.document())
}

fn report<'a>(document: &'a Value, agent: &str) -> &'a Value {
    let agents = document["agents"].as_array().unwrap();
    agents.iter().find(|report| report["agent"] == agent).unwrap()
}

fn put(place: &Place, name: &str, text: &str) -> PathBuf {
    let path = place.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn program() -> String {
    fs::canonicalize(env!("CARGO_BIN_EXE_isolith")).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn every_agent_is_set_up_once_and_undone_without_a_trace() {
    let place = Place::new();
    for (_, name, text) in FILES {
        put(&place, name, text);
    }
    let (status, first) = json(&place, &["--yes"]);
    assert_eq!((status, &first["written"]), (0, &json!(true)), "{first}");
    let after: Vec<String> =
        FILES.iter().map(|(_, name, _)| fs::read_to_string(place.path(name)).unwrap()).collect();
    for ((agent, name, _), after) in FILES.iter().zip(&after) {
        let report = report(&first, agent);
        assert_eq!(report["action"], "added", "{report}");
        assert_eq!(report["path"], place.path(name).to_str().unwrap());
        assert!(report["diff"].as_str().unwrap().contains(&program()), "{report}");
        assert!(after.contains(&program()) && after.contains("[\"mcp\"]"), "{after}");
    }

    let (status, second) = json(&place, &["--yes"]);
    assert_eq!((status, &second["written"]), (0, &json!(false)));
    let (status, undone) = json(&place, &["--undo", "--yes"]);
    assert_eq!((status, &undone["written"]), (0, &json!(true)));
    for (agent, name, text) in FILES {
        assert_eq!(report(&second, agent)["action"], "unchanged");
        assert_eq!(report(&undone, agent)["action"], "removed");
        assert_eq!(fs::read_to_string(place.path(name)).unwrap(), text, "{agent}");
        let left = files_in(place.path(name).parent().unwrap());
        assert!(!left.iter().any(|file| file.to_str().unwrap().contains(".isolith-")), "{left:?}");
    }
    let (status, again) = json(&place, &["--undo", "--yes"]);
    assert_eq!((status, &again["written"]), (0, &json!(false)));
    assert_eq!(report(&again, "codex")["action"], "none");
}

#[test]
fn missing_agents_are_skipped_unless_named() {
    let place = Place::new();
    fs::create_dir(place.path("home/.cursor")).unwrap();
    let (status, document) = json(&place, &["--yes"]);
    assert_eq!(status, 0, "{document}");
    for (agent, ..) in FILES {
        let there = agent == "cursor";
        let action = if there { "added" } else { "none" };
        let report = report(&document, agent);
        assert_eq!((&report["found"], &report["action"]), (&json!(there), &json!(action)));
    }
    assert_eq!(files_in(&place.path("home")), [place.path("home/.cursor")]);
    assert_eq!(place.path(CURSOR).metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let (status, document) = json(&place, &["--agent", "vs-code", "--agent", "codex", "--yes"]);
    assert_eq!((status, document["agents"].as_array().unwrap().len()), (0, 2), "{document}");
    assert_eq!(report(&document, "vscode")["found"], false);
    let code = place.path("home/.config/Code/User/mcp.json");
    let written: Value = serde_json::from_slice(&fs::read(&code).unwrap()).unwrap();
    let entry = json!({ "type": "stdio", "command": program(), "args": ["mcp"] });
    assert_eq!(written, json!({ "servers": { "isolith": entry } }));

    // A file that setup has made goes again.
    assert_eq!(run(&place, &["--undo", "--yes"]).status, Some(0));
    let files = [place.path(CURSOR), place.path("home/.codex/config.toml"), code];
    assert!(files.iter().all(|file| !file.exists()));
}

#[test]
fn variables_lead_to_other_places() {
    let place = Place::new();
    let mut command = setup(&place, &["--dry-run", "--json"]);
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", "config"),
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("CODEX_HOME", "codex"),
        ("GEMINI_CLI_HOME", "gemini"),
    ] {
        fs::create_dir(place.path(folder)).unwrap();
        command.env(variable, place.path(folder));
    }
    let document = Ran::of(&command.output().unwrap()).document();
    for (agent, path, found) in [
        ("claude-code", "claude/.claude.json", true),
        ("codex", "codex/config.toml", true),
        ("gemini", "gemini/.gemini/settings.json", false),
        ("vscode", "config/Code/User/mcp.json", false),
    ] {
        let report = report(&document, agent);
        assert_eq!(report["path"], place.path(path).to_str().unwrap());
        assert_eq!(report["found"], found, "{report}");
    }
}

#[test]
fn nothing_is_written_unless_somebody_agrees() {
    let place = Place::new();
    let file = put(&place, CURSOR, "{}");
    for (arguments, status) in [(&["--dry-run"][..], 0), (&[], 2)] {
        let ran = run(&place, arguments);
        assert_eq!(ran.status, Some(status), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("+{\"mcpServers\": {"), "it is shown: {}", ran.stdout);
        assert_eq!(ran.stderr.contains("--yes"), status == 2, "{}", ran.stderr);
        let (found, document) = json(&place, arguments);
        assert_eq!((found, &document["written"]), (status, &json!(false)));
        assert_eq!(report(&document, "cursor")["action"], "added");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "{}");
    assert_eq!(files_in(&place.path("home/.cursor")).len(), 1);
    assert_eq!(run(&place, &["--dry-run", "--yes"]).status, Some(2));
}

#[test]
fn an_older_entry_is_shown_and_exchanged() {
    let place = Place::new();
    let old = r#"{"mcpServers": {"isolith": {"command": "/old/isolith", "args": ["mcp"]}}}"#;
    let file = put(&place, CURSOR, old);
    fs::create_dir(place.path("x")).unwrap();
    let ran = run(&place, &["--yes", "--store", "a store", "--allow", "x", "--allow", "/"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("-{old}")), "{}", ran.stdout);
    let written: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let (store, x) = (place.path("a store"), fs::canonicalize(place.path("x")).unwrap());
    let args = json!(["mcp", "--store", store, "--allow", x, "--allow", "/"]);
    let entry = json!({ "command": program(), "args": args });
    assert_eq!(written["mcpServers"]["isolith"], entry);
    assert_eq!(run(&place, &["--yes", "--allow", "nowhere"]).status, Some(4));
}

#[test]
fn a_file_that_cannot_be_edited_fails_alone() {
    type Spoil = fn(&Place, &PathBuf);
    let cases: [(Spoil, i32, &str); 8] = [
        (|_, file| fs::write(file, "{\"mcpServers\": ").unwrap(), 3, "bad_input"),
        (|_, file| fs::write(file, "{\"mcpServers\": []}").unwrap(), 3, "bad_input"),
        (|_, file| fs::write(file, b"{\"\xff\": 1}").unwrap(), 3, "bad_input"),
        (|_, file| fs::create_dir(file).unwrap(), 3, "bad_input"),
        (|_, file| File::create(file).unwrap().set_len(65 << 20).unwrap(), 3, "too_large"),
        (|place, file| symlink(place.path("nowhere"), file).unwrap(), 1, "failed"),
        (
            |place, file| {
                fs::hard_link(put(place, "other.json", "{}"), file).unwrap();
            },
            1,
            "read_only",
        ),
        (
            |_, file| {
                fs::write(file, "{}").unwrap();
                fs::set_permissions(file, fs::Permissions::from_mode(0o444)).unwrap();
            },
            1,
            "read_only",
        ),
    ];
    for (spoil, status, code) in cases {
        let place = Place::new();
        fs::create_dir(place.path("home/.cursor")).unwrap();
        let codex = put(&place, "home/.codex/config.toml", "");
        let file = place.path(CURSOR);
        spoil(&place, &file);
        let before = fs::read(&file).ok();
        let (found, document) = json(&place, &["--yes"]);
        assert_eq!(found, status, "{document}");
        let report = report(&document, "cursor");
        assert_eq!((&report["action"], &report["error"]["code"]), (&json!("failed"), &json!(code)));
        let message = report["error"]["message"].as_str().unwrap();
        assert!(message.contains(file.to_str().unwrap()), "{message}");
        assert_eq!(fs::read(&file).ok(), before);
        assert!(fs::read_to_string(codex).unwrap().contains("isolith"), "the others go on");
    }
}

#[test]
fn links_and_modes_stay() {
    let place = Place::new();
    let target = put(&place, "dotfiles/servers.json", "{\n  \"mcpServers\": {}\n}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    // Two agents may well share a file.
    fs::create_dir_all(place.path("home/.cursor")).unwrap();
    fs::create_dir_all(place.path("home/.config/devin")).unwrap();
    let links = [CURSOR, "home/.config/devin/mcp_config.json"].map(|name| place.path(name));
    links.iter().for_each(|link| symlink(&target, link).unwrap());
    let before = fs::read(&target).unwrap();
    for arguments in [&["--yes"][..], &["--undo", "--yes"]] {
        let ran = run(&place, arguments);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(links.iter().all(|link| link.is_symlink()));
        assert_eq!(fs::read(&target).unwrap() == before, arguments.len() > 1);
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(files_in(&place.path("dotfiles")).len(), 1, "nothing is left aside");
    }
}

/// A command whose standard input and standard error are a terminal.
struct AtTerminal {
    child: Child,
    terminal: File,
    shown: String,
}

impl AtTerminal {
    fn start(mut command: Command) -> Self {
        let terminal =
            openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let name = ptsname(&terminal, Vec::new()).unwrap().into_string().unwrap();
        let end = || File::options().read(true).write(true).open(&name).unwrap();
        command.stdin(end()).stderr(end()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        Self { child, terminal: File::from(terminal), shown: String::new() }
    }

    /// Waits for the question.
    fn asked(&mut self) {
        let mut bytes = [0; 256];
        while !self.shown.contains("[y/N]") {
            let count = self.terminal.read(&mut bytes).unwrap();
            self.shown += &String::from_utf8_lossy(&bytes[..count]);
        }
    }

    fn answer(mut self, answer: &str) -> Ran {
        self.terminal.write_all(answer.as_bytes()).unwrap();
        let output = self.child.wait_with_output().unwrap();
        // What was told after the answer; the terminal has no other reader left.
        let mut told = Vec::new();
        let _ = self.terminal.read_to_end(&mut told);
        let stdout = String::from_utf8(output.stdout).unwrap();
        Ran { status: output.status.code(), stdout, stderr: String::from_utf8_lossy(&told).into() }
    }
}

#[test]
fn people_are_asked() {
    let place = Place::new();
    let file = put(&place, CURSOR, "{}");
    for (answer, written) in [("n\n", false), ("\n", false), ("\u{4}", false), ("y\n", true)] {
        let mut running = AtTerminal::start(setup(&place, &[]));
        running.asked();
        let ran = running.answer(answer);
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("+  \"isolith\""), "it was shown: {}", ran.stdout);
        assert_eq!(fs::read_to_string(&file).unwrap() != "{}", written, "{answer:?}");
    }
}

#[test]
fn what_changes_after_it_was_shown_is_not_overwritten() {
    let place = Place::new();
    let file = put(&place, CURSOR, "{}");
    let codex = place.path("home/.codex");
    fs::create_dir(&codex).unwrap();
    let mut running = AtTerminal::start(setup(&place, &[]));
    running.asked();
    fs::write(&file, "{\"new\": 1}").unwrap();
    fs::write(codex.join("config.toml"), "new = 1").unwrap();
    let ran = running.answer("y\n");
    assert_eq!(ran.status, Some(1), "{} {}", ran.stdout, ran.stderr);
    assert!(ran.stderr.contains("has changed since it was read"), "{}", ran.stderr);
    assert_eq!(fs::read_to_string(&file).unwrap(), "{\"new\": 1}");
    assert_eq!(fs::read_to_string(codex.join("config.toml")).unwrap(), "new = 1");
    assert_eq!(files_in(&codex).len(), 1, "nothing is left aside");
}
