//! Repositories and linked worktrees as roots of their own, with real git.
#![allow(clippy::unwrap_used, clippy::panic)]

mod checkout;
mod project;
mod test_env;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use checkout::Checkout;
use project::{adds_up, counts};
use serde_json::{Value, json};
use test_env::Running;

/// What the index has of a root: paths, hashes, chunks and vectors.
fn content(it: &Checkout, root: &Path) -> Vec<(String, Vec<u8>, String, Vec<u8>)> {
    let truth = it.project.truth();
    let stored = root.strip_prefix(it.main()).unwrap_or(root);
    let stored = if stored == Path::new("") { Path::new(".") } else { stored };
    let mut rows = truth
        .prepare(
            "SELECT file.path, file.hash, record.document || chunk.symbols || chunk.start_line, \
             vector.data FROM root JOIN file ON file.root = root.id \
             JOIN chunk ON chunk.file = file.id JOIN record ON record.row = chunk.row \
             JOIN vector ON vector.row = chunk.row WHERE root.path = ?1 \
             ORDER BY file.path, chunk.start_line",
        )
        .unwrap();
    let rows = rows
        .query_map([stored.to_str().unwrap()], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
        })
        .unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn a_worktree_is_a_root_of_its_own() {
    for place in [".claude/worktrees/feat", "wt/x", "visible", "../beside"] {
        let it = Checkout::new();
        let main = it.main();
        it.index(&main);
        let feat = it.worktree(&main.join(place));
        let error = it.fails(&feat, &["search", "parse header"], 4, "not_found");
        let hint = error["hint"].as_str().unwrap();
        assert!(hint.contains(&format!("isolith index {}", feat.display())), "{place}: {hint}");

        let report = it.index(&feat);
        assert_eq!(report["files"]["seen"], 6, "{place}");
        assert_eq!((&report["reused"], &report["files"]["indexed"]), (&json!(5), &json!(6)));
        assert_eq!(it.roots(&feat).len(), 2, "{place}");
        let own = vec![(feat.clone(), "tools/parse.py".to_owned())];
        assert_eq!(it.found(&feat, &["--symbol", "parse_envelope"]), own, "{place}");
        assert_eq!(it.found(&feat.join("src"), &["--symbol", "parse_envelope"]), own);
        assert_eq!(it.found(&feat, &["--symbol", "parse_header"]), [], "{place}");
        let mains = vec![(main.clone(), "tools/parse.py".to_owned())];
        assert_eq!(it.found(&main, &["--symbol", "parse_header"]), mains, "{place}");
        assert_eq!(it.found(&main, &["--symbol", "parse_envelope"]), [], "{place}");
        let both = it.found(&feat, &["--symbol", "RetryPolicy", "--all-roots"]);
        assert_eq!(both.len(), 2, "{place}: {both:?}");
        let named = ["--symbol", "parse_header", "--root", main.to_str().unwrap()];
        assert_eq!(it.found(&feat, &named), mains, "{place}");

        // The main checkout does not take the worktree for its own.
        let again = it.index(&main);
        assert_eq!(counts(&again), json!([6, 0, 6, 0, 0]), "{place}");
        assert_eq!(it.index(&feat)["files"]["unchanged"], 6, "{place}");
    }
}

#[test]
fn a_worktree_takes_over_what_the_main_checkout_has() {
    let it = Checkout::new();
    it.index(&it.main());
    let feat = it.worktree(&it.main().join("wt/x"));
    it.index(&feat);
    let copied = content(&it, &feat);
    assert!(copied.iter().any(|row| row.0 == "src/retry.rs"));
    let same = |rows: Vec<(String, Vec<u8>, String, Vec<u8>)>| -> Vec<_> {
        rows.into_iter().filter(|row| row.0 != "tools/parse.py").collect()
    };
    assert_eq!(same(copied.clone()), same(content(&it, &it.main())));
    // Everything parsed again gives the same.
    let rebuilt = it.json(&feat, &["index", "--rebuild"]);
    assert_eq!((&rebuilt["reused"], &rebuilt["files"]["indexed"]), (&json!(0), &json!(6)));
    assert_eq!(content(&it, &feat), copied);

    // The graphs are separate.
    let callers = |folder: &Path, name: &str| it.json(folder, &["graph", "callers", name]);
    assert_eq!(callers(&feat, "parse_envelope")["total"], 1);
    assert_eq!(callers(&it.main(), "parse_header")["total"], 1);
    assert_eq!(callers(&feat, "RetryPolicy")["symbol"]["path"], "src/retry.rs");
    it.fails(&feat, &["graph", "callers", "parse_header"], 4, "not_found");
    for question in ["hotspots", "unused"] {
        let all = it.json(&feat, &["graph", question]).to_string();
        assert!(!all.contains("parse_header"), "{question}: {all}");
    }

    // A merge in the worktree brings files that another root has.
    let file = |folder: &Path, number: usize| folder.join(format!("src/new{number}.rs"));
    for number in 0..9 {
        fs::write(file(&it.main(), number), project::body(number)).unwrap();
        fs::write(file(&feat, number), "// not yet\n").unwrap();
    }
    it.index(&feat);
    it.index(&it.main());
    (0..9).for_each(|number| fs::write(file(&feat, number), project::body(number)).unwrap());
    let merged = it.index(&feat);
    assert_eq!((&merged["reused"], &merged["files"]["indexed"]), (&json!(9), &json!(9)));
}

#[test]
fn the_index_of_a_removed_worktree_is_dropped() {
    for place in ["wt/x", "../beside"] {
        let it = Checkout::new();
        let main = it.main();
        it.index(&main);
        let feat = it.worktree(&main.join(place));
        it.index(&feat);

        // A folder that is only away stays in the index.
        let away = it.beside("unmounted");
        fs::rename(&feat, &away).unwrap();
        it.index(&main);
        it.json(&main, &["doctor"]);
        assert_eq!(it.roots(&main).len(), 2, "{place}");
        fs::rename(&away, &feat).unwrap();

        it.remove_worktree(&feat);
        let warnings = it.json(&main, &["status"])["warnings"].to_string();
        assert!(warnings.contains("drops its index"), "{warnings}");
        let report = it.index(&main);
        let problem = &report["problems"][0];
        assert_eq!(problem["code"], "worktree_removed", "{report}");
        assert_eq!(problem["path"], feat.to_str().unwrap());
        assert_eq!(it.roots(&main), vec![main.clone()]);
        assert_eq!(it.found(&main, &["--symbol", "RetryPolicy", "--all-roots"]).len(), 1);
        assert_eq!(it.json(&main, &["doctor", "--full"])["ok"], true);
    }
}

#[test]
fn doctor_drops_the_index_of_a_removed_worktree() {
    let it = Checkout::new();
    it.index(&it.main());
    let feat = it.worktree(&it.main().join("wt/x"));
    it.index(&feat);
    it.remove_worktree(&feat);
    let repaired = it.json(&it.main(), &["doctor"])["repaired"].to_string();
    assert!(repaired.contains(feat.to_str().unwrap()), "{repaired}");
    assert_eq!(it.roots(&it.main()), [it.main()]);
}

#[test]
fn a_watcher_ends_with_its_worktree() {
    let it = Checkout::new();
    it.index(&it.main());
    let feat = it.worktree(&it.main().join("wt/x"));
    let mut watch = Running::start(it.command(&feat, &["watch"]));
    assert!(watch.prints("watching for changes"));
    fs::write(feat.join("src/added.rs"), "pub fn added() {}\n").unwrap();
    assert!(watch.prints("1 indexed"));
    assert_eq!(it.found(&feat, &["--symbol", "added"]).len(), 1);
    it.remove_worktree(&feat);
    assert_eq!(watch.finish().status, Some(4));
    assert_eq!(it.roots(&it.main()), [it.main()]);
}

#[test]
fn a_moved_worktree_is_indexed_again_without_parsing() {
    let it = Checkout::new();
    it.index(&it.main());
    let feat = it.worktree(&it.main().join("wt/x"));
    it.index(&feat);
    let moved = it.main().join("wt/y");
    let paths = [feat.to_str().unwrap(), moved.to_str().unwrap()];
    it.git(&it.main(), &["worktree", "move", paths[0], paths[1]]);
    let report = it.index(&moved);
    assert_eq!((&report["reused"], &report["files"]["indexed"]), (&json!(6), &json!(6)));
    assert_eq!(report["problems"][0]["code"], "worktree_removed");
    assert_eq!(it.roots(&moved), [it.main(), moved]);
}

#[test]
fn nested_repositories_are_left_out_and_submodules_are_not() {
    let it = Checkout::new();
    let main = it.main();
    let library = it.beside("library");
    fs::create_dir(&library).unwrap();
    fs::write(library.join("lib.rs"), "pub fn from_the_library() {}\n").unwrap();
    it.git(&library, &["init", "-q"]);
    it.git(&library, &["add", "."]);
    it.git(&library, &["commit", "-q", "-m", "one"]);
    it.git(&main, &["submodule", "--quiet", "add", "../library", "vendor/library"]);
    it.git(&main, &["commit", "-q", "-m", "two"]);
    it.git(&main, &["clone", "-q", "../library", "cloned"]);
    let report = it.index(&main);
    assert_eq!(report["files"]["seen"], 7, "{report}");
    assert_eq!(
        report["problems"],
        json!([{ "path": "cloned", "code": "repository",
                 "message": "it is a repository of its own; index it separately" }])
    );
    let files = it.found(&main, &["--symbol", "from_the_library"]);
    assert_eq!(files, [(main.clone(), "vendor/library/lib.rs".to_owned())]);
    // From within the submodule, too.
    assert_eq!(it.found(&main.join("vendor/library"), &["--symbol", "from_the_library"]), files);
    assert_eq!(counts(&it.index(&main.join("vendor/library"))), json!([1, 0, 1, 0, 0]));

    it.index(&main.join("cloned"));
    assert_eq!(it.roots(&main).len(), 2);
    assert_eq!(it.found(&main.join("cloned"), &["--symbol", "from_the_library"]).len(), 1);

    // A worktree has submodules of its own.
    let feat = it.worktree(&main.join("wt/x"));
    it.git(&feat, &["submodule", "--quiet", "update", "--init"]);
    let report = it.index(&feat);
    assert_eq!((&report["files"]["seen"], &report["reused"]), (&json!(7), &json!(6)), "{report}");
}

#[test]
fn a_git_file_that_nobody_confirms_gains_nothing() {
    let it = Checkout::new();
    let main = it.main();
    it.index(&main);
    let real = it.worktree(&it.beside("real"));
    let claim = fs::read_to_string(real.join(".git")).unwrap();
    let make = |name: &str| {
        let folder = it.beside(name);
        fs::create_dir(&folder).unwrap();
        fs::create_dir(folder.join("src")).unwrap();
        fs::write(folder.join("src/retry.rs"), "pub fn hostile() {}\n").unwrap();
        folder
    };
    let copy = make("copy");
    fs::write(copy.join(".git"), &claim).unwrap();
    let linked = make("linked");
    symlink(real.join(".git"), linked.join(".git")).unwrap();
    let module = make("module");
    let pointer = main.join(".git/modules/x");
    fs::write(module.join(".git"), format!("gitdir: {}\n", pointer.display())).unwrap();
    let main_itself = make("main-itself");
    let pointer = main.join(".git");
    fs::write(main_itself.join(".git"), format!("gitdir: {}\n", pointer.display())).unwrap();
    let authors = |folder: &Path| {
        let query = "MATCH (p:Person) RETURN DISTINCT p.name";
        it.json(folder, &["graph", "query", query])["rows"].clone()
    };
    for folder in [copy, linked, module, main_itself] {
        let name = folder.display();
        // It sees neither the store nor the code of the repository that it names.
        it.fails(&folder, &["search", "retry"], 4, "no_store");
        it.index(&folder);
        assert!(folder.join(".isolith").is_dir(), "{name}");
        assert_eq!(it.roots(&folder), vec![folder.clone()], "{name}");
        assert_eq!(it.found(&folder, &["--symbol", "RetryPolicy"]), [], "{name}");
        assert_eq!(authors(&folder), json!([]), "{name}");
    }
    assert_eq!(it.roots(&main), [main]);
    it.index(&real);
    assert_eq!(authors(&real), json!([["a"]]));
}

#[test]
fn a_named_folder_is_indexed_even_if_it_is_hidden_or_ignored() {
    let it = Checkout::new();
    let main = it.main();
    it.project.write(".gitignore", "build/\n*.gen.rs\n");
    it.project.write("build/out.rs", "pub fn built_by_a_machine() {}\n");
    it.project.write("build/x.gen.rs", "pub fn generated() {}\n");
    it.project.write(".config/tool/run.py", "def hidden_tool(): pass\n");
    it.project.write("sealed/.gitignore", "*\n");
    it.project.write("sealed/in.rs", "pub fn sealed_in() {}\n");
    it.project.write("sealed/deep/in.rs", "pub fn sealed_deep() {}\n");
    it.index(&main);
    for (folder, name, files) in [
        ("build", "built_by_a_machine", 1),
        (".config/tool", "hidden_tool", 1),
        ("sealed/deep", "sealed_deep", 1),
    ] {
        let report = it.json(&main, &["index", folder]);
        assert_eq!(report["files"]["seen"], files, "{folder}: {report}");
        let root = main.join(folder);
        assert_eq!(it.found(&root, &["--symbol", name]).len(), 1, "{folder}");
        assert_eq!(it.found(&main, &["--symbol", name]), [], "{folder}");
        assert_eq!(it.json(&main, &["index", folder])["files"]["unchanged"], files, "{folder}");
    }
    it.fails(&main, &["index", "sealed/in.rs"], 3, "bad_input");
    it.fails(&main, &["index", ".isolith"], 3, "forbidden_path");
    // Once the rule is gone, the folder still belongs to one root.
    it.project.write(".gitignore", "*.gen.rs\n");
    it.index(&main);
    assert_eq!(it.found(&main, &["--symbol", "built_by_a_machine", "--all-roots"]).len(), 1);
}

#[test]
fn paths_are_relative_to_the_working_folder_if_they_begin_with_a_dot_or_a_slash() {
    let it = Checkout::new();
    let main = it.main();
    it.project.write("app/[id]/page.ts", "export function pageOfRetries() {}\n");
    it.project.write("app/i/page.ts", "export function otherPageOfRetries() {}\n");
    it.index(&main);
    let paths = |folder: &str, pattern: &str| -> Vec<String> {
        let found = it.found(&main.join(folder), &["retry backoff parse", "--path", pattern]);
        let mut paths: Vec<String> = found.into_iter().map(|(_, path)| path).collect();
        paths.sort();
        paths
    };
    assert!(paths("", ".").len() >= 5);
    assert_eq!(paths("src", "."), ["src/retry.rs"]);
    assert_eq!(paths("src", "./"), ["src/retry.rs"]);
    assert_eq!(paths("src", "../tools"), ["tools/parse.py"]);
    assert_eq!(paths("src", "tools"), ["tools/parse.py"]);
    assert_eq!(paths("src", "./*.py"), Vec::<String>::new());
    assert_eq!(paths("app/[id]", "."), ["app/[id]/page.ts"]);
    let absolute = |below: &str| main.join(below).display().to_string();
    assert_eq!(paths("src", &absolute("tools")), ["tools/parse.py"]);
    assert_eq!(paths("", &absolute("**/*.py")), ["tools/parse.py"]);
    assert!(paths("src", &absolute("")).len() >= 5);
    it.fails(&main, &["search", "x", "--path", "/elsewhere"], 4, "not_found");
    let feat = it.worktree(&main.join("wt/x"));
    it.index(&feat);
    let named = ["--symbol", "RetryPolicy", "--path", feat.to_str().unwrap()];
    assert_eq!(it.found(&main, &named), [(feat, "src/retry.rs".to_owned())]);
}

#[test]
fn a_search_without_a_query_lists_the_definitions_of_a_symbol() {
    let it = Checkout::new();
    it.index(&it.main());
    let found = it.json(&it.main(), &["search", "--symbol", "RetryPolicy"]);
    assert_eq!(found["hits"][0]["symbol"], "RetryPolicy");
    it.fails(&it.main(), &["search"], 2, "usage");
    it.fails(&it.main(), &["search", "--symbol", ""], 3, "bad_input");
}

#[test]
fn the_store_of_a_subfolder_is_merged_into_the_one_above() {
    let it = Checkout::new();
    let (main, src) = (it.main(), it.main().join("src"));
    it.index(&src);
    let before = it.json(&src, &["search", "retry"]);
    assert_eq!(before["notice"], Value::Null);
    assert_eq!(before["store"], src.join(".isolith").to_str().unwrap());
    it.fails(&main, &["index", "--merge", "src"], 4, "no_store");
    it.json(&main, &["index"]);

    let found = it.json(&src, &["search", "retry"]);
    assert_eq!(found["store"], src.join(".isolith").to_str().unwrap());
    let command = format!("isolith index --merge {}", src.display());
    assert!(found["notice"].as_str().unwrap().contains(&command), "{}", found["notice"]);
    let shown = it.run(&src, &["search", "retry"]);
    assert!(shown.stderr.contains(&command), "{}", shown.stderr);
    assert_eq!(it.json(&main, &["search", "retry"])["notice"], Value::Null);

    it.json(&src, &["memory", "add", "kept", "--project", "--wing", "w", "--room", "r"]);
    let error = it.fails(&main, &["index", "--merge", "src"], 3, "bad_input");
    assert!(error["message"].as_str().unwrap().contains("1 memory drawer"), "{error}");
    let id = it.json(&src, &["memory", "list", "--project"])["drawers"][0]["id"].clone();
    it.json(&src, &["memory", "delete", id.as_str().unwrap(), "--project"]);

    let report = it.json(&main, &["index", "--merge", "src"]);
    adds_up(&report);
    assert!(!src.join(".isolith").exists());
    let aside =
        fs::read_dir(&src).unwrap().map(|it| it.unwrap().file_name().into_string().unwrap());
    assert_eq!(aside.filter(|name| name.starts_with(".isolith.old-")).count(), 1);
    let found = it.json(&src, &["search", "retry"]);
    assert_eq!(found["store"], main.join(".isolith").to_str().unwrap());
    assert_eq!(
        (&found["notice"], &found["hits"][0]["path"]),
        (&Value::Null, &json!("src/retry.rs"))
    );
    it.fails(&main, &["index", "--merge", "src"], 4, "not_found");
}

#[test]
fn hints_repeat_the_store_that_was_given() {
    let it = Checkout::new();
    let store = it.beside("the store");
    let given = ["--store", store.to_str().unwrap()];
    let main = it.main();
    it.json(&main, &[&["index"], &given[..]].concat());
    let feat = it.worktree(&main.join("wt/x"));
    let error = it.fails(&feat, &[&["search", "x"], &given[..]].concat(), 4, "not_found");
    let expected = format!("`isolith index {} --store '{}'`", feat.display(), store.display());
    assert!(error["hint"].as_str().unwrap().contains(&expected), "{error}");
    // A store that was given answers for all roots outside of them.
    let outside = it.beside("home");
    assert_eq!(it.found(&outside, &[&["--symbol", "RetryPolicy"], &given[..]].concat()).len(), 1);
}

#[test]
fn a_worktree_of_a_bare_repository_has_a_store_of_its_own() {
    let it = Checkout::new();
    let bare: PathBuf = it.beside("bare.git");
    it.git(&it.main(), &["clone", "-q", "--bare", ".", bare.to_str().unwrap()]);
    let feat = it.beside("of-bare");
    it.git(&bare, &["worktree", "add", "-q", feat.to_str().unwrap(), "main"]);
    assert_eq!(it.index(&feat)["files"]["indexed"], 6);
    assert!(feat.join(".isolith").is_dir());
    assert_eq!(it.found(&feat.join("src"), &["--symbol", "RetryPolicy"]).len(), 1);
}
