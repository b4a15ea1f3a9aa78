use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_types::Failure;

use isolith_fault as fault;

/// Says whether a query changes the graph, where there is no store yet whose reader could:
/// one is created for a query that writes, and for no other. It sees the query's text, never
/// a file.
pub struct CypherCheck;

impl Role for CypherCheck {
    const NAME: &'static str = "cypher";
    type Settings = ();
    /// The text of the query.
    type Request = String;
    /// Whether it changes the graph, or what is wrong with it.
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
