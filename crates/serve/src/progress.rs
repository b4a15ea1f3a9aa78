//! Progress notifications.

use std::pin::pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::time::Instant;

/// Minimum time between two messages of a call.
const PAUSE: Duration = Duration::from_millis(100);

/// How far a call has come.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct ProgressStep {
    /// Fraction done, from 0 to 1.
    pub(crate) share: f64,
    /// Text for people.
    pub(crate) message: String,
}

/// Sends progress to a client that asked for it.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    /// For a request; does nothing unless the client asked for progress.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self(context.meta.get_progress_token().map(|token| (context.peer.clone(), token)))
    }

    /// Runs the work and passes on its progress.
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
            if step.share <= reported {
                continue;
            }
            (reported, earliest) = (step.share, Instant::now() + PAUSE);
            let message = ProgressNotificationParam::new(token.clone(), step.share)
                .with_total(1.0)
                .with_message(step.message);
            // A client that has disconnected will cancel the call.
            let _ = peer.notify_progress(message).await;
        }
    }
}
