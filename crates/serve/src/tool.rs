//! A tool: what a client is told of it, and what it does.

use std::pin::Pin;
use std::sync::Arc;

use isolith_types::{Code, Failure, ShownFailure};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::hints::for_agents;
use crate::progress::Progress;
use crate::schema;
use crate::server::Server;
use crate::untrusted::fenced;

/// What a tool does to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Nothing.
    Read,
    /// It adds, each time again.
    Add,
    /// It adds; the same again changes nothing.
    AddOnce,
    /// It changes or removes; the same again changes nothing.
    Change,
    /// It does what it is told: it may change or remove, each time again.
    Any,
}

impl Effect {
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().read_only(self == Self::Read).open_world(false);
        match self {
            Self::Read => hints,
            Self::Add => hints.destructive(false).idempotent(false),
            Self::AddOnce => hints.destructive(false).idempotent(true),
            Self::Change => hints.destructive(true).idempotent(true),
            Self::Any => hints.destructive(true).idempotent(false),
        }
    }
}

/// What a tool answers: data for programs, and a few lines for whoever reads.
pub(crate) trait Shown: Serialize + JsonSchema + Send {
    /// The lines.
    fn text(&self) -> String;

    /// Whether the lines are all our own words and numbers. What is not is marked as
    /// untrusted: an answer has to say so to be taken for ours.
    fn is_ours(&self) -> bool {
        false
    }
}

/// One call of a tool.
pub(crate) struct Call {
    /// The server that was called.
    pub(crate) server: Server,
    /// The way to tell the client how far it is.
    pub(crate) progress: Progress,
}

type Running = Pin<Box<dyn Future<Output = CallToolResult> + Send>>;

/// A tool.
pub(crate) struct Tool {
    listed: rmcp::model::Tool,
    run: Box<dyn Fn(Call, JsonObject) -> Running + Send + Sync>,
}

impl Tool {
    /// A tool that takes `A` and answers `R`.
    pub(crate) fn new<A, R, F>(
        name: &'static str,
        effect: Effect,
        description: &'static str,
        run: impl Fn(Call, A) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Shown,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let listed = rmcp::model::Tool::new(name, description, schema::of_arguments::<A>())
            .with_raw_output_schema(Arc::new(schema::of_result::<R>()))
            .with_annotations(effect.annotations());
        let run = move |call: Call, arguments: JsonObject| -> Running {
            let run = run.clone();
            Box::pin(async move {
                let outcome = match read::<A>(arguments) {
                    Ok(arguments) => run(call, arguments).await,
                    Err(failure) => Err(failure),
                };
                match outcome.and_then(|answer| shown(&answer)) {
                    Ok(result) => result,
                    Err(failure) => refused(&failure.worded(for_agents)),
                }
            })
        };
        Self { listed, run: Box::new(run) }
    }

    /// Its name.
    pub(crate) fn name(&self) -> &str {
        &self.listed.name
    }

    /// What clients are told.
    pub(crate) fn listed(&self) -> rmcp::model::Tool {
        self.listed.clone()
    }

    /// Does what it does. Dropping the future stops it.
    pub(crate) async fn run(&self, call: Call, arguments: JsonObject) -> CallToolResult {
        (self.run)(call, arguments).await
    }
}

fn read<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::new(Code::BadInput, format!("invalid arguments: {error}"))
            .with_hint("see the tool's inputSchema")
    })
}

fn shown(answer: &impl Shown) -> Result<CallToolResult, Failure> {
    let structured = serde_json::to_value(answer).map_err(|error| {
        Failure::new(Code::Failed, format!("cannot serialize the answer: {error}"))
    })?;
    let text = if answer.is_ours() { answer.text() } else { fenced(&answer.text()) };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    Ok(result)
}

/// An error that the agent sees, and can do something about.
fn refused(failure: &ShownFailure) -> CallToolResult {
    let code = json!(failure.code);
    let code = code.as_str().unwrap_or_default();
    let mut text = format!("{code}: {}", failure.message);
    if !failure.hint.is_empty() {
        text = format!("{text}\n{}", failure.hint);
    }
    let mut result = CallToolResult::error(vec![ContentBlock::text(text)]);
    result.structured_content = Some(json!({ "error": failure }));
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_for_programs_and_for_readers() {
        let failure = Failure::new(Code::NoStore, "nothing is here").with_hint("make something");
        let result = serde_json::to_value(refused(&failure.worded(for_agents))).unwrap();
        assert_eq!(result["isError"], true);
        let error =
            json!({ "code": "no_store", "message": "nothing is here", "hint": "make something" });
        assert_eq!(result["structuredContent"], json!({ "error": error }));
        assert_eq!(result["content"][0]["text"], "no_store: nothing is here\nmake something");
    }

    #[test]
    fn hints_say_what_a_tool_does() {
        let hints = |effect: Effect| {
            let it = effect.annotations();
            (it.read_only_hint, it.destructive_hint, it.idempotent_hint, it.open_world_hint)
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(hints(Effect::Read), (yes, None, None, no));
        assert_eq!(hints(Effect::Add), (no, no, no, no));
        assert_eq!(hints(Effect::AddOnce), (no, no, yes, no));
        assert_eq!(hints(Effect::Change), (no, yes, yes, no));
        assert_eq!(hints(Effect::Any), (no, yes, no, no));
    }
}
