//! What ARCHITECTURE.md and CONTRIBUTING.md say about the code is true of it: the files and items
//! they name exist, and the table of crates lists the real dependencies.
#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

const DOCUMENTS: [&str; 2] = ["ARCHITECTURE.md", "CONTRIBUTING.md"];

/// Headings of docs/dependencies.md.
const PAGES: &str = "\n## In the pages";
const TOOLS: &str = "\n## Only for tests";

/// Paths in these documents that are not files of the repository.
const FOREIGN: [&str; 4] = ["/dev/urandom", "/proc/locks", "/proc/meminfo", "crashes/"];

#[test]
fn files_that_the_documents_name_exist() {
    let files = repository_files();
    let mut missing = Vec::new();
    for (document, quote) in quotes() {
        let is_path = quote.contains('/') || quote.ends_with(".rs") || quote.ends_with(".md");
        let is_pattern = quote.contains(['<', '…', '*', ' ', '(', '@', '$', '=']);
        if !is_path || is_pattern || FOREIGN.contains(&quote.as_str()) {
            continue;
        }
        if !files.iter().any(|file| is_named(file, &quote)) {
            missing.push(format!("{document}: {quote}"));
        }
    }
    assert!(missing.is_empty(), "no such file:\n{}", missing.join("\n"));
}

/// Whether a path names this file or a folder above it: `crates/engine/src/index/plan.rs` is also
/// `engine/index/plan.rs` and `index/plan.rs`.
fn is_named(file: &str, path: &str) -> bool {
    let short = file.strip_prefix("crates/").unwrap_or(file).replacen("/src/", "/", 1);
    let path = path.trim_end_matches('/');
    let ends_there = |whole: &str| {
        whole.match_indices(path).any(|(at, _)| {
            let (before, after) = (&whole[..at], &whole[at + path.len()..]);
            (before.is_empty() || before.ends_with('/'))
                && (after.is_empty() || after.starts_with('/'))
        })
    };
    ends_there(file) || ends_there(&short)
}

#[test]
fn items_that_the_documents_name_exist() {
    let mut sources = Vec::new();
    for part in ["crates", "bench", "xtask"] {
        each_file(&root().join(part), &mut |path| {
            if path.extension().is_some_and(|extension| extension == "rs") {
                sources.push(words(&fs::read_to_string(path).unwrap()));
            }
        });
    }
    let crates = manifests();
    let mut missing = Vec::new();
    for (document, quote) in quotes() {
        let mut names: Vec<&str> = quote.trim_end_matches("()").split("::").collect();
        if names.len() > 1 && crates.contains_key(names[0]) {
            names.remove(0);
        }
        let is_name = |name: &&str| {
            !name.is_empty() && name.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
        };
        let is_item = names.iter().all(is_name)
            && (names.len() > 1 || names[0].starts_with(char::is_uppercase));
        // A word in the middle of a sentence about other programs, or a literal.
        let is_ours = names.iter().any(|name| name.chars().any(char::is_lowercase));
        if !is_item || !is_ours {
            continue;
        }
        if !sources.iter().any(|words| names.iter().all(|name| words.contains(*name))) {
            missing.push(format!("{document}: {quote}"));
        }
    }
    assert!(missing.is_empty(), "no such item:\n{}", missing.join("\n"));
}

#[test]
fn the_table_of_crates_lists_their_dependencies() {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let table = text.split("\n## ").find(|part| part.starts_with("Crates\n")).unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: Vec<(&str, &str)> = rows
        .map(|row| {
            let cells: Vec<&str> = row.trim_end_matches('|').split(" | ").collect();
            let [name, _, uses] = cells.as_slice() else { panic!("not three cells: {row}") };
            (name.trim_end_matches('`'), uses.trim())
        })
        .collect();
    let names: BTreeSet<String> = listed.iter().map(|(name, _)| (*name).to_owned()).collect();
    let all = manifests();
    assert_eq!(names, all.keys().cloned().collect(), "the crates of the workspace");
    let order: Vec<&str> = listed.iter().map(|(name, _)| *name).collect();
    for (at, (name, uses)) in listed.iter().enumerate() {
        let real = &all[*name];
        let above: Vec<_> = order[..at].iter().filter(|it| real.contains(**it)).collect();
        assert!(above.is_empty(), "{name} uses {above:?}, which the table has above it");
        // These are summarized in words.
        if ["bench", "fuzz"].contains(name) {
            continue;
        }
        let uses: BTreeSet<String> =
            uses.split(", ").filter(|it| !it.is_empty()).map(str::to_owned).collect();
        assert_eq!(&uses, real, "what {name} uses");
    }
}

#[test]
fn the_list_of_dependencies_is_complete() {
    let text = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    // The packages of the pages have a test of their own.
    let (product, rest) = text.split_once(PAGES).unwrap();
    let text = format!("{product}{}", &rest[rest.find(TOOLS).unwrap()..]);
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Crate"));
    let listed: BTreeMap<&str, &str> = rows
        .map(|row| {
            let mut cells = row.trim_start_matches("| ").split(" | ");
            (cells.next().unwrap(), cells.next().unwrap())
        })
        .collect();
    let mut used = BTreeMap::<String, BTreeSet<String>>::new();
    for (name, sections) in all_dependencies() {
        for (section, dependency) in sections {
            let users = used.entry(dependency).or_default();
            // The grammars are listed for a target that there is not: only their sources are used.
            let is_used = section == "[dependencies]" || section.starts_with("[target.");
            if is_used && !["bench", "xtask", "fuzz"].contains(&name.as_str()) {
                users.insert(name.clone());
            }
        }
    }
    for (dependency, users) in &used {
        if dependency.starts_with("isolate") || dependency.starts_with("isolith") {
            continue;
        }
        let users_listed = listed.get(dependency.as_str()).copied();
        let users_listed = users_listed.unwrap_or_else(|| panic!("{dependency} is not listed"));
        let is_summary = users_listed == "nearly all" || users_listed.ends_with("(at build time)");
        if product.contains(&format!("\n| {dependency} |")) && !is_summary {
            let users: Vec<&str> = users.iter().map(String::as_str).collect();
            assert_eq!(users_listed, users.join(", "), "who uses {dependency}");
        }
    }
    let gone: Vec<_> = listed.keys().filter(|name| !used.contains_key(**name)).collect();
    assert_eq!(gone, [&"libfuzzer-sys"], "listed, but not used");
}

#[test]
fn the_list_of_npm_packages_is_complete() {
    let text = fs::read_to_string(root().join("docs/dependencies.md")).unwrap();
    let (_, rest) = text.split_once(PAGES).unwrap();
    let rest = rest.split(TOOLS).next().unwrap();
    let (_, rows) = rest.split_once("|---|---|---|---|\n").unwrap();
    let rows = rows.lines().map_while(|line| line.strip_prefix("| ")?.split(" | ").next());
    let listed: BTreeSet<&str> = rows.flat_map(|names| names.split(", ")).collect();
    let packages = fs::read_to_string(root().join("web/package.json")).unwrap();
    let (_, used) = packages.split_once("\"dependencies\": {\n").unwrap();
    let used = used.split('}').next().unwrap().lines();
    let used: BTreeSet<&str> = used.filter_map(|line| line.split('"').nth(1)).collect();
    assert_eq!(listed, used);
    let lock = fs::read_to_string(root().join("web/package-lock.json")).unwrap();
    assert!(!lock.contains("\"resolved\""), "package-lock.json names a registry");
}

#[test]
fn every_setting_is_documented() {
    let source = fs::read_to_string(root().join("crates/config/src/key.rs")).unwrap();
    let page = fs::read_to_string(root().join("docs/configuration.md")).unwrap();
    let quoted = |line: &str| Some(line.split_once("=> \"")?.1.split_once('"')?.0.to_owned());
    let names = source.split_once("fn name(").unwrap().1.split_once("\n    }").unwrap().0;
    let names: Vec<String> = names.lines().filter_map(quoted).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(page.contains(&format!("\n| `{name}` |")), "{name} is not in the table");
    }
}

/// The crates of the workspace with those of our own that they depend on.
fn manifests() -> BTreeMap<String, BTreeSet<String>> {
    let ours = |(section, dependency): (String, String)| {
        let isolate = dependency.starts_with("isolate").then_some(dependency.as_str());
        let name = dependency.strip_prefix("isolith-").or(isolate)?;
        (section == "[dependencies]").then(|| name.to_owned())
    };
    let all = all_dependencies().into_iter();
    all.map(|(name, uses)| (name, uses.into_iter().filter_map(ours).collect())).collect()
}

/// The crates of the workspace with the sections and names of all their dependencies.
fn all_dependencies() -> BTreeMap<String, Vec<(String, String)>> {
    let mut folders: Vec<PathBuf> = vec![root().join("bench"), root().join("xtask")];
    folders.extend(fs::read_dir(root().join("crates")).unwrap().map(|entry| entry.unwrap().path()));
    let mut all = BTreeMap::new();
    for folder in folders {
        let name = folder.file_name().unwrap().to_string_lossy().into_owned();
        let manifest = fs::read_to_string(folder.join("Cargo.toml")).unwrap();
        let (mut section, mut uses) = (String::new(), Vec::new());
        for line in manifest.lines() {
            if line.starts_with('[') {
                section = line.to_owned();
            } else if section.ends_with("dependencies]")
                && let Some((dependency, _)) = line.split_once(" = ")
            {
                uses.push((section.clone(), dependency.to_owned()));
            }
        }
        all.insert(name, uses);
    }
    all
}

/// What is in backticks, outside of blocks of code.
fn quotes() -> Vec<(&'static str, String)> {
    let mut quotes = Vec::new();
    for document in DOCUMENTS {
        let text = fs::read_to_string(root().join(document)).unwrap();
        for prose in text.split("```").step_by(2) {
            quotes.extend(prose.split('`').skip(1).step_by(2).map(|it| (document, it.to_owned())));
        }
    }
    assert!(quotes.len() > 300, "{}", quotes.len());
    quotes
}

fn repository_files() -> Vec<String> {
    let mut files = Vec::new();
    let web = ["web/dist", "web/src", "web/tests"];
    let parts = [".ci", ".github", "bench", "clients", "crates", "docs", "fuzz", "tests", "xtask"];
    for part in parts.into_iter().chain(web) {
        each_file(&root().join(part), &mut |path| {
            files.push(path.strip_prefix(root()).unwrap().to_string_lossy().into_owned());
        });
    }
    for folder in ["", "web"] {
        for entry in fs::read_dir(root().join(folder)).unwrap() {
            let path = Path::new(folder).join(entry.unwrap().file_name());
            files.push(path.to_string_lossy().into_owned());
        }
    }
    files
}

fn words(text: &str) -> BTreeSet<String> {
    let is_other = |letter: char| !letter.is_alphanumeric() && letter != '_';
    text.split(is_other).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

fn each_file(folder: &Path, take: &mut impl FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => each_file(&path, take),
            false => take(&path),
        }
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}
