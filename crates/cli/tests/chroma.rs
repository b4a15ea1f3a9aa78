//! Chroma's API of `isolith serve`, with requests and replies as Chroma's clients and server
//! exchange them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod test_env;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};
use test_env::{TestEnv, send, workers};

const DATABASE: &str = "/api/v2/tenants/default_tenant/databases/default_database";

/// A server without a token, which is killed at the end of the test.
struct Server {
    child: Child,
    port: u16,
}

impl Server {
    fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let announced: Value = serde_json::from_str(&line).unwrap();
        let url = announced["url"].as_str().unwrap().strip_suffix("/mcp").unwrap();
        let port = url.rsplit(':').next().unwrap().parse().unwrap();
        Self { child, port }
    }

    fn of(env: &TestEnv, more: &[&str]) -> Self {
        let usual = ["serve", "--json", "--no-token", "--listen", "127.0.0.1:0"];
        Self::start(env.command(&[&usual[..], more].concat()))
    }

    /// Sends a request with a body as it is; returns status and reply.
    fn raw(&self, request: &str, headers: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let (port, length) = (self.port, body.len());
        let head = format!(
            "{request} HTTP/1.1\r\nHost: localhost:{port}\r\nConnection: close\r\n{headers}\
             Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(head.as_bytes()).unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        (status, serde_json::from_str(body).unwrap_or(Value::Null))
    }

    fn send(&self, request: &str, body: &Value) -> (u16, Value) {
        let text = if body.is_null() { String::new() } else { body.to_string() };
        self.raw(request, "Content-Type: application/json\r\n", &text)
    }

    /// The reply to a request that succeeds.
    fn ok(&self, request: &str, body: Value) -> Value {
        let (status, reply) = self.send(request, &body);
        assert!(status == 200 || status == 201, "{request} {body}: {status} {reply}");
        reply
    }

    /// The name and the message of an error with this status.
    fn error(&self, request: &str, body: Value, status: u16) -> (String, String) {
        let (found, reply) = self.send(request, &body);
        assert_eq!(found, status, "{request} {body}: {reply}");
        let text = |key: &str| reply[key].as_str().unwrap().to_owned();
        (text("error"), text("message"))
    }

    /// Creates a collection and returns its path.
    fn collection(&self, body: Value) -> String {
        let made = self.ok(&format!("POST {DATABASE}/collections"), body);
        format!("{DATABASE}/collections/{}", made["id"].as_str().unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn an_empty_server_looks_like_chromas() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    for (path, reply) in [
        ("/api/v2/version", json!("1.0.0")),
        (
            "/api/v2/pre-flight-checks",
            json!({"max_batch_size": 5461, "supports_base64_encoding": true}),
        ),
        (
            "/api/v2/auth/identity",
            json!({
                "user_id": "", "tenant": "default_tenant", "databases": ["default_database"],
            }),
        ),
        (
            "/api/v2/tenants/default_tenant",
            json!({"name": "default_tenant", "resource_name": null}),
        ),
        (
            DATABASE,
            json!({
                "id": "00000000-0000-0000-0000-000000000000", "name": "default_database",
                "tenant": "default_tenant",
            }),
        ),
        ("/api/v2/tenants/none_such/databases", json!([])),
        ("/api/v2/tenants/default_tenant/databases/nodb/collections", json!([])),
    ] {
        assert_eq!(server.ok(&format!("GET {path}"), Value::Null), reply, "{path}");
    }
    let now = server.ok("GET /api/v2/heartbeat", Value::Null);
    assert!(now["nanosecond heartbeat"].as_u64().unwrap() > 0);
    assert_eq!(server.ok(&format!("GET {DATABASE}/collections_count"), Value::Null), 0);
    // Reading has created no store.
    assert!(!env.store().join("truth.sqlite").exists());
}

#[test]
fn records_live_as_with_chroma() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let path = server.collection(json!({
        "name": "exa", "metadata": {"k": "v", "n": 1, "f": 1.5, "b": true},
        "configuration": {"hnsw": {"space": "l2"}, "embedding_function": {"type": "legacy"}},
    }));
    let post = |operation: &str, body: Value| server.ok(&format!("POST {path}/{operation}"), body);
    let ids = |reply: &Value| reply["ids"].clone();
    // The vectors are [1, 2, 3], [4, 5, 6] and [7, 8, 9].
    let added = json!({
        "ids": ["a", "b", "c"],
        "embeddings": ["AACAPwAAAEAAAEBA", "AACAQAAAoEAAAMBA", "AADgQAAAAEEAABBB"],
        "metadatas": [{"i": 1, "s": "x"}, {"i": 2, "s": "y", "f": 0.5}, {"i": 3, "s": "x"}],
        "documents": ["hello world", "goodbye moon", "hello moon"],
        "uris": ["u1", "u2", "u3"],
    });
    assert_eq!(post("add", added), json!({}));
    // An existing record stays.
    post("add", json!({"ids": ["a"], "embeddings": [[0, 0, 1]]}));
    post("add", json!({"ids": ["e"], "embeddings": [[1, 1, 2]], "documents": ["embedded"]}));
    post(
        "upsert",
        json!({
            "ids": ["a", "f"], "embeddings": [[1, 1, 1], [2, 2, 2]],
            "metadatas": [{"i": 10}, {"i": 11, "list": ["p", "q"]}], "documents": ["upd", "new"],
        }),
    );
    post("update", json!({"ids": ["b"], "metadatas": [{"i": 22, "s": null}]}));
    post("update", json!({"ids": ["missing"], "metadatas": [{"i": 22}]}));
    assert_eq!(server.ok(&format!("GET {path}/count?read_level=index_and_wal"), Value::Null), 5);

    let all = post("get", json!({"include": ["documents", "metadatas", "uris"]}));
    assert_eq!(
        all,
        json!({
            "ids": ["a", "b", "c", "e", "f"], "embeddings": null,
            "documents": ["upd", "goodbye moon", "hello moon", "embedded", "new"],
            "uris": ["u1", "u2", "u3", null, null],
            "metadatas": [
                {"i": 10, "s": "x"}, {"f": 0.5, "i": 22}, {"i": 3, "s": "x"}, null,
                {"i": 11, "list": ["p", "q"]},
            ],
            "include": ["documents", "metadatas", "uris"],
        })
    );
    for (body, found) in [
        (json!({"ids": ["b", "a", "nope"]}), json!(["a", "b"])),
        (json!({"limit": 2, "offset": 1}), json!(["b", "c"])),
        (json!({"limit": 0}), json!([])),
        (
            json!({"where": {"$and": [{"i": {"$gte": 2}}, {"s": {"$in": ["x"]}}]}}),
            json!(["a", "c"]),
        ),
        (json!({"where": {"s": {"$ne": "x"}}}), json!(["b", "e", "f"])),
        (json!({"where": {"list": {"$contains": "p"}}}), json!(["f"])),
        (json!({"where_document": {"$contains": "Hello"}}), json!([])),
        (
            json!({"where_document": {"$or": [{"$contains": "hello"}, {"$regex": "^emb"}]}}),
            json!(["c", "e"]),
        ),
        (json!({"where": {"#document": {"$not_contains": "hello"}}}), json!(["a", "b", "e", "f"])),
    ] {
        assert_eq!(ids(&post("get", body.clone())), found, "{body}");
    }
    let query = json!({"query_embeddings": [[1, 2, 3], [7, 8, 9]], "n_results": 2});
    let near = post("query", query);
    assert_eq!(ids(&near), json!([["e", "f"], ["c", "b"]]));
    assert_eq!(near["distances"], json!([[2.0, 2.0], [0.0, 27.0]]));
    let query = json!({
        "query_embeddings": [[1, 2, 3]], "n_results": 2, "ids": ["b", "c"],
        "include": ["embeddings", "uris"],
    });
    let near = post("query", query);
    assert_eq!((ids(&near), near["uris"].clone()), (json!([["b", "c"]]), json!([["u2", "u3"]])));
    assert_eq!(near["embeddings"], json!([[[4.0, 5.0, 6.0], [7.0, 8.0, 9.0]]]));
    assert!(near["distances"].is_null() && near["documents"].is_null());

    assert_eq!(post("delete", json!({"where": {"i": {"$lt": 4}}})), json!({"deleted": 1}));
    assert_eq!(post("delete", json!({"ids": ["a", "zzz"]})), json!({"deleted": 2}));
    assert_eq!(post("delete", json!({})), json!({"deleted": 0}));
    assert_eq!(ids(&post("get", json!({}))), json!(["b", "e", "f"]));
    // Commands see the same collection.
    assert_eq!(env.count("exa"), 3);
}

#[test]
fn collections_are_described_as_by_chroma() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let all = format!("{DATABASE}/collections");
    let path = server.collection(json!({
        "name": "excos",
        "configuration": {"hnsw": {"space": "cosine", "ef_construction": 200, "max_neighbors": 32}},
    }));
    let again = json!({"name": "excos", "get_or_create": true});
    let found = server.ok(&format!("POST {all}"), again);
    assert!(path.ends_with(found["id"].as_str().unwrap()));
    assert_eq!(
        found["configuration_json"],
        json!({
            "hnsw": {
                "space": "cosine", "ef_construction": 200, "ef_search": 100, "max_neighbors": 32,
                "resize_factor": 1.2, "sync_threshold": 1000,
            },
            "spann": null, "embedding_function": null,
        })
    );
    let index = &found["schema"]["keys"]["#embedding"]["float_list"]["vector_index"];
    assert_eq!((&index["enabled"], &index["config"]["space"]), (&json!(true), &json!("cosine")));
    for key in ["metadata", "dimension"] {
        assert_eq!(found[key], Value::Null, "{key}");
    }
    let change = json!({
        "new_name": "exa2", "new_metadata": {"new": 1},
        "new_configuration": {"hnsw": {"ef_search": 77}},
    });
    assert_eq!(server.ok(&format!("PUT {path}"), change), json!({}));
    let records =
        json!({"ids": ["a", "z"], "embeddings": [[1, 2], [0, 0]], "metadatas": [{"y": "t"}, null]});
    server.ok(&format!("POST {path}/add"), records);
    let changed = server.ok(&format!("GET {all}/exa2"), Value::Null);
    assert_eq!(changed["metadata"], json!({"new": 1}));
    assert_eq!(changed["configuration_json"]["hnsw"]["ef_search"], 77);
    assert_eq!(changed["dimension"], 2);
    assert_eq!(changed["schema"]["keys"]["y"]["string"]["string_inverted_index"]["enabled"], true);
    let id = path.rsplit('/').next().unwrap();
    assert_eq!(server.ok(&format!("GET {all}/by-id/{id}"), Value::Null), changed);
    // A zero vector has the distance 1 from everything.
    let near = server.ok(&format!("POST {path}/query"), json!({"query_embeddings": [[2, 4]]}));
    assert_eq!(near["ids"], json!([["a", "z"]]));
    assert_eq!(near["distances"][0][1], 1.0);
    assert_eq!(server.ok(&format!("GET {all}?limit=1&offset=1"), Value::Null), json!([]));
    assert_eq!(server.ok(&format!("DELETE {all}/exa2"), Value::Null), json!({}));
    assert_eq!(server.ok(&format!("GET {all}"), Value::Null), json!([]));
}

#[test]
fn zero_vectors_are_healthy_and_can_be_restored() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let path = server.collection(json!({"name": "zeros", "metadata": {"hnsw:space": "cosine"}}));
    let records = json!({"ids": ["a", "z"], "embeddings": [[1, 2], [0, 0]]});
    server.ok(&format!("POST {path}/add"), records);
    let report = env.json(&["doctor"]);
    assert_eq!(report["ok"], true, "{report}");
    let file = env.path("zeros.jsonl");
    let file = file.to_str().unwrap();
    env.run(&["export", "zeros", "--out", file]);
    env.json(&["import", file, "--collection", "copy"]);
    assert_eq!(env.count("copy"), 2);
}

#[test]
fn databases_separate_collections() {
    let env = TestEnv::new();
    let server = Server::of(&env, &["--allow-reset"]);
    server.ok("POST /api/v2/tenants", json!({"name": "ten1"}));
    server.ok("POST /api/v2/tenants/ten1/databases", json!({"name": "db1"}));
    let theirs = "/api/v2/tenants/ten1/databases/db1";
    let other = server.ok(&format!("POST {theirs}/collections"), json!({"name": "same"}));
    let path = server.collection(json!({"name": "same"}));
    assert!(!path.ends_with(other["id"].as_str().unwrap()));
    let other_path = format!("{theirs}/collections/{}", other["id"].as_str().unwrap());
    let record = |id: &str| json!({"ids": [id], "embeddings": [[1, 2]]});
    server.ok(&format!("POST {path}/add"), record("ours"));
    server.ok(&format!("POST {other_path}/add"), record("theirs"));
    server.ok(&format!("POST {other_path}/add"), record("also theirs"));
    assert_eq!(server.ok(&format!("GET {other_path}/count"), Value::Null), 2);
    let listed = env.json(&["collection", "list"]);
    let names: Vec<&str> = listed["collections"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!((names, env.count("same")), (vec!["same"], 1));
    let status = env.json(&["status"]);
    let known = status["collections"].as_array().unwrap();
    let known: Vec<_> = known.iter().map(|it| (&it["name"], &it["database"])).collect();
    assert_eq!(known, [(&json!("same"), &json!("ten1/db1")), (&json!("same"), &Value::Null)]);
    assert!(env.run(&["status"]).stdout.contains("\nten1/db1/same "));
    server.ok(&format!("DELETE {theirs}"), Value::Null);
    let (name, message) = server.error(&format!("GET {other_path}/count"), Value::Null, 404);
    let id = other["id"].as_str().unwrap();
    assert_eq!(name, "NotFoundError");
    assert_eq!(message, format!("Collection [{id}] does not exist."));
    assert_eq!(server.ok("POST /api/v2/reset", Value::Null), json!(true));
    assert_eq!(server.ok(&format!("GET {DATABASE}/collections_count"), Value::Null), 0);
    server.error("GET /api/v2/tenants/ten1", Value::Null, 404);
    let doctor = env.json(&["doctor"]);
    assert_eq!(doctor["ok"], true, "{doctor}");
}

#[test]
fn errors_are_chromas() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let all = format!("{DATABASE}/collections");
    let path = server.collection(json!({"name": "errors"}));
    server.ok(&format!("POST {path}/add"), json!({"ids": ["a"], "embeddings": [[1, 2, 3]]}));
    let invalid = "InvalidArgumentError";
    let in_collection = |operation: &str| format!("POST {path}/{operation}");
    for (request, body, status, name, message) in [
        (
            format!("POST {all}"),
            json!({"name": "errors"}),
            409,
            "ChromaError",
            "Collection [errors] already exists",
        ),
        (
            format!("POST {all}"),
            json!({}),
            422,
            "ChromaError",
            "Failed to deserialize the JSON body into the target type: missing field `name` at \
             line 1 column 2",
        ),
        (
            format!("POST {all}"),
            json!({"name": "abcd", "metadata": {}}),
            400,
            invalid,
            "Validation error: metadata: Metadata cannot be empty",
        ),
        (
            format!("POST {all}"),
            json!({"name": "a..b"}),
            400,
            invalid,
            "Validation error: name: Expected a name that does not contains two consecutive \
             periods (..). Got a..b",
        ),
        (
            format!("GET {all}/nope"),
            Value::Null,
            404,
            "NotFoundError",
            "Collection [nope] does not exist",
        ),
        (
            format!("GET {all}/notauuid/count"),
            Value::Null,
            400,
            invalid,
            "Collection ID is not a valid UUIDv4",
        ),
        (
            format!("GET {all}?limit=x"),
            Value::Null,
            400,
            invalid,
            "Failed to deserialize query string: limit: invalid digit found in string",
        ),
        (
            in_collection("add"),
            json!({"ids": ["d"], "embeddings": [[1, 2]]}),
            400,
            invalid,
            "Collection expecting embedding with dimension of 3, got 2",
        ),
        (
            in_collection("query"),
            json!({"query_embeddings": [[1, 2]]}),
            400,
            invalid,
            "Collection expecting embedding with dimension of 3, got 2",
        ),
        (
            in_collection("add"),
            json!({"ids": ["d"], "embeddings": ["!!!notb64"]}),
            400,
            invalid,
            "Invalid base64 string: Invalid symbol 33, offset 0.",
        ),
        (
            in_collection("add"),
            json!({"ids": ["d", "e"], "embeddings": [[1, 2, 3]]}),
            400,
            invalid,
            "Inconsistent number of IDs, embeddings, documents, URIs and metadatas",
        ),
        (
            in_collection("get"),
            json!({"where": {"a": 1, "b": 2}}),
            400,
            invalid,
            "Invalid where clause",
        ),
        (
            in_collection("get"),
            json!({"where_document": {"$regex": "["}}),
            400,
            invalid,
            "Regex syntax errror: regex parse error:\n    [\n    ^\nerror: unclosed character class",
        ),
        (
            in_collection("query"),
            json!({"query_embeddings": [[1, 2, 3]], "ids": ["a", "nope"]}),
            500,
            "InternalError",
            "Error executing plan: Internal error: Error finding id",
        ),
        (
            in_collection("delete"),
            json!({"limit": 1}),
            400,
            invalid,
            "Validation error: limit, where: limit can only be specified when a where clause is \
             provided",
        ),
        (
            in_collection("fork"),
            json!({"new_name": "x"}),
            501,
            "ChromaError",
            "Collection forking is unsupported for local chroma",
        ),
        (
            "POST /api/v2/reset".to_owned(),
            Value::Null,
            403,
            "ChromaError",
            "Reset is disabled by config",
        ),
        (
            "GET /api/v2/tenants/t404".to_owned(),
            Value::Null,
            404,
            "NotFoundError",
            "Tenant [t404] not found",
        ),
        (
            "GET /api/v1/heartbeat".to_owned(),
            Value::Null,
            410,
            "Unimplemented",
            "The v1 API is deprecated. Please use /v2 apis",
        ),
    ] {
        let found = server.error(&request, body.clone(), status);
        assert_eq!(found, (name.to_owned(), message.to_owned()), "{request} {body}");
    }
    let (status, reply) = server.raw(&format!("POST {all}"), "", "{bad");
    assert_eq!((status, &reply["error"]), (400, &json!(invalid)), "{reply}");
    let plain = "Content-Type: text/plain\r\n";
    let (status, reply) = server.raw(&format!("POST {all}"), plain, "{}");
    let message = "Expected request with `Content-Type: application/json`";
    assert_eq!((status, &reply["message"]), (415, &json!(message)));
    let (status, reply) = server.send("GET /api/v2/nonexist", &Value::Null);
    assert_eq!((status, &reply["error"]), (404, &json!("NotFoundError")));
}

#[test]
fn a_token_may_come_in_chromas_header() {
    let env = TestEnv::new();
    let token = "a-token-of-some-length-0123456789";
    let mut command = env.command(&["serve", "--json", "--listen", "127.0.0.1:0"]);
    command.env("ISOLITH_TOKEN", token);
    let server = Server::start(command);
    let count = format!("GET {DATABASE}/collections_count");
    for (headers, expected) in [
        (String::new(), 401),
        (format!("X-Chroma-Token: {token}x\r\n"), 401),
        (format!("X-Chroma-Token: {token}\r\n"), 200),
        (format!("Authorization: Bearer {token}\r\n"), 200),
    ] {
        let (status, reply) = server.raw(&count, &headers, "");
        assert_eq!(status, expected, "{headers:?}: {reply}");
        assert_eq!(reply["message"].is_string(), status == 401, "{reply}");
    }
}

#[test]
fn acknowledged_records_survive_killed_workers_and_restarts() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let path = server.collection(json!({"name": "kept"}));
    for round in 0..6 {
        let ids: Vec<String> = (0..50).map(|n| format!("{round}-{n}")).collect();
        let vectors: Vec<[i32; 2]> = (0..50).map(|n| [round, n]).collect();
        let add = json!({"ids": ids, "embeddings": vectors});
        server.ok(&format!("POST {path}/add"), add);
        for role in ["store-writer", "store-reader"] {
            for worker in workers(server.child.id(), role) {
                send(worker, rustix::process::Signal::KILL);
            }
        }
    }
    assert_eq!(server.ok(&format!("GET {path}/count"), Value::Null), 300);
    drop(server);
    let server = Server::of(&env, &[]);
    let near = server
        .ok(&format!("POST {path}/query"), json!({"query_embeddings": [[3, 7]], "n_results": 1}));
    assert_eq!((&near["ids"], &near["distances"]), (&json!([["3-7"]]), &json!([[0.0]])));
    assert_eq!(server.ok(&format!("GET {path}/count"), Value::Null), 300);
}

#[test]
fn documents_are_embedded_where_a_collection_asks_for_it() {
    let env = TestEnv::new();
    let server = Server::of(&env, &[]);
    let path = server.collection(json!({"name": "texts", "metadata": {"isolith:embed": true}}));
    let post = |operation: &str, body: Value| server.ok(&format!("POST {path}/{operation}"), body);
    let texts = ["how to roast coffee beans", "the connection to the database was closed"];
    post("add", json!({"ids": ["a", "b"], "documents": texts}));
    post("add", json!({"ids": ["a"], "embeddings": null, "documents": ["unchanged"]}));
    post("upsert", json!({"ids": ["c"], "embeddings": null, "documents": ["a garden in summer"]}));
    let nearest = |body: Value| post("query", body)["ids"].clone();
    for question in [
        json!({"query_embeddings": ["making coffee", "a flower bed"], "n_results": 1}),
        json!({"query_texts": ["making coffee", "a flower bed"], "n_results": 1}),
    ] {
        assert_eq!(nearest(question), json!([["a"], ["c"]]));
    }
    post("update", json!({"ids": ["b"], "documents": ["an espresso machine"]}));
    post("update", json!({"ids": ["a"], "metadatas": [{"k": 1}]}));
    let filtered = json!({
        "query_embeddings": ["making coffee"], "where": {"k": 1}, "include": ["documents"],
    });
    assert_eq!(post("query", filtered)["documents"], json!([[texts[0]]]));
    let among = json!({"query_texts": ["coffee"], "ids": ["b", "c"], "n_results": 1});
    assert_eq!(nearest(among), json!([["b"]]));
    let got = post("get", json!({"include": ["embeddings"]}));
    assert_eq!(got["embeddings"][0].as_array().unwrap().len(), 256);

    let vector = json!({"ids": ["d"], "embeddings": [[1.0, 2.0]], "documents": ["x"]});
    for operation in ["add", "upsert", "update"] {
        let (_, message) = server.error(&format!("POST {path}/{operation}"), vector.clone(), 400);
        assert!(message.starts_with("This collection embeds its documents"), "{message}");
    }
    let empty = json!({"ids": ["d"], "documents": [null]});
    let (_, message) = server.error(&format!("POST {path}/add"), empty, 400);
    assert_eq!(message, r#"Validation error: documents: the record "d" has none to embed"#);
    let wordless = json!({"ids": ["d"], "documents": ["\u{301}"]});
    let (_, message) = server.error(&format!("POST {path}/add"), wordless, 400);
    assert_eq!(message, r#"the document of "d" has no words to embed"#);
    let unsure = json!({"name": "unsure", "metadata": {"isolith:embed": "yes"}});
    server.error(&format!("POST {DATABASE}/collections"), unsure, 400);

    // Everything else is refused as Chroma does.
    let other = server.collection(json!({"name": "vectors"}));
    let body = json!({"ids": ["a"], "documents": ["x"]});
    let (_, message) = server.error(&format!("POST {other}/add"), body, 422);
    assert!(message.contains("missing field `embeddings`"), "{message}");
    let body = json!({"query_embeddings": ["x"]});
    let (_, message) = server.error(&format!("POST {other}/query"), body, 422);
    assert!(message.contains("query_embeddings[0]: invalid type: string"), "{message}");
    drop(server);
    assert_eq!(
        env.ids(&["collection", "query", "texts", "--text", "garden", "--limit", "1"]),
        ["c"]
    );
}
