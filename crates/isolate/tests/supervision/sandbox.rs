//! What a confined role can and cannot do. Where the kernel has no means to confine
//! it, the snapshot must say so.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Duration;

use isolate::{
    CallError, CallOptions, Confinement, Context, Enforcement, Files, Hooks, InWorker, Pool,
    PoolSettings, Refusal, Role, Sandbox,
};
use landlock::{ABI, Access, AccessFs, CompatLevel, Compatible, Ruleset, RulesetAttr};
use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};

use crate::support::*;

pub fn trials() -> Vec<Trial> {
    vec![
        trial("sandbox::sealed_means_no_files_and_no_sockets", sealed),
        trial("sandbox::read_only_roots_can_be_read_and_nothing_else", read_only),
        trial("sandbox::writable_roots_can_be_written", writable),
        trial("sandbox::an_open_role_is_not_confined", open),
        trial("sandbox::a_root_that_is_missing_is_a_refusal", missing_root),
    ]
}

/// A role that tries things.
pub struct Confined;

#[derive(Debug, Serialize, Deserialize)]
pub enum Attempt {
    Read(PathBuf),
    ReadInThread(PathBuf),
    Write(PathBuf),
    Remove(PathBuf),
    Execute,
    Tcp,
    UnixSocket,
}

impl Role for Confined {
    const NAME: &'static str = "confined";
    type Settings = Sandbox;
    type Request = Attempt;
    type Reply = Result<(), String>;

    fn warm_up(_: Sandbox, _: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, attempt: Attempt, _: &Context<'_>) -> Self::Reply {
        let done = match attempt {
            Attempt::Read(path) => std::fs::read(path).map(drop),
            Attempt::ReadInThread(path) => {
                std::thread::spawn(|| std::fs::read(path).map(drop)).join().unwrap()
            }
            Attempt::Write(path) => {
                std::fs::File::create(path).and_then(|mut file| file.write_all(b"x"))
            }
            Attempt::Remove(path) => std::fs::remove_file(path),
            Attempt::Execute => std::process::Command::new("/bin/true").status().map(drop),
            Attempt::Tcp => std::net::TcpListener::bind("127.0.0.1:0").map(drop),
            Attempt::UnixSocket => std::os::unix::net::UnixDatagram::unbound().map(drop),
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
    // Not available is an answer only where that is so.
    if kernel_has_landlock() {
        assert_eq!(cell.confinement.files, Enforcement::Enforced);
    }
    if std::fs::read_to_string("/proc/self/status").unwrap().contains("Seccomp:") {
        assert_eq!(cell.confinement.sockets, Enforcement::Enforced);
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
    let cell = Cell::new(Sandbox { files, sockets: true }).await;
    assert_eq!(cell.confinement.sockets, Enforcement::NotAsked);
    assert_eq!(cell.attempt(Attempt::Write(folder.path().join("new"))).await, Ok(()));
    assert_eq!(cell.attempt(Attempt::Remove(file)).await, Ok(()));
    assert_eq!(cell.attempt(Attempt::Tcp).await, Ok(()));
    cell.files_denied(Attempt::Write(elsewhere)).await;
}

async fn open() {
    let (_folder, file) = scratch();
    let cell = Cell::new(Sandbox::open()).await;
    let free = Confinement { files: Enforcement::NotAsked, sockets: Enforcement::NotAsked };
    assert_eq!(cell.confinement, free);
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
