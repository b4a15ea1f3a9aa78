//! The server's side of the protocol: its name, its capabilities and its request handlers.

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CompleteRequestMethod, CompleteRequestParams,
    CompleteResult, GetPromptRequestParams, GetPromptResponse, Implementation, ListPromptsResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ReadResourceRequestParams, ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};

use crate::arguments::fill_limit;
use crate::progress::Progress;
use crate::server::Server;
use crate::tool::{Call, Surface, Tool};
use crate::untrusted::RULE;

/// Instructions for agents.
const INSTRUCTIONS: &str = "Local code search and memory. Begin a session with memory_wake_up \
and end it with memory_checkpoint. Find code with search_code before reading files; if it answers \
no_store, call index_project once. Use memory_search and fact_query before asking the user again; \
store what matters with memory_add and fact_add. Errors have a code, a message and a hint. ";

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        let mut info = ServerConfig::new(capabilities);
        info.server_info = Implementation::new("isolith", env!("CARGO_PKG_VERSION"));
        info.instructions = Some(format!("{INSTRUCTIONS}{RULE}"));
        info
    }

    async fn on_initialized(&self, _context: NotificationContext<RoleServer>) {
        self.warm_up_soon();
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        // Some clients skip the initialization.
        self.warm_up_soon();
        let selection = self.selection();
        let tools = self.tools().iter().filter(|tool| tool.is_listed(selection));
        let tools = tools.map(Tool::definition).collect();
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tool = self.tools().iter().find(|tool| tool.name() == request.name);
        let tool = tool.ok_or_else(|| {
            ErrorData::invalid_params(format!("unknown tool {:?}", request.name), None)
        })?;
        if !tool.is_callable(self.selection()) {
            let message = format!(
                "the tool {:?} is not offered: the server was started with --tools",
                request.name
            );
            return Err(ErrorData::invalid_params(message, None));
        }
        let call = Call {
            server: self.clone(),
            progress: Progress::of(&context),
            surface: Surface::Agent,
            key: None,
        };
        let mut arguments = request.arguments.unwrap_or_default();
        fill_limit(tool.name(), &mut arguments, self.defaults());
        let run = tool.run(call, arguments);
        Ok(until_cancelled(self, &context, run).await?.into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let cursor = request.and_then(|it| it.cursor);
        until_cancelled(self, &context, self.resources(cursor.as_deref())).await?
    }

    async fn list_resource_templates(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(self.resource_templates())
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let read = until_cancelled(self, &context, self.resource(&request.uri)).await?;
        read.map(ReadResourceResponse::from)
    }

    async fn list_prompts(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(self.prompts())
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let arguments = request.arguments.unwrap_or_default();
        let prompt = self.prompt(&request.name, &arguments);
        let prompt = until_cancelled(self, &context, prompt).await?;
        prompt.map(GetPromptResponse::from)
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        Err(ErrorData::method_not_found::<CompleteRequestMethod>())
    }
}

/// Runs the work until it completes or the client cancels it.
async fn until_cancelled<T>(
    server: &Server,
    context: &RequestContext<RoleServer>,
    work: impl Future<Output = T>,
) -> Result<T, ErrorData> {
    let _guard = server.begin_call();
    tokio::select! {
        done = work => Ok(done),
        // Dropping the work cancels its job; nobody waits for this answer.
        () = context.ct.cancelled() => {
            Err(ErrorData::invalid_request("the call was cancelled", None))
        }
    }
}
