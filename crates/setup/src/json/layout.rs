use serde_json::Value;

use crate::ENTRY_NAME;
use crate::entry::Field;

/// The formatting of a document, which new text follows.
pub(super) struct Layout<'a> {
    pub(super) newline: &'a str,
    /// The indentation of one level.
    pub(super) indent_unit: &'a str,
    /// Whether each member is on its own line.
    pub(super) multiline: bool,
}

impl Layout<'_> {
    /// The object of servers, containing the entry only.
    pub(super) fn servers(&self, indent: &str, fields: &[Field]) -> String {
        let entry = self.entry(&format!("{indent}{}", self.indent_unit), fields);
        match self.multiline {
            true => self.object(indent, &[(ENTRY_NAME, entry)]),
            // The space after the brace marks an object that setup created.
            false => format!("{{ \"{ENTRY_NAME}\": {entry} }}"),
        }
    }

    /// The value of the entry.
    pub(super) fn entry(&self, indent: &str, fields: &[Field]) -> String {
        let members: Vec<_> = fields.iter().map(|it| (it.key, it.value.render())).collect();
        self.object(indent, &members)
    }

    /// A list with this value only.
    pub(super) fn list(&self, indent: &str, value: &Value) -> String {
        let Self { newline, indent_unit, multiline } = self;
        let inner = format!("{indent}{indent_unit}");
        match multiline {
            true => format!("[{newline}{inner}{}{newline}{indent}]", self.value(&inner, value)),
            // The space after the bracket marks a list that setup created.
            false => format!("[ {} ]", self.value(indent, value)),
        }
    }

    /// Any value that begins on a line with this indentation.
    pub(super) fn value(&self, indent: &str, value: &Value) -> String {
        let Self { newline, indent_unit, .. } = self;
        let inner = format!("{indent}{indent_unit}");
        match value {
            Value::Object(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, it)| (key.as_str(), self.value(&inner, it)))
                    .collect();
                self.object(indent, &members)
            }
            Value::Array(items) => {
                let items: Vec<String> = items.iter().map(|it| self.value(&inner, it)).collect();
                match self.multiline {
                    false => format!("[{}]", items.join(", ")),
                    true => {
                        let items: Vec<String> =
                            items.iter().map(|it| format!("{newline}{inner}{it}")).collect();
                        format!("[{}{newline}{indent}]", items.join(","))
                    }
                }
            }
            plain => plain.to_string(),
        }
    }

    /// An object that begins on a line with this indentation.
    pub(super) fn object(&self, indent: &str, members: &[(&str, String)]) -> String {
        let Self { newline, indent_unit, .. } = self;
        let members = members.iter().map(|(key, value)| format!("\"{key}\": {value}"));
        match self.multiline {
            false => format!("{{{}}}", members.collect::<Vec<_>>().join(", ")),
            true => {
                let members: Vec<_> =
                    members.map(|it| format!("{newline}{indent}{indent_unit}{it}")).collect();
                format!("{{{}{newline}{indent}}}", members.join(","))
            }
        }
    }
}
