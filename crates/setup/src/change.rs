use crate::{EditError, Entry, Format, json, toml};

/// What becomes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// In a word.
    pub action: Action,
    /// What the file holds afterwards; `None` if nothing changes.
    pub text: Option<String>,
    /// Whether nothing that means anything is left, in a form that only [`register`] makes:
    /// the file can go.
    pub leaves_nothing: bool,
}

/// What is done to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// It was not there and is written.
    Added,
    /// It was there with another content, which is exchanged.
    Updated,
    /// It is there already.
    Unchanged,
    /// It was there and is cut out.
    Removed,
    /// Nothing, as there is nothing to do it to.
    None,
}

/// Puts an entry into the text of a file; `None` stands for a file that does not exist.
///
/// An entry that is there under this name and has all the keys of the new one keeps what else
/// is in it; any other is replaced as a whole.
///
/// # Errors
/// If the text is not what the agent reads.
pub fn register(format: Format, text: Option<&str>, entry: &Entry) -> Result<Change, EditError> {
    let Some(text) = text else {
        let text = match format {
            Format::Json { servers, typed } => json::fresh(servers, &entry.fields(typed)),
            Format::Toml { servers } => toml::fresh(servers, &entry.fields(false)),
        };
        return Ok(Change::to(Action::Added, text));
    };
    let register = |body: &str| match format {
        Format::Json { servers, typed } => json::register(body, servers, &entry.fields(typed)),
        Format::Toml { servers } => toml::register(body, servers, &entry.fields(false)),
    };
    checked(text, register, Action::Unchanged)
}

/// Cuts the entry out of the text of a file.
///
/// # Errors
/// If the text is not what the agent reads.
pub fn unregister(format: Format, text: Option<&str>) -> Result<Change, EditError> {
    let Some(text) = text else { return Ok(Change::none(Action::None)) };
    let unregister = |body: &str| match format {
        Format::Json { servers, .. } => json::unregister(body, servers),
        Format::Toml { servers } => toml::unregister(body, servers),
    };
    checked(text, unregister, Action::None)
}

impl Action {
    /// What scripts call it.
    pub fn id(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
            Self::Removed => "removed",
            Self::None => "none",
        }
    }
}

impl Change {
    pub(crate) fn to(action: Action, text: String) -> Self {
        Self { action, text: Some(text), leaves_nothing: false }
    }

    pub(crate) fn none(action: Action) -> Self {
        Self { action, text: None, leaves_nothing: false }
    }
}

/// Edits what follows the byte order mark, and makes sure that the result can be parsed and
/// needs no second edit.
fn checked(
    text: &str,
    edit: impl Fn(&str) -> Result<Change, EditError>,
    settled: Action,
) -> Result<Change, EditError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mark = &text[..text.len() - body.len()];
    let mut change = edit(body)?;
    if let Some(text) = &mut change.text {
        let again = edit(text).map_err(|_| EditError::Entangled)?;
        if again.action != settled {
            return Err(EditError::Entangled);
        }
        text.insert_str(0, mark);
    }
    Ok(change)
}
