use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_types::Failure;

use isolith_fault as fault;

/// Parses a query when there is no store yet, to decide whether to create one: only queries that
/// write need it. It cannot open any file.
pub struct CypherCheck;

impl Role for CypherCheck {
    const NAME: &'static str = "cypher";
    type Settings = ();
    /// The text of the query.
    type Request = String;
    /// Whether the query changes the graph.
    type Reply = Result<bool, Failure>;

    fn warm_up((): (), _: InWorker) -> Result<Self, Refusal> {
        Ok(Self)
    }

    fn handle(&mut self, query: String, context: &Context<'_>) -> Result<bool, Failure> {
        fault::point("cypher", context);
        Ok(isolith_graph::prepare(&query)?.is_write())
    }

    fn sandbox((): &()) -> Sandbox {
        Sandbox::sealed()
    }
}
