//! Files that hold secrets stay out of the index, and are listed.
#![allow(clippy::unwrap_used, clippy::panic)]

mod project;
mod test_env;

use std::fs;
use std::path::Path;

use project::{Project, counts};
use serde_json::{Value, json};

/// Put together here, so that this file holds no token.
fn token() -> String {
    format!("gh{}_{}", 'p', "q7Zt4Kd09sXv2LmB8cRfY1nWuE5hJaGoP3iT")
}

fn problems(report: &Value) -> Vec<(&str, &str)> {
    let problems = report["problems"].as_array().unwrap().iter();
    problems.map(|it| (it["path"].as_str().unwrap(), it["code"].as_str().unwrap())).collect()
}

/// Whether any file below a folder has these bytes in it.
fn is_below(folder: &Path, bytes: &[u8]) -> bool {
    fs::read_dir(folder).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        match path.is_dir() {
            true => is_below(&path, bytes),
            false => fs::read(path)
                .is_ok_and(|content| content.windows(bytes.len()).any(|it| it == bytes)),
        }
    })
}

fn with_secrets() -> Project {
    let project = Project::sample();
    let client = format!("# one\ndef zebra_client():\n    return \"{}\"\n", token());
    project.write("src/client.py", client);
    project.write("keys/id_ed25519_work", "zebra");
    project.write("infra/terraform.tfstate", "{\"zebra\": 1}");
    let dashes = "-".repeat(5);
    let key = format!("{dashes}BEGIN PGP {} {} BLOCK{dashes}", "PRIVATE", "KEY");
    let body = "lQVYBGXk0dABDADQ7Zr1vS8n2sFh4uYpWcT0mJb9Lx3KqEoRz5VgNdHiUaMt6yC1";
    project.write("notes.txt", format!("zebra\n{key}\n\n{body}\n{body}\n"));
    project
}

#[test]
fn files_with_secrets_are_left_out_and_listed() {
    let project = with_secrets();
    let expected = [
        ("infra/terraform.tfstate", "secret"),
        ("keys/id_ed25519_work", "secret"),
        ("notes.txt", "secret"),
        ("src/client.py", "secret"),
    ];
    let report = project.index(&[]);
    assert_eq!(problems(&report), expected);
    assert_eq!(counts(&report), json!([8, 6, 0, 0, 0]));
    let message = report["problems"][3]["message"].as_str().unwrap();
    assert!(message.contains("line 3") && message.contains("github-token"), "{message}");
    assert!(!report.to_string().contains(&token()));
    assert!(project.paths(&["zebra", "--mode", "keyword"]).is_empty());
    assert!(!is_below(&project.folder().join(".isolith"), token().as_bytes()));
    let message = project.run(&["index"]).stdout;
    assert!(
        message.contains("--include-secrets") && message.contains("client.py: line 3"),
        "{message}"
    );
    // Every run reports it, and none stores it again.
    let before =
        project.truth().query_row("SELECT last_change FROM store", [], |row| row.get::<_, i64>(0));
    let again = project.index(&[]);
    assert_eq!(problems(&again), expected);
    assert_eq!(counts(&again), json!([8, 0, 6, 0, 0]));
    let after =
        project.truth().query_row("SELECT last_change FROM store", [], |row| row.get::<_, i64>(0));
    assert_eq!(before, after);
}

#[test]
fn include_secrets_indexes_them_for_one_run() {
    let project = with_secrets();
    project.index(&[]);
    let included = project.index(&["--include-secrets"]);
    let noted = [("notes.txt", "secret_included"), ("src/client.py", "secret_included")];
    assert_eq!(problems(&included), noted);
    assert_eq!(counts(&included), json!([10, 4, 6, 0, 0]));
    assert_eq!(project.paths(&["zebra", "--mode", "keyword"]).len(), 4);
    let again = project.index(&["--include-secrets"]);
    assert_eq!((problems(&again), counts(&again)), (noted.to_vec(), json!([10, 0, 10, 0, 0])));
    // A run without it takes them out again, although no file has changed.
    let without = project.index(&[]);
    assert_eq!(counts(&without), json!([8, 0, 6, 2, 0]));
    assert!(project.paths(&["zebra", "--mode", "keyword"]).is_empty());
}

#[test]
fn a_secret_that_comes_or_goes_is_noticed() {
    let project = with_secrets();
    project.index(&[]);
    project.write("src/client.py", "def zebra_client():\n    return vault()\n");
    project.write("src/retry.rs", format!("// zebra\nconst T: &str = \"{}\";\n", token()));
    let report = project.index(&[]);
    let listed: Vec<&str> = problems(&report).into_iter().map(|(path, _)| path).collect();
    assert!(listed.contains(&"src/retry.rs") && !listed.contains(&"src/client.py"), "{listed:?}");
    assert_eq!(project.paths(&["zebra", "--mode", "keyword"]), ["src/client.py"]);
    // Under another name it is the same secret.
    let folder = project.folder();
    fs::rename(folder.join("src/retry.rs"), folder.join("src/again.rs")).unwrap();
    let report = project.index(&[]);
    assert!(problems(&report).contains(&("src/again.rs", "secret")), "{report}");
}
