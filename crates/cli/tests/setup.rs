//! `isolith setup` with the real program, each in its own home folder.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::{Value, json};
use test_env::{Ran, TestEnv, files_in};

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

fn setup(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.bare(&[&["setup"], arguments].concat());
    for name in ["XDG_CONFIG_HOME", "CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME"] {
        command.env_remove(name);
    }
    command
}

fn run(env: &TestEnv, arguments: &[&str]) -> Ran {
    Ran::of(&setup(env, arguments).output().unwrap())
}

/// Exit status and document.
fn json(env: &TestEnv, arguments: &[&str]) -> (i32, Value) {
    let ran = run(env, &[arguments, &["--json"]].concat());
    (ran.status.unwrap(), ran.document())
}

fn report<'a>(document: &'a Value, agent: &str) -> &'a Value {
    let agents = document["agents"].as_array().unwrap();
    agents.iter().find(|report| report["agent"] == agent).unwrap()
}

fn put(env: &TestEnv, name: &str, text: &str) -> PathBuf {
    let path = env.path(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    path
}

fn program() -> String {
    fs::canonicalize(env!("CARGO_BIN_EXE_isolith")).unwrap().to_str().unwrap().to_owned()
}

#[test]
fn setup_is_idempotent_and_undo_restores_the_files() {
    let env = TestEnv::new();
    for (_, name, text) in FILES {
        put(&env, name, text);
    }
    let (status, first) = json(&env, &["--yes"]);
    assert_eq!((status, &first["written"]), (0, &json!(true)), "{first}");
    let after: Vec<String> =
        FILES.iter().map(|(_, name, _)| fs::read_to_string(env.path(name)).unwrap()).collect();
    for ((agent, name, _), after) in FILES.iter().zip(&after) {
        let report = report(&first, agent);
        assert_eq!(report["action"], "added", "{report}");
        assert_eq!(report["path"], env.path(name).to_str().unwrap());
        assert!(report["diff"].as_str().unwrap().contains(&program()), "{report}");
        assert!(after.contains(&program()) && after.contains("[\"mcp\"]"), "{after}");
    }

    let (status, second) = json(&env, &["--yes"]);
    assert_eq!((status, &second["written"]), (0, &json!(false)));
    let (status, undone) = json(&env, &["--undo", "--yes"]);
    assert_eq!((status, &undone["written"]), (0, &json!(true)));
    for (agent, name, text) in FILES {
        assert_eq!(report(&second, agent)["action"], "unchanged");
        assert_eq!(report(&undone, agent)["action"], "removed");
        assert_eq!(fs::read_to_string(env.path(name)).unwrap(), text, "{agent}");
        let left = files_in(env.path(name).parent().unwrap());
        assert!(!left.iter().any(|file| file.to_str().unwrap().contains(".isolith-")), "{left:?}");
    }
    let (status, again) = json(&env, &["--undo", "--yes"]);
    assert_eq!((status, &again["written"]), (0, &json!(false)));
    assert_eq!(report(&again, "codex")["action"], "none");
}

#[test]
fn missing_agents_are_skipped_unless_named() {
    let env = TestEnv::new();
    fs::create_dir(env.path("home/.cursor")).unwrap();
    let (status, document) = json(&env, &["--yes"]);
    assert_eq!(status, 0, "{document}");
    for (agent, ..) in FILES {
        let there = agent == "cursor";
        let action = if there { "added" } else { "none" };
        let report = report(&document, agent);
        assert_eq!((&report["found"], &report["action"]), (&json!(there), &json!(action)));
    }
    assert_eq!(files_in(&env.path("home")), [env.path("home/.cursor")]);
    assert_eq!(env.path(CURSOR).metadata().unwrap().permissions().mode() & 0o777, 0o600);

    let (status, document) = json(&env, &["--agent", "vs-code", "--agent", "codex", "--yes"]);
    assert_eq!((status, document["agents"].as_array().unwrap().len()), (0, 2), "{document}");
    assert_eq!(report(&document, "vscode")["found"], false);
    let code = env.path("home/.config/Code/User/mcp.json");
    let written: Value = serde_json::from_slice(&fs::read(&code).unwrap()).unwrap();
    let entry = json!({ "type": "stdio", "command": program(), "args": ["mcp"] });
    assert_eq!(written, json!({ "servers": { "isolith": entry } }));

    // A file that setup created is removed again.
    assert_eq!(run(&env, &["--undo", "--yes"]).status, Some(0));
    let files = [env.path(CURSOR), env.path("home/.codex/config.toml"), code];
    assert!(files.iter().all(|file| !file.exists()));
}

#[test]
fn environment_variables_change_paths() {
    let env = TestEnv::new();
    let mut command = setup(&env, &["--dry-run", "--json"]);
    for (variable, folder) in [
        ("XDG_CONFIG_HOME", "config"),
        ("CLAUDE_CONFIG_DIR", "claude"),
        ("CODEX_HOME", "codex"),
        ("GEMINI_CLI_HOME", "gemini"),
    ] {
        fs::create_dir(env.path(folder)).unwrap();
        command.env(variable, env.path(folder));
    }
    let document = Ran::of(&command.output().unwrap()).document();
    for (agent, path, found) in [
        ("claude-code", "claude/.claude.json", true),
        ("codex", "codex/config.toml", true),
        ("gemini", "gemini/.gemini/settings.json", false),
        ("vscode", "config/Code/User/mcp.json", false),
    ] {
        let report = report(&document, agent);
        assert_eq!(report["path"], env.path(path).to_str().unwrap());
        assert_eq!(report["found"], found, "{report}");
    }
}

#[test]
fn nothing_is_written_without_confirmation() {
    let env = TestEnv::new();
    let file = put(&env, CURSOR, "{}");
    for (arguments, status) in [(&["--dry-run"][..], 0), (&[], 2)] {
        let ran = run(&env, arguments);
        assert_eq!(ran.status, Some(status), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("+{\"mcpServers\": {"), "it is shown: {}", ran.stdout);
        assert_eq!(ran.stderr.contains("--yes"), status == 2, "{}", ran.stderr);
        let (found, document) = json(&env, arguments);
        assert_eq!((found, &document["written"]), (status, &json!(false)));
        assert_eq!(report(&document, "cursor")["action"], "added");
    }
    assert_eq!(fs::read_to_string(file).unwrap(), "{}");
    assert_eq!(files_in(&env.path("home/.cursor")).len(), 1);
    assert_eq!(run(&env, &["--dry-run", "--yes"]).status, Some(2));
}

#[test]
fn an_older_entry_is_shown_and_replaced() {
    let env = TestEnv::new();
    let old = r#"{"mcpServers": {"isolith": {"command": "/old/isolith", "args": ["mcp"]}}}"#;
    let file = put(&env, CURSOR, old);
    fs::create_dir(env.path("x")).unwrap();
    let ran = run(&env, &["--yes", "--store", "a store", "--allow", "x", "--allow", "/"]);
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(ran.stdout.contains(&format!("-{old}")), "{}", ran.stdout);
    let written: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let (store, x) = (env.path("a store"), fs::canonicalize(env.path("x")).unwrap());
    let args = json!(["mcp", "--store", store, "--allow", x, "--allow", "/"]);
    let entry = json!({ "command": program(), "args": args });
    assert_eq!(written["mcpServers"]["isolith"], entry);
    assert_eq!(run(&env, &["--yes", "--allow", "nowhere"]).status, Some(4));
}

#[test]
fn a_file_that_cannot_be_edited_does_not_stop_the_others() {
    type Spoil = fn(&TestEnv, &PathBuf);
    let cases: [(Spoil, i32, &str); 8] = [
        (|_, file| fs::write(file, "{\"mcpServers\": ").unwrap(), 3, "bad_input"),
        (|_, file| fs::write(file, "{\"mcpServers\": []}").unwrap(), 3, "bad_input"),
        (|_, file| fs::write(file, b"{\"\xff\": 1}").unwrap(), 3, "bad_input"),
        (|_, file| fs::create_dir(file).unwrap(), 3, "bad_input"),
        (|_, file| File::create(file).unwrap().set_len(65 << 20).unwrap(), 3, "too_large"),
        (|env, file| symlink(env.path("nowhere"), file).unwrap(), 1, "failed"),
        (
            |env, file| {
                fs::hard_link(put(env, "other.json", "{}"), file).unwrap();
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
        let env = TestEnv::new();
        fs::create_dir(env.path("home/.cursor")).unwrap();
        let codex = put(&env, "home/.codex/config.toml", "");
        let file = env.path(CURSOR);
        spoil(&env, &file);
        let before = fs::read(&file).ok();
        let (found, document) = json(&env, &["--yes"]);
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
fn links_and_modes_are_kept() {
    let env = TestEnv::new();
    let target = put(&env, "dotfiles/servers.json", "{\n  \"mcpServers\": {}\n}\n");
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    // Two agents may well share a file.
    fs::create_dir_all(env.path("home/.cursor")).unwrap();
    fs::create_dir_all(env.path("home/.config/devin")).unwrap();
    let links = [CURSOR, "home/.config/devin/mcp_config.json"].map(|name| env.path(name));
    links.iter().for_each(|link| symlink(&target, link).unwrap());
    let before = fs::read(&target).unwrap();
    for arguments in [&["--yes"][..], &["--undo", "--yes"]] {
        let ran = run(&env, arguments);
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        assert!(links.iter().all(|link| link.is_symlink()));
        assert_eq!(fs::read(&target).unwrap() == before, arguments.len() > 1);
        assert_eq!(target.metadata().unwrap().permissions().mode() & 0o777, 0o640);
        assert_eq!(files_in(&env.path("dotfiles")).len(), 1, "nothing is left aside");
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
        // The output after the answer; nothing else reads the terminal.
        let mut message = Vec::new();
        let _ = self.terminal.read_to_end(&mut message);
        let stdout = String::from_utf8(output.stdout).unwrap();
        Ran {
            status: output.status.code(),
            stdout,
            stderr: String::from_utf8_lossy(&message).into(),
        }
    }
}

#[test]
fn setup_asks_for_confirmation() {
    let env = TestEnv::new();
    let file = put(&env, CURSOR, "{}");
    for (answer, written) in [("n\n", false), ("\n", false), ("\u{4}", false), ("y\n", true)] {
        let mut running = AtTerminal::start(setup(&env, &[]));
        running.asked();
        let ran = running.answer(answer);
        assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);
        assert!(ran.stdout.contains("+  \"isolith\""), "it was shown: {}", ran.stdout);
        assert_eq!(fs::read_to_string(&file).unwrap() != "{}", written, "{answer:?}");
    }
}

#[test]
fn concurrent_changes_are_not_overwritten() {
    let env = TestEnv::new();
    let file = put(&env, CURSOR, "{}");
    let codex = env.path("home/.codex");
    fs::create_dir(&codex).unwrap();
    let mut running = AtTerminal::start(setup(&env, &[]));
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

/// Where each agent keeps its hooks, and how such a file may look.
const HOOK_FILES: [(&str, &str, &str); 4] = [
    (
        "claude-code",
        "home/.claude/settings.json",
        "{\n  \"model\": \"m\",\n  \"hooks\": {\n    \"Stop\": [\n      {\"hooks\": [{\"type\": \"command\", \"command\": \"beep\"}]}\n    ]\n  }\n}\n",
    ),
    ("cursor", "home/.cursor/hooks.json", "{\"version\": 1, \"hooks\": {}}\n"),
    ("codex", "home/.codex/hooks.json", "{ }"),
    ("gemini", "home/.gemini/settings.json", "{\n\t// mine\r\n\t\"theme\": \"Dracula\"\n}"),
];

#[test]
fn hooks_are_registered_and_undone() {
    let env = TestEnv::new();
    for (_, name, text) in HOOK_FILES {
        put(&env, name, text);
    }
    let (status, shown) = json(&env, &["--hooks", "--dry-run"]);
    assert_eq!((status, &shown["written"]), (0, &json!(false)));
    let (status, first) = json(&env, &["--hooks", "--prompts", "--yes"]);
    assert_eq!((status, &first["written"]), (0, &json!(true)), "{first}");
    assert_eq!(first["agents"].as_array().unwrap().len(), HOOK_FILES.len());
    for (agent, name, text) in HOOK_FILES {
        assert_ne!(report(&first, agent)["diff"], Value::Null, "{first}");
        let after = fs::read_to_string(env.path(name)).unwrap();
        let command = format!("{} hook session-start --client {agent}", program());
        assert!(after.contains(&command), "{after}");
        assert_eq!(after.matches("beep").count(), text.matches("beep").count());
    }
    let (_, second) = json(&env, &["--hooks", "--prompts", "--yes"]);
    assert_eq!(second["written"], json!(false));
    let (status, undone) = json(&env, &["--hooks", "--undo", "--yes"]);
    assert_eq!((status, &undone["written"]), (0, &json!(true)));
    for (agent, name, text) in HOOK_FILES {
        assert_eq!(fs::read_to_string(env.path(name)).unwrap(), text, "{agent}");
    }
}

#[test]
fn hooks_are_for_agents_that_have_them() {
    let env = TestEnv::new();
    let refused = run(&env, &["--hooks", "--agent", "vscode", "--yes"]);
    assert_eq!(refused.status, Some(2));
    assert!(refused.stderr.contains("VS Code has no hooks"), "{}", refused.stderr);
    let (status, made) = json(&env, &["--hooks", "--agent", "codex", "--yes"]);
    assert_eq!((status, &made["written"]), (0, &json!(true)));
    assert!(env.path("home/.codex/hooks.json").exists());
    json(&env, &["--hooks", "--agent", "codex", "--undo", "--yes"]);
    assert!(!env.path("home/.codex/hooks.json").exists());
}
