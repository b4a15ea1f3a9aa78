//! The server: what it is called, what it can do, and the calls that are under way.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use isolith_engine::{Engine, Surroundings};
use isolith_types::Failure;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, CompleteRequestMethod,
    CompleteRequestParams, CompleteResult, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::progress::Progress;
use crate::stores::{Shut, Stores, Whose};
use crate::tool::{Call, Tool};
use crate::tools;
use crate::watchers::Watchers;

/// What agents are told once, before all tools.
const INSTRUCTIONS: &str = "Local code search and memory that survive crashes. Find code with \
search_code before reading files; if it answers no_store, call index_project once. Recall with \
memory_search and fact_query before asking the user again; keep what matters with memory_add \
and fact_add. Errors carry code, message and hint.";

/// After a client has said hello, so much time is its own before anything is warmed up.
const WARM_UP_AFTER: Duration = Duration::from_millis(100);

/// Where a server finds its stores, and what it may read.
#[derive(Debug, Clone, Default)]
pub struct ServerOptions {
    /// Where stores are looked for.
    pub surroundings: Surroundings,
    /// Folders beside the project that path arguments may lie in.
    pub allowed: Vec<PathBuf>,
}

/// The server. Clones are handles to the same one.
#[derive(Clone)]
pub struct Server {
    inner: Arc<Inner>,
}

struct Inner {
    stores: Stores,
    tools: OnceLock<Vec<Tool>>,
    /// How many calls are under way.
    calls: watch::Sender<usize>,
    watchers: Watchers,
    /// Whether it was warmed up, or will be at once.
    warm: AtomicBool,
    stop: CancellationToken,
}

impl Server {
    /// A server that has opened nothing yet.
    pub fn new(options: ServerOptions) -> Self {
        let ServerOptions { surroundings, allowed } = options;
        let inner = Inner {
            stores: Stores::new(surroundings, allowed),
            tools: OnceLock::new(),
            calls: watch::Sender::new(0),
            watchers: Watchers::default(),
            warm: AtomicBool::new(false),
            stop: CancellationToken::new(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Takes no more calls, and gives those that run up to `budget`.
    pub fn begin_drain(&self, budget: Duration) {
        self.stores().begin_drain(budget);
    }

    /// Completes when, after a drain, all calls are answered and all workers gone.
    pub async fn drained(&self) {
        // The sender lives as long as `self`.
        let _ = self.inner.calls.subscribe().wait_for(|calls| *calls == 0).await;
        self.stores().drained().await;
    }

    /// Says goodbye to all clients: what serves them ends.
    pub fn stop(&self) {
        self.inner.stop.cancel();
    }

    /// Kills all workers.
    pub fn kill(&self) {
        self.stores().kill();
    }

    /// Lets running jobs finish, and stops all workers.
    pub async fn close(&self) {
        self.inner.watchers.stop();
        self.stores().close().await;
    }

    /// Told when the server is to stop.
    pub(crate) fn stopping(&self) -> CancellationToken {
        self.inner.stop.clone()
    }

    pub(crate) fn stores(&self) -> &Stores {
        &self.inner.stores
    }

    /// Keeps what is indexed in a store fresh from now on.
    pub(crate) async fn keep_fresh(&self, engine: &Engine) {
        self.inner.watchers.watch_all(engine).await;
    }

    /// Warms up, once, when the client has what it asked for first.
    pub(crate) fn warm_up_soon(&self) {
        if self.inner.warm.swap(true, Ordering::Relaxed) {
            return;
        }
        let server = self.clone();
        tokio::spawn(async move {
            tokio::time::sleep(WARM_UP_AFTER).await;
            server.warm_up().await;
        });
    }

    /// Opens the stores that there are, and keeps fresh what is indexed in them.
    pub(crate) async fn warm_up(&self) {
        for (whose, opened) in self.stores().all() {
            match opened {
                Ok(engine) => self.keep_fresh(&engine).await,
                Err(failure) => {
                    tracing::warn!(store = whose.name(), %failure, "a store cannot be opened");
                }
            }
        }
    }

    /// Closes a store; nobody opens it again before the guard is dropped.
    pub(crate) async fn shut(&self, whose: Whose, meanwhile: Failure) -> Result<Shut, Failure> {
        // They hold on to the engine. Those of the other store begin again with it.
        self.inner.watchers.stop();
        self.stores().shut(whose, meanwhile).await
    }

    fn tools(&self) -> &[Tool] {
        self.inner.tools.get_or_init(tools::all)
    }

    fn begin_call(&self) -> Underway {
        self.inner.calls.send_modify(|calls| *calls += 1);
        Underway(Arc::clone(&self.inner))
    }
}

/// A call that is under way until this is dropped.
struct Underway(Arc<Inner>);

impl Drop for Underway {
    fn drop(&mut self) {
        self.0.calls.send_modify(|calls| *calls -= 1);
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("isolith", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.warm_up_soon();
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        // It is not among the capabilities.
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // A client that never says hello has at least asked.
        self.warm_up_soon();
        let tools = self.tools().iter().map(Tool::listed).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.tools().iter().find(|tool| tool.name() == request.name);
        let tool = tool.ok_or_else(|| {
            ErrorData::invalid_params(format!("there is no tool {:?}", request.name), None)
        })?;
        let _underway = self.begin_call();
        let call = Call { server: self.clone(), progress: Progress::of(&context) };
        let result: CallToolResult = tokio::select! {
            result = tool.run(call, request.arguments.unwrap_or_default()) => result,
            // Dropping the call stops its job; nobody waits for this answer.
            () = context.ct.cancelled() => {
                return Err(ErrorData::invalid_request("the call was cancelled", None));
            }
        };
        Ok(result.into())
    }
}
