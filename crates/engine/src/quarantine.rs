//! Jobs that kill, remembered in the truth.

use std::sync::Arc;

use isolate::{MemoryQuarantine, Poison, Quarantine};
use isolith_protocol::{GetOverview, PoisonedJob, ReadOperation, RememberPoison};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::open::Engine;

/// Answers from memory; what is new goes to the truth in the background, as pools ask
/// and tell it with their lock held.
pub(crate) struct StoreQuarantine {
    memory: MemoryQuarantine,
    news: UnboundedSender<Poison>,
    /// How many are not in the truth yet.
    unwritten: watch::Sender<usize>,
}

impl StoreQuarantine {
    pub(crate) fn new() -> (Arc<Self>, UnboundedReceiver<Poison>) {
        let (news, receiver) = unbounded_channel();
        let memory = MemoryQuarantine::default();
        (Arc::new(Self { memory, news, unwritten: watch::Sender::new(0) }), receiver)
    }

    /// Completes when all that is known is in the truth, or could not be written there.
    pub(crate) async fn written_down(&self) {
        // The sender lives as long as this does.
        let _ = self.unwritten.subscribe().wait_for(|unwritten| *unwritten == 0).await;
    }

    /// Takes what the truth remembers.
    fn recall(&self, jobs: &[PoisonedJob]) {
        for poison in jobs.iter().filter_map(|job| serde_json::from_str(&job.poison).ok()) {
            self.memory.add(poison);
        }
    }
}

impl Quarantine for StoreQuarantine {
    fn find(&self, role: &str, input_hash: &str) -> Option<Poison> {
        self.memory.find(role, input_hash)
    }

    fn add(&self, poison: Poison) {
        // Without this one question nothing else can be asked, and its input is empty.
        if poison.kind == GetOverview::NAME {
            return;
        }
        self.memory.add(poison.clone());
        self.unwritten.send_modify(|unwritten| *unwritten += 1);
        // Without an engine to write it down, it lasts as long as the process.
        if self.news.send(poison).is_err() {
            self.unwritten.send_modify(|unwritten| *unwritten -= 1);
        }
    }

    fn remove(&self, role: &str, input_hash: &str) -> bool {
        self.memory.remove(role, input_hash)
    }

    fn list(&self) -> Vec<Poison> {
        self.memory.list()
    }

    fn len(&self) -> usize {
        self.memory.len()
    }
}

impl Engine {
    /// Learns, once, which jobs killed workers before.
    pub(crate) async fn know_poisons(&self) {
        let inner = &self.inner;
        inner
            .poisons_known
            .get_or_init(|| async {
                // A store that cannot say so is found out by the job itself.
                if let Ok(overview) = self.ask(GetOverview).await {
                    inner.quarantine.recall(&overview.poisons);
                }
            })
            .await;
    }

    /// Writes new poisons down, as long as the engine lives.
    pub(crate) fn remember_poisons(&self, mut news: UnboundedReceiver<Poison>) {
        let inner = Arc::downgrade(&self.inner);
        tokio::spawn(async move {
            while let Some(poison) = news.recv().await {
                let Some(inner) = inner.upgrade() else { return };
                let remember = RememberPoison {
                    poison: serde_json::to_string(&poison).unwrap_or_default(),
                    role: poison.role,
                    input: poison.input_hash.into_bytes(),
                };
                if let Err(failure) = inner.writes.send(remember, None).await {
                    tracing::warn!(%failure, "a quarantined job could not be written down");
                }
                inner.quarantine.unwritten.send_modify(|unwritten| *unwritten -= 1);
            }
        });
    }
}
