//! Progress notifications to clients.

use std::pin::pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::Instant;

/// Minimum interval between the notifications of a call.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProgressStep {
    /// The name of the stage.
    pub(crate) stage: &'static str,
    /// What the stage has done, of `total`.
    pub(crate) done: u64,
    /// 0 if unknown.
    pub(crate) total: u64,
    /// Of all stages, from 0 to 1.
    pub(crate) fraction: f64,
    /// For people.
    pub(crate) message: String,
    /// What was done so far, for operations that show each step.
    pub(crate) items: Vec<Value>,
}

/// Who is told about progress.
#[derive(Debug, Clone)]
pub(crate) enum Progress {
    Nobody,
    /// A client that asked for it.
    Client(Peer<RoleServer>, ProgressToken),
    /// A job, which keeps the last step.
    Job(watch::Sender<ProgressStep>),
}

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        match context.meta.get_progress_token() {
            Some(token) => Self::Client(context.peer.clone(), token),
            None => Self::Nobody,
        }
    }

    /// Runs the work and forwards the progress it sends.
    pub(crate) async fn during<F: Future>(
        &self,
        work: impl FnOnce(watch::Sender<ProgressStep>) -> F,
    ) -> F::Output {
        if let Self::Job(steps) = self {
            return work(steps.clone()).await;
        }
        let (sender, mut steps) = watch::channel(ProgressStep::default());
        let mut work = pin!(work(sender));
        let Self::Client(peer, token) = self else { return work.await };
        let (mut reported, mut earliest) = (0.0, Instant::now());
        loop {
            let news = async {
                tokio::time::sleep_until(earliest).await;
                steps.changed().await.map(|()| steps.borrow_and_update().clone())
            };
            let step = tokio::select! {
                output = &mut work => return output,
                Ok(step) = news => step,
                else => return work.await,
            };
            // The protocol requires progress to increase.
            if step.fraction <= reported {
                continue;
            }
            (reported, earliest) = (step.fraction, Instant::now() + MIN_INTERVAL);
            let message = ProgressNotificationParam::new(token.clone(), step.fraction)
                .with_total(1.0)
                .with_message(step.message);
            // If the client has disconnected, the call will be cancelled.
            let _ = peer.notify_progress(message).await;
        }
    }
}
