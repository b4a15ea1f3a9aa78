//! The controlling process: starts the others, injects faults, and reports the results.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use fastrand::Rng;
use isolith_engine::{Doctor, DoctorOptions, Engine, EngineOptions, Health, StorePlace};
use isolith_types::CollectionSpec;

use crate::account::Account;
use crate::arguments::RunArguments;
use crate::audit::Audit;
use crate::content::SHELVES;
use crate::harm::Harm;
use crate::journal::{Fault, now};
use crate::member::{self, LANES};

/// Kills per second and process: over a thousand in two minutes for sixteen processes.
const KILLS: f64 = 0.65;

/// One in this many kills hits a whole process with all its workers.
const WHOLE_PROCESS: u32 = 8;

/// Damaged files per second.
const DAMAGES: f64 = 0.5;

/// How long processes may take to finish at the end.
const FINISHING: Duration = Duration::from_secs(60);

/// Runs a torture of a new store.
pub(crate) fn run(arguments: &RunArguments) -> Result<Account> {
    let temporary = tempfile::Builder::new().prefix("isolith-torture-").tempdir()?;
    let folder = match &arguments.keep {
        Some(folder) => {
            fs::create_dir(folder)
                .with_context(|| format!("cannot create {}", folder.display()))?;
            fs::canonicalize(folder)?
        }
        None => temporary.path().to_owned(),
    };
    fs::create_dir(folder.join("journals"))?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(make_store(&folder))?;
    let mut account = Account::default();
    let mut control = Control {
        folder: folder.clone(),
        arguments: arguments.clone(),
        until: now() + u64::from(arguments.seconds) * 1_000_000,
        harm: Harm::new(arguments.seed),
        members: Vec::new(),
    };
    control.torture(&mut account)?;
    control.finish(&mut account)?;
    account.kills += control.harm.worker_kills + control.harm.crashes;
    account.crashes = control.harm.crashes;
    account.damaged_files = control.harm.damaged_files;
    runtime.block_on(audit(&folder, arguments, &mut account))?;
    account.orphans = control.harm.workers.left();
    Ok(account)
}

async fn make_store(folder: &Path) -> Result<()> {
    let options = EngineOptions { create: true, ..EngineOptions::default() };
    let engine = member::open(folder, options)?;
    for shelf in &SHELVES {
        let spec = CollectionSpec {
            name: shelf.name.to_owned(),
            dimension: Some(shelf.dimension as u32),
            metric: shelf.metric,
            model: None,
        };
        engine.create_collection(spec, false).await?;
    }
    engine.close().await;
    Ok(())
}

async fn audit(folder: &Path, arguments: &RunArguments, account: &mut Account) -> Result<()> {
    let engine: Engine = member::open(folder, EngineOptions::default())?;
    let lanes = arguments.processes * LANES;
    let mut audit = Audit { engine: &engine, folder, account };
    audit.run(lanes, arguments.seed).await?;
    engine.close().await;
    examine(folder, account).await?;
    Ok(())
}

/// Has the doctor check the whole store, including indexes against tables.
async fn examine(folder: &Path, account: &mut Account) -> Result<()> {
    let options = DoctorOptions { full: true, ..DoctorOptions::default() };
    let doctor = Doctor::open(&StorePlace::unchecked(folder.join("store")), options, |_| {})?;
    let report = doctor.run().await;
    doctor.close().await;
    for check in report.checks.iter().filter(|check| check.status > Health::Warn) {
        account
            .problem(Fault::Wrong, format!("the doctor reports {}: {}", check.name, check.detail));
    }
    Ok(())
}

struct Control {
    folder: PathBuf,
    arguments: RunArguments,
    /// In microseconds of the monotonic clock.
    until: u64,
    harm: Harm,
    members: Vec<Child>,
}

impl Control {
    fn torture(&mut self, account: &mut Account) -> Result<()> {
        for member in 0..self.arguments.processes {
            let child = self.start(member)?;
            self.members.push(child);
        }
        let (mut next_kill, mut next_damage) = (Instant::now(), Instant::now());
        let kills = KILLS * f64::from(self.arguments.processes);
        while now() < self.until {
            self.revive(account)?;
            // On a busy machine this process is late, and catches up.
            if Instant::now() >= next_kill {
                next_kill += pause(&mut self.harm.random, kills);
                self.kill(account)?;
            }
            if Instant::now() >= next_damage {
                next_damage += pause(&mut self.harm.random, DAMAGES);
                let aside = self.folder.join("damaged");
                self.harm.damage_a_segment(&self.folder.join("store"), &aside)?;
            }
            let next = next_kill.min(next_damage).min(Instant::now() + Duration::from_millis(50));
            std::thread::sleep(next.saturating_duration_since(Instant::now()));
        }
        Ok(())
    }

    fn start(&self, member: u32) -> Result<Child> {
        let RunArguments { processes, seed, .. } = self.arguments;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("member").arg("--folder").arg(&self.folder);
        for (flag, value) in [
            ("--member", u64::from(member)),
            ("--members", u64::from(processes)),
            ("--seed", seed),
            ("--until", self.until),
        ] {
            command.arg(flag).arg(value.to_string());
        }
        command.stdin(Stdio::null()).stdout(Stdio::null());
        command.spawn().context("cannot start a member")
    }

    /// Restarts the processes that have ended.
    fn revive(&mut self, account: &mut Account) -> Result<()> {
        for member in 0..self.members.len() {
            if let Some(status) = self.members[member].try_wait()? {
                judge_end(member, status, account);
                self.members[member] = self.start(member as u32)?;
                account.lives += 1;
            }
        }
        Ok(())
    }

    fn kill(&mut self, account: &mut Account) -> Result<()> {
        let member = self.harm.random.usize(..self.members.len());
        if self.harm.random.u32(..WHOLE_PROCESS) != 0 {
            let front = i32::try_from(self.members[member].id())?;
            return Ok(self.harm.kill_a_worker(front)?);
        }
        let child = &mut self.members[member];
        if child.try_wait()?.is_none() {
            child.kill()?;
            account.kills += 1;
            account.killed_processes += 1;
        }
        Ok(())
    }

    /// Waits for all processes to end.
    fn finish(&mut self, account: &mut Account) -> Result<()> {
        let deadline = Instant::now() + FINISHING;
        for (member, child) in self.members.iter_mut().enumerate() {
            loop {
                if let Some(status) = child.try_wait()? {
                    judge_end(member, status, account);
                    break;
                }
                if Instant::now() > deadline {
                    account.problem(Fault::Refused, format!("member {member} does not end"));
                    child.kill()?;
                    child.wait()?;
                    break;
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        Ok(())
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        for child in &mut self.members {
            // They have ended, unless this one failed.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// A process may only end normally or because it was killed here.
fn judge_end(member: usize, status: ExitStatus, account: &mut Account) {
    if !status.success() && status.signal() != Some(9) {
        account.problem(Fault::Refused, format!("member {member} ended with {status}"));
    }
}

/// A random time until the next event, at this rate per second.
fn pause(random: &mut Rng, per_second: f64) -> Duration {
    Duration::from_secs_f64((0.2 + 1.6 * random.f64()) / per_second)
}
