//! JSON schemas of arguments, in full: clients are generated from them.

use rmcp::model::JsonObject;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// The schema of an endpoint's arguments, without references.
pub(super) fn of_arguments<T: JsonSchema>() -> JsonObject {
    let mut settings = SchemaSettings::draft2020_12();
    settings.meta_schema = None;
    settings.inline_subschemas = true;
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    with_ranges(&mut schema);
    match schema {
        Value::Object(object) => object,
        _ => JsonObject::new(),
    }
}

/// Adds the range of 32-bit integers, which only their format tells.
pub(super) fn with_ranges(schema: &mut Value) {
    match schema {
        Value::Object(object) => {
            if object.get("format").is_some_and(|format| format == "uint32") {
                object.entry("maximum").or_insert(u32::MAX.into());
            }
            object.values_mut().for_each(with_ranges);
        }
        Value::Array(items) => items.iter_mut().for_each(with_ranges),
        _ => {}
    }
}

/// The schema of a query argument: it is omitted rather than null.
pub(super) fn without_null(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let Some(object) = schema.as_object_mut() else { return schema };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [one] = types.as_slice() {
            let one = one.clone();
            object.insert("type".to_owned(), one);
        }
    }
    if let Some(Value::Array(names)) = object.get_mut("enum") {
        names.retain(|name| !name.is_null());
    }
    if let Some(Value::Array(options)) = object.get_mut("anyOf") {
        options.retain(|option| option.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(one)] = options.as_slice() {
            let one = one.clone();
            object.remove("anyOf");
            one.into_iter().for_each(|(key, value)| _ = object.entry(key).or_insert(value));
        }
    }
    if object.get("default").is_some_and(Value::is_null) {
        object.remove("default");
    }
    schema
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn query_arguments_are_not_null() {
        let table = [
            (json!({ "type": ["integer", "null"] }), json!({ "type": "integer" })),
            (
                json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }], "default": null }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
            (
                json!({ "type": ["string", "null"], "enum": ["a", null] }),
                json!({ "type": "string", "enum": ["a"] }),
            ),
            (json!({ "type": "string" }), json!({ "type": "string" })),
        ];
        for (schema, expected) in table {
            assert_eq!(without_null(&schema), expected);
        }
    }
}
