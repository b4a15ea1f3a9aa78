//! The quarantine of poison jobs, stored in the database.

use std::sync::Arc;

use isolate::{MemoryQuarantine, Poison, Quarantine};
use isolith_protocol::{GetOverview, PoisonedJob, ReadOperation, RememberPoison};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::sync::watch;

use crate::open::Engine;

/// Answers from memory and writes new entries to the database in the background, because
/// pools call it with their lock held.
pub(crate) struct StoreQuarantine {
    memory: MemoryQuarantine,
    news: UnboundedSender<Poison>,
    /// Number of entries not yet in the database.
    unwritten: watch::Sender<usize>,
}

impl StoreQuarantine {
    pub(crate) fn new() -> (Arc<Self>, UnboundedReceiver<Poison>) {
        let (news, receiver) = unbounded_channel();
        let memory = MemoryQuarantine::default();
        (Arc::new(Self { memory, news, unwritten: watch::Sender::new(0) }), receiver)
    }

    /// Completes when all entries were written to the database, or failed to be.
    pub(crate) async fn stored(&self) {
        // The sender lives as long as this does.
        let _ = self.unwritten.subscribe().wait_for(|unwritten| *unwritten == 0).await;
    }

    /// Loads the entries stored in the database.
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
        // Never quarantine the overview: without it nothing else can be asked.
        if poison.kind == GetOverview::NAME {
            return;
        }
        self.memory.add(poison.clone());
        self.unwritten.send_modify(|unwritten| *unwritten += 1);
        // Without an engine to store it, the entry lasts as long as the process.
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
    /// Loads the stored quarantine, once.
    pub(crate) async fn load_quarantine(&self) {
        let inner = &self.inner;
        inner
            .poisons_known
            .get_or_init(|| async {
                // The job itself will report what is wrong with the store.
                if let Ok(overview) = self.ask(GetOverview).await {
                    inner.quarantine.recall(&overview.poisons);
                }
            })
            .await;
    }

    /// Stores new entries, as long as the engine lives.
    pub(crate) fn store_quarantine(&self, mut news: UnboundedReceiver<Poison>) {
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
                    tracing::warn!(%failure, "could not store a quarantined job");
                }
                inner.quarantine.unwritten.send_modify(|unwritten| *unwritten -= 1);
            }
        });
    }
}
