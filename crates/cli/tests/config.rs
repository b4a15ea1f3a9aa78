//! Configuration files, through the real program.
#![allow(clippy::unwrap_used, clippy::panic, missing_docs)]

mod agent;
mod project;
mod test_env;

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use agent::Agent;
use project::Project;
use serde_json::{Value, json};
use test_env::Ran;

fn set_user(project: &Project, text: &str) {
    let folder = project.env.path("home/.config/isolith");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("config.toml"), text).unwrap();
}

/// What a setting is, and the kind of source that it comes from.
fn setting(
    project: &Project,
    arguments: &[&str],
    variable: Option<(&str, &str)>,
    key: &str,
) -> Value {
    let mut command = project.command(&[&["config", "show", "--json"], arguments].concat());
    command.envs(variable);
    let document = Ran::of(&command.output().unwrap()).document();
    let settings = document["settings"].as_array().unwrap();
    let found = settings.iter().find(|it| it["key"] == key).unwrap();
    json!([found["value"], found["source"]["kind"]])
}

fn hits(mut command: Command) -> usize {
    let ran = Ran::of(&command.arg("--json").output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    ran.document()["hits"].as_array().unwrap().len()
}

fn paths(project: &Project) -> Vec<String> {
    let ran = Ran::of(
        &project
            .command(&["search", "retry header record", "--files-only", "-n", "50"])
            .output()
            .unwrap(),
    );
    let mut paths: Vec<String> = ran.stdout.lines().map(str::to_owned).collect();
    paths.sort();
    paths
}

fn index(project: &Project) -> Ran {
    let ran = Ran::of(&project.command(&["index"]).output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    ran
}

#[test]
fn flags_take_precedence_over_environment_project_and_user() {
    let project = Project::sample();
    index(&project);
    let shown = |variable| setting(&project, &[], variable, "limits.results");
    assert_eq!(shown(None), json!([null, "default"]));
    set_user(&project, "limits.results = 3\n");
    assert_eq!(shown(None), json!([3, "user_file"]));
    project.write(".isolith.toml", "limits.results = 2\n");
    assert_eq!(shown(None), json!([2, "project_file"]));
    let variable = ("ISOLITH_LIMITS_RESULTS", "1");
    assert_eq!(shown(Some(variable)), json!([1, "environment"]));
    assert_eq!(setting(&project, &["--store", "x"], None, "store"), json!(["x", "flag"]));

    let search =
        |more: &[&str]| project.command(&[&["search", "the delay of a record"], more].concat());
    assert_eq!(hits(search(&[])), 2);
    let mut command = search(&[]);
    command.env(variable.0, variable.1);
    assert_eq!(hits(command), 1);
    assert_eq!(hits(search(&["-n", "3"])), 3);
}

#[test]
fn ignored_paths_and_languages_hold_for_every_run() {
    let project = Project::sample();
    index(&project);
    let all = paths(&project);
    assert!(all.iter().any(|path| path.ends_with(".py")), "{all:?}");
    set_user(&project, "index.ignore = [\"store.rs\"]\n");
    project.write(".isolith.toml", "index.languages = [\"rust\"]\n");
    index(&project);
    let fewer = paths(&project);
    let expected: Vec<String> = all
        .into_iter()
        .filter(|path| path.ends_with(".rs") && !path.ends_with("/store.rs"))
        .collect();
    assert_eq!(fewer, expected);

    // A server that indexes again has the same settings.
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    agent.call("index_project", json!({ "rebuild": true }));
    drop(agent);
    assert_eq!(paths(&project), expected);
}

#[test]
fn servers_use_the_limits() {
    let project = Project::sample();
    index(&project);
    project.write(".isolith.toml", "limits.results = 1\n");
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let found = agent.call("search_code", json!({ "query": "the delay of a record" }));
    assert_eq!(found["hits"].as_array().unwrap().len(), 1, "{found}");
}

#[test]
fn a_hostile_project_cannot_change_protected_settings() {
    let project = Project::sample();
    index(&project);
    project.write(
        ".isolith.toml",
        "store = \"/evil\"\nsecret_file = \"/evil\"\nlog = \"trace\"\n\
         index.max_file_size = \"32M\"\n\
         [server]\nlisten = \"0.0.0.0:1\"\nallow = [\"/\"]\ntoken_file = \"/evil\"\n\
         [collection]\nmodel = \"evil\"\n",
    );
    let ran = Ran::of(&project.command(&["search", "retry"]).output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);
    assert!(!ran.stdout.is_empty());
    let message: Vec<&str> = ran.stderr.lines().collect();
    assert_eq!(message.len(), 8, "{message:?}");
    for (key, line) in [
        ("store", 1),
        ("secret_file", 2),
        ("log", 3),
        ("index.max_file_size", 4),
        ("server.listen", 6),
        ("server.allow", 7),
        ("server.token_file", 8),
        ("collection.model", 10),
    ] {
        let expected = format!(".isolith.toml:{line}: \"{key}\" is ignored: ");
        assert!(message.iter().any(|it| it.contains(&expected)), "{expected}: {message:?}");
        assert_eq!(setting(&project, &[], None, key), json!([null, "default"]));
    }
}

#[test]
fn config_errors_stop_commands_but_not_servers() {
    let project = Project::sample();
    index(&project);
    project.write(".isolith.toml", "[limits]\nresult = 3\n");
    for arguments in [&["search", "retry"][..], &["index"], &["config", "show"]] {
        let error = project.env.fails_as(project.command(arguments), 3, "bad_input");
        let message = error["message"].as_str().unwrap();
        assert!(message.ends_with(".isolith.toml:2: unknown key \"limits.result\""), "{message}");
    }
    let ran = Ran::of(&project.command(&["status"]).output().unwrap());
    assert_eq!(ran.status, Some(0), "status needs no settings of a project: {}", ran.stderr);
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let found = agent.call("search_code", json!({ "query": "retry" }));
    assert!(!found["hits"].as_array().unwrap().is_empty(), "{found}");
    drop(agent);

    project.write(".isolith.toml", "index.languages = [\"klingon\"]\n");
    let error = project.env.fails_as(project.command(&["index"]), 3, "bad_input");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains(".isolith.toml:1: ") && message.contains("klingon"), "{message}");

    project.write(".isolith.toml", "");
    set_user(&project, "server.listen = \"nowhere\"\n");
    let error = project.env.fails_as(project.command(&["serve"]), 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("config.toml:1: \"server.listen\""));
    set_user(&project, "limits.rows = 0\n");
    let error = project.env.fails_as(project.command(&["status"]), 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("config.toml:1: \"limits.rows\""));
    assert_eq!(project.command(&["completions", "bash"]).output().unwrap().status.code(), Some(0));
}

#[test]
fn a_link_out_of_the_project_is_not_followed() {
    let project = Project::sample();
    index(&project);
    let outside = project.env.path("outside.toml");
    fs::write(&outside, "limits.results = 1\n").unwrap();
    symlink(&outside, project.env.path("project/.isolith.toml")).unwrap();
    let error = project.env.fails_as(project.command(&["search", "retry"]), 3, "bad_input");
    assert!(error["message"].as_str().unwrap().ends_with("it is a symbolic link"), "{error}");
}

#[test]
fn config_path_shows_the_files() {
    let project = Project::sample();
    project.write(".isolith.toml", "");
    let document =
        Ran::of(&project.command(&["config", "path", "--json"]).output().unwrap()).document();
    let files = document["files"].as_array().unwrap();
    assert_eq!((&files[0]["kind"], &files[0]["exists"]), (&json!("user"), &json!(false)));
    assert_eq!((&files[1]["kind"], &files[1]["exists"]), (&json!("project"), &json!(true)));
    let ran = Ran::of(&project.command(&["config", "path"]).output().unwrap());
    assert!(ran.stdout.contains("config.toml (does not exist)\n"), "{}", ran.stdout);
    assert!(ran.stdout.ends_with("/project/.isolith.toml\n"), "{}", ran.stdout);
}

#[test]
fn new_collections_have_the_metric_of_the_user() {
    let project = Project::sample();
    set_user(&project, "[collection]\nmetric = \"l2\"\n");
    project.env.write("rows.jsonl", "{\"id\": \"a\", \"embedding\": [1, 2]}\n");
    let path = project.env.path("rows.jsonl");
    let file = path.to_str().unwrap();
    let run = |arguments: &[&str]| {
        let arguments = [arguments, &["--user", "--json"]].concat();
        let ran = Ran::of(&project.command(&arguments).output().unwrap());
        assert_eq!(ran.status, Some(0), "{}", ran.stderr);
        ran.document()
    };
    run(&["ingest", file, "--collection", "loaded"]);
    run(&["collection", "create", "created"]);
    run(&["collection", "create", "asked", "--metric", "dot"]);
    // One that exists keeps its own.
    run(&["ingest", file, "--collection", "asked"]);
    let listed = run(&["collection", "list"]);
    let metrics = listed["collections"].as_array().unwrap().iter();
    let metrics: Vec<_> = metrics.map(|it| json!([it["name"], it["metric"]])).collect();
    let expected = [["asked", "dot"], ["created", "l2"], ["loaded", "l2"]];
    assert_eq!(json!(metrics), json!(expected));
}
