//! What a confined role can and cannot do. If the kernel cannot confine it, the snapshot must say
//! so.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolate::misbehave::hostile::{Tried, Verdict, panic_with_attempts};
use isolate::{
    CallError, CallOptions, Confinement, Context, Enforcement, Files, Hooks, InWorker, Pool,
    PoolSettings, Refusal, RetryPolicy, Role, Sandbox,
};
use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};

use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sandbox::a_sealed_role_has_no_files_and_no_sockets", sealed),
        trial("sandbox::only_read_only_roots_can_be_read", read_only),
        trial("sandbox::writable_roots_can_be_written", writable),
        trial("sandbox::an_open_role_is_not_confined", open),
        trial("sandbox::a_missing_root_is_refused", missing_root),
        trial("sandbox::a_sealed_role_can_do_no_harm", harmless),
        trial("sandbox::an_open_role_can_do_harm", harmful),
        trial("sandbox::files_a_role_creates_are_private", private),
        trial("sandbox::workers_get_only_the_configured_environment", environment),
        trial("sandbox::only_the_folder_can_be_written", folder),
        trial("sandbox::a_replaced_folder_gets_another_worker", replaced_folder),
        trial("sandbox::a_missing_folder_is_created_or_waited_for", missing_folder),
        trial("sandbox::a_link_instead_of_a_folder_is_refused", linked_folder),
    ]
}

/// A role that attempts what it is asked to.
pub struct Confined;

#[derive(Debug, Serialize, Deserialize)]
pub enum Attempt {
    Read(PathBuf),
    ReadInThread(PathBuf),
    /// Passes the job on if the sandbox's folder was replaced.
    ReadCurrent(PathBuf),
    Write(PathBuf),
    Remove(PathBuf),
    Rename(PathBuf, PathBuf),
    Link(PathBuf),
    Execute,
    Tcp,
    UnixSocket,
    Hostile(PathBuf),
    /// Fails with the names of all environment variables.
    Environment,
}

impl Role for Confined {
    const NAME: &'static str = "confined";
    type Settings = Sandbox;
    type Request = Attempt;
    type Reply = Result<(), String>;

    fn warm_up(_: Sandbox, _: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, attempt: Attempt, context: &Context<'_>) -> Self::Reply {
        let done = match attempt {
            Attempt::Read(path) => std::fs::read(path).map(drop),
            Attempt::ReadCurrent(path) => {
                if context.folder_replaced() {
                    context.pass_on();
                }
                std::fs::read(path).map(drop)
            }
            Attempt::ReadInThread(path) => {
                std::thread::spawn(|| std::fs::read(path).map(drop)).join().unwrap()
            }
            Attempt::Write(path) => {
                std::fs::File::create(path).and_then(|mut file| file.write_all(b"x"))
            }
            Attempt::Remove(path) => std::fs::remove_file(path),
            Attempt::Rename(from, to) => std::fs::rename(from, to),
            Attempt::Link(path) => std::os::unix::fs::symlink("/etc/passwd", path),
            Attempt::Execute => std::process::Command::new("/bin/true").status().map(drop),
            Attempt::Tcp => std::net::TcpListener::bind("127.0.0.1:0").map(drop),
            Attempt::UnixSocket => std::os::unix::net::UnixDatagram::unbound().map(drop),
            Attempt::Hostile(home) => panic_with_attempts(&home),
            Attempt::Environment => {
                let names = std::env::vars().map(|(name, _)| name).collect::<Vec<_>>();
                return Err(names.join(" "));
            }
        };
        done.map_err(|error| format!("{:?}", error.kind()))
    }

    fn sandbox(settings: &Sandbox) -> Sandbox {
        settings.clone()
    }
}

struct Cell {
    pool: Pool<Confined>,
    confinement: Confinement,
}

impl Cell {
    async fn new(sandbox: Sandbox) -> Self {
        let pool = Pool::start(&sandbox, PoolSettings::default(), Hooks::default()).unwrap();
        pool.call(&Attempt::Read("/".into()), CallOptions::default()).await.unwrap();
        let confinement = pool.snapshot().workers[0].confinement.unwrap();
        Self { pool, confinement }
    }

    async fn attempt(&self, attempt: Attempt) -> Result<(), String> {
        self.pool.call(&attempt, CallOptions::default()).await.unwrap().reply
    }

    async fn files_denied(&self, attempt: Attempt) {
        if self.confinement.files == Enforcement::Enforced {
            let what = format!("{attempt:?}");
            assert_eq!(self.attempt(attempt).await, Err("PermissionDenied".into()), "{what}");
        }
    }

    async fn sockets_denied(&self, attempt: Attempt) {
        if self.confinement.sockets == Enforcement::Enforced {
            let what = format!("{attempt:?}");
            assert_eq!(self.attempt(attempt).await, Err("PermissionDenied".into()), "{what}");
        }
    }
}

fn scratch() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("file");
    std::fs::write(&file, "x").unwrap();
    (folder, file)
}

fn kernel_has_landlock() -> bool {
    let rules = Ruleset::default().set_compatibility(CompatLevel::HardRequirement);
    rules.handle_access(AccessFs::from_all(ABI::V5)).and_then(Ruleset::create).is_ok()
}

async fn sealed() {
    let (folder, file) = scratch();
    let cell = Cell::new(Sandbox::sealed()).await;
    assert_ne!(cell.confinement.files, Enforcement::NotAsked);
    assert_ne!(cell.confinement.sockets, Enforcement::NotAsked);
    // "Not available" is accepted only if the kernel really has no Landlock.
    if kernel_has_landlock() {
        assert_eq!(cell.confinement.files, Enforcement::Enforced);
    }
    if std::fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:") {
        assert_eq!(cell.confinement.sockets, Enforcement::Enforced);
        assert_eq!(cell.confinement.system_calls, Enforcement::Enforced);
    }
    cell.files_denied(Attempt::Read(file.clone())).await;
    cell.files_denied(Attempt::ReadInThread(file.clone())).await;
    cell.files_denied(Attempt::Read("/etc/passwd".into())).await;
    cell.files_denied(Attempt::Write(folder.path().join("new"))).await;
    cell.files_denied(Attempt::Write(file.clone())).await;
    cell.files_denied(Attempt::Remove(file)).await;
    cell.files_denied(Attempt::Execute).await;
    cell.sockets_denied(Attempt::Tcp).await;
    cell.sockets_denied(Attempt::UnixSocket).await;
}

async fn read_only() {
    let (folder, file) = scratch();
    let (_other, elsewhere) = scratch();
    let cell = Cell::new(Sandbox::read_only([folder.path().to_owned()])).await;
    assert_eq!(cell.attempt(Attempt::Read(file.clone())).await, Ok(()));
    cell.files_denied(Attempt::Read(elsewhere)).await;
    cell.files_denied(Attempt::Write(file.clone())).await;
    cell.files_denied(Attempt::Remove(file.clone())).await;
    cell.sockets_denied(Attempt::Tcp).await;

    let single = Cell::new(Sandbox::read_only([file.clone()])).await;
    assert_eq!(single.attempt(Attempt::Read(file)).await, Ok(()));
}

async fn writable() {
    let (folder, file) = scratch();
    let (_other, elsewhere) = scratch();
    let files = Files::Below { read: vec![], write: vec![folder.path().to_owned()] };
    let cell = Cell::new(Sandbox { files, ..Sandbox::open() }).await;
    assert_eq!(cell.confinement.sockets, Enforcement::NotAsked);
    assert_eq!(cell.confinement.system_calls, Enforcement::NotAsked);
    assert_eq!(cell.attempt(Attempt::Write(folder.path().join("new"))).await, Ok(()));
    assert_eq!(cell.attempt(Attempt::Remove(file)).await, Ok(()));
    assert_eq!(cell.attempt(Attempt::Tcp).await, Ok(()));
    cell.files_denied(Attempt::Write(elsewhere)).await;
}

async fn open() {
    let (_folder, file) = scratch();
    let cell = Cell::new(Sandbox::open()).await;
    let free = Enforcement::NotAsked;
    let all_free = Confinement { files: free, sockets: free, system_calls: free };
    assert_eq!(cell.confinement, all_free);
    for attempt in [Attempt::Write(file), Attempt::Tcp, Attempt::UnixSocket, Attempt::Execute] {
        assert_eq!(cell.attempt(attempt).await, Ok(()));
    }
}

async fn missing_root() {
    let sandbox = Sandbox::read_only([Path::new("/nowhere/at/all").to_owned()]);
    let pool: Pool<Confined> =
        Pool::start(&sandbox, PoolSettings::default(), Hooks::default()).unwrap();
    let error = pool.call(&Attempt::Execute, CallOptions::default()).await.unwrap_err();
    assert!(matches!(error, CallError::StartFailed { .. }), "{error}");
    assert!(error.to_string().contains("/nowhere/at/all"), "{error}");
    pool.drain(Duration::from_secs(1)).await;
}

async fn folder() {
    let (folder, file) = scratch();
    let (_other, elsewhere) = scratch();
    let (_third, readable) = scratch();
    for name in ["from", "to"] {
        std::fs::create_dir(folder.path().join(name)).unwrap();
    }
    let read = [readable.clone(), "/nowhere/at/all".into()];
    let cell = Cell::new(Sandbox::folder(folder.path().to_owned(), false, read)).await;
    if kernel_has_landlock() {
        assert_eq!(cell.confinement.files, Enforcement::Enforced);
    }
    let inside = |name: &str| folder.path().join(name);
    for attempt in [
        Attempt::Read(file.clone()),
        Attempt::Read(readable.clone()),
        Attempt::Write(inside("from/new")),
        Attempt::Rename(inside("from/new"), inside("to/new")),
        Attempt::Remove(inside("to/new")),
    ] {
        let what = format!("{attempt:?}");
        assert_eq!(cell.attempt(attempt).await, Ok(()), "{what}");
    }
    cell.files_denied(Attempt::Link(inside("link"))).await;
    cell.files_denied(Attempt::Write(readable)).await;
    cell.files_denied(Attempt::Read(elsewhere.clone())).await;
    cell.files_denied(Attempt::Write(elsewhere)).await;
    cell.files_denied(Attempt::Execute).await;
    cell.sockets_denied(Attempt::Tcp).await;
}

async fn replaced_folder() {
    let place = tempfile::tempdir().unwrap();
    let (folder, file) = (place.path().join("folder"), place.path().join("folder/file"));
    let fill = || {
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(&file, "x").unwrap();
    };
    fill();
    let (reports, hooks) = reporting();
    let settings = PoolSettings { spares: 1, ..PoolSettings::default() };
    let sandbox = Sandbox::folder(folder.clone(), false, []);
    let pool: Pool<Confined> = Pool::start(&sandbox, settings, hooks).unwrap();
    let read = async || {
        let attempt = Attempt::ReadCurrent(file.clone());
        let answer = pool.call(&attempt, CallOptions::default()).await.unwrap();
        assert_eq!((answer.reply, answer.deaths.len()), (Ok(()), 0));
        answer.worker_pid
    };
    let before = read().await;
    assert_eq!(read().await, before);
    std::fs::remove_dir_all(&folder).unwrap();
    fill();
    assert_ne!(read().await, before, "the rules were for the old folder");
    assert_eq!(pool.snapshot().restarts, 0);
    pool.drain(Duration::from_secs(5)).await;
    assert_eq!(reports.take(), []);
}

async fn missing_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("a/b");
    let cell = Cell::new(Sandbox::folder(folder.clone(), false, [])).await;
    assert_eq!(
        cell.attempt(Attempt::ReadCurrent(folder.join("file"))).await,
        Err("NotFound".into())
    );
    let creating = Cell::new(Sandbox::folder(folder.clone(), true, [])).await;
    assert_eq!(creating.attempt(Attempt::Write(folder.join("file"))).await, Ok(()));
    assert_eq!(cell.attempt(Attempt::ReadCurrent(folder.join("file"))).await, Ok(()));
}

async fn linked_folder() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink(place.path(), &link).unwrap();
    let sandbox = Sandbox::folder(link, true, []);
    let pool: Pool<Confined> =
        Pool::start(&sandbox, PoolSettings::default(), Hooks::default()).unwrap();
    let error = pool.call(&Attempt::Execute, CallOptions::default()).await.unwrap_err();
    assert!(error.to_string().contains("symbolic link"), "{error}");
    pool.drain(Duration::from_secs(1)).await;
}

/// The results of a worker that made all hostile attempts.
async fn hostile(sandbox: Sandbox) -> Tried {
    let home = tempfile::tempdir().unwrap();
    std::fs::create_dir(home.path().join(".ssh")).unwrap();
    std::fs::write(home.path().join("secret"), "x").unwrap();
    let (reports, hooks) = reporting();
    let retry = RetryPolicy { strikes: 1, ..RetryPolicy::default() };
    let settings = PoolSettings { retry, ..PoolSettings::default() };
    let pool: Pool<Confined> = Pool::start(&sandbox, settings, hooks).unwrap();
    let attempt = Attempt::Hostile(home.path().to_owned());
    pool.call(&attempt, CallOptions::default()).await.unwrap_err();
    pool.drain(Duration::from_secs(5)).await;
    let report = reports.take().pop().unwrap();
    serde_json::from_str(&report.panic.unwrap()).unwrap()
}

fn allowed(attempts: &[(String, Verdict)]) -> Vec<&str> {
    let allowed = attempts.iter().filter(|(_, verdict)| *verdict != Verdict::Refused);
    allowed.map(|(name, _)| name.as_str()).collect()
}

async fn harmless() {
    let tried = hostile(Sandbox::sealed()).await;
    assert_eq!(tried.landlock, kernel_has_landlock());
    if tried.landlock {
        assert_eq!(allowed(&tried.files), [""; 0]);
    }
    assert_eq!(allowed(&tried.calls), [""; 0]);
}

/// Without a sandbox the attempts succeed; otherwise they would prove nothing. Some need more
/// rights than a user has, so they are not checked.
async fn harmful() {
    let tried = hostile(Sandbox::open()).await;
    let (files, calls) = (allowed(&tried.files), allowed(&tried.calls));
    for name in ["read /etc/passwd", "write to .ssh", "remove a file at home"] {
        assert!(files.contains(&name), "{name}: {files:?}");
    }
    for name in [
        "signal the front",
        "signal the front's group",
        "signal by thread",
        "have the kernel signal the front",
        "join the front's group",
        "open a TCP socket",
        "open a Unix socket",
        "fchmod",
        "chown",
        "change the umask",
        "start a program",
    ] {
        assert!(calls.contains(&name), "{name}: {calls:?}");
    }
}

async fn private() {
    use std::os::unix::fs::PermissionsExt as _;
    let place = tempfile::tempdir().unwrap();
    let cell = Cell::new(Sandbox::folder(place.path().to_owned(), false, [])).await;
    let file = place.path().join("file");
    assert_eq!(cell.attempt(Attempt::Write(file.clone())).await, Ok(()));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
}

async fn environment() {
    assert!(std::env::vars_os().count() > 0, "there is something to hide");
    let settings = PoolSettings {
        environment: vec![("GIVEN".into(), "value".into())],
        ..PoolSettings::default()
    };
    let pool: Pool<Confined> = Pool::start(&Sandbox::open(), settings, Hooks::default()).unwrap();
    let answer = pool.call(&Attempt::Environment, CallOptions::default()).await.unwrap();
    assert_eq!(answer.reply, Err("GIVEN RUST_BACKTRACE".to_owned()));
    pool.drain(Duration::from_secs(5)).await;
}
