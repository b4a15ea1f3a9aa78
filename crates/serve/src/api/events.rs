//! The progress of a job as server-sent events: `job`, then `progress` again and again, then
//! `result` or `error`.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_core::Stream;
use isolith_types::{Code, Failure};
use serde::Serialize;
use serde_json::json;
use tokio::sync::mpsc;
use tokio_util::sync::DropGuard;

use super::answer::shown;
use super::jobs::{Job, JobProgress, Outcome};
use crate::progress::ProgressStep;

/// Minimum interval between progress events.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Interval of comments, which show whether the client is still connected.
const KEEP_ALIVE: Duration = Duration::from_secs(5);

/// Events until the job has ended. With `cancels`, the job is cancelled if the client goes before.
pub(super) fn response(job: Job, cancels: bool) -> Response {
    let (sender, events) = mpsc::channel(4);
    let guard = cancels.then(|| job.cancellation().drop_guard());
    tokio::spawn(async move {
        // A client that has gone needs no events.
        let _ = send_events(&job, &sender).await;
    });
    respond(Events { events, _guard: guard })
}

/// Other events, until the sender is dropped.
pub(super) fn stream(events: mpsc::Receiver<Event>) -> Response {
    respond(Events { events, _guard: None })
}

fn respond(events: Events) -> Response {
    Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response()
}

async fn send_events(
    job: &Job,
    sender: &mpsc::Sender<Event>,
) -> Result<(), mpsc::error::SendError<Event>> {
    sender.send(event("job", &job.report())).await?;
    let (mut steps, mut last) = (job.steps(), ProgressStep::default());
    let outcome = loop {
        let news = async {
            tokio::time::sleep(MIN_INTERVAL).await;
            steps.changed().await.is_ok()
        };
        tokio::select! {
            biased;
            outcome = job.outcome() => break outcome,
            () = sender.closed() => return Ok(()),
            true = news => {}
            else => break job.outcome().await,
        }
        let step = steps.borrow_and_update().clone();
        if step != last {
            sender.send(event("progress", &JobProgress::of(&step))).await?;
            last = step;
        }
    };
    let end = match outcome {
        Outcome::Succeeded(answer) => Event::default().event("result").data(answer.get()),
        Outcome::Failed(failure) => event("error", &json!({ "error": failure })),
        Outcome::Cancelled => {
            let failure = Failure::new(Code::Interrupted, "the job was cancelled")
                .with_hint("repeat the request; what was finished is kept");
            event("error", &json!({ "error": shown(failure) }))
        }
    };
    sender.send(end).await
}

/// Serialized JSON has no line breaks, which would end the data of an event.
fn event(name: &str, data: &impl Serialize) -> Event {
    Event::default().event(name).data(serde_json::to_string(data).unwrap_or_default())
}

struct Events {
    events: mpsc::Receiver<Event>,
    _guard: Option<DropGuard>,
}

impl Stream for Events {
    type Item = Result<Event, Infallible>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_recv(context).map(|event| event.map(Ok))
    }
}
