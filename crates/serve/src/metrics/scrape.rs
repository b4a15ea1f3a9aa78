//! Collects the metrics of a scrape and writes them. `docs/monitoring.md` describes each.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use isolate::{BreakerState, Counter, Histogram, PoolSnapshot, Spread, WorkerState};
use isolith_engine::{ActivityCounts, CollectionStatus, SearchCounts, StoreFigures};
use isolith_types::Code;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;

use super::AlertCounts;
use super::families::{Families, Label, label};
use super::process::{ProcessFigures, unix_seconds};
use super::requests::Counts;
use super::text::Format;
use crate::server::Server;

/// Maximum number of collections of a store that are reported, the largest ones.
const MAX_COLLECTIONS: usize = 100;

/// A family: its name, what it means, and where its value comes from.
type Family<T, V> = (&'static str, &'static str, fn(&T) -> V);

/// Operations by name and outcome.
type OperationCounts = HashMap<(&'static str, Option<Code>), u64>;

/// Everything that a scrape reports.
#[derive(Debug)]
struct Scrape {
    stores: Vec<StoreScrape>,
    requests: Counts,
    connections: Option<(usize, usize)>,
    alerts: AlertCounts,
    process: ProcessFigures,
    started: f64,
}

/// What is reported about an open store.
#[derive(Debug)]
struct StoreScrape {
    name: &'static str,
    counters: Vec<(Counter, &'static str, &'static str, u64)>,
    histograms: Vec<(Histogram, &'static str, Spread)>,
    roles: BTreeMap<String, RoleScrape>,
    activity: ActivityCounts,
    /// `None` if it does not answer.
    figures: Option<Arc<StoreFigures>>,
}

/// What is reported about the pools of a role.
#[derive(Debug, Default)]
struct RoleScrape {
    /// 0 closed, 1 half-open, 2 open: the worst of its pools.
    breaker: u8,
    waiting: usize,
    workers: BTreeMap<&'static str, usize>,
    bytes: u64,
}

impl Server {
    /// The text of `/metrics`. Opens no store.
    pub(crate) async fn scrape(&self, format: Format) -> String {
        let mut stores = Vec::new();
        for (owner, engine) in self.stores().opened() {
            let figures = self.monitoring().figures.of(owner, &engine).await;
            let tally = engine.tally();
            stores.push(StoreScrape {
                name: owner.name(),
                counters: tally.counters(),
                histograms: tally.histograms(),
                roles: RoleScrape::of(engine.front_snapshot().pools),
                activity: engine.activity(),
                figures,
            });
        }
        let scrape = Scrape {
            stores,
            requests: self.monitoring().requests.counts(),
            connections: self.monitoring().connections(),
            alerts: self.monitoring().alerts().clone(),
            process: ProcessFigures::now(),
            started: unix_seconds() - self.age().as_secs_f64(),
        };
        format.convert(scrape.into_text())
    }
}

impl RoleScrape {
    fn of(pools: Vec<PoolSnapshot>) -> BTreeMap<String, Self> {
        let mut roles: BTreeMap<String, Self> = BTreeMap::new();
        for pool in pools {
            let role = roles.entry(pool.role).or_default();
            role.breaker = role.breaker.max(match pool.breaker {
                BreakerState::Closed => 0,
                BreakerState::HalfOpen => 1,
                BreakerState::Open => 2,
            });
            role.waiting += pool.waiting;
            for worker in pool.workers {
                *role.workers.entry(state_name(worker.state)).or_default() += 1;
                role.bytes += worker.rss_bytes.unwrap_or(0);
            }
        }
        roles
    }
}

fn state_name(state: WorkerState) -> &'static str {
    match state {
        WorkerState::Spawning | WorkerState::Warming => "starting",
        WorkerState::Idle => "idle",
        WorkerState::Busy => "busy",
        WorkerState::Recycling | WorkerState::Draining | WorkerState::Killing => "stopping",
    }
}

impl Scrape {
    fn into_text(self) -> String {
        let mut registry = Registry::default();
        registry.register_collector(Box::new(self));
        let mut text = String::new();
        // Writing to a string does not fail.
        let _ = encode(&mut text, &registry);
        text
    }

    /// A row per store and entry.
    fn rows<'a, T, I: IntoIterator<Item = T> + 'a>(
        &'a self,
        of: impl Fn(&'a StoreScrape) -> I + 'a,
    ) -> impl Iterator<Item = (Label, T)> + 'a {
        self.stores.iter().flat_map(move |store| {
            of(store).into_iter().map(|row| (label("store", store.name), row))
        })
    }

    fn jobs(&self, to: &mut Families<'_>) -> fmt::Result {
        let counters = |wanted: Counter| {
            let of = move |store: &StoreScrape| {
                let counters = store.counters.clone().into_iter();
                counters.filter(move |(counter, ..)| *counter == wanted)
            };
            self.rows(of).map(|(store, (_, role, detail, count))| (store, role, detail, count))
        };
        let detailed = |wanted, name| {
            counters(wanted).map(move |(store, role, detail, count)| {
                ([store, label("role", role), label(name, detail)], count)
            })
        };
        let plain = |wanted| {
            counters(wanted).map(|(store, role, _, count)| ([store, label("role", role)], count))
        };
        let help = "Jobs by outcome: answered, cancelled, or why no worker answered";
        to.counter("isolith_jobs", help, detailed(Counter::Jobs, "outcome"))?;
        let help = "Deaths of workers";
        to.counter("isolith_worker_deaths", help, detailed(Counter::Deaths, "class"))?;
        to.counter("isolith_worker_starts", "Workers started", plain(Counter::Spawns))?;
        let help = "Crash reports that could not be stored";
        to.counter("isolith_crash_reports_lost", help, plain(Counter::ReportsLost))?;
        for (wanted, name, help) in [
            (Histogram::QueueSeconds, "isolith_job_queue_seconds", "How long jobs waited"),
            (Histogram::RunSeconds, "isolith_job_run_seconds", "How long jobs ran in a worker"),
            (
                Histogram::OverheadSeconds,
                "isolith_job_overhead_seconds",
                "How long sending jobs and receiving answers took",
            ),
        ] {
            let of = |store: &StoreScrape| store.histograms.clone();
            let rows = self.rows(of).filter(|(_, (histogram, ..))| *histogram == wanted);
            let rows =
                rows.map(|(store, (_, role, spread))| ([store, label("role", role)], spread));
            to.histogram(name, help, rows)?;
        }
        Ok(())
    }

    fn workers(&self, to: &mut Families<'_>) -> fmt::Result {
        let gauges: [Family<RoleScrape, f64>; 3] = [
            ("isolith_breaker_state", "0 closed, 1 half-open, 2 open", |it| f64::from(it.breaker)),
            ("isolith_jobs_waiting", "Jobs that wait for a worker", |it| it.waiting as f64),
            ("isolith_worker_memory_bytes", "Resident memory of workers", |it| it.bytes as f64),
        ];
        for (name, help, value) in gauges {
            let rows = self.rows(|store| &store.roles);
            let rows = rows.map(|(store, (role, it))| ([store, label("role", role)], value(it)));
            to.gauge(name, help, rows)?;
        }
        let rows = self.rows(|store| &store.roles).flat_map(|(store, (role, it))| {
            it.workers.iter().map(move |(state, count)| {
                ([store.clone(), label("role", role), label("state", state)], *count as f64)
            })
        });
        to.gauge("isolith_workers", "Worker processes", rows)
    }

    fn sizes(&self, to: &mut Families<'_>) -> fmt::Result {
        let readable = |store: &StoreScrape| {
            [store.figures.as_ref().is_some_and(|figures| figures.error.is_none())]
        };
        let rows = self.rows(readable).map(|(store, readable)| ([store], f64::from(readable)));
        to.gauge("isolith_store_readable", "Whether the store answers without an error", rows)?;
        let gauges: [Family<StoreFigures, Option<f64>>; 9] = [
            ("isolith_store_collections", "Collections", |it| {
                known(it, it.collections.len() as u64)
            }),
            ("isolith_quarantined_jobs", "Jobs in quarantine", |it| known(it, it.quarantine)),
            ("isolith_graph_nodes", "Nodes of the graph", |it| known(it, it.graph.nodes)),
            ("isolith_graph_relationships", "Relationships of the graph", |it| {
                known(it, it.graph.relationships)
            }),
            ("isolith_graph_rebuild_due", "Whether the graph's segment is damaged", |it| {
                known(it, it.graph.rebuild_due.into())
            }),
            ("isolith_store_wal_bytes", "Size of the write-ahead log", |it| {
                Some(it.wal_bytes as f64)
            }),
            ("isolith_store_size_bytes", "Size of all files of the store", |it| {
                Some(it.disk_bytes as f64)
            }),
            ("isolith_store_disk_free_bytes", "Free space on the disk of the store", |it| {
                it.disk.map(|disk| disk.free_bytes as f64)
            }),
            ("isolith_store_disk_size_bytes", "Size of the disk of the store", |it| {
                it.disk.map(|disk| disk.total_bytes as f64)
            }),
        ];
        for (name, help, value) in gauges {
            let of = move |store: &StoreScrape| store.figures.as_deref().and_then(value);
            to.gauge(name, help, self.rows(of).map(|(store, value)| ([store], value)))?;
        }
        Ok(())
    }

    fn collections(&self, to: &mut Families<'_>) -> fmt::Result {
        let gauges: [Family<CollectionStatus, f64>; 5] = [
            ("isolith_collection_records", "Records", |it| it.records as f64),
            ("isolith_collection_tail_changes", "Changes that no segment contains", |it| {
                it.tail as f64
            }),
            ("isolith_collection_generation", "Number of the generation", |it| {
                it.generation as f64
            }),
            ("isolith_collection_segment_bytes", "Size of the segments", |it| {
                it.segment_bytes as f64
            }),
            ("isolith_collection_rebuild_due", "Whether a segment is damaged", |it| {
                f64::from(it.rebuild_due)
            }),
        ];
        let largest: Vec<(Label, &CollectionStatus)> = self.rows(largest).collect();
        for (name, help, value) in gauges {
            let rows = largest.iter().map(|(store, it)| {
                ([store.clone(), label("collection", it.full_name())], value(it))
            });
            to.gauge(name, help, rows)?;
        }
        Ok(())
    }

    fn operations(&self, to: &mut Families<'_>) -> fmt::Result {
        for (name, help, is_write) in [
            ("isolith_reads", "Operations that only read", false),
            ("isolith_writes", "Operations that write", true),
        ] {
            let rows = self.rows(move |store| {
                let ActivityCounts { reads, writes, .. } = &store.activity;
                sorted(if is_write { writes } else { reads })
            });
            let rows = rows.map(|(store, (operation, outcome, count))| {
                ([store, label("operation", operation), label("outcome", outcome)], count)
            });
            to.counter(name, help, rows)?;
        }
        let damage =
            |store: &StoreScrape| [store.activity.damage.as_ref().map_or(0, |damage| damage.count)];
        let rows = self.rows(damage).map(|(store, count)| ([store], count));
        to.counter("isolith_damage_errors", "Operations that failed because of damage", rows)
    }

    fn searches(&self, to: &mut Families<'_>) -> fmt::Result {
        let rows = self.rows(|store| &store.activity.searches);
        let rows = rows.flat_map(|(store, (operation, counts))| {
            let SearchCounts { seconds, degraded, failed } = counts;
            let complete = seconds.count - degraded;
            [("complete", complete), ("degraded", *degraded), ("failed", *failed)].map(
                |(outcome, count)| {
                    let operation = label("operation", operation);
                    ([store.clone(), operation, label("outcome", outcome)], count)
                },
            )
        });
        to.counter("isolith_searches", "Searches and Cypher queries that read", rows)?;
        let rows =
            self.rows(|store| &store.activity.searches).map(|(store, (operation, counts))| {
                ([store, label("operation", operation)], counts.seconds.clone())
            });
        to.histogram("isolith_search_seconds", "How long answered searches took", rows)
    }

    fn index_runs(&self, to: &mut Families<'_>) -> fmt::Result {
        let outcomes = |of: fn(&StoreScrape) -> [(&'static str, u64); 3]| {
            let rows = self.rows(of);
            rows.map(|(store, (outcome, count))| ([store, label("outcome", outcome)], count))
        };
        let rows = outcomes(|store| {
            let runs = &store.activity.index;
            let complete = runs.seconds.count - runs.interrupted;
            [("complete", complete), ("interrupted", runs.interrupted), ("failed", runs.failed)]
        });
        to.counter("isolith_index_runs", "Index runs", rows)?;
        let rows = outcomes(|store| {
            let runs = &store.activity.index;
            [
                ("indexed", runs.files_indexed),
                ("removed", runs.files_removed),
                ("failed", runs.files_failed),
            ]
        });
        to.counter(
            "isolith_index_files",
            "Files of index runs; unchanged ones do not count",
            rows,
        )?;
        let rows = self.rows(|store| [store.activity.index.seconds.clone()]);
        let rows = rows.map(|(store, spread)| ([store], spread));
        to.histogram("isolith_index_run_seconds", "How long index runs took", rows)
    }

    fn requests(&self, to: &mut Families<'_>) -> fmt::Result {
        let rows = self.requests.requests.iter().map(|((method, route, status), count)| {
            let labels = [
                label("method", method),
                label("route", route),
                label("status", status.to_string()),
            ];
            (labels, *count)
        });
        to.counter("isolith_http_requests", "Requests", rows)?;
        let rows = self.requests.seconds.iter();
        let rows = rows.map(|(route, spread)| ([label("route", route)], spread.clone()));
        to.histogram("isolith_http_request_seconds", "Time until an answer begins", rows)?;
        let rows = self.connections.into_iter().flat_map(|(pending, admitted)| {
            [("pending", pending), ("admitted", admitted)]
                .map(|(state, count)| ([label("state", state)], count as f64))
        });
        to.gauge("isolith_http_connections", "Open connections", rows)
    }

    fn server(&self, to: &mut Families<'_>) -> fmt::Result {
        let raised = self.alerts.raised.iter();
        let rows = raised.map(|(cause, count)| ([label("cause", cause)], *count));
        to.counter("isolith_alerts", "Alerts raised", rows)?;
        let failed = self.alerts.failed.iter();
        let rows = failed.map(|(hook, count)| ([label("hook", hook)], *count));
        to.counter("isolith_alert_failures", "Alerts that a hook could not deliver", rows)?;
        let rows = [([label("version", env!("CARGO_PKG_VERSION"))], 1.0)];
        to.gauge("isolith_build_info", "The version of the server", rows)?;
        let ProcessFigures { resident_bytes, open_files, cpu_seconds } = self.process;
        to.counter(
            "process_cpu_seconds",
            "CPU time of the server, without workers",
            [([], cpu_seconds)],
        )?;
        for (name, help, value) in [
            (
                "process_resident_memory_bytes",
                "Memory of the server, without workers",
                resident_bytes as f64,
            ),
            ("process_open_fds", "Open files of the server", open_files as f64),
            ("process_start_time_seconds", "When the server started, since 1970", self.started),
        ] {
            to.gauge(name, help, [([], value)])?;
        }
        Ok(())
    }
}

impl Collector for Scrape {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut to = Families(encoder);
        self.jobs(&mut to)?;
        self.workers(&mut to)?;
        self.sizes(&mut to)?;
        self.collections(&mut to)?;
        self.operations(&mut to)?;
        self.searches(&mut to)?;
        self.index_runs(&mut to)?;
        self.requests(&mut to)?;
        self.server(&mut to)
    }
}

/// A figure that is only known if the database could be read.
fn known(figures: &StoreFigures, value: u64) -> Option<f64> {
    figures.error.is_none().then_some(value as f64)
}

/// The largest collections of a store.
fn largest(store: &StoreScrape) -> Vec<&CollectionStatus> {
    let figures = store.figures.iter();
    let mut collections: Vec<_> = figures.flat_map(|figures| &figures.collections).collect();
    collections.sort_by_key(|it| (std::cmp::Reverse(it.records), &it.name));
    collections.truncate(MAX_COLLECTIONS);
    collections
}

/// Operations with the names of their outcomes, in a fixed order.
fn sorted(counts: &OperationCounts) -> Vec<(&'static str, String, u64)> {
    let named = counts.iter().map(|((operation, failed), count)| {
        let outcome = failed.map_or_else(|| "ok".to_owned(), code_name);
        (*operation, outcome, *count)
    });
    let mut rows: Vec<_> = named.collect();
    rows.sort_unstable();
    rows
}

/// The code as in answers, such as `not_found`.
fn code_name(code: Code) -> String {
    let name = serde_json::to_value(code).ok();
    name.and_then(|name| name.as_str().map(str::to_owned)).unwrap_or_default()
}
