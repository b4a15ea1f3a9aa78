//! Fixtures that need input from the client. Since the revision of July 2026, a server does not
//! send requests: it answers that input is required, and the client repeats the call with it.

use rmcp::RoleServer;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ClientCapabilities, ErrorData, GetPromptRequestParams,
    GetPromptResponse, InputRequest, InputRequests, InputRequiredResult, InputResponses,
};
use rmcp::service::RequestContext;
use serde_json::{Value, json};

use super::content::{elicitation, sampling};
use super::{from_json, result, text};

/// Tools that take several rounds.
pub(super) const TOOLS: [&str; 10] = [
    "test_input_required_result_elicitation",
    "test_input_required_result_sampling",
    "test_input_required_result_list_roots",
    "test_input_required_result_request_state",
    "test_input_required_result_multiple_inputs",
    "test_input_required_result_multi_round",
    "test_input_required_result_tampered_state",
    "test_input_required_result_capabilities",
    "test_missing_capability",
    "test_streaming_elicitation",
];

/// The key that authenticates the state. Fixtures need no secret.
const KEY: [u8; 32] = *b"isolith conformance fixtures key";

type Round<T> = Option<Result<T, ErrorData>>;

/// The answer of a tool in its current round.
pub(super) fn of_tool(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Round<CallToolResponse> {
    if !TOOLS.contains(&&*request.name) {
        return None;
    }
    Some(round(request, context))
}

fn round(
    request: &CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let given = |key: &str| answer(request.input_responses.as_ref(), key);
    let state = match &request.request_state {
        Some(sealed) => Some(unseal(sealed).ok_or_else(tampered)?),
        None => None,
    };
    match request.name.trim_start_matches("test_input_required_result_") {
        "elicitation" | "test_streaming_elicitation" => match given("user_name") {
            Some(it) => {
                Ok(text(&format!("Hello, {}!", it["content"]["name"].as_str().unwrap_or(""))))
            }
            None => ask_for([("user_name", name_form("What is your name?"))], None),
        },
        "sampling" => match given("capital_question") {
            Some(it) => Ok(text(&format!("The model says {}", it["content"]["text"]))),
            None => {
                let question = sampling("What is the capital of France?", 100);
                ask_for([("capital_question", question)], None)
            }
        },
        "list_roots" => match given("client_roots") {
            Some(it) => Ok(text(&format!("The roots are {}", it["roots"]))),
            None => ask_for([("client_roots", roots())], None),
        },
        "request_state" | "tampered_state" => match (given("confirm"), state) {
            (Some(_), Some(_)) => Ok(text("state-ok")),
            _ => ask_for([("confirm", confirm_form())], Some("first")),
        },
        "multiple_inputs" => {
            let keys = ["user_name", "greeting", "client_roots"];
            if state.is_some() && keys.iter().all(|key| given(key).is_some()) {
                return Ok(text("all three were answered"));
            }
            let greeting = sampling("Generate a greeting", 50);
            let name = name_form("What is your name?");
            ask_for([(keys[0], name), (keys[1], greeting), (keys[2], roots())], Some("first"))
        }
        "multi_round" => match (state.as_deref(), given("step1"), given("step2")) {
            (Some("second"), _, Some(_)) => Ok(text("both steps were answered")),
            (Some("first"), Some(_), _) => ask_for([("step2", color_form())], Some("second")),
            _ => ask_for([("step1", name_form("Step 1: What is your name?"))], Some("first")),
        },
        "capabilities" => {
            let capabilities = context.client_capabilities().unwrap_or_default();
            let mut requests = Vec::new();
            if capabilities.sampling.is_some() {
                requests.push(("question", sampling("What is the capital of France?", 100)));
            }
            if capabilities.elicitation.is_some() {
                requests.push(("user_name", name_form("What is your name?")));
            }
            ask_for(requests, None)
        }
        _ => match context
            .client_capabilities()
            .is_some_and(|capabilities| capabilities.sampling.is_some())
        {
            true => Ok(text("the client supports sampling")),
            false => {
                let needed = ClientCapabilities::builder().enable_sampling().build();
                Err(ErrorData::missing_required_client_capability(needed))
            }
        },
    }
}

/// The answer of the prompt that takes several rounds.
pub(super) fn of_prompt(request: &GetPromptRequestParams) -> Round<GetPromptResponse> {
    if request.name != "test_input_required_result_prompt" {
        return None;
    }
    Some(match answer(request.input_responses.as_ref(), "user_context") {
        Some(it) => {
            let text = format!("Use this context: {}", it["content"]["context"]);
            let content = json!({ "type": "text", "text": text });
            let messages = json!([{ "role": "user", "content": content }]);
            result(json!({ "messages": messages })).map(GetPromptResponse::Complete)
        }
        None => {
            let form = form("context");
            let question = elicitation("What context should the prompt use?", &form);
            input_required([("user_context", question)], None).map(GetPromptResponse::InputRequired)
        }
    })
}

fn ask_for(
    requests: impl IntoIterator<Item = (&'static str, Value)>,
    state: Option<&str>,
) -> Result<CallToolResponse, ErrorData> {
    input_required(requests, state).map(CallToolResponse::InputRequired)
}

fn input_required(
    requests: impl IntoIterator<Item = (&'static str, Value)>,
    state: Option<&str>,
) -> Result<InputRequiredResult, ErrorData> {
    let request =
        |(key, json): (&str, Value)| Ok((key.to_owned(), from_json::<InputRequest>(json)?));
    let requests: InputRequests =
        requests.into_iter().map(request).collect::<Result<_, ErrorData>>()?;
    Ok(InputRequiredResult::new(Some(requests), state.map(seal)))
}

/// The client's answer, if it is an object.
fn answer<'a>(responses: Option<&'a InputResponses>, key: &str) -> Option<&'a Value> {
    responses?.get(key).filter(|answer| answer.is_object())
}

fn seal(state: &str) -> String {
    format!("{state}.{}", blake3::keyed_hash(&KEY, state.as_bytes()))
}

/// The sealed state, unless it was modified.
fn unseal(sealed_state: &str) -> Option<String> {
    let (state, _) = sealed_state.split_once('.')?;
    (seal(state) == sealed_state).then(|| state.to_owned())
}

fn tampered() -> ErrorData {
    ErrorData::invalid_params("the request state was modified", None)
}

fn name_form(message: &str) -> Value {
    elicitation(message, &form("name"))
}

fn color_form() -> Value {
    elicitation("Step 2: What is your favorite color?", &form("color"))
}

fn confirm_form() -> Value {
    let form = json!({
        "type": "object",
        "properties": { "ok": { "type": "boolean" } },
        "required": ["ok"],
    });
    elicitation("Please confirm", &form)
}

fn form(field: &str) -> Value {
    json!({ "type": "object", "properties": { field: { "type": "string" } }, "required": [field] })
}

fn roots() -> Value {
    json!({ "method": "roots/list", "params": {} })
}
