use crate::NAME;
use crate::entry::Field;

/// How a document is laid out, so that what is added looks like the rest.
pub(super) struct Layout<'a> {
    pub(super) newline: &'a str,
    /// One step of indentation.
    pub(super) unit: &'a str,
    /// Whether members have lines of their own.
    pub(super) spread: bool,
}

impl Layout<'_> {
    /// The object of servers, with the entry in it.
    pub(super) fn servers(&self, base: &str, fields: &[Field]) -> String {
        let entry = self.entry(&format!("{base}{}", self.unit), fields);
        match self.spread {
            true => self.object(base, &[(NAME, entry)]),
            // The blank tells it from one that was there and empty.
            false => format!("{{ \"{NAME}\": {entry} }}"),
        }
    }

    /// The value of the entry.
    pub(super) fn entry(&self, base: &str, fields: &[Field]) -> String {
        let members: Vec<_> = fields.iter().map(|it| (it.key, it.value.render())).collect();
        self.object(base, &members)
    }

    /// An object whose first line is indented by `base`.
    pub(super) fn object(&self, base: &str, members: &[(&str, String)]) -> String {
        let Self { newline, unit, .. } = self;
        let members = members.iter().map(|(key, value)| format!("\"{key}\": {value}"));
        match self.spread {
            false => format!("{{{}}}", members.collect::<Vec<_>>().join(", ")),
            true => {
                let members: Vec<_> =
                    members.map(|it| format!("{newline}{base}{unit}{it}")).collect();
                format!("{{{}{newline}{base}}}", members.join(","))
            }
        }
    }
}
