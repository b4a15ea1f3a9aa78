//! Endpoints: what each takes and answers, defined once for routing and for the description.

use std::pin::Pin;

use isolith_types::{Code, Failure};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::schema::of_arguments;
use crate::tool::Call;

/// The methods of endpoints.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Verb {
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

impl Verb {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// Whether arguments that are not in the path are in the body, not in the query.
    pub(super) fn has_body(self) -> bool {
        match self {
            Self::Post | Self::Put | Self::Patch => true,
            Self::Get | Self::Delete => false,
        }
    }
}

/// How an endpoint answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// With the result.
    Plain,
    /// With a job that runs on, or with events until it has ended.
    Job,
    /// With the events of the job that is in the path.
    Events,
    /// With events that go on for a while, each with a new answer.
    Live,
}

type AnswerFuture = Pin<Box<dyn Future<Output = Result<Box<RawValue>, Failure>> + Send>>;

/// A request whose arguments are valid. Dropping the future cancels it.
pub(super) type Prepared = Box<dyn FnOnce(Call) -> AnswerFuture + Send>;

/// An endpoint below `/v1`.
pub(crate) struct Endpoint {
    pub(super) verb: Verb,
    /// The path below `/v1`, with the names of arguments in braces.
    pub(super) path: &'static str,
    /// The name of the operation: that of the tool that does the same, if there is one.
    pub(super) name: &'static str,
    pub(super) summary: &'static str,
    pub(super) kind: Kind,
    /// Whether an `Idempotency-Key` makes it take effect once.
    pub(super) is_keyed: bool,
    /// The schema of its arguments, wherever they are in the request.
    pub(super) arguments: JsonObject,
    /// The schema of its answer.
    pub(super) answer: fn(&mut SchemaGenerator) -> Schema,
    prepare: Box<dyn Fn(JsonObject) -> Result<Prepared, Failure> + Send + Sync>,
}

impl Endpoint {
    /// An endpoint that takes the arguments `A` and answers with `R`.
    pub(super) fn new<A, R, F>(
        (verb, path): (Verb, &'static str),
        name: &'static str,
        summary: &'static str,
        run: impl Fn(Call, A) -> F + Clone + Send + Sync + 'static,
    ) -> Self
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        R: Serialize + JsonSchema + Send,
        F: Future<Output = Result<R, Failure>> + Send + 'static,
    {
        let schema = of_arguments::<A>();
        let known = properties(&schema);
        let prepare = move |arguments: JsonObject| -> Result<Prepared, Failure> {
            let (run, arguments) = (run.clone(), parse::<A>(arguments, &known)?);
            Ok(Box::new(move |call| {
                Box::pin(async move {
                    let answer = run(call, arguments).await?;
                    to_raw_value(&answer).map_err(|error| {
                        Failure::new(Code::Failed, format!("cannot serialize the answer: {error}"))
                    })
                })
            }))
        };
        Self {
            verb,
            path,
            name,
            summary,
            kind: Kind::Plain,
            is_keyed: false,
            arguments: schema,
            answer: SchemaGenerator::subschema_for::<R>,
            prepare: Box::new(prepare),
        }
    }

    /// Runs as a job.
    pub(super) fn job(mut self) -> Self {
        self.kind = Kind::Job;
        self
    }

    /// Answers with the events of the job that it finds.
    pub(super) fn events(mut self) -> Self {
        self.kind = Kind::Events;
        self
    }

    /// Answers again and again, as events.
    pub(super) fn live(mut self) -> Self {
        self.kind = Kind::Live;
        self
    }

    /// Takes effect once for each `Idempotency-Key`.
    pub(super) fn keyed(mut self) -> Self {
        self.is_keyed = true;
        self
    }

    /// The first part of the path, by which the description groups endpoints.
    pub(super) fn group(&self) -> &'static str {
        self.path.split('/').nth(1).unwrap_or_default()
    }

    /// The names of the arguments in the path.
    pub(super) fn path_arguments(&self) -> impl Iterator<Item = &'static str> {
        self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
    }

    pub(super) fn is_in_path(&self, argument: &str) -> bool {
        self.path_arguments().any(|name| name == argument)
    }

    /// The schemas of its arguments, by name.
    pub(super) fn properties(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.arguments.get("properties").and_then(Value::as_object).into_iter().flatten()
    }

    pub(super) fn is_required(&self, argument: &str) -> bool {
        let required = self.arguments.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|name| name == argument))
    }

    /// Checks the types of arguments.
    ///
    /// # Errors
    /// `bad_input`, with the name of the argument that is wrong.
    pub(super) fn prepare(&self, arguments: JsonObject) -> Result<Prepared, Failure> {
        (self.prepare)(arguments)
    }
}

fn properties(schema: &JsonObject) -> Vec<String> {
    let properties = schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(|it| it.keys().cloned()).collect()
}

/// Deserializes arguments; the error names the one that is wrong.
fn parse<A: DeserializeOwned>(arguments: JsonObject, known: &[String]) -> Result<A, Failure> {
    let whole = serde_json::from_value(Value::Object(arguments.clone()));
    let error: serde_json::Error = match whole {
        Ok(parsed) => return Ok(parsed),
        Err(error) => error,
    };
    let named = |message: &str| message.contains(" field `");
    let message = match error.to_string() {
        message if named(&message) => message,
        message => match known.iter().find(|name| is_culprit::<A>(&arguments, name)) {
            Some(name) => format!("{name}: {message}"),
            None => message,
        },
    };
    Err(Failure::new(Code::BadInput, message))
}

/// Whether the error is another one without this argument.
fn is_culprit<A: DeserializeOwned>(arguments: &JsonObject, name: &str) -> bool {
    let mut others = arguments.clone();
    others.remove(name).is_some()
        && match serde_json::from_value::<A>(Value::Object(others)) {
            Ok(_) => true,
            Err(error) => error.to_string().contains(&format!("missing field `{name}`")),
        }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Example {
        query: String,
        limit: Option<u32>,
    }

    #[test]
    fn errors_name_the_argument() {
        let error = |arguments: Value| {
            let Value::Object(arguments) = arguments else { return String::new() };
            let known = ["query".to_owned(), "limit".to_owned()];
            parse::<Example>(arguments, &known).unwrap_err().message
        };
        for (arguments, expected) in [
            (json!({ "query": 1 }), "query: invalid type: integer `1`, expected a string"),
            (
                json!({ "query": "a", "limit": -1 }),
                "limit: invalid value: integer `-1`, expected u32",
            ),
            (json!({}), "missing field `query`"),
            (
                json!({ "query": "a", "other": 1 }),
                "unknown field `other`, expected `query` or `limit`",
            ),
        ] {
            assert_eq!(error(arguments), expected);
        }
    }
}
