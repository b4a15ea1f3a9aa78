//! Telling a client how far its call is.

use std::pin::pin;
use std::time::Duration;

use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::{Peer, RequestContext};
use tokio::sync::watch;
use tokio::time::Instant;

/// Between two messages of the same call.
const PAUSE: Duration = Duration::from_millis(100);

/// How far something is.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Step {
    /// From 0 to 1.
    pub(crate) share: f64,
    /// For people.
    pub(crate) message: String,
}

/// The way to a client that wants to know.
#[derive(Debug, Clone)]
pub(crate) struct Progress(Option<(Peer<RoleServer>, ProgressToken)>);

impl Progress {
    /// Of a request; silent unless the client has asked for it.
    pub(crate) fn of(context: &RequestContext<RoleServer>) -> Self {
        Self(context.meta.get_progress_token().map(|token| (context.peer.clone(), token)))
    }

    /// Works, and passes on what the work says about itself.
    pub(crate) async fn during<F: Future>(
        &self,
        work: impl FnOnce(watch::Sender<Step>) -> F,
    ) -> F::Output {
        let (sender, mut steps) = watch::channel(Step::default());
        let mut work = pin!(work(sender));
        let Some((peer, token)) = &self.0 else { return work.await };
        let (mut told, mut earliest) = (0.0, Instant::now());
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
            // The protocol wants every message to be further than the one before.
            if step.share <= told {
                continue;
            }
            (told, earliest) = (step.share, Instant::now() + PAUSE);
            let message = ProgressNotificationParam::new(token.clone(), step.share)
                .with_total(1.0)
                .with_message(step.message);
            // A client that has gone away will cancel the call.
            let _ = peer.notify_progress(message).await;
        }
    }
}
