//! Classifies queries as reads or writes when there is no store yet.

use std::sync::Arc;

use isolate::{CallOptions, Hooks, Pool, Supervised};
use isolith_roles::CypherCheck;
use isolith_types::Failure;

use crate::failure::of_call;
use crate::open::{EngineOptions, pool_settings};

/// Tells whether a query writes, without a store: a write creates the store, a read does
/// not. The parser runs in its own worker, because queries are untrusted input.
#[derive(Debug)]
pub struct QueryCheck(Pool<CypherCheck>);

impl QueryCheck {
    /// Must be called within a tokio runtime. The worker starts with the first query.
    ///
    /// # Errors
    /// If no worker can be started.
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
    /// `bad_input` for an invalid query; any error of the worker.
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
