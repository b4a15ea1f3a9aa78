//! Group commit: writes that arrive while the writer is busy become one job and one
//! transaction.

use std::sync::Arc;
use std::time::Duration;

use isolate::{BatchPart, CallError, CallOptions, Death, Pool};
use isolith_protocol::{Action, Done, Handling, Key, Write, WriteOperation, WriteReply};
use isolith_roles::{StoreWriter, WriteJob};
use isolith_store::{LockHolder, StoreFolder, write_lock_holder};
use isolith_types::{Code, Failure};
use tokio::sync::{mpsc, oneshot};

use crate::failure::of_call;
use crate::graph::{kill_deadline, query_time_limit};
use crate::status::Activity;

/// Limits of a group.
const GROUP_ROWS: usize = 1_000;
const GROUP_BYTES: usize = 4 << 20;

/// After this long without a write, the log is copied into the database file.
const IDLE: Duration = Duration::from_secs(3);

/// Maximum number of queued writes.
const MAX_QUEUED: usize = 4_096;

/// A completed write.
#[derive(Debug, Clone)]
pub struct Written<R> {
    /// Its reply, and the work that it makes due.
    pub done: Done<R>,
    /// The process id of the writer.
    pub worker_pid: u32,
    /// The workers that died before it succeeded.
    pub deaths: Vec<Death>,
    /// How long the transaction's job ran.
    pub ran: Duration,
}

impl Written<WriteReply> {
    /// Converts the reply to that of the operation.
    fn typed<O: WriteOperation>(self) -> Result<Written<O::Reply>, Failure> {
        let Self { done, worker_pid, deaths, ran } = self;
        let Done { reply, repeated, collection, fold_due, graph_due } = done;
        let reply = O::reply_from(reply)
            .ok_or_else(|| Failure::new(Code::Failed, "unexpected reply from the writer"))?;
        let done = Done { reply, repeated, collection, fold_due, graph_due };
        Ok(Written { done, worker_pid, deaths, ran })
    }
}

/// Queue of writes; groups them into jobs for the writer.
pub(crate) struct WriteQueue {
    inbox: mpsc::Sender<QueuedWrite>,
    activity: Arc<Activity>,
}

struct QueuedWrite {
    write: Write,
    answer: AnswerSender,
}

type AnswerSender = oneshot::Sender<Result<Written<WriteReply>, Failure>>;

impl WriteQueue {
    /// `deadline` is how long a query may take.
    pub(crate) fn start(
        pool: Pool<StoreWriter>,
        folder: StoreFolder,
        deadline: Duration,
        activity: Arc<Activity>,
    ) -> Self {
        let (inbox, waiting) = mpsc::channel(MAX_QUEUED);
        let (next, confirmed, needs_checkpoint) = (None, Vec::new(), false);
        let groups = Groups { pool, folder, deadline, waiting, next, confirmed, needs_checkpoint };
        tokio::spawn(groups.run());
        Self { inbox, activity }
    }

    /// Sends an operation, under the caller's key or a fresh one. Dropping the future cancels
    /// a write that was not sent yet; otherwise it only drops the reply.
    pub(crate) async fn send<O: WriteOperation>(
        &self,
        operation: O,
        key: Option<Key>,
    ) -> Result<Written<O::Reply>, Failure> {
        let written = self.send_uncounted(operation, key).await;
        self.activity.write(O::NAME, written.as_ref().err());
        written
    }

    async fn send_uncounted<O: WriteOperation>(
        &self,
        operation: O,
        key: Option<Key>,
    ) -> Result<Written<O::Reply>, Failure> {
        let (answer, written) = oneshot::channel();
        let keep = key.is_some();
        let action = operation.into();
        let write = Write { key: key.unwrap_or_else(fresh_key), keep, action };
        let stopping = || of_call(&CallError::Draining { role: "store-writer" });
        self.inbox.send(QueuedWrite { write, answer }).await.map_err(|_| stopping())?;
        let written = written.await.unwrap_or_else(|_| Err(stopping()))?;
        written.typed::<O>()
    }
}

pub(crate) fn fresh_key() -> Key {
    Key(fastrand::u128(..).to_le_bytes())
}

/// The task that forms groups.
struct Groups {
    pool: Pool<StoreWriter>,
    folder: StoreFolder,
    /// How long a query may take.
    deadline: Duration,
    waiting: mpsc::Receiver<QueuedWrite>,
    /// The first write that did not fit into the previous group.
    next: Option<QueuedWrite>,
    /// Keys whose replies were delivered; the next job removes them.
    confirmed: Vec<Key>,
    /// Whether something was written since the last checkpoint.
    needs_checkpoint: bool,
}

impl Groups {
    async fn run(mut self) {
        while let Some(group) = self.next_group().await {
            self.write(group).await;
        }
    }

    async fn next_group(&mut self) -> Option<Vec<QueuedWrite>> {
        let first = match self.next.take() {
            Some(first) => first,
            None => self.next_or_checkpoint().await?,
        };
        let Handling { mut rows, mut bytes, alone, .. } = first.write.action.handling();
        let mut group = vec![first];
        while !alone && let Ok(next) = self.waiting.try_recv() {
            let more = next.write.action.handling();
            rows += more.rows;
            bytes += more.bytes;
            if more.alone || rows > GROUP_ROWS || bytes > GROUP_BYTES {
                self.next = Some(next);
                break;
            }
            group.push(next);
        }
        // Drop writes whose caller has gone away.
        group.retain(|waiting| !waiting.answer.is_closed());
        Some(group)
    }

    /// The next write. When idle, copies the log into the database file, so that little is in
    /// the log alone.
    async fn next_or_checkpoint(&mut self) -> Option<QueuedWrite> {
        if self.needs_checkpoint {
            match tokio::time::timeout(IDLE, self.waiting.recv()).await {
                Ok(first) => return first,
                Err(_) => self.checkpoint().await,
            }
        }
        self.waiting.recv().await
    }

    async fn checkpoint(&mut self) {
        self.needs_checkpoint = false;
        let confirmed = std::mem::take(&mut self.confirmed);
        let job = WriteJob { writes: Vec::new(), confirmed, rest: true, time: None };
        let options = CallOptions { idempotent: true, ..CallOptions::default() };
        if let Err(error) = self.pool.call(&job, options).await {
            tracing::debug!(%error, "checkpoint failed");
        }
    }

    async fn write(&mut self, group: Vec<QueuedWrite>) {
        if group.is_empty() {
            return;
        }
        self.needs_checkpoint = true;
        // Every write has a key, so a job with an unknown outcome may be sent again.
        let mut options = CallOptions { idempotent: true, ..CallOptions::default() };
        let is_query = group.iter().any(|it| matches!(it.write.action, Action::ChangeGraph(_)));
        let time = is_query.then(|| query_time_limit(self.deadline));
        if is_query {
            options.deadline = Some(kill_deadline(self.deadline));
        }
        let confirmed = std::mem::take(&mut self.confirmed);
        let (mut writes, mut answers) = (Vec::new(), Vec::new());
        for waiting in group {
            writes.push(waiting.write);
            answers.push(Some(waiting.answer));
        }
        let parts = if writes.len() == 1 {
            let job = WriteJob { writes, confirmed, rest: false, time };
            let outcome = self.pool.call(&job, options).await;
            writes = job.writes;
            vec![BatchPart { items: 0..1, outcome }]
        } else {
            let job = |run: &[Write]| WriteJob {
                writes: run.to_vec(),
                confirmed: confirmed.clone(),
                rest: false,
                time,
            };
            self.pool.call_batch(&writes, job, options).await
        };
        for part in parts {
            self.deliver(part, &writes, &mut answers);
        }
    }

    fn deliver(
        &mut self,
        part: BatchPart<<StoreWriter as isolate::Role>::Reply>,
        writes: &[Write],
        answers: &mut [Option<AnswerSender>],
    ) {
        let BatchPart { items, outcome } = part;
        let (results, worker_pid, deaths, ran) = match outcome {
            Ok(answer) => (answer.reply, answer.worker_pid, answer.deaths, answer.ran),
            Err(error) => (Err(of_call(&error)), 0, Vec::new(), Duration::ZERO),
        };
        let results = results.map_err(|failure| self.name_holder(failure));
        for (place, index) in items.enumerate() {
            let result = match &results {
                Ok(results) => match results.get(place).cloned() {
                    Some(result) => result.map_err(|failure| self.name_holder(failure)),
                    None => Err(Failure::new(Code::Failed, "the writer skipped a write")),
                },
                Err(failure) => Err(failure.clone()),
            };
            let written =
                result.map(|done| Written { done, worker_pid, deaths: deaths.clone(), ran });
            let done = written.is_ok() && !writes[index].keep;
            if let Some(answer) = answers[index].take() {
                // The caller may be gone; the write is done nevertheless.
                let _ = answer.send(written);
            }
            if done {
                self.confirmed.push(writes[index].key);
            }
        }
    }

    /// Names the holder of the write lock, if a write timed out waiting for it.
    fn name_holder(&self, failure: Failure) -> Failure {
        if failure.code != Code::Timeout {
            return failure;
        }
        match write_lock_holder(&self.folder) {
            Some(holder) => held_by(failure, &holder),
            None => failure,
        }
    }
}

fn held_by(failure: Failure, holder: &LockHolder) -> Failure {
    let LockHolder { pid, command, .. } = holder;
    let mut message = format!("{}; the write lock is held by {holder}", failure.message);
    if !command.is_empty() {
        message.push_str(&format!(": {command}"));
    }
    let failure = Failure { message, ..failure };
    if holder.is_stopped() {
        return failure.with_hint(format!(
            "continue that process (`kill -CONT {pid}`) or end it, then try again"
        ));
    }
    failure
}
