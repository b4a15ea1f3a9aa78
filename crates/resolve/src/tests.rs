use isolith_types::{Certainty, CodeEdge, EdgeKind, FileGraph};

/// Adds a `Tests` edge for every resolved call from a test.
pub(crate) fn with_tests(path: &str, graph: &FileGraph, edges: Vec<CodeEdge>) -> Vec<CodeEdge> {
    let in_tests = is_test_path(path);
    let tests = |edge: &&CodeEdge| {
        edge.kind == EdgeKind::Calls
            && edge.certainty == Certainty::Resolved
            && (in_tests || is_test(graph, edge.from))
            && !is_test_path(&edge.to.path)
            // Helpers in the test module itself are not under test.
            && !(edge.to.path == path && is_test(graph, edge.to.definition))
    };
    let added: Vec<CodeEdge> = edges
        .iter()
        .filter(tests)
        .map(|edge| CodeEdge { kind: EdgeKind::Tests, ..edge.clone() })
        .collect();
    let mut edges = edges;
    edges.extend(added);
    edges.sort();
    edges
}

fn is_test(graph: &FileGraph, definition: Option<u32>) -> bool {
    let mut around = definition;
    while let Some(index) = around {
        let Some(definition) = graph.definitions.get(index as usize) else { return false };
        if definition.test {
            return true;
        }
        around = definition.parent;
    }
    false
}

/// Whether a path looks like that of a test file.
pub(crate) fn is_test_path(path: &str) -> bool {
    let (folders, file) = path.rsplit_once('/').unwrap_or(("", path));
    let in_folder = folders
        .split('/')
        .any(|folder| matches!(folder, "test" | "tests" | "__tests__" | "spec" | "testing"));
    let stem = file.split_once('.').map_or(file, |(stem, _)| stem);
    in_folder
        || stem.starts_with("test_")
        || stem.ends_with("_test")
        || stem.ends_with("_spec")
        || file.contains(".test.")
        || file.contains(".spec.")
        || (file.ends_with(".java") || file.ends_with(".cs")) && stem.ends_with("Test")
}

#[cfg(test)]
mod table {
    use super::*;

    #[test]
    fn test_paths_are_recognized() {
        for path in ["tests/a.py", "a/test_b.py", "x_test.go", "a.test.ts", "b/FooTest.java"] {
            assert!(is_test_path(path), "{path}");
        }
        for path in ["src/testing_tools.rs", "contest/a.py", "latest.ts", "attest.go"] {
            assert!(!is_test_path(path), "{path}");
        }
    }
}
