//! The description of the API as a page: one document without scripts and without other requests.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::Value;

/// Nothing may be loaded or sent; only the page's own styles apply.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; \
                      form-action 'none'; frame-ancestors 'none'";

const STYLE: &str = "
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h2{margin-top:2.5rem;border-bottom:1px solid #ddd}
details{border:1px solid #ddd;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}
summary{cursor:pointer}
code,pre{font:13px/1.45 ui-monospace,monospace}
pre{background:#f6f6f6;padding:.7rem;overflow:auto;border-radius:6px}
b.verb{display:inline-block;min-width:4.5rem;font:600 13px ui-monospace,monospace}
table{border-collapse:collapse;margin:.5rem 0}
td,th{border:1px solid #ddd;padding:.25rem .6rem;text-align:left;vertical-align:top}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}pre{background:#222}
details,td,th,h2{border-color:#444}a{color:#8bf}}
";

pub(super) fn response(page: String) -> Response {
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, POLICY),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Body::from(page)).into_response()
}

/// The page for a description.
pub(super) fn page(document: &Value) -> String {
    let info = &document["info"];
    let mut page = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Isolith API</title><style>{STYLE}</style></head><body>\
         <h1>Isolith API</h1><p>Version {}. {}</p>\
         <p>The same as OpenAPI 3.1: <a href=\"/v1/openapi.json\">/v1/openapi.json</a>.</p>",
        escaped(text(&info["version"])),
        escaped(text(&info["description"])),
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = text(&tag["name"]);
        let _ = write!(page, "<h2>{}</h2>", escaped(text(&tag["description"])));
        for (path, operations) in document["paths"].as_object().into_iter().flatten() {
            for (verb, operation) in operations.as_object().into_iter().flatten() {
                if operation["tags"][0] == name {
                    write_operation(&mut page, verb, path, operation);
                }
            }
        }
    }
    page += "<h2>Types</h2>";
    for (name, schema) in document["components"]["schemas"].as_object().into_iter().flatten() {
        let (id, json) = (escaped(name), escaped(&pretty(schema)));
        let _ =
            write!(page, "<details id=\"{id}\"><summary>{id}</summary><pre>{json}</pre></details>");
    }
    page + "</body></html>\n"
}

fn write_operation(page: &mut String, verb: &str, path: &str, operation: &Value) {
    let _ = write!(
        page,
        "<details><summary><b class=\"verb\">{}</b> <code>{}</code> {}</summary>",
        escaped(&verb.to_uppercase()),
        escaped(path),
        escaped(text(&operation["summary"])),
    );
    let parameters = operation["parameters"].as_array().into_iter().flatten();
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    let mut rows = Rows::default();
    for parameter in parameters {
        let (name, place) = (text(&parameter["name"]), text(&parameter["in"]));
        let required = parameter["required"] == true;
        let about = text(&parameter["description"]);
        rows.add(name, required, place, &parameter["schema"], about);
    }
    for (name, schema) in body["properties"].as_object().into_iter().flatten() {
        let names = body["required"].as_array().into_iter().flatten();
        let required = names.into_iter().any(|it| it == name.as_str());
        rows.add(name, required, "body", schema, text(&schema["description"]));
    }
    *page += &rows.table();
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        if status.ends_with("XX") {
            continue;
        }
        let description = escaped(text(&response["description"]));
        let _ = write!(page, "<p>{}: {description}", escaped(status));
        for (kind, content) in response["content"].as_object().into_iter().flatten() {
            let schema = shape(&content["schema"]);
            let _ = write!(page, " <code>{}</code> {schema}", escaped(kind));
        }
        *page += "</p>";
    }
    *page += "</details>";
}

/// The arguments of an endpoint.
#[derive(Default)]
struct Rows {
    required: String,
    optional: String,
}

impl Rows {
    fn add(&mut self, name: &str, required: bool, place: &str, schema: &Value, about: &str) {
        let (rows, mark) = match required {
            true => (&mut self.required, ""),
            false => (&mut self.optional, "?"),
        };
        let _ = write!(
            rows,
            "<tr><td><code>{}{mark}</code><td>{}<td>{}<td>{}</tr>",
            escaped(name),
            escaped(place),
            shape(schema),
            escaped(about)
        );
    }

    /// What is required first.
    fn table(&self) -> String {
        let Self { required, optional } = self;
        if required.is_empty() && optional.is_empty() {
            return String::new();
        }
        let head = "<tr><th>Argument<th>In<th>Type<th>Meaning</tr>";
        format!("<table>{head}{required}{optional}</table>")
    }
}

/// A type on one line, with links to those that have a name.
fn shape(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()) {
        let name = escaped(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    for (word, joint) in [("allOf", " with "), ("anyOf", " or "), ("oneOf", " or ")] {
        if let Some(options) = schema[word].as_array() {
            let shapes: Vec<String> = options.iter().map(shape).collect();
            return shapes.join(joint);
        }
    }
    if let Some(result) = schema["properties"].as_object().and_then(|it| it.get("result")) {
        return format!("result: {}", shape(result));
    }
    if let Some(names) = schema["enum"].as_array() {
        let names: Vec<String> = names.iter().map(|name| escaped(&name.to_string())).collect();
        return names.join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", shape(&schema["items"])),
        Value::String(name) => escaped(name),
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().map(text).collect();
            escaped(&names.join(" or "))
        }
        _ => "any".to_owned(),
    }
}

fn pretty(value: &Value) -> String {
    serde_json::to_string_pretty(value).unwrap_or_default()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => safe += "&amp;",
            '<' => safe += "&lt;",
            '>' => safe += "&gt;",
            '"' => safe += "&quot;",
            '\'' => safe += "&#39;",
            _ => safe.push(letter),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_in_the_page_is_escaped() {
        assert_eq!(escaped("<a b=\"c\">'&"), "&lt;a b=&quot;c&quot;&gt;&#39;&amp;");
    }
}
