//! `isolith config`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use isolith_config::{Key, Origin, Settings, Value};
use isolith_types::Failure;
use serde_json::json;

use crate::output::Output;
use crate::table::table;

pub(crate) enum ConfigCommand {
    /// The settings in the working folder.
    Show(Settings),
    /// The files that are read if they exist.
    Path { user: Option<PathBuf>, project: Option<PathBuf> },
}

pub(crate) fn run(command: &ConfigCommand, output: &Output) -> Result<ExitCode, Failure> {
    match command {
        ConfigCommand::Show(settings) => show(settings, output)?,
        ConfigCommand::Path { user, project } => {
            show_paths(user.as_deref(), project.as_deref(), output)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A setting as it is shown: its value, and what set it.
struct Row<'a> {
    key: Key,
    value: Option<&'a Value>,
    origin: &'a Origin,
}

fn show(settings: &Settings, output: &Output) -> Result<(), Failure> {
    let rows: Vec<Row<'_>> = Key::ALL.into_iter().flat_map(|key| rows_of(settings, key)).collect();
    let document = json!({ "settings": rows.iter().map(Row::document).collect::<Vec<_>>() });
    let cells: Vec<Vec<String>> = rows.iter().map(Row::cells).collect();
    output.result(&document, &table(&["SETTING", "VALUE", "FROM"], &cells))
}

fn rows_of(settings: &Settings, key: Key) -> Vec<Row<'_>> {
    let mut rows: Vec<Row<'_>> = Vec::new();
    for setting in settings.get(key) {
        rows.push(Row { key, value: Some(&setting.value), origin: &setting.origin });
    }
    if rows.is_empty() {
        rows.push(Row { key, value: None, origin: &Origin::Default });
    }
    rows
}

impl Row<'_> {
    fn cells(&self) -> Vec<String> {
        let value = self.value.map_or_else(|| default_of(self.key).to_owned(), Value::to_string);
        vec![self.key.name().to_owned(), value, self.origin.to_string()]
    }

    /// A setting that nobody has set has no value: its default may depend on the command.
    fn document(&self) -> serde_json::Value {
        let value = self.value.map(|value| match value {
            Value::Number(number) => json!(number),
            Value::Text(text) => json!(text),
            Value::List(entries) => json!(entries),
        });
        let mut source = json!({ "kind": self.origin.kind() });
        match self.origin {
            Origin::User(file, line) | Origin::Project(file, line) => {
                source["file"] = json!(file);
                source["line"] = json!(line);
            }
            Origin::Variable(name) => source["variable"] = json!(name),
            Origin::Flag(name) => source["flag"] = json!(name),
            Origin::Default => {}
        }
        json!({
            "key": self.key.name(),
            "value": value,
            "default": default_of(self.key),
            "variable": self.key.variable(),
            "source": source,
        })
    }
}

/// The default of a setting, in words where it depends on something.
fn default_of(key: Key) -> &'static str {
    match key {
        Key::Store => "the project's, or the user's",
        Key::SecretFile => "in the state folder",
        Key::Log => "off",
        Key::LimitsResults => "10",
        Key::LimitsRows => "20 to 100, by command",
        Key::IndexIgnore | Key::ServerAllow | Key::ServerHosts => "none",
        Key::IndexLanguages => "all",
        Key::IndexMaxFileSize => "1048576",
        Key::ServerListen => "127.0.0.1:7411",
        Key::ServerTimeout => "30",
        Key::ServerTokenFile => "generated, in the state folder",
        Key::ServerAlertCommand | Key::ServerAlertWebhook => "none",
        Key::ServerAlertFailureRate => "5",
        Key::ServerAlertMinutes => "5",
        Key::ServerAlertDiskFree => "1073741824",
        Key::CollectionMetric => "cosine",
        Key::CollectionModel => "none",
    }
}

fn show_paths(user: Option<&Path>, project: Option<&Path>, output: &Output) -> Result<(), Failure> {
    let files = [("user", user), ("project", project)];
    let files = files.into_iter().filter_map(|(whose, path)| Some((whose, path?)));
    let found = |path: &Path| path.symlink_metadata().is_ok();
    let (mut documents, mut text) = (Vec::new(), String::new());
    for (whose, path) in files {
        documents.push(json!({ "kind": whose, "path": path, "exists": found(path) }));
        let note = if found(path) { "" } else { " (does not exist)" };
        text.push_str(&format!("{}{note}\n", path.display()));
    }
    output.result(&json!({ "files": documents }), &text)
}
