//! Whether a query changes the graph, where there is no store yet.

use std::sync::Arc;

use isolate::{CallOptions, Hooks, Pool, Supervised};
use isolith_roles::CypherCheck;
use isolith_types::Failure;

use crate::failure::of_call;
use crate::open::{EngineOptions, pool_settings};

/// Decides about queries without a store: one is created for a query that writes, never for
/// one that reads. The parser runs in a worker of its own, like everything that reads what
/// somebody else has written.
#[derive(Debug)]
pub struct QueryCheck(Pool<CypherCheck>);

impl QueryCheck {
    /// Must be called within a tokio runtime. The worker starts with the first question.
    ///
    /// # Errors
    /// That no worker can be started.
    pub fn start(options: &EngineOptions) -> Result<Self, Failure> {
        let pool = Pool::start(&(), pool_settings(options, 1), Hooks::default());
        Ok(Self(pool.map_err(|error| of_call(&error))?))
    }

    /// The pool, to be drained on a signal.
    pub fn pools(&self) -> Vec<Arc<dyn Supervised>> {
        vec![Arc::new(self.0.clone())]
    }

    /// Whether the query changes the graph.
    ///
    /// # Errors
    /// `bad_input` for what is wrong with the query; or why nobody could read it.
    pub async fn changes_graph(&self, query: &str) -> Result<bool, Failure> {
        let options = CallOptions { idempotent: true, ..CallOptions::default() };
        let answer = self.0.call(&query.to_owned(), options).await;
        answer.map_err(|error| of_call(&error))?.reply
    }
}

impl Drop for QueryCheck {
    fn drop(&mut self) {
        self.0.kill();
    }
}
