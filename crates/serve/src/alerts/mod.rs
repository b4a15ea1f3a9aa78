//! Alerts without a monitoring system: a command that is started, or a URL that is called, when
//! something is wrong. At most one alert per cause and hour.

mod alert;
mod command;
mod rules;
mod webhook;

use std::sync::Arc;
use std::time::{Duration, Instant};

use isolith_engine::{Engine, is_job_failure};
use isolith_types::Code;

use crate::server::Server;
use crate::stores::StoreOwner;

pub use command::AlertCommand;
pub use rules::AlertLimits;
pub use webhook::Webhook;

use alert::Alert;
use rules::{Observation, Rules};

/// How long after the start the first check is. Stores are opened shortly before.
const FIRST_CHECK: Duration = Duration::from_secs(1);

/// How often is checked whether something is wrong.
const CHECK_EVERY: Duration = Duration::from_secs(5);

/// When to alert, and how.
#[derive(Debug, Clone)]
pub struct AlertOptions {
    /// Started for every alert.
    pub command: Option<AlertCommand>,
    /// Called for every alert.
    pub webhook: Option<Webhook>,
    /// What counts as wrong.
    pub limits: AlertLimits,
}

impl Server {
    /// Checks in the background whether something is wrong, until the server stops. Does nothing
    /// if nobody is to be told. Must be called within a tokio runtime.
    pub fn watch_for_alerts(&self, options: AlertOptions) {
        if options.command.is_none() && options.webhook.is_none() {
            return;
        }
        let (server, stopping) = (self.clone(), self.stopping());
        let options = Arc::new(options);
        tokio::spawn(async move {
            let mut rules = Rules::new(options.limits);
            let mut pause = FIRST_CHECK;
            loop {
                tokio::select! {
                    () = stopping.cancelled() => return,
                    () = tokio::time::sleep(pause) => pause = CHECK_EVERY,
                }
                for (owner, engine) in server.stores().opened() {
                    let observation = server.observe(owner, &engine).await;
                    for alert in rules.check(Instant::now(), &observation) {
                        server.raise(alert, &options);
                    }
                }
            }
        });
    }

    async fn observe(&self, owner: StoreOwner, engine: &Engine) -> Observation {
        let figures = self.monitoring().figures.of(owner, engine).await;
        let (mut jobs, mut failed) = (0, 0);
        for (counter, _, outcome, count) in engine.tally().counters() {
            if counter == isolate::Counter::Jobs {
                jobs += count;
                failed += if is_job_failure(outcome) { count } else { 0 };
            }
        }
        let breakers = engine.front_snapshot().breakers().into_iter();
        let open = breakers.filter(|breaker| breaker.state == isolate::BreakerState::Open);
        let error = figures.as_ref().and_then(|figures| figures.error.clone());
        Observation {
            store: owner.name(),
            folder: engine.folder().to_owned(),
            jobs,
            failed,
            open_breakers: open.map(|breaker| breaker.role).collect(),
            damaged: error.filter(|error| error.code == Code::Corrupt).map(|error| error.message),
            damage_seen: engine.activity().damage,
            rebuild_due: figures.as_ref().is_some_and(|figures| {
                figures.graph.rebuild_due || figures.collections.iter().any(|it| it.rebuild_due)
            }),
            disk: figures.as_ref().and_then(|figures| figures.disk),
        }
    }

    /// Tells everybody, without waiting.
    fn raise(&self, alert: Alert, options: &Arc<AlertOptions>) {
        let cause = alert.cause.name();
        tracing::warn!(cause, store = alert.store, message = alert.message, "alert");
        *self.monitoring().alerts().raised.entry(cause).or_default() += 1;
        let (alert, server, options) = (Arc::new(alert), self.clone(), Arc::clone(options));
        tokio::spawn(async move {
            let command = async {
                let Some(command) = &options.command else { return };
                server.note("command", &alert, command.run(&alert).await);
            };
            let webhook = async {
                let Some(webhook) = &options.webhook else { return };
                server.note("webhook", &alert, webhook.post(&alert).await);
            };
            tokio::join!(command, webhook);
        });
    }

    fn note(&self, hook: &'static str, alert: &Alert, delivered: Result<(), String>) {
        let cause = alert.cause.name();
        match delivered {
            Ok(()) => tracing::debug!(hook, cause, "alert delivered"),
            Err(error) => {
                tracing::warn!(hook, cause, error, "the alert could not be delivered");
                *self.monitoring().alerts().failed.entry(hook).or_default() += 1;
            }
        }
    }
}
