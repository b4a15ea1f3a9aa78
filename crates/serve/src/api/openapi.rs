//! The description of the API (OpenAPI 3.1), generated from the endpoints and their types.

use std::collections::BTreeMap;

use schemars::generate::{Contract, SchemaSettings};
use schemars::{JsonSchema, SchemaGenerator};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::endpoint::{Endpoint, Kind};
use super::jobs::{JobError, JobReport};
use super::schema::{with_ranges, without_null};

const ABOUT: &str = "Code search, memory, facts, graph and collections of this server. Arguments of \
GET and DELETE are in the path and the query, those of POST, PUT and PATCH in the path and in a JSON \
object as the body. Errors are {\"error\": {\"code\", \"message\", \"hint\"}}.";

const KEY: &str = "Makes a write take effect once: a repeated request with the same key gets the \
first answer. Use a new UUID for each write. Keys are kept for a day.";

const GROUPS: [(&str, &str); 12] = [
    ("code", "Indexing and searching code"),
    ("graph", "The code graph and your own nodes: Cypher, callers, impact"),
    ("memory", "Texts (drawers) in wings and rooms, and agents' diaries"),
    ("facts", "Facts, the time in which they are true, and entities"),
    ("collections", "Collections of vectors with documents and metadata"),
    ("jobs", "Long operations"),
    ("status", "State of the stores"),
    ("crashes", "Deaths of workers"),
    ("quarantine", "Jobs that killed their workers"),
    ("drill", "Faults on purpose, to see how they are handled"),
    ("doctor", "Checks and repairs of the stores"),
    ("stores", "The open stores"),
];

/// The schema of all errors.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ErrorAnswer")]
#[allow(dead_code)]
struct ErrorAnswer {
    error: JobError,
}

pub(super) fn document(endpoints: &[Endpoint]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.definitions_path = "/components/schemas".into();
    settings.contract = Contract::Serialize;
    let mut generator = settings.into_generator();
    let error = generator.subschema_for::<ErrorAnswer>();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for endpoint in endpoints {
        let operation = operation(endpoint, &mut generator);
        let path = paths.entry(format!("/v1{}", endpoint.path)).or_default();
        path.insert(endpoint.verb.name().to_lowercase(), operation);
    }
    let mut schemas = Value::Object(generator.take_definitions(true));
    with_ranges(&mut schemas);
    let tags =
        GROUPS.map(|(name, description)| json!({ "name": name, "description": description }));
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Isolith",
            "version": env!("CARGO_PKG_VERSION"),
            "description": ABOUT,
        },
        "servers": [{ "url": "/" }],
        "security": [{ "token": [] }],
        "tags": tags,
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                "Error": {
                    "description": "The request failed; the code says why, the hint what to do.",
                    "content": { "application/json": { "schema": error } },
                },
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token that `isolith serve` shows when it starts.",
                },
            },
        },
    })
}

fn operation(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let mut operation = json!({
        "operationId": endpoint.name,
        "tags": [endpoint.group()],
        "summary": endpoint.summary,
        "parameters": parameters(endpoint),
        "responses": responses(endpoint, generator),
    });
    if let Some(body) = body(endpoint) {
        operation["requestBody"] = body;
    }
    operation
}

fn parameters(endpoint: &Endpoint) -> Vec<Value> {
    let in_path = |name: &str| endpoint.is_in_path(name);
    let listed =
        endpoint.properties().filter(|(name, _)| in_path(name) || !endpoint.verb.has_body());
    let mut parameters: Vec<Value> = listed
        .map(|(name, schema)| {
            let mut schema = without_null(schema);
            let description = schema.as_object_mut().and_then(|it| it.remove("description"));
            if in_path(name) {
                // An empty part of a path is another path.
                schema["minLength"] = json!(1);
            }
            let mut parameter = json!({
                "name": name,
                "in": if in_path(name) { "path" } else { "query" },
                "required": in_path(name) || endpoint.is_required(name),
                "schema": schema,
            });
            if let Some(description) = description {
                parameter["description"] = description;
            }
            parameter
        })
        .collect();
    if endpoint.is_keyed {
        parameters.push(json!({
            "name": "Idempotency-Key",
            "in": "header",
            "required": false,
            "description": KEY,
            "schema": { "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$" },
        }));
    }
    parameters
}

/// The schema of the body: the arguments without those in the path.
fn body(endpoint: &Endpoint) -> Option<Value> {
    if !endpoint.verb.has_body() {
        return None;
    }
    let mut schema = endpoint.arguments.clone();
    schema.remove("title");
    let properties = schema.get_mut("properties").and_then(Value::as_object_mut)?;
    properties.retain(|name, _| !endpoint.is_in_path(name));
    if properties.is_empty() {
        return None;
    }
    if let Some(Value::Array(required)) = schema.get_mut("required") {
        required.retain(|name| !name.as_str().is_some_and(|name| endpoint.is_in_path(name)));
    }
    let required = schema.get("required").and_then(Value::as_array);
    let is_required = required.is_some_and(|names| !names.is_empty());
    if !is_required {
        schema.remove("required");
    }
    Some(json!({
        "required": is_required,
        "content": { "application/json": { "schema": schema } },
    }))
}

fn responses(endpoint: &Endpoint, generator: &mut SchemaGenerator) -> Value {
    let answer = (endpoint.answer)(generator);
    let mut responses = json!({
        "4XX": { "$ref": "#/components/responses/Error" },
        "5XX": { "$ref": "#/components/responses/Error" },
    });
    match endpoint.kind {
        Kind::Plain => {
            let content = json!({ "application/json": { "schema": answer } });
            responses["200"] = json!({ "description": "Done.", "content": content });
        }
        Kind::Live => {
            let mut events = events("The state again and again, until the time is over.");
            let event = &mut events["content"]["text/event-stream"]["schema"]["properties"];
            event["event"] = json!({ "type": "string", "enum": ["status"] });
            event["data"]["contentSchema"] = json!(answer);
            responses["200"] = events;
        }
        Kind::Events => {
            responses["200"] = events("The progress of the job. It runs on if the client goes.")
        }
        Kind::Job => {
            let job = generator.subschema_for::<JobReport>();
            let result = json!({ "anyOf": [answer, { "type": "null" }] });
            let job = json!({ "allOf": [job, { "properties": { "result": result } }] });
            responses["202"] = json!({
                "description": "The job has been started.",
                "headers": {
                    "Location": {
                        "description": "Where to ask about the job.",
                        "schema": { "type": "string" },
                    },
                },
                "content": { "application/json": { "schema": job } },
            });
            responses["200"] = events(
                "With `Accept: text/event-stream`, the progress of the job, which is cancelled if the \
                 client goes.",
            );
        }
    }
    responses
}

fn events(description: &str) -> Value {
    let event = json!({
        "type": "object",
        "description": "An event.",
        "properties": {
            "event": {
                "type": "string",
                "enum": ["job", "progress", "result", "error"],
                "description": "First job (the job), then progress (how far it is), then result \
                                (what the operation answers) or error.",
            },
            "data": { "type": "string", "contentMediaType": "application/json" },
        },
        "required": ["event", "data"],
    });
    json!({ "description": description, "content": { "text/event-stream": { "schema": event } } })
}
