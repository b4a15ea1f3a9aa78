use std::fs;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use isolate::misbehave::Fault;
use isolate::{
    Answer, BreakerPolicy, Bulk, CallError, CallOptions, Context, CrashReport, CrashSink, Hooks,
    InWorker, Pool, PoolSettings, Refusal, RestartPolicy, Role,
};
use libtest_mimic::Trial;
use serde::{Deserialize, Serialize};

/// A role that does what its request says.
pub struct Tester;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Settings {
    pub refuse: bool,
    pub panic_at_start: bool,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum Request {
    Echo(Bulk),
    /// Commits the fault on the first attempt, echoes the number on the next.
    Fail(Fault, u64),
    /// Uses this much CPU time, with a limit of a second or without any.
    Spin(Duration, bool),
    /// Crashes if one of these numbers is 13.
    Unlucky(Vec<u64>),
    Sleep(Duration),
    /// Sleeps until cancelled; writes the number of polls to the path.
    AwaitCancel(String),
    Count(u64),
    /// Sends this many bytes ahead of the reply; the first attempt dies after half of them.
    Parts(usize),
    /// Reads a file, by default of /proc/self.
    Read(String),
    Descriptors,
    /// Replies with this many bytes.
    Produce(usize),
    Print(String),
    /// Leaves an idle child process behind.
    Fork,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    Bulk(Bulk),
    Number(u64),
    Numbers(Vec<u64>),
    Text(String),
    Done,
}

impl Role for Tester {
    const NAME: &'static str = "tester";
    type Settings = Settings;
    type Request = Request;
    type Reply = Reply;

    fn warm_up(settings: Settings, _: InWorker) -> Result<Self, Refusal> {
        assert!(!settings.panic_at_start, "told to panic at the start");
        if settings.refuse {
            return Err(Refusal::new("told_to", "told to refuse"));
        }
        Ok(Self)
    }

    fn handle(&mut self, request: Request, context: &Context<'_>) -> Reply {
        match request {
            Request::Echo(bulk) => Reply::Bulk(bulk),
            Request::Fail(fault, number) => {
                if context.attempt() == 0 {
                    fault.commit(context);
                }
                Reply::Number(number)
            }
            Request::Spin(time, limited) => {
                if limited {
                    context.limit_cpu(Duration::from_secs(1));
                }
                while cpu_time() < time {
                    std::hint::spin_loop();
                }
                Reply::Done
            }
            Request::Unlucky(numbers) => {
                if numbers.contains(&13) {
                    Fault::Segfault.commit(context);
                }
                Reply::Numbers(numbers)
            }
            Request::Sleep(time) => {
                std::thread::sleep(time);
                Reply::Done
            }
            Request::AwaitCancel(path) => {
                while !context.cancelled() && !context.remaining().is_zero() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                fs::write(path, if context.cancelled() { "cancelled" } else { "late" }).unwrap();
                Reply::Done
            }
            Request::Count(to) => {
                for n in 1..=to {
                    context.progress(n, Some(to), format!("at {n}"));
                    std::thread::sleep(Duration::from_millis(20));
                }
                Reply::Done
            }
            Request::Parts(size) => {
                let bytes: Vec<u8> = (0..size).map(|i| (i % 251) as u8).collect();
                let (first, second) = bytes.split_at(size / 2);
                context.send_part(first);
                if context.attempt() == 0 {
                    Fault::Segfault.commit(context);
                }
                context.send_part(second);
                Reply::Number(size as u64)
            }
            Request::Read(path) => Reply::Text(fs::read_to_string(path).unwrap()),
            Request::Descriptors => {
                let entries = fs::read_dir("/proc/self/fd").unwrap().map(|entry| entry.unwrap());
                let targets = entries.map(|entry| fs::read_link(entry.path()).unwrap_or_default());
                let names: Vec<String> =
                    targets.map(|target| target.to_string_lossy().into_owned()).collect();
                Reply::Text(names.join("\n"))
            }
            Request::Produce(size) => Reply::Bulk(vec![1; size].into()),
            Request::Print(text) => {
                println!("{text}");
                eprintln!("{text} (on stderr)");
                Fault::Abort.commit(context);
                Reply::Done
            }
            Request::Fork => {
                let child = std::process::Command::new("sleep").arg("1000").spawn();
                std::mem::forget(child.unwrap());
                Reply::Done
            }
        }
    }

    fn kind(request: &Request) -> &'static str {
        match request {
            Request::Echo(_) => "echo",
            Request::Print(_) => "print",
            _ => "other",
        }
    }
}

fn cpu_time() -> Duration {
    let used = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    used.try_into().unwrap()
}

/// A role that does not stop when told to.
pub struct Stubborn;

impl Role for Stubborn {
    const NAME: &'static str = "stubborn";
    type Settings = ();
    type Request = ();
    type Reply = ();

    fn warm_up((): (), _: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, (): (), _: &Context<'_>) {}
}

impl Drop for Stubborn {
    fn drop(&mut self) {
        std::thread::sleep(Duration::from_secs(3600));
    }
}

/// Keeps crash reports for a trial to look at.
#[derive(Debug, Default)]
pub struct Reports(Mutex<Vec<CrashReport>>);

impl Reports {
    pub fn take(&self) -> Vec<CrashReport> {
        std::mem::take(&mut self.0.lock().unwrap())
    }
}

impl CrashSink for Reports {
    fn record(&self, report: &CrashReport) -> std::io::Result<()> {
        self.0.lock().unwrap().push(report.clone());
        Ok(())
    }
}

/// Settings that let faults follow each other without delay.
pub fn restless() -> PoolSettings {
    PoolSettings {
        restart: RestartPolicy { first_delay: Duration::ZERO, ..RestartPolicy::default() },
        breaker: BreakerPolicy { deaths: usize::MAX, ..BreakerPolicy::default() },
        memory_cap: Some(512 << 20),
        ..PoolSettings::default()
    }
}

pub fn pool(settings: PoolSettings) -> Pool<Tester> {
    pool_with(&Settings::default(), settings, Hooks::default())
}

pub fn pool_with(role: &Settings, settings: PoolSettings, hooks: Hooks) -> Pool<Tester> {
    Pool::start(role, settings, hooks).unwrap()
}

pub fn reporting() -> (Arc<Reports>, Hooks) {
    let reports = Arc::new(Reports::default());
    (reports.clone(), Hooks { crashes: Some(reports), ..Hooks::default() })
}

pub async fn call(pool: &Pool<Tester>, request: Request) -> Result<Answer<Reply>, CallError> {
    pool.call(&request, CallOptions::default()).await
}

pub async fn echo(pool: &Pool<Tester>) -> Answer<Reply> {
    call(pool, Request::Echo(vec![1, 2, 3].into())).await.unwrap()
}

pub fn block_on<T>(work: impl Future<Output = T>) -> T {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(work)
}

/// A trial that runs an async function.
pub fn trial<F: Future<Output = ()>>(
    name: &str,
    body: impl FnOnce() -> F + Send + 'static,
) -> Trial {
    Trial::test(name, move || {
        block_on(body());
        Ok(())
    })
}

/// Waits until `happened` returns true; panics after 120 s.
pub fn eventually(what: &str, mut happened: impl FnMut() -> bool) {
    let until = Instant::now() + Duration::from_secs(120);
    while !happened() {
        assert!(Instant::now() < until, "{what}: did not happen within 120 s");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The state letter of a process in /proc.
pub fn state_of(pid: u32) -> Option<char> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.trim_start().chars().next()
}

/// Whether a process exists and is not a zombie.
pub fn is_alive(pid: u32) -> bool {
    state_of(pid).is_some_and(|state| state != 'Z')
}

/// Whether any process of this group exists.
pub fn group_is_alive(group: u32) -> bool {
    let entries = fs::read_dir("/proc").unwrap().filter_map(Result::ok);
    entries.filter_map(|entry| fs::read_to_string(entry.path().join("stat")).ok()).any(|stat| {
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or("").split_whitespace().collect();
        fields.first() != Some(&"Z") && fields.get(2) == Some(&group.to_string().as_str())
    })
}
