mod json;
mod properties;
mod toml;

use crate::{Action, Change, EditError, Entry, Format, register, unregister};

const JSON: Format = Format::Json { servers: "mcpServers", typed: false };
const TOML: Format = Format::Toml { servers: "mcp_servers" };

fn entry() -> Entry {
    Entry { command: "/bin/isolith".to_owned(), args: vec!["mcp".to_owned()] }
}

/// Registers, and looks that a second time changes nothing and that undoing gives the text
/// back.
fn registered(format: Format, text: &str) -> String {
    let change = register(format, Some(text), &entry()).unwrap();
    assert_eq!(change.action, Action::Added, "{text}");
    let new = change.text.unwrap();
    let again = register(format, Some(&new), &entry()).unwrap();
    assert_eq!(again, Change::none(Action::Unchanged), "{new}");
    assert_eq!(unregistered(format, &new), text);
    new
}

fn unregistered(format: Format, text: &str) -> String {
    let change = unregister(format, Some(text)).unwrap();
    assert_eq!(change.action, Action::Removed, "{text}");
    change.text.unwrap()
}

fn updated(format: Format, text: &str) -> String {
    let change = register(format, Some(text), &entry()).unwrap();
    assert_eq!(change.action, Action::Updated, "{text}");
    change.text.unwrap()
}

fn refused(format: Format, text: &str) -> EditError {
    let error = register(format, Some(text), &entry()).unwrap_err();
    assert_eq!(unregister(format, Some(text)).unwrap_err(), error, "{text}");
    error
}

#[test]
fn a_created_file_can_be_deleted_again() {
    for format in [JSON, TOML] {
        let new = register(format, None, &entry()).unwrap();
        assert_eq!(new.action, Action::Added);
        let text = new.text.unwrap();
        assert_eq!(register(format, Some(&text), &entry()).unwrap().action, Action::Unchanged);
        assert!(unregister(format, Some(&text)).unwrap().leaves_nothing, "{text}");
        assert_eq!(unregister(format, None).unwrap(), Change::none(Action::None));
    }
}

#[test]
fn unusual_names_are_preserved() {
    let strange = Entry {
        command: "/home/ü \"x\" \\ \u{7f}\u{1}\n/isolith".to_owned(),
        args: ["mcp", "--store", "/s'#,]}"].map(str::to_owned).to_vec(),
    };
    for (format, text) in [(JSON, "{\"mcpServers\": {}}"), (TOML, "a = 1")] {
        let change = register(format, Some(text), &strange).unwrap();
        let new = change.text.unwrap();
        assert_eq!(register(format, Some(&new), &strange).unwrap().action, Action::Unchanged);
        assert_eq!(unregistered(format, &new), text);
    }
}

#[test]
fn a_byte_order_mark_is_kept() {
    for (format, text) in [(JSON, "\u{feff}{\"a\": 1}"), (TOML, "\u{feff}a = 1\r\n")] {
        assert!(registered(format, text).starts_with(&text[..4]));
    }
}
