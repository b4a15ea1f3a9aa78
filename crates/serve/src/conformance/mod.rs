//! Fixtures for the official conformance suite: tools, prompts and resources with known answers.
//! They are served next to the server's own, but only in builds with the feature `conformance` and
//! on servers that enable them.

// The suite tests logging, sampling and roots, which are deprecated in newer revisions.
#![allow(deprecated)]

mod content;
mod rounds;

use std::borrow::Cow;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, CompleteRequestParams,
    CompleteResult, ContentBlock, GetPromptRequestParams, GetPromptResponse, JsonObject,
    ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult, ListToolsResult,
    PaginatedRequestParams, ProgressNotificationParam, Prompt, PromptArgument, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, Resource, ResourceTemplate, ServerConfig,
    ServerNotification, ServerRequest, SetLevelRequestParams, SubscribeRequestParams,
    SubscriptionFilter, Tool, UnsubscribeRequestParams,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::server::Server;

/// Pause between the messages of a tool that sends several.
const PAUSE: Duration = Duration::from_millis(50);

/// A server with the fixtures.
#[derive(Clone)]
pub(crate) struct ConformanceServer(pub(crate) Server);

impl ServerHandler for ConformanceServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = self.0.get_info();
        info.capabilities.logging = Some(JsonObject::new());
        info.capabilities.completions = Some(JsonObject::new());
        if let Some(resources) = &mut info.capabilities.resources {
            resources.subscribe = Some(true);
        }
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        self.0.supported_protocol_versions()
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        self.0.on_initialized(context).await;
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools().into_iter().find(|tool| tool.name == name)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut listed = self.0.list_tools(request, context).await?;
        listed.tools.extend(tools());
        Ok(listed)
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = request.name.clone();
        if let Some(answer) = content::of_tool(&name) {
            return result::<CallToolResult>(answer).map(CallToolResponse::from);
        }
        if let Some(round) = rounds::of_tool(&request, &context) {
            return round;
        }
        let arguments = request.arguments.clone().unwrap_or_default();
        match &*name {
            "test_tool_with_progress" => with_progress(&context).await,
            "test_tool_with_logging" => with_logging(&context).await,
            "test_logging_tool" => match context.meta.log_level() {
                Some(_) => with_logging(&context).await,
                None => Ok(text("no log level was set")),
            },
            "test_sampling" => {
                let prompt = content::sampling(argument(&arguments, "prompt"), 100);
                let answer = ask(&context, prompt).await?;
                Ok(text(&format!("LLM response: {}", answer["content"]["text"])))
            }
            "test_elicitation" => {
                let form =
                    content::elicitation(argument(&arguments, "message"), &content::user_form());
                elicited(&context, form, "User response").await
            }
            "test_elicitation_sep1034_defaults" => {
                let form =
                    content::elicitation("Please review the defaults", &content::defaults_form());
                elicited(&context, form, "Elicitation completed").await
            }
            "test_elicitation_sep1330_enums" => {
                let form = content::elicitation("Please choose", &content::choices_form());
                elicited(&context, form, "Elicitation completed").await
            }
            "json_schema_2020_12_tool" | "test_custom_header" => Ok(text("called")),
            _ => self.0.call_tool(request, context).await,
        }
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let mut listed = self.0.list_resources(request, context).await?;
        let fixtures = content::RESOURCES.iter();
        listed.resources.extend(fixtures.map(|(uri, kind)| {
            Resource::new(*uri, *uri).with_description("A fixture").with_mime_type(*kind)
        }));
        Ok(listed)
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        let mut listed = self.0.list_resource_templates(request, context).await?;
        let fixture = ResourceTemplate::new("test://template/{id}/data", "template");
        listed.resource_templates.push(fixture.with_mime_type("application/json"));
        Ok(listed)
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        match content::of_resource(&request.uri) {
            Some(contents) => {
                result(json!({ "contents": [contents] })).map(ReadResourceResponse::Complete)
            }
            None => self.0.read_resource(request, context).await,
        }
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        let mut listed = self.0.list_prompts(request, context).await?;
        listed.prompts.extend(content::PROMPTS.iter().map(|(name, arguments)| {
            let argument = |name: &&str| PromptArgument::new(*name).with_required(true);
            let arguments = arguments.iter().map(argument).collect();
            Prompt::new(*name, Some("A fixture"), Some(arguments))
        }));
        Ok(listed)
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        if let Some(round) = rounds::of_prompt(&request) {
            return round;
        }
        let arguments = request.arguments.clone().unwrap_or_default();
        match content::of_prompt(&request.name, &arguments) {
            Some(messages) => {
                result(json!({ "messages": messages })).map(GetPromptResponse::Complete)
            }
            None => self.0.get_prompt(request, context).await,
        }
    }

    async fn complete(
        &self,
        _request: CompleteRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CompleteResult, ErrorData> {
        result(
            json!({ "completion": { "values": ["paris", "park"], "total": 2, "hasMore": false } }),
        )
    }

    async fn set_level(
        &self,
        _request: SetLevelRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        for uri in context.accepted().resource_subscriptions.iter().flatten() {
            context.sink().notify_resource_updated(uri).await.map_err(internal_error)?;
        }
        context.cancelled().await;
        Ok(())
    }

    async fn subscribe(
        &self,
        _request: SubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }

    async fn unsubscribe(
        &self,
        _request: UnsubscribeRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<(), ErrorData> {
        Ok(())
    }
}

/// The tools among the fixtures.
fn tools() -> Vec<Tool> {
    let plain = json!({ "type": "object", "properties": {} });
    let names = content::TOOLS.iter().chain(&rounds::TOOLS);
    let mut tools: Vec<Tool> =
        names.map(|name| Tool::new(*name, "A fixture", object(plain.clone()))).collect();
    for (name, schema) in content::schemas() {
        tools.push(Tool::new(name, "A fixture", object(schema)));
    }
    tools
}

async fn with_progress(
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    for done in [0.0, 50.0, 100.0] {
        if let Some(token) = context.meta.get_progress_token() {
            let step = ProgressNotificationParam::new(token, done).with_total(100.0);
            context.peer.notify_progress(step).await.map_err(internal_error)?;
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("progress was reported"))
}

async fn with_logging(context: &RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
    for line in ["Tool execution started", "Tool processing data", "Tool execution completed"] {
        let params = json!({ "level": "info", "logger": "conformance", "data": line });
        let message = json!({ "method": "notifications/message", "params": params });
        let message = from_json::<ServerNotification>(message)?;
        context.peer.send_notification(message).await.map_err(internal_error)?;
        tokio::time::sleep(PAUSE).await;
    }
    Ok(text("three lines were logged"))
}

/// Sends a request to the client, which only older revisions of the protocol allow.
async fn ask(context: &RequestContext<RoleServer>, request: Value) -> Result<Value, ErrorData> {
    let request = from_json::<ServerRequest>(request)?;
    let answer: ClientResult = context.peer.send_request(request).await.map_err(internal_error)?;
    serde_json::to_value(answer).map_err(internal_error)
}

async fn elicited(
    context: &RequestContext<RoleServer>,
    form: Value,
    what: &str,
) -> Result<CallToolResponse, ErrorData> {
    let answer = ask(context, form).await?;
    let action = answer["action"].as_str().unwrap_or_default();
    Ok(text(&format!("{what}: action={action}, content={}", answer["content"])))
}

fn argument<'a>(arguments: &'a JsonObject, name: &str) -> &'a str {
    arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn text(text: &str) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(text)]).into()
}

fn object(json: Value) -> JsonObject {
    match json {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// A result. Newer revisions require its type.
fn result<T: DeserializeOwned>(mut json: Value) -> Result<T, ErrorData> {
    json["resultType"] = json!("complete");
    from_json(json)
}

/// Converts JSON to a type of the protocol.
fn from_json<T: DeserializeOwned>(json: Value) -> Result<T, ErrorData> {
    serde_json::from_value(json).map_err(internal_error)
}

fn internal_error(error: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(error.to_string(), None)
}
