//! Progress notifications to clients.

use std::pin::pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::time::Instant;

/// Minimum interval between the notifications of a call.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The progress of a call.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProgressStep {
    /// From 0 to 1.
    pub(crate) fraction: f64,
    /// For people.
    pub(crate) message: String,
}

/// Sends progress to the client if it asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self(context.meta.get_progress_token().map(|token| (context.peer.clone(), token)))
    }

    /// Runs the work and forwards the progress it sends.
    pub(crate) async fn during<F: Future>(
        &self,
        work: impl FnOnce(watch::Sender<ProgressStep>) -> F,
    ) -> F::Output {
        let (sender, mut steps) = watch::channel(ProgressStep::default());
        let mut work = pin!(work(sender));
        let Some((peer, token)) = &self.0 else { return work.await };
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
