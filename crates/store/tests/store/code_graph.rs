//! The code graph: built from files, linked across them, and removed with them.

use isolith_graph::Datum;
use isolith_protocol::{ChangeGraph, CypherQuery, LinkFiles, NoteGitFacts, RemoveFiles};
use isolith_store::Check;
use isolith_types::{
    Code, Definition, DefinitionKind, FileGraph, Import, Imported, Origin, Reference, ReferenceKind,
};

use crate::common::{TestStore, add_root, file, one, put_files, writer};
use crate::doctor::problems;

/// A Python file that defines functions, each calling what is given with it, by name, from
/// modules that are imported as a whole.
pub(crate) fn python(functions: &[(&str, &[&str])], imports: &[(&str, &str)]) -> FileGraph {
    let definition = |(at, (name, _)): (u32, &(&str, &[&str]))| Definition {
        parent: None,
        kind: DefinitionKind::Function,
        name: (*name).to_owned(),
        qualified: (*name).to_owned(),
        ordinal: 0,
        line: at + 1,
        start_line: at + 1,
        end_line: at + 1,
        signature: Some(format!("def {name}()")),
        exported: true,
        test: false,
        declared: false,
        owner: None,
        value: None,
        bases: Vec::new(),
    };
    let import = |(at, (module, name)): (u32, &(&str, &str))| Import {
        module: (*module).to_owned(),
        what: Imported::Name((*name).to_owned()),
        bound: Some((*name).to_owned()),
        exported: true,
        line: at + 1,
        within: None,
        type_only: false,
    };
    let target = |name: &str| {
        let own = functions.iter().position(|(own, _)| *own == name);
        let other = imports.iter().position(|(_, other)| *other == name);
        match (own, other) {
            (Some(at), _) => Origin::Definition(at as u32),
            (None, Some(at)) => Origin::Import(at as u32),
            (None, None) => Origin::Name(name.to_owned()),
        }
    };
    let calls = (0..).zip(functions).flat_map(|(at, (_, calls))| {
        calls.iter().map(move |name| (at, *name)).collect::<Vec<(u32, &str)>>()
    });
    FileGraph {
        language: "python".to_owned(),
        definitions: (0..).zip(functions).map(definition).collect(),
        imports: (0..).zip(imports).map(import).collect(),
        references: calls
            .map(|(at, name)| Reference {
                within: Some(at),
                kind: ReferenceKind::Call,
                target: target(name),
                line: at + 1,
            })
            .collect(),
        ..FileGraph::default()
    }
}

struct Project {
    store: TestStore,
    root: u64,
}

impl Project {
    fn new() -> Self {
        let mut store = TestStore::empty();
        let root = add_root(&mut store, "/project");
        Self { store, root }
    }

    fn put(&mut self, path: &str, graph: FileGraph) {
        let mut file = file(path, &["text"]);
        file.graph = graph;
        self.store.one(put_files(self.root, &[file], 1.0)).unwrap();
    }

    /// How many files were resolved.
    fn link(&mut self) -> u64 {
        let mut files = 0;
        loop {
            let outcome = self.store.one(LinkFiles { root: self.root }).unwrap();
            files += outcome.files;
            if !outcome.more {
                return files;
            }
        }
    }

    fn rows(&self, text: &str) -> Vec<String> {
        let mut reader = self.store.reader();
        let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
        let answer = reader.snapshot().unwrap().cypher(&query, None).unwrap();
        let shown = |row: Vec<Datum>| {
            row.iter()
                .map(|cell| cell.to_json().to_string().replace('"', ""))
                .collect::<Vec<_>>()
                .join(" ")
        };
        let mut rows: Vec<String> = answer.rows().map(|row| shown(row.unwrap())).collect();
        rows.sort();
        rows
    }

    fn calls(&self) -> Vec<String> {
        self.rows("MATCH (a)-[r:CALLS]->(b) RETURN a.id, b.id, r.certainty")
    }

    fn change(&mut self, text: &str) -> Result<(), isolith_types::Failure> {
        let query = CypherQuery { text: text.to_owned(), ..CypherQuery::default() };
        self.store.one(ChangeGraph { query }).map(|_| ()).map_err(|error| error.to_failure())
    }
}

fn two_files() -> Project {
    let mut code = Project::new();
    code.put("app/main.py", python(&[("main", &["helper"])], &[("app.util", "helper")]));
    code.put("app/util.py", python(&[("helper", &["inner"]), ("inner", &[])], &[]));
    code.put("app/other.py", python(&[("alone", &[])], &[]));
    assert_eq!(code.link(), 3);
    code
}

#[test]
fn references_become_edges_across_files() {
    let code = two_files();
    assert_eq!(
        code.calls(),
        [
            "app/main.py#main app/util.py#helper resolved",
            "app/util.py#helper app/util.py#inner resolved"
        ]
    );
    assert_eq!(
        code.rows("MATCH (p:Project)-[:CONTAINS*]->(n) RETURN labels(n)[0], n.name"),
        [
            "Directory app",
            "File main.py",
            "File other.py",
            "File util.py",
            "Function alone",
            "Function helper",
            "Function inner",
            "Function main"
        ]
    );
    assert_eq!(code.rows("MATCH (n {path: 'app/util.py'}) RETURN n.name").len(), 3);
    assert_eq!(code.rows("MATCH (n {id: 'app/util.py#inner'}) RETURN n.line"), ["2"]);
    assert_eq!(code.rows("MATCH (n:Directory {path: 'app'}) RETURN n.name"), ["app"]);
}

#[test]
fn only_what_depends_on_a_change_is_resolved_again() {
    let mut code = two_files();
    assert_eq!(code.link(), 0);
    // A function's body does not affect other files.
    code.put("app/util.py", python(&[("helper", &[]), ("inner", &[])], &[]));
    assert_eq!(code.link(), 1);
    assert_eq!(code.calls(), ["app/main.py#main app/util.py#helper resolved"]);
    code.put("app/util.py", python(&[("renamed", &[]), ("inner", &[])], &[]));
    assert_eq!(code.link(), 2);
    assert_eq!(code.calls(), Vec::<String>::new());
    code.put("app/util.py", python(&[("helper", &[]), ("inner", &[])], &[]));
    assert_eq!(code.link(), 2);
    assert_eq!(code.calls(), ["app/main.py#main app/util.py#helper resolved"]);
}

#[test]
fn a_change_between_two_batches_is_read_again() {
    changing_between_batches(Project::put);
}

#[test]
fn a_change_by_another_writer_between_two_batches_is_read_again() {
    changing_between_batches(|code, path, graph| {
        let mut file = file(path, &["text"]);
        file.graph = graph;
        let mut other = writer(&code.store.folder).unwrap();
        one(&mut other, put_files(code.root, &[file], 1.0)).unwrap();
    });
}

fn changing_between_batches(put: impl FnOnce(&mut Project, &str, FileGraph)) {
    // More than one batch covers.
    const CALLERS: usize = 2_001;
    let mut code = Project::new();
    code.put("util.py", python(&[("other", &[])], &[]));
    let caller = |at| {
        let mut file = file(&format!("caller{at}.py"), &[]);
        file.graph = python(&[("call", &["helper"])], &[("util", "helper")]);
        file
    };
    let callers: Vec<_> = (0..CALLERS).map(caller).collect();
    code.store.one(put_files(code.root, &callers, 1.0)).unwrap();
    let slice = LinkFiles { root: code.root };
    assert!(code.store.one(slice).unwrap().more);
    put(&mut code, "util.py", python(&[("other", &[]), ("helper", &[])], &[]));
    code.link();
    assert_eq!(code.rows("MATCH ()-[:CALLS]->({name: 'helper'}) RETURN count(*)"), ["2001"]);
}

#[test]
fn removing_a_file_removes_only_its_part_of_the_graph() {
    let mut code = two_files();
    let remove = RemoveFiles { root: code.root, paths: vec!["app/util.py".to_owned()] };
    code.store.one(remove).unwrap();
    code.link();
    assert_eq!(code.calls(), Vec::<String>::new());
    assert_eq!(
        code.rows("MATCH (n) RETURN n.name"),
        ["alone", "app", "main", "main.py", "other.py", "project"]
    );
    let paths = ["app/main.py", "app/other.py"].map(str::to_owned).to_vec();
    code.store.one(RemoveFiles { root: code.root, paths }).unwrap();
    assert_eq!(code.rows("MATCH (n) RETURN n.name"), Vec::<String>::new());
    assert_eq!(code.rows("MATCH ()-[r]->() RETURN r"), Vec::<String>::new());
}

#[test]
fn cypher_cannot_change_nodes_of_code() {
    let mut code = two_files();
    for text in [
        "MATCH (n:Function {name: 'main'}) SET n.name = 'x'",
        "MATCH (n:Function {name: 'main'}) SET n:Mine",
        "MATCH (n:File) DETACH DELETE n",
        "MATCH ()-[r:CALLS]->() DELETE r",
        "MATCH ()-[r:CALLS]->() SET r.certainty = 'sure'",
    ] {
        let failure = code.change(text).unwrap_err();
        assert_eq!(failure.code, Code::BadInput, "{text}");
        assert!(failure.message.contains("code graph"), "{text}: {failure}");
    }
    code.change("MATCH (n:Function {name: 'helper'}) CREATE (:Note {t: 'slow'})-[:ABOUT]->(n)")
        .unwrap();
    // Edited, but with the same id: the user's edge stays.
    code.put("app/util.py", python(&[("first", &[]), ("helper", &[])], &[]));
    code.link();
    let notes = "MATCH (t:Note)-[:ABOUT]->(n) RETURN t.t, n.id";
    assert_eq!(code.rows(notes), ["slow app/util.py#helper"]);
    code.put("app/util.py", python(&[("first", &[])], &[]));
    code.link();
    assert_eq!(code.rows(notes), Vec::<String>::new());
    assert_eq!(code.rows("MATCH (t:Note) RETURN t.t"), ["slow"]);
}

#[test]
fn labels_first_created_by_users_also_find_code() {
    let mut code = Project::new();
    code.change("CREATE (:Mine {language: 'python', line: 1, name: 'mine'})").unwrap();
    // So many nodes that the index is used instead of a scan.
    let names: Vec<String> = (1..=30).map(|at| format!("f{at}")).collect();
    let functions: Vec<(&str, &[&str])> = names.iter().map(|name| (&**name, &[][..])).collect();
    code.put("app/main.py", python(&functions, &[]));
    assert_eq!(code.rows("MATCH (n {language: 'python'}) RETURN count(n)"), ["32"]);
    assert_eq!(code.rows("MATCH (n {line: 1}) RETURN n.name"), ["f1", "mine"]);
    code.change("CREATE (:Mine {language: 'python', name: 'another'})").unwrap();
    assert_eq!(code.rows("MATCH (n {language: 'python'}) RETURN count(n)"), ["33"]);
    for check in Check::ALL {
        assert_eq!(problems(&code.store.folder, check), 0, "{check:?}");
    }
}

#[test]
fn authors_of_files_are_in_the_graph() {
    let mut code = two_files();
    let mut authors_after = |author: &str, at: i64| {
        let facts = vec![("app/main.py".to_owned(), Some(author.to_owned()), at)];
        code.store.one(NoteGitFacts { root: code.root, facts }).unwrap();
        code.rows("MATCH (p:Person)-[:AUTHORED]->(f) RETURN p.name, f.path")
    };
    assert_eq!(authors_after("Ann", 1_000_000_000_000_000), ["Ann app/main.py"]);
    assert_eq!(authors_after("Bob", 1_000_000_000_000_001), ["Bob app/main.py"]);
    assert_eq!(code.rows("MATCH (p:Person) RETURN p.name"), ["Bob"]);
}
