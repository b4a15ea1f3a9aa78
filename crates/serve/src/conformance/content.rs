//! Fixtures with constant answers.

use rmcp::model::JsonObject;
use serde_json::{Value, json};

/// A PNG of one red pixel.
const IMAGE: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

/// A WAV file without samples.
const AUDIO: &str = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAEAfAAABAAgAZGF0YQAAAAA=";

/// Tools that ignore their arguments.
pub(super) const TOOLS: [&str; 13] = [
    "test_simple_text",
    "test_image_content",
    "test_audio_content",
    "test_embedded_resource",
    "test_multiple_content_types",
    "test_error_handling",
    "test_tool_with_progress",
    "test_tool_with_logging",
    "test_logging_tool",
    "test_sampling",
    "test_elicitation",
    "test_elicitation_sep1034_defaults",
    "test_elicitation_sep1330_enums",
];

/// Resources and their media types.
pub(super) const RESOURCES: [(&str, &str); 3] = [
    ("test://static-text", "text/plain"),
    ("test://static-binary", "image/png"),
    ("test://watched-resource", "text/plain"),
];

/// Prompts and their arguments.
pub(super) const PROMPTS: [(&str, &[&str]); 5] = [
    ("test_simple_prompt", &[]),
    ("test_prompt_with_arguments", &["arg1", "arg2"]),
    ("test_prompt_with_embedded_resource", &["resourceUri"]),
    ("test_prompt_with_image", &[]),
    ("test_input_required_result_prompt", &[]),
];

/// The constant answer of a tool.
pub(super) fn of_tool(name: &str) -> Option<Value> {
    let image = json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" });
    let content = match name {
        "test_simple_text" => json!([text("This is a simple text response for testing.")]),
        "test_image_content" => json!([image]),
        "test_audio_content" => {
            json!([{ "type": "audio", "data": AUDIO, "mimeType": "audio/wav" }])
        }
        "test_embedded_resource" => json!([embedded(
            "test://embedded-resource",
            "text/plain",
            "This is an embedded resource content."
        )]),
        "test_multiple_content_types" => json!([
            text("Multiple content types test:"),
            image,
            embedded(
                "test://mixed-content-resource",
                "application/json",
                r#"{"test":"data","value":123}"#
            ),
        ]),
        "test_error_handling" => {
            let content = text("This tool intentionally returns an error for testing");
            return Some(json!({ "isError": true, "content": [content] }));
        }
        _ => return None,
    };
    Some(json!({ "content": content }))
}

/// The content of a resource.
pub(super) fn of_resource(uri: &str) -> Option<Value> {
    if let Some(id) = uri.strip_prefix("test://template/").and_then(|it| it.strip_suffix("/data")) {
        let data = json!({ "id": id, "templateTest": true, "data": format!("Data for ID: {id}") });
        let text = data.to_string();
        return Some(json!({ "uri": uri, "mimeType": "application/json", "text": text }));
    }
    let (_, kind) = RESOURCES.iter().find(|(known, _)| *known == uri)?;
    Some(match *kind {
        "image/png" => json!({ "uri": uri, "mimeType": kind, "blob": IMAGE }),
        _ => {
            let text = "This is the content of the static text resource.";
            json!({ "uri": uri, "mimeType": kind, "text": text })
        }
    })
}

/// The messages of a prompt.
pub(super) fn of_prompt(name: &str, arguments: &JsonObject) -> Option<Value> {
    let given = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
    let contents = match name {
        "test_simple_prompt" => vec![text("This is a simple prompt for testing.")],
        "test_prompt_with_arguments" => {
            let (one, two) = (given("arg1"), given("arg2"));
            vec![text(&format!("Prompt with arguments: arg1='{one}', arg2='{two}'"))]
        }
        "test_prompt_with_embedded_resource" => vec![
            embedded(given("resourceUri"), "text/plain", "Embedded resource content for testing."),
            text("Please process the embedded resource above."),
        ],
        "test_prompt_with_image" => vec![
            json!({ "type": "image", "data": IMAGE, "mimeType": "image/png" }),
            text("Please analyze the image above."),
        ],
        _ => return None,
    };
    let messages =
        contents.into_iter().map(|content| json!({ "role": "user", "content": content }));
    Some(messages.collect())
}

/// Tools that test schemas.
pub(super) fn schemas() -> [(&'static str, Value); 2] {
    let header = json!({
        "type": "object",
        "properties": { "value": { "type": "string", "x-mcp-header": "Value" } },
        "required": ["value"],
    });
    let rich = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": { "street": { "type": "string" }, "city": { "type": "string" } },
            },
        },
        "properties": {
            "name": { "type": "string" },
            "address": { "$ref": "#/$defs/address" },
            "contactMethod": { "type": "string", "enum": ["phone", "email"] },
            "phone": { "type": "string" },
            "email": { "type": "string" },
        },
        "allOf": [{ "anyOf": [{ "required": ["phone"] }, { "required": ["email"] }] }],
        "if": {
            "properties": { "contactMethod": { "const": "phone" } },
            "required": ["contactMethod"],
        },
        "then": { "required": ["phone"] },
        "else": { "required": ["email"] },
        "additionalProperties": false,
    });
    [("test_custom_header", header), ("json_schema_2020_12_tool", rich)]
}

/// A request that the client's model answers.
pub(super) fn sampling(prompt: &str, tokens: u32) -> Value {
    let messages = json!([{ "role": "user", "content": text(prompt) }]);
    let params = json!({ "messages": messages, "maxTokens": tokens });
    json!({ "method": "sampling/createMessage", "params": params })
}

/// A request that the client's user answers.
pub(super) fn elicitation(message: &str, form: &Value) -> Value {
    let params = json!({ "mode": "form", "message": message, "requestedSchema": form });
    json!({ "method": "elicitation/create", "params": params })
}

pub(super) fn user_form() -> Value {
    json!({
        "type": "object",
        "properties": {
            "username": { "type": "string", "description": "User's response" },
            "email": { "type": "string", "description": "User's email address" },
        },
        "required": ["username", "email"],
    })
}

pub(super) fn defaults_form() -> Value {
    json!({
        "type": "object",
        "properties": {
            "name": { "type": "string", "default": "John Doe" },
            "age": { "type": "integer", "default": 30 },
            "score": { "type": "number", "default": 95.5 },
            "status": {
                "type": "string",
                "enum": ["active", "inactive", "pending"],
                "default": "active",
            },
            "verified": { "type": "boolean", "default": true },
        },
    })
}

pub(super) fn choices_form() -> Value {
    let options = json!(["option1", "option2", "option3"]);
    let titled = |word: &str| {
        json!([
            { "const": "value1", "title": format!("First {word}") },
            { "const": "value2", "title": format!("Second {word}") },
            { "const": "value3", "title": format!("Third {word}") },
        ])
    };
    json!({
        "type": "object",
        "properties": {
            "untitledSingle": { "type": "string", "enum": options },
            "titledSingle": { "type": "string", "oneOf": titled("Option") },
            "legacyEnum": {
                "type": "string",
                "enum": ["opt1", "opt2", "opt3"],
                "enumNames": ["Option One", "Option Two", "Option Three"],
            },
            "untitledMulti": { "type": "array", "items": { "type": "string", "enum": options } },
            "titledMulti": { "type": "array", "items": { "anyOf": titled("Choice") } },
        },
    })
}

fn text(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn embedded(uri: &str, kind: &str, text: &str) -> Value {
    json!({ "type": "resource", "resource": { "uri": uri, "mimeType": kind, "text": text } })
}
