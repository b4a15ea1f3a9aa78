//! Which files must be resolved again when a file changes; stable ids; documents; hostile input.

use std::collections::BTreeSet;

use isolith_resolve::{LookupKey, changed_keys};
use isolith_types::EdgeKind;

use crate::project::Files;

const LIBRARY: &str = "def one():\n    return 1\n\nclass Two:\n    def three(self): ...\n";
const USER: &str = "from library import one\n\ndef f():\n    one()\n    missing()\n";
const OTHER: &str = "def alone():\n    alone()\n";

fn project(library: &str) -> Files {
    Files::of(&[("library.py", library), ("user.py", USER), ("other.py", OTHER)])
}

/// The files with a lookup that the change of `library.py` affects.
fn affected(before: &Files, after: &Files) -> Vec<String> {
    let (old, new) = (before.0.get("library.py"), after.0.get("library.py"));
    let changed: BTreeSet<LookupKey> =
        changed_keys("library.py", old.map(|g| &***g), new.map(|g| &***g));
    let looks =
        |path: &&String| before.resolution(path).keys.iter().any(|key| changed.contains(key));
    before.0.keys().filter(|path| *path != "library.py").filter(looks).cloned().collect()
}

#[test]
fn only_files_that_looked_at_a_change_are_affected() {
    let before = project(LIBRARY);
    let table = [
        (
            "lines alone",
            "\n\n# more\ndef one():\n    return 2 + 2\n\nclass Two:\n    def three(self): ...\n",
            vec![],
        ),
        ("a name is gone", "class Two:\n    def three(self): ...\n", vec!["user.py"]),
        ("a name is new", &format!("{LIBRARY}def four(): ...\n"), vec!["user.py"]),
    ];
    for (what, library, expected) in table {
        assert_eq!(affected(&before, &project(library)), expected, "{what}");
    }
    let gone = Files::of(&[("user.py", USER), ("other.py", OTHER)]);
    assert_eq!(affected(&before, &gone), ["user.py"]);
    // A lookup that found nothing is affected when the file appears.
    assert_eq!(affected(&gone, &before), ["user.py"]);
}

#[test]
fn ids_are_stable_when_lines_move() {
    let ids = |library: &str| -> Vec<String> {
        let files = project(library);
        files.0["library.py"].definitions.iter().map(|one| one.id("library.py")).collect()
    };
    let moved = format!("# a\n\n\n# b\n{}", LIBRARY.replace("\n\n", "\n\n\n\n"));
    assert_eq!(ids(LIBRARY), ids(&moved));
    assert_eq!(ids(LIBRARY), ["library.py#one", "library.py#Two", "library.py#Two.three"]);
    let twice = "def f(): ...\ndef f(x): ...\n";
    assert_eq!(ids(twice), ["library.py#f", "library.py#f~1"]);
}

#[test]
fn documents_refer_to_definitions() {
    let files = [
        (
            "README.md",
            "# Use\n\nCall `one()` or `Two.three`; not `four`, `data`.\n\n## More\n\n`library.one`\n",
        ),
        ("library.py", LIBRARY),
        ("a.py", "data = 1\ndef many(): ...\n"),
    ];
    let edges = Files::of(&files).edges(&[EdgeKind::Documents]);
    let expected = [
        "README.md#Use -DOCUMENTS> library.py#Two.three",
        "README.md#Use -DOCUMENTS> library.py#one",
        "README.md#Use.More -DOCUMENTS> library.py#one",
    ];
    assert_eq!(edges, expected);
}

#[test]
fn hostile_files_terminate() {
    let deep = format!("x = {}1{}\n", "(".repeat(5_000), ")".repeat(5_000));
    let chain = format!("def f(x):\n    x{}\n", ".a()".repeat(3_000));
    let cycle = ("a.py", "from b import *\nfrom b import x\nclass A(B): ...\nx.y()\nA().f()\n");
    let back = ("b.py", "from a import *\nfrom a import x\nclass B(A): ...\n");
    let files = Files::of(&[("deep.py", &deep), ("chain.py", &chain), cycle, back]);
    assert!(files.edges(&[EdgeKind::Inherits]).len() <= 2);
}
