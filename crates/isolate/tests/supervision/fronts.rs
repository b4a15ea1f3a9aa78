//! Fronts in separate processes, so that they can be killed, stopped and signalled, or run with
//! fewer rights than the tests.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use isolate::misbehave::Fault;
use isolate::{
    CallError, CallOptions, Counter, CrashFolder, DeathClass, Hooks, PoolSettings, Signals, Tally,
    run_until_signalled,
};
use libtest_mimic::Trial;

use crate::faults::kill;
use crate::support::*;

const ARGUMENT: &str = "--front";

/// A user ID that owns nothing.
const NOBODY: u32 = 54_321;

pub fn trials() -> Vec<Trial> {
    let killed = [
        ("idle", "idle"),
        ("busy", "busy-loop"),
        ("stopped", "stopped"),
        ("with_a_grandchild", "grandchild"),
    ];
    let mut trials: Vec<Trial> = killed
        .into_iter()
        .map(|(name, scenario)| {
            Trial::test(format!("front::killed_while_its_worker_is_{name}"), move || {
                front_killed(scenario);
                Ok(())
            })
        })
        .collect();
    let signals = [("INT", 130), ("TERM", 143)];
    for (signal, code) in signals {
        let name = format!("front::sig{}_drains", signal.to_lowercase());
        trials.push(Trial::test(name, move || {
            first_signal_drains(signal, code);
            Ok(())
        }));
    }
    trials.push(Trial::test("front::second_signal_kills_at_once", || {
        second_signal_kills();
        Ok(())
    }));
    trials.push(Trial::test("front::a_stopped_front_causes_no_timeouts", || {
        stopped_front();
        Ok(())
    }));
    trials
}

fn front_killed(scenario: &str) {
    let mut front = Front::start(scenario);
    let worker: u32 = front.line().parse().unwrap();
    eventually("the worker is running", || group_is_alive(worker));
    kill(front.child.id(), "KILL");
    front.child.wait().unwrap();
    eventually("the worker and everything it forked are gone", || !group_is_alive(worker));
}

fn first_signal_drains(signal: &str, code: i32) {
    let mut front = Front::start("long-job");
    let worker: u32 = front.line().parse().unwrap();
    kill(front.child.id(), signal);
    assert_eq!(front.line(), "job done", "the running job finished");
    assert_eq!(front.end().code(), Some(code));
    assert!(!group_is_alive(worker));
}

fn second_signal_kills() {
    let mut front = Front::start("endless-job");
    let worker: u32 = front.line().parse().unwrap();
    let start = Instant::now();
    kill(front.child.id(), "INT");
    std::thread::sleep(Duration::from_millis(200));
    assert!(is_alive(worker), "the first signal lets it run");
    kill(front.child.id(), "INT");
    assert_eq!(front.end().code(), Some(130));
    assert!(start.elapsed() < Duration::from_secs(9), "it did not wait for the budget");
    assert!(!group_is_alive(worker));
}

fn stopped_front() {
    let mut front = Front::start("short-deadline");
    let worker: u32 = front.line().parse().unwrap();
    kill(front.child.id(), "STOP");
    std::thread::sleep(Duration::from_secs(4));
    assert!(is_alive(worker));
    kill(front.child.id(), "CONT");
    front.expect_done();
}

/// A front in a separate process, and its output.
pub struct Front {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Front {
    fn start(scenario: &str) -> Self {
        Self::spawn(Command::new("/proc/self/exe").args([ARGUMENT, scenario]))
    }

    pub fn start_unprivileged(scenario: &str) -> Self {
        let mut command = Command::new("/proc/self/exe");
        command.args([ARGUMENT, scenario]);
        if std::fs::metadata("/proc/self").is_ok_and(|own| {
            use std::os::unix::fs::MetadataExt;
            own.uid() == 0
        }) {
            command.uid(NOBODY).gid(NOBODY).current_dir("/");
        }
        Self::spawn(&mut command)
    }

    /// Starts it with standard input and standard error closed.
    pub fn start_closed(scenario: &str) -> Self {
        Self::through_shell(r#"exec "$0" "$@" <&- 2>&-"#, scenario)
    }

    pub fn start_ignoring_sigchld(scenario: &str) -> Self {
        Self::through_shell(r#"trap "" CHLD; exec "$0" "$@""#, scenario)
    }

    pub fn start_blocking_signals(scenario: &str) -> Self {
        Self::through_shell(r#"exec env --block-signal "$0" "$@""#, scenario)
    }

    pub fn start_with_small_files(scenario: &str) -> Self {
        Self::through_shell(r#"ulimit -f 1000; exec "$0" "$@""#, scenario)
    }

    fn through_shell(script: &str, scenario: &str) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut command = Command::new("sh");
        Self::spawn(command.arg("-c").arg(script).arg(own).args([ARGUMENT, scenario]))
    }

    fn spawn(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Self { child, output }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }

    /// Waits until the scenario has finished and the front has exited successfully.
    pub fn expect_done(mut self) {
        assert_eq!(self.line(), "done");
        let status = self.end();
        assert!(status.success(), "{:?} {:?}", status.code(), status.signal());
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The scenario to run, if this process was started as a front.
pub fn requested() -> Option<String> {
    let mut arguments = std::env::args().skip(1);
    (arguments.next()? == ARGUMENT).then(|| arguments.next().unwrap())
}

fn say(line: impl std::fmt::Display) {
    let mut out = std::io::stdout();
    writeln!(out, "{line}").unwrap();
    out.flush().unwrap();
}

pub fn run(scenario: &str) {
    let code = block_on(async {
        match scenario {
            "idle" => hold(None).await,
            "busy-loop" => hold(Some(Fault::BusyLoop)).await,
            "stopped" => hold(Some(Fault::Stop)).await,
            "grandchild" => hold_grandchild().await,
            "long-job" => signalled(Duration::from_millis(1500)).await,
            "endless-job" => signalled(Duration::from_secs(600)).await,
            "short-deadline" => short_deadline().await,
            "unwritable-crash-folder" => unwritable_crash_folder(),
            "vanishing-crash-folder" => vanishing_crash_folder().await,
            "full-process-table" => full_process_table().await,
            "no-descriptors" => no_descriptors().await,
            "echo" => echo_once().await,
            "crash-once" => die_once(Fault::Segfault, DeathClass::Crash).await,
            "terminate-once" => die_once(Fault::Terminate, DeathClass::Killed).await,
            "small-files" => small_files().await,
            other => panic!("unknown scenario {other}"),
        }
    });
    std::process::exit(code);
}

/// Keeps a worker that is idle or commits `fault`.
async fn hold(fault: Option<Fault>) -> i32 {
    let pool = pool(PoolSettings::default());
    let pid = echo(&pool).await.worker_pid;
    if let Some(fault) = fault {
        let pool = pool.clone();
        tokio::spawn(async move { call(&pool, Request::Fail(fault, 0)).await });
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    say(pid);
    std::future::pending().await
}

async fn hold_grandchild() -> i32 {
    let pool = pool(PoolSettings::default());
    let pid = echo(&pool).await.worker_pid;
    call(&pool, Request::Fork).await.unwrap();
    say(pid);
    std::future::pending().await
}

async fn signalled(job: Duration) -> i32 {
    let mut signals = Signals::listen().unwrap();
    let pool = pool(PoolSettings { job_deadline: Duration::from_secs(900), ..restless() });
    let pid = echo(&pool).await.worker_pid;
    let work = async {
        let started = tokio::time::sleep(Duration::from_millis(200));
        let announce = async {
            started.await;
            say(pid);
        };
        let (result, ()) = tokio::join!(call(&pool, Request::Sleep(job)), announce);
        if result.is_ok() {
            say("job done");
        }
    };
    let budget = Duration::from_secs(10);
    let pools = || vec![Arc::new(pool.clone()) as _];
    match run_until_signalled(&mut signals, pools, budget, work).await {
        Ok(()) => 0,
        Err(interrupted) => interrupted.signal.exit_status().into(),
    }
}

async fn short_deadline() -> i32 {
    let pool = pool(PoolSettings::default());
    let pid = echo(&pool).await.worker_pid;
    let options = CallOptions { deadline: Some(Duration::from_secs(3)), ..CallOptions::default() };
    let job = Request::Sleep(Duration::from_secs(2));
    let announce = async {
        tokio::time::sleep(Duration::from_millis(300)).await;
        say(pid);
    };
    let (answer, ()) = tokio::join!(pool.call(&job, options), announce);
    assert_eq!(answer.unwrap().worker_pid, pid, "the worker was not killed");
    say("done");
    0
}

fn unwritable_crash_folder() -> i32 {
    for folder in ["/proc/crashes", "/etc/crashes", "/dev/null/crashes"] {
        let error = CrashFolder::open(folder, 10).unwrap_err().to_string();
        assert!(error.contains(folder), "{error}");
    }
    say("done");
    0
}

/// The folder exists at the start and is gone at the first crash.
async fn vanishing_crash_folder() -> i32 {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("crashes");
    let sink = Arc::new(CrashFolder::open(&folder, 10).unwrap());
    std::fs::remove_dir(&folder).unwrap();
    let tally = Arc::new(Tally::default());
    let hooks = Hooks { crashes: Some(sink), metrics: tally.clone(), ..Hooks::default() };
    let pool = pool_with(&Settings::default(), restless(), hooks);
    call(&pool, Request::Fail(Fault::Abort, 1)).await.unwrap();
    assert_eq!(tally.count(Counter::ReportsLost, "tester", None), 1);
    say("done");
    0
}

async fn full_process_table() -> i32 {
    let pool = pool(PoolSettings { workers: 2, ..PoolSettings::default() });
    let pid = echo(&pool).await.worker_pid;
    set_limit(rustix::process::Resource::Nproc, 0);
    kill_directly(pid);
    eventually("the worker is gone", || !is_alive(pid));
    let error = call(&pool, Request::Descriptors).await.unwrap_err();
    let CallError::BreakerOpen { last, .. } = &error else { panic!("{error}") };
    assert!(last.contains("cannot start the process"), "{last}");
    say("done");
    0
}

async fn no_descriptors() -> i32 {
    let pool = pool(PoolSettings { workers: 2, ..PoolSettings::default() });
    let pid = echo(&pool).await.worker_pid;
    set_limit(rustix::process::Resource::Nofile, 3);
    kill_directly(pid);
    let error = call(&pool, Request::Descriptors).await.unwrap_err();
    assert!(matches!(error, CallError::BreakerOpen { .. }), "{error}");
    set_limit(rustix::process::Resource::Nofile, 200);
    tokio::time::sleep(Duration::from_secs(6)).await;
    echo(&pool).await;
    say("done");
    0
}

async fn echo_once() -> i32 {
    let pool = pool(PoolSettings::default());
    echo(&pool).await;
    pool.drain(Duration::from_secs(1)).await;
    say("done");
    0
}

async fn die_once(fault: Fault, class: DeathClass) -> i32 {
    let pool = pool(restless());
    let answer = call(&pool, Request::Fail(fault, 1)).await.unwrap();
    assert_eq!(answer.deaths[0].class, class);
    say("done");
    0
}

async fn small_files() -> i32 {
    let large = pool(PoolSettings::default());
    let error = call(&large, Request::Descriptors).await.unwrap_err();
    assert!(error.to_string().contains("file size limit"), "{error}");
    let limit = 100_000;
    let small = PoolSettings {
        max_request_bytes: limit,
        max_reply_bytes: limit,
        ..PoolSettings::default()
    };
    echo(&pool(small)).await;
    say("done");
    0
}

fn set_limit(resource: rustix::process::Resource, soft: u64) {
    let hard = rustix::process::getrlimit(resource).maximum;
    let limit = rustix::process::Rlimit { current: Some(soft), maximum: hard };
    rustix::process::setrlimit(resource, limit).unwrap();
}

/// Kills a process without starting another one.
fn kill_directly(pid: u32) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
}
