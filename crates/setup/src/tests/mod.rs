mod hooks;
mod json;
mod properties;
mod toml;

use crate::{
    ConfigChange, ConfigFormat, EditError, EntryAction, ServerEntry, register, unregister,
};

const JSON: ConfigFormat = ConfigFormat::Json { servers: "mcpServers", typed: false };
const TOML: ConfigFormat = ConfigFormat::Toml { servers: "mcp_servers" };

fn entry() -> ServerEntry {
    ServerEntry { command: "/bin/isolith".to_owned(), args: vec!["mcp".to_owned()] }
}

/// Registers, and checks that a second time changes nothing and that undoing restores the text.
fn registered(format: ConfigFormat, text: &str) -> String {
    let change = register(format, Some(text), &entry()).unwrap();
    assert_eq!(change.action, EntryAction::Added, "{text}");
    let new = change.text.unwrap();
    let again = register(format, Some(&new), &entry()).unwrap();
    assert_eq!(again, ConfigChange::unchanged(EntryAction::Unchanged), "{new}");
    assert_eq!(unregistered(format, &new), text);
    new
}

fn unregistered(format: ConfigFormat, text: &str) -> String {
    let change = unregister(format, Some(text)).unwrap();
    assert_eq!(change.action, EntryAction::Removed, "{text}");
    change.text.unwrap()
}

fn updated(format: ConfigFormat, text: &str) -> String {
    let change = register(format, Some(text), &entry()).unwrap();
    assert_eq!(change.action, EntryAction::Updated, "{text}");
    change.text.unwrap()
}

fn refused(format: ConfigFormat, text: &str) -> EditError {
    let error = register(format, Some(text), &entry()).unwrap_err();
    assert_eq!(unregister(format, Some(text)).unwrap_err(), error, "{text}");
    error
}

#[test]
fn a_created_file_can_be_deleted_again() {
    for format in [JSON, TOML] {
        let new = register(format, None, &entry()).unwrap();
        assert_eq!(new.action, EntryAction::Added);
        let text = new.text.unwrap();
        assert_eq!(register(format, Some(&text), &entry()).unwrap().action, EntryAction::Unchanged);
        assert!(unregister(format, Some(&text)).unwrap().can_delete_file, "{text}");
        assert_eq!(unregister(format, None).unwrap(), ConfigChange::unchanged(EntryAction::None));
    }
}

#[test]
fn unusual_names_are_preserved() {
    let unusual = ServerEntry {
        command: "/home/ü \"x\" \\ \u{7f}\u{1}\n/isolith".to_owned(),
        args: ["mcp", "--store", "/s'#,]}"].map(str::to_owned).to_vec(),
    };
    for (format, text) in [(JSON, "{\"mcpServers\": {}}"), (TOML, "a = 1")] {
        let change = register(format, Some(text), &unusual).unwrap();
        let new = change.text.unwrap();
        assert_eq!(register(format, Some(&new), &unusual).unwrap().action, EntryAction::Unchanged);
        assert_eq!(unregistered(format, &new), text);
    }
}

#[test]
fn a_byte_order_mark_is_kept() {
    for (format, text) in [(JSON, "\u{feff}{\"a\": 1}"), (TOML, "\u{feff}a = 1\r\n")] {
        assert!(registered(format, text).starts_with(&text[..4]));
    }
}
