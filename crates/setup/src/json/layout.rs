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
