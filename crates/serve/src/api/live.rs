//! The workers as server-sent events, once a second.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::response::Response;
use axum::response::sse::Event;
use isolate::{Counter, Histogram, Spread};
use isolith_engine::Engine;
use isolith_types::{Code, Failure, Moment};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::events;
use super::status::{Process, Worker};
use crate::server::Server;
use crate::tool::Call;

/// Interval of the events.
const INTERVAL: Duration = Duration::from_secs(1);

/// How long events are sent, by default and at most.
const SECONDS: (u32, u32) = (600, 3_600);

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Listening {
    /// For how long, in seconds: 1 to 3600, by default 600. Ask again then.
    #[schemars(range(min = 1, max = 3600))]
    seconds: Option<u32>,
}

/// The state of the workers and what their processes have counted.
#[derive(Serialize, JsonSchema)]
pub(super) struct LiveStatus {
    at: String,
    /// The stores that are open.
    stores: Vec<LiveStore>,
    /// How many more seconds there will be events.
    seconds_left: u64,
}

#[derive(Serialize, JsonSchema)]
struct LiveStore {
    /// `project` for code, `user` for memory.
    whose: String,
    /// The processes that have the store open.
    processes: Vec<Process>,
    workers: Vec<Worker>,
    /// The newest crash report.
    last_crash: Option<String>,
    /// What this server has counted since it opened the store, by role.
    roles: Vec<RoleCounts>,
}

#[derive(Default, Serialize, JsonSchema)]
struct RoleCounts {
    role: String,
    /// Number of jobs by outcome: `answered`, `cancelled`, or why no worker answered.
    jobs: BTreeMap<String, u64>,
    /// How long jobs ran in their worker.
    run: Distribution,
    /// How long jobs waited for a worker.
    queue: Distribution,
}

/// A distribution of times.
#[derive(Default, Serialize, JsonSchema)]
struct Distribution {
    count: u64,
    sum_seconds: f64,
    /// Number of values in each bucket. Bucket N goes up to 4^N microseconds; the last one has no
    /// bound.
    buckets: Vec<u64>,
}

impl From<&Spread> for Distribution {
    fn from(spread: &Spread) -> Self {
        let Spread { counts, count, sum } = spread;
        Self { count: *count, sum_seconds: *sum, buckets: counts.to_vec() }
    }
}

/// What is sent first, if the arguments are valid.
pub(super) async fn status(call: Call, arguments: Listening) -> Result<LiveStatus, Failure> {
    let seconds = arguments.seconds.unwrap_or(SECONDS.0);
    if !(1..=SECONDS.1).contains(&seconds) {
        let message = format!("seconds must be from 1 to {}", SECONDS.1);
        return Err(Failure::new(Code::BadInput, message));
    }
    Ok(LiveStatus::now(&call.server, u64::from(seconds)).await)
}

/// Events for the time that `first` says, until the client has gone or the server stops.
pub(super) fn response(server: Server, first: &RawValue) -> Response {
    let (sender, received) = mpsc::channel(2);
    let left = serde_json::from_str(first.get()).map_or(0, |Left { seconds_left }| seconds_left);
    tokio::spawn(async move {
        let stopping = server.stopping();
        let until = Instant::now() + Duration::from_secs(left);
        let mut ticks = interval(INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        while Instant::now() < until {
            tokio::select! {
                biased;
                () = stopping.cancelled() => return,
                () = sender.closed() => return,
                _ = ticks.tick() => {}
            }
            let left = until.saturating_duration_since(Instant::now()).as_secs();
            let status = LiveStatus::now(&server, left).await;
            let text = serde_json::to_string(&status).unwrap_or_default();
            if sender.send(Event::default().event("status").data(text)).await.is_err() {
                return;
            }
        }
    });
    events::stream(received)
}

/// What is read of the first answer.
#[derive(Deserialize)]
struct Left {
    seconds_left: u64,
}

impl LiveStatus {
    async fn now(server: &Server, seconds_left: u64) -> Self {
        let mut stores = Vec::new();
        for (owner, engine) in server.stores().opened() {
            stores.push(LiveStore::of(owner.name(), &engine).await);
        }
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(now.as_millis()).unwrap_or(i64::MAX);
        Self { at: Moment::instant(now).to_string(), stores, seconds_left }
    }
}

impl LiveStore {
    async fn of(whose: &str, engine: &Engine) -> Self {
        let (processes, workers) = engine.fronts().await;
        Self {
            whose: whose.to_owned(),
            processes: processes.into_iter().map(Process::from).collect(),
            workers: workers.into_iter().map(Worker::from).collect(),
            last_crash: engine.crash_reports().next().map(|(name, _)| name),
            roles: RoleCounts::of(engine),
        }
    }
}

impl RoleCounts {
    fn of(engine: &Engine) -> Vec<Self> {
        let mut roles: BTreeMap<&str, Self> = BTreeMap::new();
        let tally = engine.tally();
        for (counter, role, outcome, count) in tally.counters() {
            if counter == Counter::Jobs {
                roles.entry(role).or_default().jobs.insert(outcome.to_owned(), count);
            }
        }
        for (histogram, role, spread) in tally.histograms() {
            let counts = roles.entry(role).or_default();
            match histogram {
                Histogram::RunSeconds => counts.run = Distribution::from(&spread),
                Histogram::QueueSeconds => counts.queue = Distribution::from(&spread),
                Histogram::OverheadSeconds => {}
            }
        }
        roles.into_iter().map(|(role, counts)| Self { role: role.to_owned(), ..counts }).collect()
    }
}
