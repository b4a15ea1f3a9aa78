//! JSON schemas of arguments and results, reduced to what an agent needs, because every word costs
//! tokens.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::{Contract, SchemaSettings};
use serde_json::{Value, json};

/// The schema of a tool's arguments.
pub(crate) fn of_arguments<T: JsonSchema>() -> JsonObject {
    let mut schema = generate::<T>(Contract::Deserialize);
    trim(&mut schema);
    for_each_schema(&mut schema, &mut |object| {
        // Optional arguments are omitted, not null.
        if let Some(Value::Array(types)) = object.get_mut("type") {
            types.retain(|name| name != "null");
            if let [one] = types.as_slice() {
                let one = one.clone();
                object.insert("type".to_owned(), one);
            }
        }
        if let Some(Value::Array(names)) = object.get_mut("enum") {
            names.retain(|name| !name.is_null());
            // The names show it.
            object.remove("type");
        }
    });
    schema
}

/// The schema of a tool's result. No field is required: errors have none of them, and some clients
/// validate errors too. Values without a type are strings, numbers or booleans, which the values show,
/// or objects if they have properties, or arrays if they have items; arrays without items have strings.
pub(crate) fn of_result<T: JsonSchema>() -> JsonObject {
    let mut schema = generate::<T>(Contract::Serialize);
    trim(&mut schema);
    for_each_schema(&mut schema, &mut |object| {
        object.remove("required");
        object.remove("description");
        if object.get("type").is_some_and(is_plain) {
            object.remove("type");
        }
        let choices = object.get("anyOf").and_then(Value::as_array);
        if choices.is_some_and(|all| all.iter().all(|one| is_plain(&one["type"]))) {
            object.remove("anyOf");
        }
        if let Some(Value::Object(items)) = object.get_mut("items") {
            if items.contains_key("properties") {
                items.remove("type");
            } else if items.get("type").is_some_and(is_string) {
                object.remove("items");
            }
        }
        if object.contains_key("items") {
            object.remove("type");
        }
    });
    schema
}

/// Whether a type is a string or an optional string.
fn is_string(of: &Value) -> bool {
    *of == "string" || *of == json!(["string", "null"])
}

/// Whether a type is a string, a number or a boolean, or one of them and null.
fn is_plain(of: &Value) -> bool {
    let plain =
        |name: &Value| name.as_str().is_some_and(|name| !["array", "object"].contains(&name));
    match of {
        Value::Array(types) => types.iter().all(plain),
        name => plain(name),
    }
}

fn generate<T: JsonSchema>(contract: Contract) -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    settings.contract = contract;
    let schema = settings.into_generator().into_root_schema_for::<T>();
    match schema.to_value() {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

fn trim(schema: &mut JsonObject) {
    schema.remove("description");
    for_each_schema(schema, &mut |object| {
        for word in ["title", "format", "default", "additionalProperties"] {
            object.remove(word);
        }
        // Unsigned integers need no minimum.
        if object.get("minimum") == Some(&Value::from(0)) {
            object.remove("minimum");
        }
    });
}

/// Applies a change to a schema and all nested schemas.
fn for_each_schema(schema: &mut JsonObject, change: &mut impl FnMut(&mut JsonObject)) {
    change(schema);
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        for property in properties.values_mut() {
            if let Value::Object(property) = property {
                for_each_schema(property, change);
            }
        }
    }
    if let Some(Value::Object(items)) = schema.get_mut("items") {
        for_each_schema(items, change);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    struct Example {
        /// The query.
        query: String,
        /// The limit.
        limit: Option<u32>,
        #[serde(default)]
        tags: Vec<Inner>,
    }

    #[derive(Serialize, Deserialize, JsonSchema)]
    struct Inner {
        name: Option<String>,
        extra: serde_json::Map<String, Value>,
        words: Vec<String>,
    }

    #[test]
    fn argument_schemas_are_minimal() {
        let inner = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "extra": { "type": "object" },
                "words": { "type": "array", "items": { "type": "string" } },
            },
            "required": ["extra", "words"],
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "query": { "type": "string", "description": "The query." },
                "limit": { "type": "integer", "description": "The limit." },
                "tags": { "type": "array", "items": inner },
            },
            "required": ["query"],
        });
        assert_eq!(Value::Object(of_arguments::<Example>()), expected);
    }

    #[test]
    fn result_schemas_also_accept_errors() {
        let inner = json!({
            "properties": { "name": {}, "extra": { "type": "object" }, "words": { "type": "array" } },
        });
        let expected = json!({
            "type": "object",
            "properties": {
                "query": {},
                "limit": {},
                "tags": { "items": inner },
            },
        });
        assert_eq!(Value::Object(of_result::<Example>()), expected);
    }
}
