use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::layers::{Layers, Settings};

fn user(text: &str) -> Result<Vec<Setting>, ConfigError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    fs::write(&path, text).unwrap();
    read_user_file(&path)
}

/// Creates a project with this configuration and reads it.
fn project(text: &str) -> (tempfile::TempDir, Result<Option<ProjectFile>, ConfigError>) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(PROJECT_FILE), text).unwrap();
    let found = ProjectFile::find(folder.path());
    (folder, found)
}

fn resolve(user_text: &str, project_text: &str) -> Settings {
    let (_folder, project) = project(project_text);
    Layers::new(user(user_text).unwrap()).resolve(project.unwrap().as_ref())
}

#[test]
fn precedence_is_flag_variable_project_user() {
    let (folder, project) = project("[limits]\nresults = 20\nrows = 21\n");
    let project = project.unwrap().unwrap();
    let user = user("limits.results = 30\nlimits.rows = 31\n[server]\ntimeout = 32\n").unwrap();
    let variable = |name: &str| (name == "ISOLITH_LIMITS_RESULTS").then(|| "10".into());
    let mut layers = Layers::new(user).with_environment(variable).unwrap();

    let outside = layers.resolve(None);
    assert_eq!(outside.number(Key::LimitsRows), Some(31));
    let settings = layers.resolve(Some(&project));
    assert_eq!(settings.number(Key::LimitsResults), Some(10));
    assert_eq!(settings.number(Key::LimitsRows), Some(21));
    assert_eq!(settings.number(Key::ServerTimeout), Some(32));
    assert_eq!(settings.text(Key::ServerListen), None);
    let origin = &settings.get(Key::LimitsRows).next().unwrap().origin;
    let line = format!("{}:3", folder.path().join(PROJECT_FILE).display());
    assert_eq!((origin.kind(), origin.to_string()), ("project_file", line));

    layers.set(Key::LimitsResults, "--limit", Value::Number(5));
    assert_eq!(layers.resolve(Some(&project)).number(Key::LimitsResults), Some(5));
}

#[test]
fn ignored_paths_of_all_layers_apply() {
    let settings = resolve("index.ignore = [\"a\"]", "index.ignore = [\"b\", \"c\"]");
    assert_eq!(settings.list(Key::IndexIgnore), ["b", "c", "a"]);
}

#[test]
fn a_project_can_only_lower_the_file_size() {
    let size = |user: &str, project: &str| resolve(user, project).max_file_size();
    assert_eq!(size("", "index.max_file_size = \"2M\""), 1 << 20);
    assert_eq!(size("", "index.max_file_size = \"10K\""), 10 << 10);
    assert_eq!(size("index.max_file_size = \"4M\"", "index.max_file_size = \"2M\""), 2 << 20);
    assert_eq!(size("index.max_file_size = \"4M\"", "index.max_file_size = \"8M\""), 4 << 20);
    let (_folder, found) = project("index.max_file_size = \"2M\"");
    let warnings = Layers::default().warnings(&found.unwrap().unwrap());
    assert!(warnings[0].ends_with("is ignored: a project can only lower it"), "{warnings:?}");
}

#[test]
fn a_hostile_project_cannot_set_protected_settings() {
    let forbidden: Vec<Key> =
        Key::ALL.into_iter().filter(|key| key.project() == ProjectAccess::Never).collect();
    let text: String =
        forbidden.iter().map(|key| format!("{} = \"/evil\"\n", key.name())).collect();
    let (_folder, found) = project(&format!("{text}limits.results = 7\n"));
    let found = found.unwrap().unwrap();
    assert_eq!(found.settings().len(), 1);
    for (line, key) in forbidden.iter().enumerate() {
        let warning = &found.warnings()[line];
        let location = format!("{PROJECT_FILE}:{}: {:?}", line + 1, key.name());
        assert!(warning.contains(&location), "{warning}");
    }
    let settings = Layers::default().resolve(Some(&found));
    assert!(forbidden.iter().all(|key| settings.get(*key).next().is_none()));
    assert_eq!(settings.number(Key::LimitsResults), Some(7));
}

#[test]
fn errors_name_file_line_and_key() {
    for (text, line, key) in [
        ("[limits]\nresult = 3\n", 2, "\"limits.result\""),
        ("\n\ncommand = \"rm\"\n", 3, "\"command\""),
        ("[limits.results]\nx = 1\n", 1, "\"limits.results\""),
        ("[hooks]\nrun = \"x\"\n", 1, "\"hooks\""),
        ("limits = 3\n", 1, "\"limits\""),
        ("limits.results = \"ten\"\n", 1, "\"limits.results\""),
        ("limits.results = 101\n", 1, "\"limits.results\""),
        ("limits.rows = -1\n", 1, "\"limits.rows\""),
        ("[index]\nignore = [\"a\",\n 1]\n", 2, "\"index.ignore\""),
        ("index.ignore = [\"!secret\"]\n", 1, "\"index.ignore\""),
        ("index.max_file_size = \"64M\"\n", 1, "\"index.max_file_size\""),
        ("limits.results = 1\nlimits.results = 2\n", 2, "duplicate key"),
        ("limits.results =\n", 1, ""),
    ] {
        let error = project(text).1.unwrap_err().to_string();
        let location = format!("{PROJECT_FILE}:{line}: ");
        assert!(error.contains(&location) && error.contains(key), "{text:?}: {error}");
    }
    assert!(user("limits.results = 101\n").is_ok(), "the user can set more than a project");
}

#[test]
fn invalid_variables_are_refused() {
    let variable = |name: &str| (name == "ISOLITH_SERVER_TIMEOUT").then(|| "soon".into());
    let error = Layers::default().with_environment(variable).unwrap_err();
    assert!(error.to_string().starts_with("ISOLITH_SERVER_TIMEOUT: expected a number"), "{error}");
}

#[test]
fn only_small_regular_files_of_the_project_are_read() {
    let outside = tempfile::tempdir().unwrap();
    let secret = outside.path().join("secret");
    fs::write(&secret, "limits.results = 3").unwrap();
    let refused = |reason: &str, create: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        create(&folder.path().join(PROJECT_FILE));
        let error = ProjectFile::find(folder.path()).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
        assert!(!error.contains("limits"), "{error}");
    };
    refused("it is a symbolic link", &|file| symlink(&secret, file).unwrap());
    refused("it is a symbolic link", &|file| symlink("nowhere", file).unwrap());
    refused("it is not a regular file", &|file| fs::create_dir(file).unwrap());
    refused("it is not a regular file", &|file| {
        let status = std::process::Command::new("mkfifo").arg(file).status().unwrap();
        assert!(status.success());
    });
    refused("it is larger than 64 kB", &|file| fs::write(file, "#".repeat(70_000)).unwrap());
    refused("it is not valid UTF-8", &|file| fs::write(file, b"x = \"\xff\"").unwrap());
}

#[test]
fn the_nearest_project_is_used() {
    let (folder, _) = project("limits.results = 3");
    let deep = folder.path().join("a/b");
    fs::create_dir_all(&deep).unwrap();
    assert_eq!(ProjectFile::find(&deep).unwrap().unwrap().folder(), folder.path());
    fs::create_dir(folder.path().join("a/.git")).unwrap();
    assert_eq!(ProjectFile::find(&deep).unwrap(), None);
}

#[test]
fn paths_in_the_users_file_are_relative_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("config.toml");
    let real = folder.path().join("dotfiles.toml");
    fs::write(&real, "store = \"s\"\nserver.allow = [\"/code\", \"x\"]").unwrap();
    symlink(&real, &path).unwrap();
    let settings = Layers::new(read_user_file(&path).unwrap()).resolve(None);
    let below = |name| folder.path().join(name).to_string_lossy().into_owned();
    assert_eq!(settings.text(Key::Store), Some(below("s").as_str()));
    assert_eq!(settings.list(Key::ServerAllow), ["/code".to_owned(), below("x")]);
    assert!(read_user_file(&folder.path().join("none.toml")).unwrap().is_empty());
}
