use isolith_setup::{ConfigFormat, EntryAction, ServerEntry, register, unregister};

/// Edits of agents' configuration files, JSON with comments and TOML: registering twice must equal
/// registering once, and unregistering must restore every byte.
pub fn jsonc(data: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(data) else { return false };
    let json = accepts(ConfigFormat::Json { servers: "mcpServers", typed: false }, text);
    let typed = accepts(ConfigFormat::Json { servers: "servers", typed: true }, text);
    let toml = accepts(ConfigFormat::Toml { servers: "mcp_servers" }, text);
    json || typed || toml
}

fn accepts(format: ConfigFormat, text: &str) -> bool {
    let entry = ServerEntry { command: "/bin/isolith".to_owned(), args: vec!["mcp".to_owned()] };
    let _ = unregister(format, Some(text));
    let Ok(change) = register(format, Some(text), &entry) else { return false };
    let new = change.text.as_deref().unwrap_or(text);
    let again = register(format, Some(new), &entry).expect("our own text can be read");
    assert_eq!(again.action, EntryAction::Unchanged, "{new}");
    let undone = unregister(format, Some(new)).expect("our own entry can be removed");
    // A file without content is not JSON: an empty object is left in it.
    let has_content = !text.trim_start_matches('\u{feff}').trim().is_empty();
    if change.action == EntryAction::Added && has_content {
        assert_eq!(undone.text.as_deref(), Some(text), "undoing leaves something behind");
    }
    true
}
