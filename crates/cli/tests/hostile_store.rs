//! Stores that came from somewhere else: nothing in them is believed, nothing outside of
//! them is touched.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use project::Project;
use test_env::files_in;

/// The folders of a store that an attacker may replace by links.
const INNER: [&str; 5] = ["segments", "quarantine", "crashes", "logs", "run"];

/// Commands that open a store for reading or writing.
const COMMANDS: [&[&str]; 7] = [
    &["index"],
    &["index", "--reembed"],
    &["search", "retry"],
    &["status"],
    &["doctor"],
    &["doctor", "--repair"],
    &["graph", "query", "MATCH (n) RETURN count(n)"],
];

/// A folder of a user's files, with names chosen by an attacker.
fn precious(project: &Project) -> PathBuf {
    let folder = project.env.path("precious");
    fs::create_dir(&folder).unwrap();
    let names = ["thesis.txt", "notes.json", ".profile", "c1-1-base-00000000.vec", "a.sqlite"];
    for name in names {
        let path = folder.join(name);
        fs::write(&path, "years of work").unwrap();
        let file = fs::File::options().write(true).open(path).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(1 << 20)).unwrap();
    }
    folder
}

fn git(folder: &Path, arguments: &[&str]) {
    let identity = ["-c", "user.name=n", "-c", "user.email=e", "-c", "commit.gpgsign=false"];
    let mut command = Command::new("git");
    command.current_dir(folder).args(identity).args(arguments);
    command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = command.output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// Takes the seal away, as a clone or an archive would not have a fitting one.
fn unseal(project: &Project) {
    fs::remove_file(project.folder().join(".isolith/seal")).unwrap();
}

#[test]
fn links_in_a_cloned_store_do_no_harm_outside() {
    for name in INNER {
        let project = Project::sample();
        let precious = precious(&project);
        let before = files_in(&precious);
        fs::create_dir(project.folder().join(".isolith")).unwrap();
        symlink(&precious, project.folder().join(".isolith").join(name)).unwrap();
        for arguments in COMMANDS {
            let ran = project.run(arguments);
            assert_ne!(ran.status, Some(0), "{name} {arguments:?}: {}", ran.stdout);
            assert_eq!(files_in(&precious), before, "{name} {arguments:?}");
        }
        project.fails(&["index"], 1, "store_foreign");
    }
}

#[test]
fn links_in_a_sealed_store_are_not_followed() {
    for name in INNER {
        let project = Project::sample();
        project.index(&[]);
        let precious = precious(&project);
        let before = files_in(&precious);
        let inner = project.folder().join(".isolith").join(name);
        let _ = fs::remove_dir_all(&inner);
        symlink(&precious, &inner).unwrap();
        for arguments in COMMANDS {
            project.run(arguments);
            assert_eq!(files_in(&precious), before, "{name} {arguments:?}");
        }
        project.fails(&["search", "retry"], 1, "store_foreign");
    }
}

#[test]
fn a_store_that_is_itself_a_link_is_refused() {
    let project = Project::sample();
    project.index(&[]);
    let real = project.folder().join(".isolith");
    let elsewhere = project.env.path("elsewhere");
    fs::rename(&real, &elsewhere).unwrap();
    symlink(&elsewhere, &real).unwrap();
    project.fails(&["search", "retry"], 1, "store_foreign");
    // Named by the user it is another matter.
    let named = project.json(&["search", "retry", "--store", elsewhere.to_str().unwrap()]);
    assert_ne!(named["hits"].as_array().unwrap().len(), 0);
}

#[test]
fn a_store_without_a_seal_is_refused_before_anything_in_it_is_opened() {
    let project = Project::sample();
    project.index(&[]);
    unseal(&project);
    // Not even a database: opening it would fail with another error.
    fs::write(project.folder().join(".isolith/truth.sqlite"), "not a database").unwrap();
    for arguments in COMMANDS {
        let error = project.fails(arguments, 1, "store_foreign");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains("isolith index --fresh") && hint.contains("isolith adopt"), "{hint}");
    }
}

#[test]
fn an_unreadable_seal_or_secret_is_refused() {
    let project = Project::sample();
    project.index(&[]);
    let truth = project.folder().join(".isolith/truth.sqlite");
    fs::write(&truth, "not a database").unwrap();
    let seal = project.folder().join(".isolith/seal");
    fs::remove_file(&seal).unwrap();
    // No user, not even root, can read a folder as a file.
    fs::create_dir(&seal).unwrap();
    for arguments in COMMANDS {
        project.fails(arguments, 1, "store_foreign");
    }
    let secret = project.env.path("home/.local/state/isolith/secret");
    fs::write(&secret, "broken").unwrap();
    for arguments in COMMANDS {
        assert_eq!(project.run(arguments).status, Some(1), "{arguments:?}");
    }
    assert_eq!(fs::read_to_string(&truth).unwrap(), "not a database");
}

#[test]
fn a_store_whose_truth_was_deleted_starts_again() {
    let project = Project::sample();
    project.index(&[]);
    let store = project.folder().join(".isolith");
    for name in ["truth.sqlite", "truth.sqlite-wal", "truth.sqlite-shm"] {
        let _ = fs::remove_file(store.join(name));
    }
    project.index(&[]);
    assert_ne!(project.paths(&["retry"]).len(), 0);
}

#[test]
fn hints_name_the_right_store() {
    let project = Project::sample();
    let elsewhere = project.env.path("else where");
    project.json(&["collection", "create", "a", "--store", elsewhere.to_str().unwrap()]);
    fs::remove_file(elsewhere.join("seal")).unwrap();
    let list = ["collection", "list", "--store", elsewhere.to_str().unwrap()];
    let error = project.fails(&list, 1, "store_foreign");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("else where") && !hint.contains("--fresh"), "{hint}");
    project.json(&["adopt", "--yes", "--store", elsewhere.to_str().unwrap()]);
    project.json(&list);
}

#[test]
fn fresh_moves_only_stores() {
    let project = Project::sample();
    let notes = project.env.path("notes");
    fs::create_dir(&notes).unwrap();
    fs::write(notes.join("diary.md"), "x").unwrap();
    project.fails(&["index", "--fresh", "--store", notes.to_str().unwrap()], 3, "bad_input");
    project.json(&["memory", "add", "remember", "--wing", "w", "--room", "r"]);
    let own = project.env.path("home/.local/share/isolith");
    project.fails(&["index", "--fresh", "--store", own.to_str().unwrap()], 3, "bad_input");
    assert!(notes.join("diary.md").exists() && own.join("truth.sqlite").exists());
}

#[test]
fn a_pipe_among_crash_reports_does_not_block() {
    let project = Project::sample();
    project.index(&[]);
    let pipe = project.folder().join(".isolith/crashes/1763424000000-17-0.json");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    project.json(&["status"]);
    project.json(&["doctor"]);
}

#[test]
fn seals_of_other_users_and_stores_are_refused() {
    let (one, other) = (Project::sample(), Project::sample());
    one.index(&[]);
    other.index(&[]);
    let seal = |project: &Project| project.folder().join(".isolith/seal");
    let own = fs::read(seal(&one)).unwrap();
    fs::copy(seal(&other), seal(&one)).unwrap();
    one.fails(&["search", "retry"], 1, "store_foreign");
    fs::write(seal(&one), &own).unwrap();
    assert_ne!(one.paths(&["retry"]).len(), 0);
    // A valid seal with a database that it was not made for.
    let truth = |project: &Project| project.folder().join(".isolith/truth.sqlite");
    fs::remove_dir_all(one.folder().join(".isolith/segments")).unwrap();
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(truth(&one).with_file_name(format!("truth.sqlite{suffix}")));
    }
    other.truth().query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    fs::copy(truth(&other), truth(&one)).unwrap();
    one.fails(&["search", "retry"], 1, "store_foreign");
}

#[test]
fn fresh_moves_the_whole_store_aside() {
    let project = Project::sample();
    project.index(&[]);
    unseal(&project);
    let before = files_in(&project.folder().join(".isolith"));
    project.index(&["--fresh"]);
    assert_ne!(project.paths(&["retry"]).len(), 0);
    let aside = files_in(&project.folder())
        .into_iter()
        .find(|path| path.to_string_lossy().contains(".isolith.old-"))
        .unwrap();
    let names = |files: Vec<PathBuf>| -> Vec<_> {
        files.iter().map(|file| file.file_name().unwrap().to_owned()).collect()
    };
    assert_eq!(names(files_in(&aside)), names(before));
    // Without a store there is nothing to move.
    fs::remove_dir_all(project.folder().join(".isolith")).unwrap();
    project.index(&["--fresh"]);
}

#[test]
fn adopt_checks_asks_drops_derived_data_and_seals() {
    let project = Project::sample();
    let outside = project.env.path("private");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("diary.md"), "# Secret thoughts\n").unwrap();
    project.index(&[]);
    project.index(&[outside.to_str().unwrap(), "--store", ".isolith"]);
    project.fails(&["adopt", "--yes"], 3, "already_exists");
    unseal(&project);
    let error = project.fails(&["adopt"], 2, "usage");
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("private"), "roots outside are listed: {message}");
    project.fails(&["search", "retry"], 1, "store_foreign");

    let segments = files_in(&project.folder().join(".isolith/segments"));
    let adopted = project.json(&["adopt", "--yes"]);
    assert_eq!(adopted["adopted"], true);
    assert_eq!(adopted["outside"].as_array().unwrap().len(), 1);
    let rebuilt = files_in(&project.folder().join(".isolith/segments"));
    assert!(!rebuilt.is_empty() && rebuilt.iter().all(|file| !segments.contains(file)));
    let receipts: i64 = project
        .truth()
        .query_row("SELECT count(*) FROM receipt WHERE keep", [], |row| row.get(0))
        .unwrap();
    assert_eq!(receipts, 0);
    assert_ne!(project.paths(&["retry"]).len(), 0);
    assert_eq!(project.json(&["doctor"])["ok"], true);
}

#[test]
fn the_database_alone_is_enough_to_restore_a_store() {
    let project = Project::sample();
    project.index(&[]);
    let before = project.paths(&["retry"]);
    let store = project.folder().join(".isolith");
    let copy = project.env.path("backup");
    fs::create_dir(&copy).unwrap();
    fs::copy(store.join("truth.sqlite"), copy.join("truth.sqlite")).unwrap();
    project.json(&["adopt", "--yes", "--store", copy.to_str().unwrap()]);
    assert_eq!(project.paths(&["retry", "--store", copy.to_str().unwrap()]), before);

    for folder in ["run", "segments", "quarantine", "crashes"] {
        let _ = fs::remove_dir_all(store.join(folder));
    }
    let repaired = project.json(&["doctor", "--repair"]);
    assert_eq!(repaired["ok"], true, "{repaired:#}");
    assert_eq!(project.paths(&["retry"]), before);
}

#[test]
fn a_damaged_or_tracked_store_is_not_adopted() {
    let project = Project::sample();
    project.index(&[]);
    unseal(&project);
    let truth = project.folder().join(".isolith/truth.sqlite");
    fs::write(&truth, vec![7; 100_000]).unwrap();
    let ran = project.run(&["adopt", "--yes"]);
    assert_ne!(ran.status, Some(0), "{}", ran.stdout);
    assert!(!project.folder().join(".isolith/seal").exists());

    git(&project.folder(), &["init", "-q"]);
    git(&project.folder(), &["add", "-f", ".isolith/lock"]);
    project.fails(&["adopt", "--yes"], 1, "store_refused");
    project.fails(&["index", "--fresh"], 1, "store_refused");
}

#[test]
fn a_store_with_files_tracked_by_git_is_refused() {
    for tracked in ["truth.sqlite.salvaged", "run/x", "segments/link", ".gitignore"] {
        let project = Project::sample();
        project.index(&[]);
        git(&project.folder(), &["init", "-q"]);
        assert_ne!(project.paths(&["retry"]).len(), 0, "nothing is tracked yet");
        let path = project.folder().join(".isolith").join(tracked);
        if !path.exists() {
            fs::write(&path, "").unwrap();
        }
        git(&project.folder(), &["add", "-f", path.to_str().unwrap()]);
        fs::remove_file(&path).unwrap();
        for arguments in COMMANDS {
            project.fails(arguments, 1, "store_refused");
        }
    }
}

#[test]
fn a_huge_git_index_is_harmless() {
    let project = Project::sample();
    fs::create_dir(project.folder().join(".git")).unwrap();
    let index = fs::File::create(project.folder().join(".git/index")).unwrap();
    index.set_len(20 << 30).unwrap();
    let error = project.fails(&["index"], 1, "store_refused");
    assert!(error["message"].as_str().unwrap().contains("too large"), "{error}");
}

#[test]
fn segment_names_outside_the_store_count_as_damage() {
    let project = Project::sample();
    project.index(&[]);
    let precious = precious(&project);
    let victim = precious.join("thesis.txt");
    for name in ["../../precious/thesis.txt", victim.to_str().unwrap(), "..", "a/b"] {
        let truth = project.truth();
        truth.execute("UPDATE segment SET file = ?1 WHERE kind = 'text'", [name]).unwrap();
        drop(truth);
        for arguments in COMMANDS {
            project.run(arguments);
            assert_eq!(fs::read_to_string(&victim).unwrap(), "years of work", "{arguments:?}");
        }
    }
}

#[test]
fn a_pipe_instead_of_a_segment_does_not_block() {
    let project = Project::sample();
    project.index(&[]);
    for file in files_in(&project.folder().join(".isolith/segments")) {
        fs::remove_file(&file).unwrap();
        let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
        let pipe = rustix::fs::FileType::Fifo;
        rustix::fs::mknodat(rustix::fs::CWD, &file, pipe, mode, 0).unwrap();
    }
    let found = project.search(&["retry"]);
    assert_ne!(found["hits"].as_array().unwrap().len(), 0);
    assert!(found["degraded"].is_string(), "{found}");
}

#[test]
fn a_forged_salvaged_database_is_not_used() {
    let (project, other) = (Project::sample(), Project::sample());
    project.index(&[]);
    other.write("evil.rs", "fn planted() {}\n");
    other.index(&[]);
    let store = |project: &Project| project.folder().join(".isolith");
    let planted = store(&project).join("truth.sqlite.salvaged");
    fs::copy(store(&other).join("truth.sqlite"), &planted).unwrap();
    for arguments in COMMANDS {
        project.run(arguments);
    }
    assert!(project.paths(&["retry"]).contains(&"src/retry.rs".to_owned()));
    assert!(!project.paths(&["planted"]).contains(&"evil.rs".to_owned()));
    assert!(planted.exists());
    let names: Vec<_> = files_in(&store(&project));
    assert!(!names.iter().any(|name| name.to_string_lossy().contains("damaged")), "{names:?}");
}

#[test]
fn only_files_with_our_names_are_deleted() {
    let project = Project::sample();
    project.index(&[]);
    let store = project.folder().join(".isolith");
    let old = SystemTime::now() - Duration::from_secs(1 << 20);
    let mut kept = Vec::new();
    for (folder, name) in [
        ("segments", "mine.vec"),
        ("segments", ".tmp-mine"),
        ("quarantine", "mine.txt"),
        ("crashes", "mine.json"),
        ("run", "mine"),
        ("run", "new-mine.sqlite"),
        ("logs", "mine.log"),
    ] {
        let path = store.join(folder).join(name);
        fs::write(&path, vec![b'x'; 100]).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(old).unwrap();
        kept.push(path);
    }
    project.write("src/new.rs", "fn added() {}\n");
    for arguments in [&["index"][..], &["index", "--rebuild"], &["doctor", "--repair"]] {
        project.json(arguments);
    }
    for path in kept {
        assert!(path.exists(), "{}", path.display());
    }
}

#[test]
fn a_moved_project_keeps_its_store_and_an_empty_folder_is_not_foreign() {
    let project = Project::sample();
    project.index(&[]);
    let moved = project.env.path("moved");
    fs::rename(project.env.path("project"), &moved).unwrap();
    let mut search = project.env.bare(&["search", "retry", "--json"]);
    let ran = test_env::Ran::of(&search.current_dir(&moved).output().unwrap());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr);

    fs::create_dir(project.env.path("empty")).unwrap();
    fs::create_dir(project.env.path("project")).unwrap();
    project.write("a.rs", "fn a() {}\n");
    project.index(&["--store", "../empty"]);
}

#[test]
fn the_users_store_is_sealed_automatically() {
    let project = Project::sample();
    let note = ["memory", "add", "remember this", "--wing", "w", "--room", "r"];
    project.json(&note);
    let seal = project.env.path("home/.local/share/isolith/seal");
    let secret = project.env.path("home/.local/state/isolith/secret");
    assert!(seal.exists() && secret.exists());
    fs::remove_file(&seal).unwrap();
    project.json(&["memory", "search", "remember"]);
    assert!(seal.exists(), "as a store of an earlier version");
    // With another secret it is still the user's.
    fs::remove_file(&secret).unwrap();
    project.json(&["memory", "add", "and this", "--wing", "w", "--room", "r"]);
    let found = project.json(&["memory", "list"]);
    assert_eq!(found["total"], 2, "{found}");
}
