//! Stores in trouble, through the real binary: full and read-only disks, missing
//! rights, foreign files, other versions, and folders that vanish.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use test_env::{Ran, Running, TestEnv, vector};

/// An unprivileged user.
const NOBODY: u32 = 65_534;

/// A filesystem that is gone at the end of the test.
struct Mounted(PathBuf);

impl Mounted {
    /// None, with a message, where that is not allowed.
    fn new(at: &Path, arguments: &[&str]) -> Option<Self> {
        fs::create_dir_all(at).unwrap();
        let output = Command::new("mount").args(arguments).arg(at).output();
        if output.as_ref().is_ok_and(|output| output.status.success()) {
            return Some(Self(at.to_owned()));
        }
        eprintln!("skipped: mounting is not possible here: {output:?}");
        None
    }

    fn remount(&self, options: &str) {
        let options = format!("remount,{options}");
        let status = Command::new("mount").args(["-o", &options]).arg(&self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // Lazily: a process that a failed test left may still be in there.
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).status();
    }
}

/// Whether this process may run the binary as an unprivileged user.
fn can_be_nobody(env: &TestEnv) -> bool {
    let mut command = env.bare(&["--version"]);
    let output = command.current_dir("/").uid(NOBODY).gid(NOBODY).output();
    let can = output.as_ref().is_ok_and(|output| output.status.success());
    if !can {
        eprintln!("skipped: cannot run the binary as another user: {output:?}");
    }
    can
}

/// A store with 200 records in `a`.
fn filled() -> TestEnv {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..200, 8);
    env.json(&["ingest", &file, "--collection", "a"]);
    env.write("query", json!(vector(17, 8)).to_string());
    env
}

const QUERY: [&str; 7] = ["collection", "query", "a", "--vector", "query", "--limit", "5"];

#[test]
fn a_full_disk_is_reported_and_loses_nothing() {
    let env = TestEnv::new();
    let Some(disk) = Mounted::new(&env.store(), &["-t", "tmpfs", "-o", "size=2m", "tmpfs"]) else {
        return;
    };
    let file = env.write_rows("rows", 0..4_000, 32);
    let load = ["ingest", &file, "--collection", "a", "--json"];
    let ran = env.run(&load);
    let receipt = ran.document();
    assert_eq!(
        (ran.status, &receipt["error"]["code"]),
        (Some(1), &json!("disk_full")),
        "{receipt}"
    );
    let kept = receipt["inserted"].as_u64().unwrap();
    assert_eq!(env.count("a"), kept, "what was acknowledged is there, and no more");
    // The last free byte goes too; reading works on.
    let _ = fs::write(env.store().join("ballast"), vec![0; 4 << 20]);
    let found = env.ids(&["collection", "query", "a", "--keywords", "topic3", "--limit", "3"]);
    assert_eq!(found.len(), 3);
    let receipt = env.run(&load).document();
    assert_eq!(receipt["error"]["code"], "disk_full");
    // Truncating the log may have freed some space.
    let kept = receipt["inserted"].as_u64().unwrap().max(kept);
    assert_eq!(env.count("a"), kept);
    fs::remove_file(env.store().join("ballast")).unwrap();
    disk.remount("size=64m");
    let receipt = env.json(&load[..4]);
    assert_eq!((&receipt["inserted"], &receipt["count_after"]), (&json!(4_000), &json!(4_000)));
    assert_eq!(receipt["resumed_at"], kept);
    assert_sound(&env);
}

#[test]
fn a_read_only_store_can_be_read() {
    let env = filled();
    let expected = env.json(&QUERY);
    let store = env.store();
    let Some(mounted) = Mounted::new(&store, &["--bind", store.to_str().unwrap()]) else { return };
    mounted.remount("bind,ro");
    assert_eq!(env.json(&QUERY), expected);
    assert_eq!(env.count("a"), 200);
    for arguments in [
        &["collection", "create", "b"][..],
        &["collection", "delete", "a", "--yes"],
        &["collection", "delete", "a", "--id", "r1"],
        &["collection", "rename", "a", "b"],
    ] {
        env.fails(arguments, 1, "read_only");
    }
    let receipt = env.run(&["ingest", "rows", "--collection", "b", "--json"]).document();
    assert_eq!(receipt["error"]["code"], "read_only");
    // A damaged segment cannot be quarantined there; the answer is right all the same.
    drop(mounted);
    let vectors = segment(&env, "vec");
    fs::write(&vectors, "not a segment").unwrap();
    let Some(mounted) = Mounted::new(&store, &["--bind", store.to_str().unwrap()]) else { return };
    mounted.remount("bind,ro");
    let found = env.json(&QUERY);
    assert_eq!(found["hits"], expected["hits"]);
    assert!(found["degraded"].is_string(), "{found}");
}

/// The same, as an unprivileged user who owns files without write permission.
#[test]
fn missing_permissions_are_reported() {
    let env = filled();
    if !can_be_nobody(&env) {
        return;
    }
    let foreign = env.fails_as(as_nobody(&env, &["collection", "list"]), 1, "store_refused");
    assert!(foreign["message"].as_str().unwrap().contains("belongs to user"), "{foreign}");
    open_ways(&env);
    fs::set_permissions(env.store(), fs::Permissions::from_mode(0o755)).unwrap();
    env.fails_as(as_nobody(&env, &["collection", "list"]), 1, "store_refused");
    give_away(&env.store());
    env.fails(&["collection", "list"], 1, "store_refused");
    let list = |status, code| {
        env.fails_as(as_nobody(&env, &["collection", "list"]), status, code);
    };
    let ran = Ran::of(&as_nobody(&env, &QUERY).arg("--json").output().unwrap());
    assert_eq!(ran.status, Some(0), "{} {}", ran.stdout, ran.stderr);

    let mode = |name: &str, mode| {
        let path = env.store().join(name);
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    for name in ["truth.sqlite", "truth.sqlite-wal", "truth.sqlite-shm", ""] {
        mode(name, if name.is_empty() { 0o500 } else { 0o400 });
    }
    let create = as_nobody(&env, &["collection", "create", "b"]);
    env.fails_as(create, 1, "read_only");
    mode("truth.sqlite", 0o000);
    list(1, "read_only");
    mode("", 0o000);
    list(1, "read_only");
    mode("", 0o700);
    mode("truth.sqlite", 0o600);
    let mut elsewhere = env.bare(&["collection", "create", "b", "--store", "home/not mine"]);
    elsewhere.uid(NOBODY).gid(NOBODY);
    env.fails_as(elsewhere, 1, "read_only");
}

/// The binary as an unprivileged user, with this environment's store.
fn as_nobody(env: &TestEnv, arguments: &[&str]) -> Command {
    let mut command = env.command(arguments);
    command.uid(NOBODY).gid(NOBODY);
    // The same secret, in a file of theirs: whose the store is, is not the question here.
    let secret = env.path("secret of nobody");
    fs::copy(env.path("home/.local/state/isolith/secret"), &secret).unwrap();
    chown(&secret, Some(NOBODY), Some(NOBODY)).unwrap();
    command.env("ISOLITH_SECRET_FILE", secret);
    command
}

/// Lets others walk to the store, though not into it.
fn open_ways(env: &TestEnv) {
    let folder = env.path("");
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

fn give_away(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
    if path.is_dir() {
        test_env::files_in(path).iter().for_each(|path| give_away(path));
    }
}

#[test]
fn a_folder_that_is_not_a_store_is_not_touched() {
    for content in
        [&b"SQLite format 3\0 but nothing else"[..], b"a text that happens to have this name", b""]
    {
        let env = TestEnv::new();
        fs::create_dir(env.store()).unwrap();
        let truth = env.store().join("truth.sqlite");
        fs::write(&truth, content).unwrap();
        for command in ["list", "create", "delete"] {
            let name = if command == "list" { &[][..] } else { &["a"] };
            env.fails(&[&["collection", command][..], name].concat(), 1, "store_foreign");
        }
        assert_eq!(fs::read(&truth).unwrap(), content);
    }
}

/// The database of another program is nothing to write into.
#[test]
fn the_database_of_another_program_is_refused() {
    let env = TestEnv::new();
    fs::create_dir(env.store()).unwrap();
    env.truth().execute_batch("CREATE TABLE t (x); INSERT INTO t VALUES (1)").unwrap();
    let before = fs::read(env.store().join("truth.sqlite")).unwrap();
    for arguments in [&["collection", "list"][..], &["collection", "create", "a"]] {
        env.fails(arguments, 1, "store_foreign");
    }
    assert_eq!(fs::read(env.store().join("truth.sqlite")).unwrap(), before);
}

#[test]
fn a_newer_store_is_not_touched() {
    let env = filled();
    let truth = env.truth();
    let version: u32 = truth.query_row("PRAGMA user_version", [], |row| row.get(0)).unwrap();
    truth.pragma_update(None, "user_version", 1_000).unwrap();
    let state = "SELECT (SELECT last_change FROM store) || (SELECT count(*) FROM record)";
    let before: String = truth.query_row(state, [], |row| row.get(0)).unwrap();
    for arguments in [
        &["collection", "list"][..],
        &["collection", "create", "b"],
        &["collection", "delete", "a", "--yes"],
        &QUERY,
    ] {
        let error = env.fails(arguments, 75, "store_newer");
        assert!(error["message"].as_str().unwrap().contains("1000"), "{error}");
    }
    let receipt = env.run(&["ingest", "rows", "--collection", "a", "--json"]).document();
    assert_eq!(receipt["error"]["code"], "store_newer");
    let after: String = truth.query_row(state, [], |row| row.get(0)).unwrap();
    assert_eq!(before, after);
    truth.pragma_update(None, "user_version", version).unwrap();
    assert_eq!(env.count("a"), 200);
}

/// A process that has the store open when a newer program migrates it.
#[test]
fn a_store_that_becomes_newer_stops_the_load() {
    let env = TestEnv::new();
    let file = env.write_rows("rows", 0..4_000, 16);
    let mut running =
        Running::start(env.command(&["ingest", &file, "--collection", "a", "--json"]));
    assert!(running.prints("writing"));
    let truth = env.truth();
    truth.busy_timeout(std::time::Duration::from_secs(20)).unwrap();
    truth.pragma_update(None, "user_version", 1_000).unwrap();
    let ran = running.finish();
    assert_eq!(ran.status, Some(75), "{}", ran.stdout);
    let receipt = ran.document();
    assert_eq!(receipt["error"]["code"], "store_newer", "{receipt}");
    let records: u64 =
        truth.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(receipt["inserted"], records);
}

#[test]
fn a_store_that_git_tracks_is_refused() {
    let env = filled();
    let git = |arguments: &[&str]| {
        let mut command = Command::new("git");
        command.args(arguments).current_dir(env.path("")).env("HOME", env.path("home"));
        command.output().is_ok_and(|output| output.status.success())
    };
    if !git(&["init", "--quiet"]) {
        eprintln!("skipped: there is no git here");
        return;
    }
    let truth = format!("{}/truth.sqlite", env.store().file_name().unwrap().to_str().unwrap());
    assert!(!git(&["add", &truth]), "its own .gitignore keeps it out");
    // A file of the same name elsewhere is none of our business.
    env.write("home/truth.sqlite", "");
    assert!(git(&["add", "home/truth.sqlite"]));
    assert_eq!(env.count("a"), 200);
    assert!(git(&["add", "--force", &truth]));
    env.fails(&["collection", "list"], 1, "store_refused");
    assert!(git(&["rm", "--quiet", "--cached", &truth]));
    assert_eq!(env.count("a"), 200);
}

/// The folder vanishes, or another takes its place, in the middle of a load.
#[test]
fn a_load_reports_that_its_store_was_removed() {
    for replaced in [false, true] {
        let env = filled();
        let backup = env.path("backup");
        copy(&env.store(), &backup);
        let file = env.write_rows("more", 0..4_000, 16);
        let mut running =
            Running::start(env.command(&["ingest", &file, "--collection", "b", "--json"]));
        assert!(running.prints("writing"));
        let away = env.path("away");
        fs::rename(env.store(), &away).unwrap();
        if replaced {
            fs::rename(&backup, env.store()).unwrap();
        }
        let ran = running.finish();
        let receipt = ran.document();
        let error = (ran.status, receipt["error"]["code"].as_str());
        assert_eq!(error, (Some(75), Some("store_replaced")), "{receipt}");
        // Acknowledged writes are in the old store; none is lost.
        let old = isolith_pages::open(
            &away.join("truth.sqlite"),
            rusqlite::OpenFlags::default(),
            isolith_pages::Checking::Every,
        )
        .unwrap();
        let count = "SELECT records FROM collection WHERE name = 'b'";
        let written: u64 = old.query_row(count, [], |row| row.get(0)).unwrap();
        assert!(written >= receipt["inserted"].as_u64().unwrap(), "{written} {receipt}");
        if replaced {
            assert_eq!(env.count("a"), 200);
            let receipt = env.json(&["ingest", &file, "--collection", "b"]);
            assert_eq!(receipt["inserted"], 4_000, "work goes on with what is there now");
        } else {
            env.fails(&["collection", "list"], 4, "no_store");
        }
    }
}

/// A damaged segment costs a one-shot query its speed; the next write mends it.
#[test]
fn a_damaged_segment_is_quarantined_and_rebuilt() {
    let env = filled();
    let expected = env.json(&QUERY);
    for damage in [&b"ISLTSEG\0 no more"[..], b""] {
        let file = segment(&env, "vec");
        fs::write(&file, damage).unwrap();
        let found = env.json(&QUERY);
        assert_eq!(found["hits"], expected["hits"]);
        assert!(found["degraded"].is_string(), "{found}");
        assert!(!file.exists());
        let kept = test_env::files_in(&env.store().join("quarantine"));
        assert_eq!(kept.len(), 1, "one set is kept: {kept:?}");
        let people = env.run(&QUERY);
        assert!(people.stdout.contains("degraded:"), "{}", people.stdout);
        // Folding follows a write that settles.
        env.json(&["ingest", "rows", "--collection", "a"]);
        assert_eq!(env.json(&QUERY), expected);
    }
    assert_sound(&env);
}

/// The only segment of this kind.
fn segment(env: &TestEnv, extension: &str) -> PathBuf {
    let mut found = env.segments();
    found.retain(|file| file.extension().is_some_and(|it| it == extension));
    assert_eq!(found.len(), 1, "{found:?}");
    found.remove(0)
}

fn assert_sound(env: &TestEnv) {
    let answer: String =
        env.truth().query_row("PRAGMA integrity_check", [], |row| row.get(0)).unwrap();
    assert_eq!(answer, "ok");
    let listed = &env.json(&["collection", "list"])["collections"][0];
    assert_eq!(listed["tail"], Value::from(0), "{listed}");
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for path in test_env::files_in(from) {
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() { copy(&path, &target) } else { fs::copy(path, target).map(drop).unwrap() }
    }
}
