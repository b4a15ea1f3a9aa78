//! Replays what Chroma's clients (Python, its asynchronous client, JavaScript) and requests written by
//! hand said to Chroma's own server, 1.5.9, and compares the replies with those that it gave.
#![allow(clippy::unwrap_used, clippy::panic)]

mod http_client;
mod test_env;

use std::collections::HashMap;

use http_client::ApiServer;
use serde::Deserialize;
use serde_json::Value;
use test_env::TestEnv;

/// One request and the reply to it, a line each.
const RECORDED: &str = include_str!("chroma_traffic/recorded.jsonl");

const LIST_OF_COLLECTIONS: &str =
    "GET /api/v2/tenants/default_tenant/databases/default_database/collections?limit=100";

/// What is answered differently: the beginning of the request with a space after it, its body, and the
/// status.
const DIFFERENT: [(&str, &str, u16); 3] = [
    // Chroma reports an error of its database.
    ("PUT ", r#"{"new_name":"exmeta"}"#, 409),
    // The schema shows a key whose numbers are all deleted as one of integers.
    (LIST_OF_COLLECTIONS, "", 200),
    // The pages for people.
    ("GET / ", "", 200),
];

#[derive(Deserialize)]
struct Exchange {
    request: String,
    #[serde(default)]
    body: String,
    /// Whether the body is said to be a form.
    #[serde(default)]
    form: bool,
    status: u16,
    /// Nothing if the recording lost it.
    reply: Option<Value>,
}

#[test]
fn replies_are_those_of_chroma() {
    let env = TestEnv::new();
    let server =
        ApiServer::start(env.command(&["serve", "--json", "--listen", "127.0.0.1:0", "--chroma"]));
    let mut ids = Ids::default();
    let mut wrong = Vec::new();
    for line in RECORDED.lines() {
        let recorded: Exchange = serde_json::from_str(line).unwrap();
        let form = "application/x-www-form-urlencoded";
        let kind = if recorded.form { form } else { "application/json" };
        let headers = [("Content-Type", kind)];
        if recorded.body.contains(r#""name":"exmeta""#) {
            // The recording has only the second of two equal requests.
            let made = server.send(&recorded.request, &headers, &recorded.body);
            assert_eq!(made.status, 200, "{}", made.body);
        }
        let answer = server.send(&ids.ours_in(&recorded.request), &headers, &recorded.body);
        let different = DIFFERENT.iter().find(|(request, body, _)| {
            format!("{} ", recorded.request).starts_with(request) && recorded.body == *body
        });
        let status = different.map_or(recorded.status, |(_, _, status)| *status);
        let reply = serde_json::from_str(&answer.body).unwrap_or(Value::Null);
        let equal = different.is_some()
            || recorded.reply.as_ref().is_none_or(|expected| ids.are_equal(expected, &reply));
        if answer.status != status || !equal {
            let Exchange { request, body, reply, .. } = recorded;
            let expected = reply.unwrap_or_default();
            wrong.push(format!(
                "{request} {body}\n  {status} {expected}\n  {} {}",
                answer.status, answer.body
            ));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// The ids of collections and databases: as recorded, and ours.
#[derive(Default)]
struct Ids(HashMap<String, String>);

impl Ids {
    /// A request with our ids.
    fn ours_in(&self, request: &str) -> String {
        let replace =
            |request: String, (recorded, ours): (&String, &String)| request.replace(recorded, ours);
        self.0.iter().fold(request.to_owned(), replace)
    }

    /// Whether two replies are equal, apart from ids, times, and distances within 1e-5.
    fn are_equal(&mut self, recorded: &Value, ours: &Value) -> bool {
        match (recorded, ours) {
            (Value::Object(recorded), Value::Object(ours)) => {
                let mut keys = recorded.keys().filter(|key| *key != "nanosecond heartbeat");
                recorded.len() == ours.len()
                    && keys.all(|key| match (key.as_str(), &recorded[key], ours.get(key)) {
                        ("id", Value::String(recorded), Some(Value::String(ours))) => {
                            self.0.entry(recorded.clone()).or_insert_with(|| ours.clone()) == ours
                        }
                        (_, recorded, Some(ours)) => self.are_equal(recorded, ours),
                        _ => false,
                    })
            }
            (Value::Array(recorded), Value::Array(ours)) => {
                let (recorded, ours) = (by_name(recorded), by_name(ours));
                recorded.len() == ours.len()
                    && recorded
                        .into_iter()
                        .zip(ours)
                        .all(|(recorded, ours)| self.are_equal(recorded, ours))
            }
            (Value::Number(recorded), Value::Number(ours)) => {
                let difference = recorded.as_f64().unwrap() - ours.as_f64().unwrap();
                recorded.is_f64() == ours.is_f64() && difference.abs() < 1e-5
            }
            _ => recorded == ours,
        }
    }
}

/// Elements without a name keep their order. Chroma lists collections by their random ids.
fn by_name(list: &[Value]) -> Vec<&Value> {
    let mut list: Vec<&Value> = list.iter().collect();
    list.sort_by_key(|it| it.get("name").and_then(Value::as_str));
    list
}
