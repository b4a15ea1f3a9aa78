//! Which files servers read, with repositories and stores that were made to lead
//! them out of the folders they were given.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod project;
mod test_env;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;

use agent::Agent;
use project::Project;
use rustix::fs::{CWD, RenameFlags, renameat_with};
use serde_json::{Value, json};
use test_env::wait_until;

const SECRET: &str = "zebra_handshake";

/// Exchanges a folder and a link to another one, over and over.
struct Swapper {
    folder: PathBuf,
    stop: Arc<AtomicBool>,
    swaps: Arc<AtomicU64>,
    thread: Option<JoinHandle<()>>,
}

impl Swapper {
    fn start(folder: &Path, outside: &Path) -> Self {
        let link = outside.with_extension("link");
        symlink(outside, &link).unwrap();
        let (stop, swaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
        let (message, counted, at) = (Arc::clone(&stop), Arc::clone(&swaps), folder.to_owned());
        let thread = std::thread::spawn(move || {
            while !message.load(Ordering::Relaxed) {
                renameat_with(CWD, &at, CWD, &link, RenameFlags::EXCHANGE).unwrap();
                counted.fetch_add(1, Ordering::Relaxed);
            }
        });
        Self { folder: folder.to_owned(), stop, swaps, thread: Some(thread) }
    }

    /// Stops, and leaves the folder where it was.
    fn stop(mut self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
        assert!(self.swaps.load(Ordering::Relaxed) > 100, "nothing was swapped");
        if self.folder.is_symlink() {
            let link = fs::read_link(&self.folder).unwrap().with_extension("link");
            renameat_with(CWD, &self.folder, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
    }
}

/// A tool's answer, whatever it is.
fn attempt(agent: &mut Agent, tool: &str, arguments: Value) -> Value {
    let answer = agent.ask("tools/call", json!({ "name": tool, "arguments": arguments }));
    answer["result"]["structuredContent"].clone()
}

fn agent_of(project: &Project) -> Agent {
    Agent::greeted(project.command(&["mcp"]))
}

#[test]
fn a_file_that_is_swapped_for_another_is_not_ingested() {
    let project = Project::sample();
    project.index(&[]);
    project.write("data/x.jsonl", "{\"id\":\"public\",\"embedding\":[1,2]}\n");
    let outside = project.env.path("outside");
    fs::create_dir(&outside).unwrap();
    let secret = format!("{{\"id\":\"{SECRET}\",\"embedding\":[1,2]}}\n");
    fs::write(outside.join("x.jsonl"), secret).unwrap();
    let mut agent = agent_of(&project);
    let swapper = Swapper::start(&project.folder().join("data"), &outside);
    let ask = json!({ "path": "data/x.jsonl", "collection": "c" });
    for _ in 0..25 {
        let answer = attempt(&mut agent, "ingest_file", ask.clone());
        let code = &answer["error"]["code"];
        let fine = code.is_null() || code == "forbidden_path" || code == "not_found";
        assert!(fine, "{answer}");
    }
    swapper.stop();
    assert_eq!(agent.call("ingest_file", ask)["count_after"], 1);
    assert_eq!(agent.leave(), Some(0));
    let all = project.json(&["collection", "get", "c"]).to_string();
    assert!(all.contains("public") && !all.contains(SECRET), "{all}");
}

#[test]
fn a_folder_that_is_swapped_for_another_is_not_indexed() {
    let project = Project::sample();
    let outside = project.env.path("outside");
    fs::create_dir(&outside).unwrap();
    for number in 0..40 {
        // Of the same length, so that not even the size tells them apart.
        let name = format!("file{number}.rs");
        project.write(&format!("part/{name}"), format!("fn public_handshake_{number}() {{}}\n"));
        fs::write(outside.join(name), format!("fn {SECRET}_{number}() {{}}\n")).unwrap();
    }
    let mut agent = agent_of(&project);
    agent.call("index_project", json!({}));
    let swapper = Swapper::start(&project.folder().join("part"), &outside);
    for _ in 0..6 {
        for ask in [json!({ "path": "part", "rebuild": true }), json!({ "rebuild": true })] {
            attempt(&mut agent, "index_project", ask);
            attempt(&mut agent, "search_similar", json!({ "path": "part/file1.rs" }));
        }
    }
    swapper.stop();
    let found = agent.call("search_code", json!({ "query": SECRET, "limit": 50 }));
    let shown = found.to_string();
    // The question is not part of the answer.
    assert!(!shown.contains(SECRET), "{shown}");
    assert_eq!(agent.leave(), Some(0));
    let found = project.search(&[SECRET, "--mode", "keyword"]).to_string();
    assert!(!found.contains(SECRET), "{found}");
}

#[test]
fn roots_that_only_the_store_knows_are_neither_indexed_nor_shown() {
    let project = Project::sample();
    project.index(&[]);
    let private = project.env.path("private");
    fs::create_dir(&private).unwrap();
    fs::write(private.join("diary.rs"), format!("pub fn {SECRET}() {{}}\n")).unwrap();
    let store = project.folder().join(".isolith");
    let other = private.to_str().unwrap();
    project.json(&["index", other, "--store", store.to_str().unwrap()]);
    // It is listed in the store, as in a store that somebody else made.
    assert!(project.search(&[SECRET, "--all-roots"]).to_string().contains("diary.rs"));

    let mut agent = agent_of(&project);
    let ask = json!({ "query": SECRET, "limit": 20 });
    let found = agent.call("search_code", ask.clone());
    assert!(!found.to_string().contains("diary"), "{found}");
    assert!(!found["hits"].as_array().unwrap().is_empty(), "the project is still searched");
    let similar = agent.call("search_similar", json!({ "path": "src/retry.rs", "limit": 20 }));
    assert!(!similar.to_string().contains("diary"), "{similar}");
    let diary = private.join("diary.rs");
    let error = agent.refused("read_chunk", json!({ "path": diary.to_str().unwrap() }));
    assert_eq!(error["code"], "forbidden_path");
    let query = json!({ "query": "MATCH (n) RETURN n" });
    assert_eq!(agent.refused("graph_query", query)["code"], "forbidden_path");
    let neighbours = agent.refused("graph_neighbours", json!({ "symbol": SECRET }));
    assert_eq!(neighbours["code"], "forbidden_path");
    let uri = format!("isolith://file/%2F{}", &diary.to_str().unwrap()[1..]);
    let read = agent.ask("resources/read", json!({ "uri": uri }));
    assert!(read["error"].is_object(), "{read}");

    // It is not watched either: changes in it are not seen.
    wait_until(|| agent.call("index_status", json!({}))["roots"][0]["watched"] == "here");
    let roots = agent.call("index_status", json!({}))["roots"].clone();
    assert_eq!(roots.as_array().unwrap().len(), 1, "{roots}");
    fs::write(private.join("new.rs"), "pub fn okapi_handshake() {}\n").unwrap();
    project.write("src/okapi.rs", "pub fn okapi_of_the_project() {}\n");
    let ask = json!({ "query": "okapi", "limit": 20 });
    wait_until(|| agent.call("search_code", ask.clone()).to_string().contains("src/okapi.rs"));
    assert_eq!(agent.leave(), Some(0));
    let found = project.search(&["okapi"]).to_string();
    assert!(!found.contains("new.rs"), "{found}");

    // If the folder is allowed, it is searched, and so is the graph.
    let mut agent = Agent::greeted(project.command(&["mcp", "--allow", other]));
    let ask = json!({ "query": SECRET, "limit": 20 });
    assert!(agent.call("search_code", ask).to_string().contains("diary.rs"));
    agent.call("graph_query", json!({ "query": "MATCH (n:File) RETURN n.path" }));
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn a_store_is_never_indexed_or_read() {
    let project = Project::sample();
    project.index(&[]);
    // Another project with a store beside it, and a store with another name.
    let beside = project.env.path("beside");
    fs::create_dir_all(beside.join("src")).unwrap();
    fs::write(beside.join("src/a.rs"), "pub fn beside() {}\n").unwrap();
    let kept = beside.join("kept");
    let kept_path = kept.to_str().unwrap();
    project.json(&["index", beside.to_str().unwrap(), "--store", kept_path]);
    fs::write(kept.join("notes.md"), format!("# {SECRET}\n")).unwrap();
    fs::write(kept.join("x.jsonl"), "{\"id\":\"a\",\"embedding\":[1,2]}\n").unwrap();

    let mut agent = Agent::greeted(project.command(&["mcp", "--allow", beside.to_str().unwrap()]));
    for (tool, path) in
        [("ingest_file", "x.jsonl"), ("search_similar", "notes.md"), ("index_project", "")]
    {
        let path = kept.join(path);
        let mut arguments = json!({ "path": path.to_str().unwrap() });
        if tool == "ingest_file" {
            arguments["collection"] = json!("c");
        }
        assert_eq!(agent.refused(tool, arguments)["code"], "forbidden_path", "{tool}");
    }
    let report = agent.call("index_project", json!({ "path": beside.to_str().unwrap() }));
    assert_eq!(report["files"]["indexed"], 1, "{report}");
    assert!(report["problems"].to_string().contains("kept"), "{report}");
    let found = agent.call("search_code", json!({ "query": SECRET, "limit": 20 }));
    assert!(!found.to_string().contains("notes.md"), "{found}");
    assert_eq!(agent.leave(), Some(0));
    let mut agent = Agent::greeted(project.command(&["mcp", "--allow", kept_path]));
    let error = agent.refused("index_project", json!({ "path": kept_path }));
    assert_eq!(error["code"], "forbidden_path");
    assert_eq!(agent.leave(), Some(0));
    project.fails(&["index", kept_path], 3, "forbidden_path");
}

#[test]
fn watching_a_part_leaves_the_rest_of_its_root_alone() {
    let project = Project::sample();
    project.index(&[]);
    project.write("tools/new.py", "def okapi_of_the_tools():\n    pass\n");
    let mut watching = test_env::Running::start(project.command(&["watch", "src"]));
    assert!(watching.prints("watching"));
    project.write("src/new.rs", "pub fn okapi_of_the_source() {}\n");
    wait_until(|| project.search(&["okapi"]).to_string().contains("src/new.rs"));
    watching.signal(rustix::process::Signal::INT);
    watching.finish();
    assert!(!project.search(&["okapi"]).to_string().contains("tools/new.py"));
}

#[test]
fn a_repository_with_huge_ignore_files_is_indexed_and_harms_no_server() {
    let project = Project::sample();
    let patterns: String = (0..400_000).map(|n| format!("*some_pattern{n:06}*.x\n")).collect();
    assert!(patterns.len() > 7 << 20);
    project.write(".gitignore", &patterns);
    project.write("src/.ignore", "retry*\n".repeat(20_001));
    let mut agent = agent_of(&project);
    let report = agent.call("index_project", json!({}));
    assert_eq!(report["files"]["indexed"], 6, "{report}");
    for path in [".gitignore", "src/.ignore"] {
        assert!(report["problems"].to_string().contains(path), "{report}");
    }
    assert_eq!(agent.leave(), Some(0));
    let report = project.index(&[]);
    let problem = &report["problems"][0];
    assert_eq!(
        (&problem["path"], &problem["code"]),
        (&json!(".gitignore"), &json!("ignore_rules"))
    );
}

#[test]
fn the_maximum_of_ignore_rules_fits_into_worker_memory() {
    let project = Project::sample();
    // The dear kind: each becomes an expression with several stars.
    let patterns: String = (0..19_000).map(|n| format!("*a{n}*b[0-9]*c{n}*\n")).collect();
    project.write(".gitignore", &patterns);
    let report = project.index(&[]);
    assert_eq!(report["files"]["indexed"], 6, "{report}");
}

#[test]
fn a_walk_that_always_crashes_is_reported() {
    let project = Project::sample();
    let mut command = project.command(&["mcp"]);
    command.env("ISOLITH_FAULT", "walk.page:abort");
    let mut agent = Agent::greeted(command);
    for _ in 0..2 {
        let error = agent.refused("index_project", json!({}));
        assert_eq!(error["code"], "quarantined", "{error}");
        let message = error["message"].as_str().unwrap();
        assert!(message.contains("cannot list the files"), "{error}");
    }
    agent.call("index_status", json!({}));
    assert_eq!(agent.leave(), Some(0));
}
