//! The API of `isolith serve` as programs see it.
#![allow(clippy::unwrap_used, clippy::panic)]

mod http_client;
mod project;
mod test_env;

use http_client::ApiServer;
use project::Project;
use serde_json::{Value, json};
use test_env::TestEnv;

const SERVE: [&str; 4] = ["serve", "--json", "--listen", "127.0.0.1:0"];

fn of_project(project: &Project) -> ApiServer {
    ApiServer::start(project.command(&SERVE))
}

fn of_env(env: &TestEnv) -> ApiServer {
    ApiServer::start(env.command(&SERVE))
}

#[test]
fn code_is_indexed_and_searched() {
    let project = Project::sample();
    let server = of_project(&project);
    let (status, code) = server.ask("GET /v1/code/search?query=retry", &Value::Null).refused();
    assert_eq!((status, code.as_str()), (404, "no_store"));
    let report = server.run("/v1/code/index", &json!({}));
    assert!(report["files"]["indexed"].as_u64().unwrap() > 2, "{report}");
    assert!(report["seconds"]["total"].as_f64().unwrap() > 0.0, "{report}");
    assert!(report["problems"].is_array() && report["interrupted"] == false, "{report}");
    let again = server.run("/v1/code/index", &Value::Null);
    assert_eq!(again["files"]["indexed"], 0, "{again}");

    let question = "exponential+backoff%20between+attempts";
    let found = server.get(&format!("/v1/code/search?query={question}&limit=3"));
    let hit = &found["hits"][0];
    assert!(hit["path"].as_str().unwrap().ends_with("retry.rs"), "{found}");
    assert!(hit["start_line"].as_u64() < hit["end_line"].as_u64() && hit["language"] == "rust");
    assert!(found["weak"].is_boolean() && found["took_ms"].is_u64() && found["degraded"].is_null());
    let body = json!({ "query": "exponential backoff between attempts", "limit": 3 });
    let posted = server.post("/v1/code/search", &body);
    assert_eq!(posted["hits"], found["hits"]);
    let exact = json!({ "query": "fn open(", "mode": "exact", "context": 1 });
    let exact = server.post("/v1/code/search", &exact);
    assert!(exact["matches"]["total"].as_u64().unwrap() >= 1, "{exact}");
    assert!(exact["hits"][0]["line"].is_u64(), "{exact}");
    let tests = server.get("/v1/code/search?query=open&kind=method&tests=false");
    assert!(tests["hits"].as_array().unwrap().iter().all(|hit| hit["kind"] == "method"));

    let path = hit["path"].as_str().unwrap();
    let line = &hit["start_line"];
    let similar = server.get(&format!("/v1/code/similar?path={path}&line={line}&limit=2"));
    assert!(similar["hits"].is_array(), "{similar}");
    let chunks = server.get(&format!("/v1/code/chunks?path={path}&end_line=500"));
    assert!(chunks["chunks"][0]["text"].is_string() && chunks["truncated"] == false, "{chunks}");
    let roots = server.get("/v1/code/index");
    assert_eq!(roots["roots"].as_array().unwrap().len(), 1, "{roots}");

    let outside = server.ask("GET /v1/code/chunks?path=/etc/passwd", &Value::Null);
    assert_eq!(outside.refused(), (403, "forbidden_path".to_owned()));
    assert!(!outside.body.contains("ask the user"), "{}", outside.body);
    let regex = json!({ "query": "(", "mode": "regex" });
    let regex = server.ask("POST /v1/code/search", &regex);
    assert_eq!(regex.refused(), (400, "bad_input".to_owned()));
}

#[test]
fn files_are_mapped_with_their_sizes() {
    let project = Project::sample();
    project.write("a/__init__.py", "");
    project.write("a/one.py", "from a import two\n\n\ndef first():\n    return two.second()\n");
    project.write("a/two.py", "from a import one\n\n\ndef second():\n    return 2\n\n\n");
    project.write("alone.py", "def alone():\n    return 1\n");
    let server = of_project(&project);
    server.run("/v1/code/index", &Value::Null);
    let map = server.get("/v1/code/map");
    let files = map["files"].as_array().unwrap();
    let file = |path: &str| files.iter().find(|file| file["path"] == path).unwrap();
    assert_eq!(file("a/one.py")["lines"], 5, "{map}");
    assert_eq!(file("a/two.py")["lines"], 5, "blank lines at the end do not count: {map}");
    assert_eq!((&file("a/two.py")["calls"], &file("a/one.py")["calls"]), (&json!(1), &json!(0)));
    assert_eq!((&file("a/two.py")["cycle"], &file("alone.py")["cycle"]), (&json!(1), &Value::Null));
    assert_eq!((&file("alone.py")["language"], &map["left_out"]), (&json!("python"), &json!(0)));
    let first = server.get("/v1/code/map?limit=1");
    assert_eq!(
        (first["files"].as_array().unwrap().len(), &first["left_out"]),
        (1, &json!(files.len() - 1))
    );
}

#[test]
fn vectors_are_placed_in_a_plane() {
    let env = TestEnv::new();
    let server = of_env(&env);
    let record = |at: i32| json!({ "id": at.to_string(), "vector": [3 * at, 4 * at, 1], "metadata": { "odd": at % 2 } });
    let records: Vec<Value> = (0..10).map(record).collect();
    server.ask("PUT /v1/collections/line/records", &json!({ "records": records })).done();
    let found = server.get("/v1/collections/line/projection?by=odd");
    let points = found["points"].as_array().unwrap();
    assert_eq!((points.len(), &found["records"]), (10, &json!(10)), "{found}");
    assert!(found["explained"][0].as_f64().unwrap() > 0.999, "they are on a line: {found}");
    let x = |at: usize| points[at]["x"].as_f64().unwrap();
    assert!(((x(9) - x(0)).abs() - 45.0).abs() < 0.1, "{found}");
    assert_eq!((&points[3]["id"], &points[3]["value"]), (&json!("3"), &json!(1)));
    let few = server.get("/v1/collections/line/projection?limit=4");
    assert_eq!((few["points"].as_array().unwrap().len(), &few["records"]), (4, &json!(10)));
}

#[test]
fn the_graph_is_asked() {
    let project = Project::sample();
    let server = of_project(&project);
    server.run("/v1/code/index", &Value::Null);
    let callers = server.get("/v1/graph/callers?symbol=RetryPolicy.backoff");
    assert_eq!(callers["symbol"]["name"], "backoff", "{callers}");
    assert!(callers["found"][0]["via"].is_string() && callers["found"][0]["depth"] == 1);
    let callees = server.get("/v1/graph/callees?symbol=RetryPolicy.run&depth=2");
    assert!(!callees["found"].as_array().unwrap().is_empty(), "{callees}");
    let path = server.get("/v1/graph/path?from=RetryPolicy.run&to=RetryPolicy.backoff");
    assert_eq!(path["path"].as_array().unwrap().len(), 1, "{path}");
    let impact = server.get("/v1/graph/impact?symbol=RetryPolicy.backoff");
    assert!(impact["impact"].is_array() && impact["tests"].is_array(), "{impact}");
    for (question, field) in [
        ("cycles?limit=5", "cycles"),
        ("unused?exported=true", "unused"),
        ("hotspots?by=callees", "hotspots"),
        ("stats", "labels"),
    ] {
        let answer = server.get(&format!("/v1/graph/{question}"));
        assert!(answer[field].is_array(), "{question}: {answer}");
    }
    let unknown = server.ask("GET /v1/graph/callers?symbol=nothing_has_this_name", &Value::Null);
    assert_eq!(unknown.refused(), (404, "not_found".to_owned()));

    let query = json!({
        "query": "UNWIND range(1, $n) AS number RETURN number",
        "params": { "n": 250 },
        "limit": 100,
    });
    let mut page = server.post("/v1/graph/query", &query);
    let mut rows = Vec::new();
    loop {
        assert_eq!(page["columns"], json!(["number"]));
        rows.extend(page["rows"].as_array().unwrap().iter().map(|row| row[0].as_u64().unwrap()));
        let Some(next) = page["next"].as_str() else { break };
        page = server.post("/v1/graph/query", &json!({ "next": next, "limit": 100 }));
    }
    assert_eq!(rows, (1..=250).collect::<Vec<u64>>());
    let gone = server.ask("POST /v1/graph/query", &json!({ "next": "1-0-0000000000000000" }));
    assert!(matches!(gone.refused(), (410 | 400, _)), "{}", gone.body);
    // A write takes effect once for each key.
    let create = json!({ "query": "CREATE (n:Once) RETURN id(n)" }).to_string();
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "graph-1")];
    let first = server.send("POST /v1/graph/query", &headers, &create).done();
    assert_eq!(first["stats"]["nodes_created"], 1, "{first}");
    let second = server.send("POST /v1/graph/query", &headers, &create).done();
    assert_eq!(second["rows"], first["rows"]);
    let count = json!({ "query": "MATCH (n:Once) RETURN count(n)" });
    assert_eq!(server.post("/v1/graph/query", &count)["rows"], json!([[1]]));
    let wrong = server.ask("POST /v1/graph/query", &json!({ "query": "MATCH (" }));
    assert_eq!(wrong.refused(), (400, "bad_input".to_owned()));
}

#[test]
fn rows_are_imported_into_the_graph() {
    let project = Project::sample();
    let server = of_project(&project);
    let nodes = json!({ "label": "Person", "key": "id", "existing": "refuse" });
    let people = json!({
        "nodes": nodes, "columns": ["id:int", "name"], "rows": "1,Ann\n2,\"Bob, the other\"\n3,C",
        "more": true,
    });
    let imported = server.post("/v1/graph/import", &people);
    assert_eq!(imported["rows"], 2, "{imported}");
    assert_eq!(imported["bytes"], "1,Ann\n2,\"Bob, the other\"\n".len(), "{imported}");
    assert_eq!(imported["nodes_created"], 2, "{imported}");
    let again = server.ask("POST /v1/graph/import", &people);
    assert!(again.body.contains("row 1: (:Person {id: 1}) exists already"), "{}", again.body);
    assert!(again.body.contains("set skip_bad to true"), "{}", again.body);
    assert_eq!(again.refused(), (400, "bad_input".to_owned()));

    let end = json!({ "label": "Person", "key": "id" });
    let knows = json!({
        "relationships": { "type": "KNOWS", "from": end, "to": end },
        "columns": ["from:int", "to:int", "since:int16"],
        "rows": "1;2;2019\n2;9;\n", "delimiter": ";", "rows_before": 10, "skip_bad": true,
    });
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "import-1")];
    for repeated in [false, true] {
        let imported = server.send("POST /v1/graph/import", &headers, &knows.to_string()).done();
        assert_eq!(imported["relationships_created"], 1, "{imported}");
        assert_eq!(imported["repeated"], repeated, "{imported}");
        assert_eq!(imported["rejected"][0]["row"], 12, "{imported}");
    }
    let count = json!({ "query": "MATCH (:Person)-[k:KNOWS]->(b) RETURN b.name, k.since" });
    let rows = json!([["Bob, the other", 2019]]);
    assert_eq!(server.post("/v1/graph/query", &count)["rows"], rows);
    // Larger than what other requests may have.
    let long = json!({
        "nodes": { "label": "Long" }, "columns": ["text"], "rows": "x".repeat(5 << 20),
    });
    assert_eq!(server.post("/v1/graph/import", &long)["nodes_created"], 1);
}

#[test]
fn memory_is_written_once_and_found() {
    let env = TestEnv::new();
    let server = of_env(&env);
    let empty = server.get("/v1/memory/search?query=anything");
    assert_eq!(empty["hits"], json!([]));
    let drawer = json!({ "text": "Deploys go out on Tuesdays.", "wing": "acme", "room": "deploys", "tags": ["ops"] });
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "9d0c")];
    let add = |body: &Value| server.send("POST /v1/memory/drawers", &headers, &body.to_string());
    let first = add(&drawer).done();
    assert_eq!((&first["created"], &add(&drawer).done()), (&json!(true), &first), "a repeat");
    let other = json!({ "text": "Something else.", "wing": "acme", "room": "deploys" });
    assert_eq!(add(&other).refused(), (422, "key_reused".to_owned()));
    let id = first["id"].as_str().unwrap();
    let place = format!("/v1/memory/drawers/{id}");
    assert_eq!(server.get(&place)["tags"], json!(["ops"]));

    let found = server.post("/v1/memory/search", &json!({ "query": "when do deploys go out" }));
    assert_eq!((&found["hits"][0]["id"], &found["hits"][0]["wing"]), (&json!(id), &json!("acme")));
    let changed = server.ask(&format!("PATCH {place}"), &json!({ "room": "releases" })).done();
    assert_eq!(changed["changed"], true);
    assert_eq!(server.get("/v1/memory/taxonomy")["wings"], json!({ "acme": { "releases": 1 } }));
    let listed = server.get("/v1/memory/drawers?wing=acme&limit=1");
    assert_eq!((&listed["total"], &listed["drawers"][0]["id"]), (&json!(1), &json!(id)));
    let same =
        server.post("/v1/memory/duplicates", &json!({ "text": "Deploys go out on Tuesdays." }));
    assert_eq!(same["duplicate"], true, "{same}");
    let diary = "/v1/memory/diaries/Max%20M%C3%BCller";
    assert_eq!(server.post(diary, &json!({ "text": "A quiet day." }))["created"], true);
    let entries = server.get(diary);
    assert_eq!(entries["agent"], "Max Müller");
    assert_eq!(entries["entries"][0]["text"], "A quiet day.");
    assert_eq!(server.ask(&format!("DELETE {place}"), &Value::Null).done()["deleted"], 1);
    let gone = server.ask(&format!("GET {place}"), &Value::Null);
    assert_eq!(gone.refused(), (404, "not_found".to_owned()));
    assert!(gone.body.contains("GET /v1/memory/drawers"), "{}", gone.body);
}

#[test]
fn facts_change_over_time() {
    let env = TestEnv::new();
    let server = of_env(&env);
    let fact = json!({ "subject": "Ada", "predicate": "works_at", "object": "Acme", "valid_from": "2024-01-01", "agent": "me" });
    let added = server.post("/v1/facts", &fact);
    let change = json!({ "id": added["id"], "object": "Initech", "at": "2025-01-01" });
    let changed = server.post("/v1/facts/supersede", &change);
    assert_eq!((&changed["old"], &changed["created"]), (&added["id"], &json!(true)), "{changed}");
    let then = server.get("/v1/facts?entity=Ada&as_of=2024-06-01");
    assert_eq!(then["facts"][0]["object"], "Acme", "{then}");
    assert_eq!(then["facts"][0]["sources"][0]["agent"], "me", "{then}");
    let first = server.get("/v1/facts/timeline?limit=1");
    assert_eq!(first["facts"][0]["object"], "Acme");
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = server.get(&format!("/v1/facts/timeline?limit=1&cursor={cursor}"));
    assert_eq!(
        (&second["facts"][0]["object"], &second["next_cursor"]),
        (&json!("Initech"), &Value::Null)
    );
    let end = json!({ "subject": "Ada", "predicate": "works_at", "at": "2026-01-01" });
    assert_eq!(server.post("/v1/facts/invalidate", &end)["changed"], true);
    assert_eq!(server.get("/v1/facts/stats")["facts"], 2);
    let patch = json!({ "type": "person", "add_aliases": ["Countess"] });
    let described = server.ask("PATCH /v1/facts/entities/Ada", &patch).done();
    assert_eq!(described["aliases"], json!(["Countess"]), "{described}");
    assert_eq!(server.get("/v1/facts/entities/Countess")["name"], "Ada");
    assert_eq!(server.get("/v1/facts/entities?type=person")["entities"][0]["name"], "Ada");
    let date = server.ask("GET /v1/facts?entity=Ada&as_of=yesterday", &Value::Null);
    assert_eq!(date.refused(), (400, "bad_input".to_owned()));
    assert!(date.body.contains("as_of"), "{}", date.body);
}

#[test]
fn collections_are_filled_and_queried() {
    let env = TestEnv::new();
    let server = of_env(&env);
    assert_eq!(server.get("/v1/collections")["collections"], json!([]));
    let new = json!({ "name": "notes", "dimension": 3, "metric": "l2" });
    assert_eq!(server.post("/v1/collections", &new)["created"], true);
    let again = server.ask("POST /v1/collections", &new);
    assert_eq!(again.refused(), (409, "already_exists".to_owned()));
    let records = json!({ "records": [
        { "id": "a/b", "document": "one", "vector": [0.1, 0.2, 0.3], "metadata": { "year": 2024 } },
        { "id": "c", "document": "two", "vector": [1, 0, 0] },
    ] });
    let place = "/v1/collections/notes/records";
    let put = server.ask(&format!("PUT {place}"), &records).done();
    assert_eq!((&put["inserted"], &put["count"]), (&json!(2), &json!(2)), "{put}");
    assert_eq!(
        server.get("/v1/collections/notes/count"),
        json!({ "collection": "notes", "count": 2 })
    );
    assert_eq!(server.get("/v1/collections/notes")["metric"], "l2");

    let query = json!({ "vector": [0.1, 0.2, 0.3], "limit": 1, "where": { "year": { "$gte": 2000 } }, "where_document": { "$contains": "one" } });
    let found = server.post("/v1/collections/notes/query", &query);
    assert_eq!(
        (&found["hits"][0]["id"], &found["hits"][0]["distance"]),
        (&json!("a/b"), &json!(0.0)),
        "{found}"
    );
    let words = server.post("/v1/collections/notes/query", &json!({ "keywords": "two" }));
    assert_eq!(words["hits"][0]["id"], "c", "{words}");
    let one = server.get(&format!("{place}/a%2Fb"));
    assert_eq!(one["vector"], json!([0.1, 0.2, 0.3]), "vectors are not made longer");

    let other = json!({ "records": [{ "id": "c", "vector": [0, 0, 1] }] });
    let refused = server.ask(&format!("POST {place}"), &other);
    assert_eq!(refused.refused(), (409, "already_exists".to_owned()));
    let patch = json!({ "records": [{ "id": "c", "document": null, "metadata": { "new": true } }, { "id": "none" }] });
    let changed = server.ask(&format!("PATCH {place}"), &patch).done();
    assert_eq!(changed, json!({ "updated": 1, "unchanged": 0, "missing": 1 }));
    let got = server.post("/v1/collections/notes/get", &json!({ "ids": ["c"] }));
    assert_eq!(
        got["records"],
        json!([{ "id": "c", "document": null, "metadata": { "new": true }, "vector": null }])
    );
    let listed = server.get(&format!("{place}?limit=1&offset=1&vectors=true"));
    assert_eq!(listed["records"][0]["vector"], json!([1.0, 0.0, 0.0]), "{listed}");

    for (bad, code) in [
        (json!({ "records": [{ "id": "d", "vector": [1, 2] }] }), "bad_input"),
        (json!({ "records": [{ "id": "d", "vector": [1, 2, 1e39] }] }), "bad_input"),
        (json!({ "records": [{ "id": "d", "vector": [1, 2, "x"] }] }), "bad_input"),
        (json!({ "records": [{ "id": "d" }] }), "model_unavailable"),
        (json!({ "records": [] }), "bad_input"),
        (
            json!({ "records": [{ "id": "d", "vector": [1, 2, 3] }, { "id": "e", "vector": [1, 2] }] }),
            "bad_input",
        ),
    ] {
        assert_eq!(server.ask(&format!("PUT {place}"), &bad).refused().1, code, "{bad}");
    }
    let hybrid = json!({ "vector": [0.1, 0.2, 0.3], "keywords": "two" });
    let hybrid = server.post("/v1/collections/notes/query", &hybrid);
    assert_eq!(hybrid["hits"][0]["id"], "a/b", "the document of the other is gone: {hybrid}");
    assert_eq!(hybrid["hits"][0]["why"], json!(["distance 0.00 (1st)"]), "{hybrid}");
    assert_eq!(hybrid["hits"][0]["fused"], 0.5, "{hybrid}");
    let both = json!({ "vector": [1, 2, 3], "text": "x" });
    let both = server.ask("POST /v1/collections/notes/query", &both);
    assert_eq!(both.refused(), (400, "bad_input".to_owned()));
    let deleted = server.post("/v1/collections/notes/delete", &json!({ "where": { "new": true } }));
    assert_eq!(deleted["deleted"], 1, "{deleted}");
    assert_eq!(
        server.ask("DELETE /v1/collections/notes/records/a%2Fb", &Value::Null).done()["deleted"],
        1
    );
    let renamed = server.ask("PATCH /v1/collections/notes", &json!({ "name": "other" })).done();
    assert_eq!(renamed["name"], "other");
    assert_eq!(server.ask("DELETE /v1/collections/other", &Value::Null).done()["deleted"], 0);
    for name in ["other", "@memory", "@code"] {
        let missing = server.ask(&format!("GET /v1/collections/{name}/count"), &Value::Null);
        assert_eq!(missing.refused(), (404, "not_found".to_owned()), "{name}");
    }
}

#[test]
fn records_are_sorted_and_values_counted() {
    let env = TestEnv::new();
    let server = of_env(&env);
    let record = |id: &str, year: Value, tags: Value| json!({ "id": id, "vector": [1], "document": id, "metadata": { "year": year, "tags": tags } });
    let records = json!({ "records": [
        record("a", json!(2020), json!(["x", "y"])),
        record("b", json!(2024), json!(["y"])),
        record("c", Value::Null, json!("y")),
        record("d", json!(2024), Value::Null),
    ] });
    server.ask("PUT /v1/collections/notes/records", &records).done();
    let ids = |answer: &Value| -> String {
        answer["records"].as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
    };
    let place = "/v1/collections/notes";
    assert_eq!(ids(&server.get(&format!("{place}/records?sort=year"))), "abdc");
    let down = "records?sort=year&descending=true&limit=2&offset=1";
    assert_eq!(ids(&server.get(&format!("{place}/{down}"))), "da");
    let some = json!({ "where": { "year": { "$lt": 3000 } }, "sort": "year", "descending": true });
    assert_eq!(ids(&server.post(&format!("{place}/get"), &some)), "bda");
    let alone = server.ask(&format!("GET {place}/records?descending=true"), &Value::Null);
    assert_eq!(alone.refused(), (400, "bad_input".to_owned()));

    let years = server.get(&format!("{place}/values?key=year"));
    let expected = json!([{ "value": 2024, "count": 2 }, { "value": 2020, "count": 1 }]);
    assert_eq!(years, json!({ "values": expected, "total": 2 }));
    let tags = server.get(&format!("{place}/values?key=tags&limit=1"));
    assert_eq!(tags, json!({ "values": [{ "value": "y", "count": 3 }], "total": 2 }));
    let some =
        json!({ "key": "tags", "where": { "year": 2020 }, "where_document": { "$contains": "a" } });
    let some = server.post(&format!("{place}/values"), &some);
    assert_eq!(some["total"], 2, "{some}");
    for (request, status, code) in [
        ("GET /v1/collections/none/values?key=year", 404, "not_found"),
        ("GET /v1/collections/notes/values", 400, "bad_input"),
        ("GET /v1/collections/notes/values?key=year&limit=0", 400, "bad_input"),
    ] {
        let refused = server.ask(request, &Value::Null).refused();
        assert_eq!(refused, (status, code.to_owned()), "{request}");
    }
}

#[test]
fn documents_are_embedded_and_files_loaded() {
    let project = Project::sample();
    let server = of_project(&project);
    let new = json!({ "name": "texts", "model": "built-in" });
    server.post("/v1/collections", &new);
    let records = json!({ "records": [{ "id": "1", "document": "cats sleep" }, { "id": "2", "document": "taxes rise" }] });
    server.ask("PUT /v1/collections/texts/records", &records).done();
    let patch = json!({ "records": [{ "id": "2", "document": "kittens nap all day" }] });
    server.ask("PATCH /v1/collections/texts/records", &patch).done();
    let taxes =
        server.post("/v1/collections/texts/query", &json!({ "text": "kittens nap all day" }));
    let best = &taxes["hits"][0];
    assert_eq!(best["id"], "2", "{taxes}");
    assert!(best["distance"].as_f64().unwrap() < 0.01, "the new document is embedded: {taxes}");
    let hybrid = json!({ "text": "kittens nap all day", "keywords": "kittens" });
    let hybrid = server.post("/v1/collections/texts/query", &hybrid);
    assert_eq!((&hybrid["hits"][0]["id"], &hybrid["hits"][0]["fused"]), (&json!("2"), &json!(1.0)));
    assert!(hybrid["hits"][0]["score"].is_f64() && hybrid["degraded"].is_null(), "{hybrid}");
    project.env.write_rows("project/rows.jsonl", 0..50, 8);
    let loaded = server.run("/v1/collections/rows/ingest", &json!({ "path": "rows.jsonl" }));
    assert_eq!((&loaded["inserted"], &loaded["count_after"]), (&json!(50), &json!(50)), "{loaded}");
}

#[test]
fn vectors_can_be_sent_and_received_in_base64() {
    let env = TestEnv::new();
    let server = of_env(&env);
    // 1, 2, 3 and 0.1, 0, -2.5 as little-endian f32.
    let (one, two) = ("AACAPwAAAEAAAEBA", "zczMPQAAAAAAACDA");
    let records = json!({ "records": [{ "id": "a", "vector": one }, { "id": "b", "vector": [0.1, 0, -2.5] }] });
    let place = "/v1/collections/notes";
    server.ask(&format!("PUT {place}/records"), &records).done();
    let vectors = |found: &Value| {
        let records = found["records"].as_array().unwrap().iter();
        records.map(|record| record["vector"].clone()).collect::<Vec<_>>()
    };
    let coded = json!({ "vectors": true, "encoding": "base64" });
    assert_eq!(vectors(&server.post(&format!("{place}/get"), &coded)), [one, two]);
    let listed = server.get(&format!("{place}/records?vectors=true&encoding=numbers"));
    assert_eq!(vectors(&listed), [json!([1.0, 2.0, 3.0]), json!([0.1, 0.0, -2.5])]);
    let query = json!({ "vector": two, "limit": 1 });
    assert_eq!(server.post(&format!("{place}/query"), &query)["hits"][0]["id"], "b");
    let patch = json!({ "records": [{ "id": "b", "vector": one }] });
    server.ask(&format!("PATCH {place}/records"), &patch).done();
    assert_eq!(vectors(&server.post(&format!("{place}/get"), &coded)), [one, one]);
    for vector in ["AACAPw=", "AACA", "AADAfwAAAAAAAAAA", "AACAPw=="] {
        let bad = json!({ "records": [{ "id": "c", "vector": vector }] });
        let refused = server.ask(&format!("PUT {place}/records"), &bad).refused();
        assert_eq!(refused, (400, "bad_input".to_owned()), "{vector}");
    }
    assert_eq!(server.get(&format!("{place}/count"))["count"], 2);
}

#[test]
fn wrong_requests_are_explained() {
    let env = TestEnv::new();
    let server = of_env(&env);
    let json_kind = [("Content-Type", "application/json")];
    let drawers = "POST /v1/memory/drawers";
    for (request, headers, body, expected) in [
        ("GET /v1/nothing", &[][..], "", (404, "not_found")),
        ("GET /v1", &[], "", (404, "not_found")),
        ("GET /v1/jobs/x", &[], "", (404, "not_found")),
        ("PUT /v1/facts", &[], "", (405, "bad_input")),
        ("GET /v1/memory/search", &[], "", (400, "bad_input")),
        ("GET /v1/facts?entity=a&nothing=1", &[], "", (400, "bad_input")),
        ("GET /v1/facts?entity=a&entity=b", &[], "", (400, "bad_input")),
        ("GET /v1/facts?entity=a&limit=many", &[], "", (400, "bad_input")),
        ("GET /v1/facts?entity=%ff", &[], "", (400, "bad_input")),
        ("GET /v1/memory/drawers/%ff", &[], "", (400, "bad_input")),
        ("GET /v1/memory/search?query=", &[], "", (400, "bad_input")),
        ("GET /v1/memory/search?query=a&limit=0", &[], "", (400, "bad_input")),
        (drawers, &json_kind, "{", (400, "bad_input")),
        (drawers, &json_kind, "[]", (400, "bad_input")),
        (drawers, &json_kind, "", (400, "bad_input")),
        (drawers, &json_kind, r#"{"text":"a","wing":"w","room":1}"#, (400, "bad_input")),
        (drawers, &json_kind, r#"{"text":"a","wing":"w","room":"r","x":1}"#, (400, "bad_input")),
        (drawers, &json_kind, r#"{"text":NaN,"wing":"w","room":"r"}"#, (400, "bad_input")),
        (drawers, &[], "{}", (415, "bad_input")),
        (drawers, &[("Content-Type", "text/plain")], "{}", (415, "bad_input")),
        ("POST /v1/memory/drawers?wing=w", &json_kind, "{}", (400, "bad_input")),
        ("PATCH /v1/memory/drawers/a", &json_kind, r#"{"id":"b"}"#, (400, "bad_input")),
    ] {
        let refused = server.send(request, headers, body).refused();
        assert_eq!((refused.0, refused.1.as_str()), expected, "{request} {body}");
    }
    let allowed = server.ask("PUT /v1/facts", &Value::Null);
    assert_eq!(allowed.header("allow"), Some("post,get,head"), "in any order");
    let long = "x".repeat(256);
    let two = [json_kind[0], ("Idempotency-Key", "a"), ("Idempotency-Key", "b")];
    for headers in [[json_kind[0], ("Idempotency-Key", long.as_str())].as_slice(), &two] {
        let refused = server.send(drawers, headers, r#"{"text":"a","wing":"w","room":"r"}"#);
        assert_eq!(refused.refused(), (400, "bad_input".to_owned()));
    }
    let large = json!({ "text": "x".repeat(5 << 20), "wing": "w", "room": "r" }).to_string();
    assert_eq!(server.send(drawers, &json_kind, &large).refused(), (413, "too_large".to_owned()));
    for path in ["/v1/docs", "/v1/openapi.json", "/v1/status", "/v1/nothing"] {
        let without = server.send(&format!("GET {path}"), &[("Authorization", "")], "");
        assert_eq!(without.refused(), (401, "unauthorized".to_owned()), "{path}");
    }
}

#[test]
fn the_server_reports_about_itself() {
    let env = TestEnv::new();
    let server = of_env(&env);
    assert_eq!(
        server.get("/v1/status"),
        json!({ "ok": true, "version": env!("CARGO_PKG_VERSION"), "stores": [] })
    );
    server.post("/v1/memory/drawers", &json!({ "text": "a", "wing": "w", "room": "r" }));
    let status = server.get("/v1/status");
    let store = &status["stores"][0];
    assert_eq!((&store["drawers"], &store["quarantine"]), (&json!(1), &json!(0)), "{status}");
    assert!(store["collections"][0]["tail"].is_u64() && store["workers"].is_array(), "{status}");
    let report = server.run("/v1/doctor", &json!({ "full": true }));
    assert_eq!(report["ok"], true, "{report}");
    assert!(report["stores"][0]["checks"].as_array().unwrap().len() > 3, "{report}");
    let repaired = server.run("/v1/doctor", &json!({ "repair": true }));
    assert_eq!(repaired["ok"], true, "{repaired}");
    assert_eq!(server.post("/v1/stores/reconnect", &Value::Null)["ok"], true);
    assert_eq!(server.get("/v1/memory/drawers")["total"], 1);
    let page = server.send("GET /v1/docs", &[], "");
    assert_eq!((page.status, page.header("content-type")), (200, Some("text/html; charset=utf-8")));
    assert!(page.header("content-security-policy").unwrap().contains("default-src 'none'"));
    assert_eq!(server.get("/v1/openapi.json")["openapi"], "3.1.0");
    let head = server.send("HEAD /v1/status", &[], "");
    assert_eq!((head.status, head.body.as_str()), (200, ""));
}
