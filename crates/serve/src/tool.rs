//! Tools: their definition, their calls and their results.

use std::pin::Pin;
use std::str::FromStr;
use std::sync::Arc;

use isolith_engine::Key;
use isolith_types::{Code, Failure, Hint, ShownFailure};
use rmcp::model::{CallToolResult, ContentBlock, JsonObject, ToolAnnotations};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::arguments::limit_within;
use crate::hints::{for_agents, for_programs};
use crate::progress::Progress;
use crate::schema;
use crate::server::Server;
use crate::untrusted::fenced;

/// Ends the description of tools whose answers have text by others.
const UNTRUSTED: &str = "Untrusted data.";

/// What a tool is about. A server can be told to offer some of them only.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ToolGroup {
    /// Searching and reading code.
    Code,
    /// Who calls what, and Cypher.
    Graph,
    /// Drawers and diaries.
    Memory,
    /// Facts.
    Facts,
    /// Vector collections.
    Collections,
    /// The state of the stores, and repairs.
    Admin,
}

impl ToolGroup {
    /// All groups, in the order of the tool list.
    pub const ALL: [Self; 6] =
        [Self::Code, Self::Graph, Self::Memory, Self::Facts, Self::Collections, Self::Admin];

    /// The name in flags.
    pub fn name(self) -> &'static str {
        match self {
            Self::Code => "code",
            Self::Graph => "graph",
            Self::Memory => "memory",
            Self::Facts => "facts",
            Self::Collections => "collections",
            Self::Admin => "admin",
        }
    }
}

/// Which tools a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum ToolSelection {
    /// Those that most requests need are listed. The others can be called, too.
    #[default]
    Usual,
    /// All are listed.
    All,
    /// Only those of these groups are listed and can be called.
    Groups(Vec<ToolGroup>),
}

impl FromStr for ToolSelection {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "default" => return Ok(Self::Usual),
            "all" => return Ok(Self::All),
            _ => {}
        }
        let group = |name: &str| {
            let found = ToolGroup::ALL.into_iter().find(|group| group.name() == name.trim());
            found.ok_or_else(|| {
                let names = ToolGroup::ALL.map(ToolGroup::name).join(",");
                format!("{name:?} is neither default, all, nor one of {names}")
            })
        };
        text.split(',').map(group).collect::<Result<_, _>>().map(Self::Groups)
    }
}

/// What a tool may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// Read-only.
    Read,
    /// Every call adds something.
    Add,
    /// Adds something; idempotent.
    AddOnce,
    /// Changes or removes something; idempotent.
    Change,
    /// Changes or removes something; not idempotent.
    Any,
}

impl Effect {
    /// What differs from the defaults of the protocol: destructive, and not idempotent.
    fn annotations(self) -> ToolAnnotations {
        let hints = ToolAnnotations::new().read_only(self == Self::Read).open_world(false);
        match self {
            Self::Read | Self::Any => hints,
            Self::Add => hints.destructive(false),
            Self::AddOnce => hints.destructive(false).idempotent(true),
            Self::Change => hints.idempotent(true),
        }
    }
}

/// A tool's answer: structured data and a short text.
pub(crate) trait ToolAnswer: Serialize + JsonSchema + Send {
    /// Whether Isolith writes all of the text, apart from names and numbers. Otherwise the text is
    /// marked as untrusted.
    const TRUSTED: bool = false;

    fn text(&self) -> String;

    /// For answers that are trusted only if they are empty.
    fn is_trusted(&self) -> bool {
        Self::TRUSTED
    }
}

/// The context of a call.
pub(crate) struct Call {
    pub(crate) server: Server,
    pub(crate) progress: Progress,
    pub(crate) surface: Surface,
    /// Makes a write take effect once, however often it is sent.
    pub(crate) key: Option<Key>,
}

/// The tools that are listed unless others are selected: those that answer most of the requests in
/// `bench/tools`, see `rank.py` there.
pub(crate) const USUAL: [&str; 12] = [
    "search_code",
    "read_chunk",
    "index_project",
    "graph_query",
    "graph_neighbours",
    "graph_impact",
    "memory_search",
    "memory_wake_up",
    "memory_checkpoint",
    "memory_add",
    "fact_add",
    "fact_query",
];

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Surface {
    /// An agent, whose context is small.
    Agent,
    /// A program.
    Program,
}

impl Surface {
    /// How advice is worded.
    pub(crate) fn words(self) -> fn(&Hint) -> String {
        match self {
            Self::Agent => for_agents,
            Self::Program => for_programs,
        }
    }
}

/// The default number of results, and the maximum for each surface.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    pub(crate) default: u32,
    pub(crate) agent: u32,
    pub(crate) program: u32,
}

impl Limits {
    /// Of searches and of most lists.
    pub(crate) const RESULTS: Self = Self { default: 10, agent: 100, program: 1_000 };
}

impl Call {
    /// The requested number of results, or the default; fails above the maximum.
    pub(crate) fn limit(&self, requested: Option<u32>, limits: Limits) -> Result<u32, Failure> {
        let max = match self.surface {
            Surface::Agent => limits.agent,
            Surface::Program => limits.program,
        };
        limit_within(requested, (limits.default, max))
    }

    /// A note for answers about code that another store may hold the same code.
    pub(crate) fn notice(&self) -> Option<String> {
        let engine = self.server.stores().code().ok()?;
        self.server.stores().notice(&engine, self.surface)
    }
}

type ToolFuture = Pin<Box<dyn Future<Output = CallToolResult> + Send>>;

/// A tool with its definition for clients.
pub(crate) struct Tool {
    definition: rmcp::model::Tool,
    group: ToolGroup,
    run: Box<dyn Fn(Call, JsonObject) -> ToolFuture + Send + Sync>,
}

impl Tool {
    /// A tool that takes the arguments `A` and answers with `R`.
    pub(crate) fn new<A, R, F>(
        name: &'static str,
        effect: Effect,
        description: &'static str,
        run: impl Fn(Call, A) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: ToolAnswer,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let description = match R::TRUSTED {
            true => description.to_owned(),
            false => format!("{description} {UNTRUSTED}"),
        };
        let definition = rmcp::model::Tool::new(name, description, schema::of_arguments::<A>())
            .with_raw_output_schema(Arc::new(schema::of_result::<R>()))
            .with_annotations(effect.annotations());
        let run = move |call: Call, arguments: JsonObject| -> ToolFuture {
            let run = run.clone();
            Box::pin(async move {
                let outcome = match parse_arguments::<A>(arguments) {
                    Ok(arguments) => run(call, arguments).await,
                    Err(failure) => Err(failure),
                };
                match outcome.and_then(|answer| success(&answer)) {
                    Ok(result) => result,
                    Err(failure) => error_result(&failure.worded(for_agents)),
                }
            })
        };
        Self { definition, group: ToolGroup::Admin, run: Box::new(run) }
    }

    /// Puts the tool into a group.
    pub(crate) fn of(self, group: ToolGroup) -> Self {
        Self { group, ..self }
    }

    /// Whether clients see the tool.
    pub(crate) fn is_listed(&self, selection: &ToolSelection) -> bool {
        match selection {
            ToolSelection::Usual => USUAL.contains(&self.name()),
            ToolSelection::All | ToolSelection::Groups(_) => self.is_callable(selection),
        }
    }

    /// Whether clients may call the tool.
    pub(crate) fn is_callable(&self, selection: &ToolSelection) -> bool {
        match selection {
            ToolSelection::Usual | ToolSelection::All => true,
            ToolSelection::Groups(groups) => groups.contains(&self.group),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.definition.name
    }

    pub(crate) fn definition(&self) -> rmcp::model::Tool {
        self.definition.clone()
    }

    /// Runs the tool. Dropping the future cancels it.
    pub(crate) async fn run(&self, call: Call, arguments: JsonObject) -> CallToolResult {
        (self.run)(call, arguments).await
    }
}

fn parse_arguments<A: DeserializeOwned>(arguments: JsonObject) -> Result<A, Failure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        Failure::new(Code::BadInput, format!("invalid arguments: {error}"))
            .with_hint("see the tool's inputSchema")
    })
}

fn success(answer: &impl ToolAnswer) -> Result<CallToolResult, Failure> {
    let structured = serde_json::to_value(answer).map_err(|error| {
        Failure::new(Code::Failed, format!("cannot serialize the answer: {error}"))
    })?;
    let text = if answer.is_trusted() { answer.text() } else { fenced(&answer.text()) };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(structured);
    Ok(result)
}

/// A failure as a result, which the agent sees and can react to.
fn error_result(failure: &ShownFailure) -> CallToolResult {
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
    fn errors_have_data_and_text() {
        let failure = Failure::new(Code::NoStore, "nothing is here").with_hint("make something");
        let result = serde_json::to_value(error_result(&failure.worded(for_agents))).unwrap();
        assert_eq!(result["isError"], true);
        let error =
            json!({ "code": "no_store", "message": "nothing is here", "hint": "make something" });
        assert_eq!(result["structuredContent"], json!({ "error": error }));
        assert_eq!(result["content"][0]["text"], "no_store: nothing is here\nmake something");
    }

    #[test]
    fn annotations_match_the_effect() {
        let hints = |effect: Effect| {
            let it = effect.annotations();
            (it.read_only_hint, it.destructive_hint, it.idempotent_hint, it.open_world_hint)
        };
        let (yes, no) = (Some(true), Some(false));
        assert_eq!(hints(Effect::Read), (yes, None, None, no));
        assert_eq!(hints(Effect::Add), (no, no, None, no));
        assert_eq!(hints(Effect::AddOnce), (no, no, yes, no));
        assert_eq!(hints(Effect::Change), (no, None, yes, no));
        assert_eq!(hints(Effect::Any), (no, None, None, no));
    }
}
