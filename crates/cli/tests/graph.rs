//! Questions about the graph of a small project in three languages, as a user asks them.
#![allow(clippy::unwrap_used, clippy::panic)]

mod agent;
mod project;
mod test_env;

use std::fs;

use agent::Agent;
use project::Project;
use serde_json::{Value, json};

const FILES: [(&str, &str); 10] = [
    (
        "shop/prices.py",
        "def net(cents):\n    return cents\n\n\n\
         def gross(cents):\n    return net(cents) * 119 // 100\n\n\n\
         def _forgotten(cents):\n    return net(cents)\n",
    ),
    (
        "shop/cart.py",
        "from shop.prices import gross\n\n\n\
         class Cart:\n    def __init__(self):\n        self.items = []\n\n    \
         def total(self):\n        return sum(gross(item) for item in self.items)\n",
    ),
    (
        "shop/order.py",
        "from shop.cart import Cart\n\n\n\
         class Order(Cart):\n    def send(self):\n        return self.total()\n",
    ),
    (
        "tests/test_cart.py",
        "from shop.cart import Cart\n\n\n\
         def test_total():\n    assert Cart().total() == 0\n",
    ),
    ("ring/first.py", "from ring import second\n\n\ndef one():\n    return second.two()\n"),
    ("ring/second.py", "from ring import first\n\n\ndef two():\n    return first.one()\n"),
    ("ring/__init__.py", ""),
    (
        "tool/src/lib.rs",
        "pub fn start() -> u32 {\n    middle()\n}\n\n\
         fn middle() -> u32 {\n    end()\n}\n\n\
         fn end() -> u32 {\n    1\n}\n\n\
         fn lonely() -> u32 {\n    2\n}\n",
    ),
    ("web/list.ts", "export function net(rows: number[]): number {\n  return rows.length;\n}\n"),
    (
        "web/page.ts",
        "import { net } from './list';\n\n\
         export function show(): number {\n  return net([1, 2]);\n}\n\n\
         function hidden(): void {}\n",
    ),
];

fn project() -> Project {
    let project = Project::empty();
    for (path, text) in FILES {
        project.write(path, text);
    }
    project.index(&[]);
    project
}

fn ask(project: &Project, arguments: &[&str]) -> Value {
    project.json(&[&["graph"], arguments].concat())
}

/// Ids in a list of an answer, with the steps that lead there.
fn reached(answer: &Value, name: &str) -> Vec<(String, u64)> {
    let list = answer[name].as_array().unwrap();
    list.iter()
        .map(|it| (it["id"].as_str().unwrap().to_owned(), it["depth"].as_u64().unwrap()))
        .collect()
}

fn ids(list: &Value) -> Vec<&str> {
    list.as_array().unwrap().iter().map(|it| it["id"].as_str().unwrap()).collect()
}

fn at(id: &str, depth: u64) -> (String, u64) {
    (id.to_owned(), depth)
}

#[test]
fn callers_and_callees_are_followed_as_far_as_asked() {
    let project = project();
    let answer = ask(&project, &["callers", "gross"]);
    assert_eq!(reached(&answer, "callers"), [at("shop/cart.py#Cart.total", 1)]);
    let caller = &answer["callers"][0];
    let shape = json!([
        caller["name"],
        caller["qualified_name"],
        caller["path"],
        caller["line"],
        caller["certainty"],
        caller["type"],
        caller["via"],
        caller["via_line"],
    ]);
    let expected = json!([
        "total",
        "Cart.total",
        "shop/cart.py",
        8,
        "resolved",
        "CALLS",
        "shop/prices.py#gross",
        9,
    ]);
    assert_eq!(shape, expected);
    let symbol = &answer["symbol"];
    assert_eq!(symbol["id"], "shop/prices.py#gross");
    assert_eq!((&symbol["line"], &symbol["kind"]), (&json!(5), &json!("function")));
    assert_eq!((&answer["total"], &answer["more"]), (&json!(1), &json!(false)));

    let answer = ask(&project, &["callees", "tool/src/lib.rs:2", "--depth", "3"]);
    assert_eq!(answer["symbol"]["id"], "tool/src/lib.rs#start");
    let expected = [at("tool/src/lib.rs#middle", 1), at("tool/src/lib.rs#end", 2)];
    assert_eq!(reached(&answer, "callees"), expected);
    let answer = ask(&project, &["callers", "end", "--depth", "9", "--limit", "1"]);
    assert_eq!(reached(&answer, "callers"), [at("tool/src/lib.rs#middle", 1)]);
    assert_eq!((&answer["total"], &answer["more"]), (&json!(2), &json!(true)));

    let text = project.run(&["graph", "callers", "end", "--depth", "2"]).stdout;
    assert_eq!(
        text,
        "tool/src/lib.rs:5  middle  (calls end at line 6)\n\
         tool/src/lib.rs:1  start  (calls middle at line 2, depth 2)\n"
    );
    let text = project.run(&["graph", "callers", "start"]).stdout;
    assert_eq!(text, "no callers found (calls inside macros are not seen)\n");
}

#[test]
fn a_type_or_a_file_stands_for_its_members() {
    let project = project();
    let answer = ask(&project, &["callers", "Cart"]);
    let callers = ids(&answer["callers"]);
    assert_eq!(callers, ["shop/order.py#Order.send", "tests/test_cart.py#test_total"]);
    let answer = ask(&project, &["callees", "cart.py"]);
    assert_eq!(ids(&answer["callees"]), ["shop/prices.py#gross"]);
}

#[test]
fn likely_calls_are_shown_on_request_and_marked() {
    let project = project();
    project.write("shop/late.py", "def later(thing):\n    return thing.total()\n");
    project.index(&[]);
    let sure = ask(&project, &["callers", "Cart.total"]);
    assert!(!ids(&sure["callers"]).contains(&"shop/late.py#later"));
    assert_eq!(sure["likely"], 1);
    let text = project.run(&["graph", "callers", "Cart.total"]).stdout;
    assert!(text.ends_with("1 more likely caller: use --candidates to show it\n"), "{text}");
    let all = ask(&project, &["callers", "Cart.total", "--candidates"]);
    let callers = all["callers"].as_array().unwrap();
    let later = callers.iter().find(|it| it["id"] == "shop/late.py#later").unwrap();
    assert_eq!(later["certainty"], "candidate");
    let text = project.run(&["graph", "callers", "Cart.total", "--candidates"]).stdout;
    assert!(text.contains("later  (calls Cart.total at line 2, candidate)"), "{text}");
}

#[test]
fn paths_between_symbols_are_found() {
    let project = project();
    let answer = ask(&project, &["path", "Order.send", "prices.py#net"]);
    let expected = [
        "shop/order.py#Order.send",
        "shop/cart.py#Cart.total",
        "shop/prices.py#gross",
        "shop/prices.py#net",
    ];
    assert_eq!(ids(&answer["path"]), expected);
    assert_eq!(answer["path"][3]["type"], "CALLS");
    assert_eq!(answer["path"][3]["via_line"], 6);
    let answer = ask(&project, &["path", "prices.py#net", "Order.send"]);
    assert_eq!(answer["path"], Value::Null);
    let ran = project.run(&["graph", "path", "prices.py#net", "Order.send"]);
    assert_eq!(ran.status, Some(0));
    assert_eq!(ran.stdout, "no path from shop/prices.py#net to shop/order.py#Order.send\n");
}

#[test]
fn impact_lists_tests_separately() {
    let project = project();
    let answer = ask(&project, &["impact", "gross"]);
    let code = ids(&answer["impact"]);
    assert!(code.contains(&"shop/cart.py#Cart.total"), "{code:?}");
    assert!(code.contains(&"shop/order.py#Order.send"), "{code:?}");
    assert!(!code.iter().any(|id| id.starts_with("web/")), "{code:?}");
    assert!(!code.iter().any(|id| id.starts_with("tests/")), "{code:?}");
    let tests = ids(&answer["tests"]);
    assert!(tests.contains(&"tests/test_cart.py#test_total"), "{tests:?}");
    let near = ask(&project, &["impact", "gross", "--depth", "1"]);
    assert!(!ids(&near["impact"]).contains(&"shop/order.py#Order.send"));

    // A file: everything that imports it, directly or indirectly.
    let answer = ask(&project, &["impact", "shop/prices.py"]);
    let code = ids(&answer["impact"]);
    assert!(code.contains(&"shop/cart.py") && code.contains(&"shop/order.py"), "{code:?}");
    assert!(ids(&answer["tests"]).contains(&"tests/test_cart.py"));
    let text = project.run(&["graph", "impact", "shop/prices.py"]).stdout;
    assert!(text.contains("shop/cart.py:1  (imports "), "{text}");
    assert!(text.contains("\ntests:\ntests/test_cart.py:"), "{text}");
    let text = project.run(&["graph", "impact", "lonely"]).stdout;
    assert_eq!(text, "no dependents found (calls inside macros are not seen)\n");
}

#[test]
fn cycles_unused_code_hotspots_and_counts_are_found() {
    let project = project();
    let answer = ask(&project, &["cycles"]);
    assert_eq!(answer["total"], 1);
    assert_eq!(answer["cycles"][0]["files"], json!(["ring/first.py", "ring/second.py"]));
    assert_eq!(
        answer["cycles"][0]["ring"],
        json!([
            { "from": "ring/first.py", "to": "ring/second.py", "line": 1 },
            { "from": "ring/second.py", "to": "ring/first.py", "line": 1 },
        ])
    );
    let answer = ask(&project, &["unused"]);
    let expected = ["shop/prices.py#_forgotten", "tool/src/lib.rs#lonely", "web/page.ts#hidden"];
    assert_eq!(ids(&answer["unused"]), expected);
    let exported = ask(&project, &["unused", "--exported"]);
    assert!(ids(&exported["unused"]).contains(&"web/page.ts#show"));

    let answer = ask(&project, &["hotspots", "--limit", "1"]);
    assert_eq!(answer["by"], "callers");
    let spots = answer["hotspots"].as_array().unwrap();
    assert_eq!(spots.len(), 1);
    assert_eq!(spots[0]["count"], 2);
    let text = project.run(&["graph", "hotspots", "--by", "links", "--limit", "2"]).stdout;
    assert!(text.starts_with("COUNT  WHERE"), "{text}");

    let size = ask(&project, &["stats"]);
    let count = |list: &str, key: &str, name: &str| {
        let found = size[list].as_array().unwrap().iter().find(|it| it[key] == name);
        found.unwrap_or_else(|| panic!("{name}: {size}"))["count"].as_u64().unwrap()
    };
    assert_eq!(count("labels", "label", "File"), FILES.len() as u64);
    assert_eq!(count("labels", "label", "Class"), 2);
    assert_eq!(count("types", "type", "INHERITS"), 1);
    assert!(size["edges"].as_u64().unwrap() > size["nodes"].as_u64().unwrap());
}

#[test]
fn ambiguous_and_unknown_names_are_refused_with_a_hint() {
    let project = project();
    let error = project.fails(&["graph", "callers", "net"], 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("ambiguous"), "{error}");
    let hint = error["hint"].as_str().unwrap();
    assert!(hint.contains("shop/prices.py#net") && hint.contains("web/list.ts#net"), "{hint}");
    let error = project.fails(&["graph", "callers", "gros"], 4, "not_found");
    assert!(error["hint"].as_str().unwrap().contains("gross"), "{error}");
    project.fails(&["graph", "impact", "shop/nowhere.py"], 4, "not_found");
    project.fails(&["graph", "callers", "gross", "--depth", "0"], 2, "usage");
    // As people write paths.
    let file = project.folder().join("web/list.ts");
    let id = format!("{}#net", file.display());
    assert_eq!(ask(&project, &["callers", &id])["symbol"]["id"], "web/list.ts#net");
    assert_eq!(ask(&project, &["callers", "./web/list.ts:2"])["symbol"]["id"], "web/list.ts#net");
}

#[test]
fn answers_follow_the_files() {
    let project = project();
    let callers = |symbol: &str| {
        let answer = ask(&project, &["callers", symbol]);
        ids(&answer["callers"]).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(callers("web/list.ts#net"), ["web/page.ts#show"]);
    project.write(
        "web/page.ts",
        "import { net } from './list';\n\n\
         export function show(): number {\n  return 1;\n}\n\n\
         export function count(): number {\n  return net([]);\n}\n",
    );
    project.index(&[]);
    assert_eq!(callers("web/list.ts#net"), ["web/page.ts#count"]);
    assert!(!ids(&ask(&project, &["unused"])["unused"]).contains(&"web/page.ts#hidden"));

    let before = ask(&project, &["callers", "Cart"]);
    fs::remove_file(project.folder().join("ring/second.py")).unwrap();
    fs::remove_file(project.folder().join("web/page.ts")).unwrap();
    project.index(&[]);
    assert_eq!(ask(&project, &["cycles"])["total"], 0);
    project.fails(&["graph", "callers", "show"], 4, "not_found");
    assert_eq!(callers("web/list.ts#net"), Vec::<String>::new());
    assert_eq!(ask(&project, &["callers", "Cart"]), before);
    let size = ask(&project, &["stats"]);
    assert_eq!(
        size["labels"].as_array().unwrap().iter().find(|it| it["label"] == "File").unwrap()["count"],
        FILES.len() as u64 - 2
    );
}

#[test]
fn use_within_the_same_file_counts() {
    let project = Project::empty();
    project.write("a.py", "def _hook():\n    pass\n\n\ndef _idle():\n    pass\n\n\nON = '_hook'\n");
    project.index(&[]);
    assert_eq!(ids(&ask(&project, &["unused"])["unused"]), ["a.py#_idle"]);
}

#[test]
fn symbols_of_two_roots_are_distinguished_by_folder() {
    let project = Project::empty();
    for folder in ["one/src", "two/src"] {
        project.write(
            &format!("{folder}/a.py"),
            "def inner():\n    pass\n\n\ndef outer():\n    inner()\n",
        );
        project.json(&["index", folder, "--store", "store"]);
    }
    let callers = ["graph", "callers", "inner", "--store", "store"];
    let error = project.fails(&callers, 3, "bad_input");
    let second = project.folder().join("two/src/a.py#inner").display().to_string();
    assert!(error["hint"].as_str().unwrap().contains(&second), "{error}");
    let answer = project.json(&["graph", "callers", &second, "--store", "store"]);
    assert_eq!(ids(&answer["callers"]), ["a.py#outer"]);
}

#[test]
fn type_only_imports_make_no_cycle() {
    let project = Project::empty();
    project.write("shape.ts", "import type { Page } from './page';\nexport class Shape {}\n");
    project.write("page.ts", "import { Shape } from './shape';\nexport class Page {}\n");
    project.index(&[]);
    assert_eq!(ask(&project, &["cycles"])["total"], 0);
    let imports = "MATCH (a:File)-[r:IMPORTS]->(b:File) RETURN a.path, r.type_only ORDER BY a.path";
    let answer = ask(&project, &["query", imports]);
    assert_eq!(answer["rows"], json!([["page.ts", null], ["shape.ts", true]]));
    project.write("shape.ts", "import { Page } from './page';\nexport class Shape {}\n");
    project.index(&[]);
    assert_eq!(ask(&project, &["cycles"])["total"], 1);
}

#[test]
fn facts_are_joined_with_the_code() {
    let project = project();
    let message = |fact: &[&str]| project.json(&[&["fact", "add", "--project"], fact].concat());
    message(&["Ann", "owns", "shop/prices.py", "--from", "2024-01-01", "--to", "2025-01-01"]);
    let bob = message(&["Bob", "owns", "shop/prices.py", "--from", "2025-01-01"]);
    message(&["gross", "CALLS", "the tax office", "--agent", "codex"]);
    let owners = "MATCH (e:Entity)-[r:owns]->(f:Entity), (file:File {path: f.name}) \
                  -[:CONTAINS]->(d:Function {name: $name}) RETURN e.name, r.valid_to, d.line \
                  ORDER BY r.valid_from";
    let answer = ask(&project, &["query", owners, "--param-str", "name=gross"]);
    assert_eq!(answer["rows"], json!([["Ann", "2025-01-01", 5], ["Bob", null, 5]]));
    // Another fact, another answer; and no question about code mistakes it for code.
    let id = bob["id"].as_str().unwrap();
    project.json(&["fact", "invalidate", id, "--at", "2026-01-01", "--project"]);
    let answer = ask(&project, &["query", owners, "--param-str", "name=gross"]);
    assert_eq!(answer["rows"][1], json!(["Bob", "2026-01-01", 5]));
    let answer = ask(&project, &["callers", "gross", "--depth", "9"]);
    assert_eq!(answer["symbol"]["id"], "shop/prices.py#gross");
    assert!(ids(&answer["callers"]).iter().all(|id| id.contains(".py#")), "{answer}");
    let set = ["graph", "query", "MATCH (e:Entity) SET e.name = 'x'"];
    let error = project.fails(&set, 3, "bad_input");
    assert!(error["hint"].as_str().unwrap().contains("isolith fact"), "{error}");
    assert_eq!(project.json(&["doctor"])["ok"], true);

    // The same under a store that is named.
    let store = ["--store", "other"];
    project.json(&[&["index", "shop"][..], &store].concat());
    project.json(&[&["fact", "add", "Eve", "reads", "cart.py"][..], &store].concat());
    let read = "MATCH (e:Entity)-[:reads]->(f), (c:File {path: f.name}) RETURN e.name, c.language";
    let answer = project.json(&[&["graph", "query", read][..], &store].concat());
    assert_eq!(answer["rows"], json!([["Eve", "python"]]));
}

#[test]
fn agents_get_the_same_answers() {
    let project = project();
    let mut agent = Agent::greeted(project.command(&["mcp"]));
    let answer = agent.call("graph_neighbours", json!({ "symbol": "gross" }));
    assert_eq!(answer["symbol"], "shop/prices.py#gross");
    assert_eq!(
        answer["found"],
        json!([{
            "id": "shop/cart.py#Cart.total", "path": "shop/cart.py", "line": 8, "type": "CALLS",
            "certainty": "resolved", "via": "shop/prices.py#gross", "via_line": 9, "depth": 1,
        }])
    );
    let callees = json!({ "symbol": "start", "direction": "callees", "depth": 5 });
    let answer = agent.call("graph_neighbours", callees);
    assert_eq!(ids(&answer["found"]), ["tool/src/lib.rs#middle", "tool/src/lib.rs#end"]);
    let answer = agent.call("graph_path", json!({ "from": "Order.send", "to": "gross" }));
    assert_eq!(answer["path"].as_array().unwrap().len(), 3);
    let answer = agent.call("graph_path", json!({ "from": "gross", "to": "Order.send" }));
    assert_eq!(answer["path"], json!([]));
    let answer = agent.call("graph_impact", json!({ "symbol": "gross", "limit": 1 }));
    assert_eq!(ids(&answer["impact"]).len(), 1);
    assert_eq!(answer["more"], true);
    assert!(ids(&answer["tests"]).iter().all(|id| id.starts_with("tests/")));
    for (tool, arguments, code) in [
        ("graph_neighbours", json!({ "symbol": "net" }), "bad_input"),
        ("graph_neighbours", json!({ "symbol": "gross", "direction": "up" }), "bad_input"),
        ("graph_neighbours", json!({ "symbol": "gross", "depth": 0 }), "bad_input"),
        ("graph_impact", json!({ "symbol": "nowhere" }), "not_found"),
    ] {
        assert_eq!(agent.refused(tool, arguments.clone())["code"], code, "{arguments}");
    }
    assert_eq!(agent.leave(), Some(0));
}

#[test]
fn a_missing_index_is_an_error() {
    let project = Project::empty();
    project.index(&[]);
    for question in [&["callers", "x"][..], &["cycles"], &["unused"], &["hotspots"]] {
        project.fails(&[&["graph"], question].concat(), 4, "not_found");
    }
    let size = ask(&project, &["stats"]);
    assert_eq!(size["edges"], 0);
}
