//! The graph of a store: Cypher, and what people ask of their code.

mod import;
mod name;
mod overview;
mod pages;
mod rings;
mod row;
mod shown;
mod spool;
mod symbol;
mod told;
mod unused;
mod walk;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use isolate::CallOptions;
use isolith_roles::{ReadJob, ReadReply, SegmentsOf};
use isolith_store::{Action, CypherQuery, GraphAnswer, Key};
use isolith_types::{Code, Failure};

pub use import::{GraphImport, GraphImported};
pub use overview::{FileImport, GraphSize, HotBy, Hotspot, ImportCycle, Kinds, Ties};
use pages::blocking;
pub use pages::{GraphCursor, GraphPage, PageSize};
pub use row::Symbol;
pub use shown::datum_text;
pub use spool::Row as GraphRow;
pub(crate) use spool::Spools;
use spool::{Arriving, Rest};
pub use told::Side;
pub use walk::{Impact, Listed, Neighbours, Reached, SymbolPath, Walk};

use crate::collections::misfit;
use crate::open::Engine;

/// Clauses that change a graph begin with one of these words.
const CHANGES: [&str; 5] = ["create", "merge", "set", "delete", "remove"];

impl Engine {
    /// Runs a query. One that changes the graph is one transaction; with a key, a repeat of
    /// the same call changes nothing and answers the same.
    ///
    /// # Errors
    /// `bad_input` for what is wrong with the query or its parameters; `timeout` and
    /// `too_large` for one that takes too long or keeps too much; `already_applied` for a
    /// repeat whose rows are no longer known; or what keeps the store from answering.
    ///
    /// All of the answer is held in memory: where it may be long, ask for pages or rows.
    pub async fn cypher(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<GraphAnswer, Failure> {
        let (answer, rest) = self.cypher_apart(query, key).await?;
        match rest {
            Some(rest) => Ok(answer.with_rest(&blocking(move || rest.read_all()).await?)),
            None => Ok(answer),
        }
    }

    /// The first rows of an answer, and a file with those behind them.
    async fn cypher_apart(
        &self,
        query: CypherQuery,
        key: Option<Key>,
    ) -> Result<(GraphAnswer, Option<Rest>), Failure> {
        self.check_all_roots().await?;
        if may_change(&query.text) {
            let written = self.write(Action::Cypher(query.clone()), key).await?;
            if let Some(answer) = written.outcome.graph {
                return if answer.forgotten { Err(applied(&answer)) } else { Ok((answer, None)) };
            }
        }
        let deadline = self.inner.options.deadline;
        let arriving = Arc::new(Arriving::default());
        let on_part = {
            let arriving = Arc::clone(&arriving);
            Arc::new(move |attempt, part: Bytes| arriving.take(attempt, &part))
        };
        let job = ReadJob::Cypher { query: Box::new(query), time: time_of(deadline) };
        let options = CallOptions {
            deadline: Some(patience_of(deadline)),
            on_part: Some(on_part),
            ..CallOptions::default()
        };
        let answered = self.ask_for_with(&job, options).await?;
        let ReadReply::Cypher(found) = answered.reply else { return Err(misfit(&answered.reply)) };
        if found.wanted {
            self.inner.graph_wanted.store(true, Ordering::Relaxed);
            self.build_later(SegmentsOf::Graph);
        }
        self.quarantine(SegmentsOf::Graph, &found.searched, answered.blamed).await;
        let rest = arriving.finish(found.answer.rest)?;
        Ok((found.answer, rest))
    }
}

/// How long a query may take, for it to be stopped, and the answer to be here, in time.
pub(crate) fn time_of(deadline: Duration) -> Duration {
    deadline.mul_f32(0.9)
}

/// When a worker that does not stop is killed. It is meant to stop by itself long before: a
/// death costs a worker, and on a busy machine it may take a moment.
pub(crate) fn patience_of(deadline: Duration) -> Duration {
    deadline.mul_f32(1.1) + Duration::from_secs(1)
}

/// Whether a query may be one that changes something. Only the parser knows, and it runs in
/// workers: the writer hands back what it has nothing to do with.
pub fn may_change(query: &str) -> bool {
    let mut words = query.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
    words.any(|word| CHANGES.iter().any(|change| word.eq_ignore_ascii_case(change)))
}

fn applied(answer: &GraphAnswer) -> Failure {
    let message = format!(
        "the query was applied before; its {} rows are too long to be remembered",
        answer.count
    );
    Failure::new(Code::AlreadyApplied, message).with_hint("read what it made with another query")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_change_something_goes_to_the_writer() {
        for (query, expected) in [
            ("MATCH (n) RETURN n", false),
            ("match (n) SeT n.a = 1", true),
            ("CREATE (:A)", true),
            ("MATCH(n)SET n.a=1", true),
            ("MATCH (n) RETURN n.offset, n.set_at", false),
            // A property of that name: the writer says that it is none of its business.
            ("MATCH (n) RETURN n.set", true),
        ] {
            assert_eq!(may_change(query), expected, "{query}");
        }
    }
}
