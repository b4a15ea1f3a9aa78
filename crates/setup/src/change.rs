use crate::{ConfigFormat, EditError, ServerEntry, json, toml};

/// The outcome of an edit, which the caller writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigChange {
    /// What happened to the server's entry.
    pub action: EntryAction,
    /// The new content of the file; `None` if it is unchanged.
    pub text: Option<String>,
    /// Whether the file contained nothing but the entry, as a file created by [`register`] does,
    /// and can be deleted instead of rewritten.
    pub can_delete_file: bool,
}

/// What an edit does to the server's entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryAction {
    /// A new entry is inserted.
    Added,
    /// An existing entry gets new values.
    Updated,
    /// The entry is already up to date.
    Unchanged,
    /// The entry is removed.
    Removed,
    /// There is no entry to remove.
    None,
}

/// Adds or updates the entry in the text of a file; `None` stands for a missing file.
///
/// An existing entry that has all the keys of the new one keeps its other keys. Otherwise it is
/// replaced as a whole.
///
/// # Errors
/// If the text is not valid, or cannot be edited without changing other parts of it.
pub fn register(
    format: ConfigFormat,
    text: Option<&str>,
    entry: &ServerEntry,
) -> Result<ConfigChange, EditError> {
    let Some(text) = text else {
        let text = match format {
            ConfigFormat::Json { servers, typed } => json::new_file(servers, &entry.fields(typed)),
            ConfigFormat::Toml { servers } => toml::new_file(servers, &entry.fields(false)),
        };
        return Ok(ConfigChange::new(EntryAction::Added, text));
    };
    let register = |body: &str| match format {
        ConfigFormat::Json { servers, typed } => {
            json::register(body, servers, &entry.fields(typed))
        }
        ConfigFormat::Toml { servers } => toml::register(body, servers, &entry.fields(false)),
    };
    edit_checked(text, register, EntryAction::Unchanged)
}

/// Removes the entry from the text of a file; `None` stands for a missing file.
///
/// # Errors
/// As for [`register`].
pub fn unregister(format: ConfigFormat, text: Option<&str>) -> Result<ConfigChange, EditError> {
    let Some(text) = text else { return Ok(ConfigChange::unchanged(EntryAction::None)) };
    let unregister = |body: &str| match format {
        ConfigFormat::Json { servers, .. } => json::unregister(body, servers),
        ConfigFormat::Toml { servers } => toml::unregister(body, servers),
    };
    edit_checked(text, unregister, EntryAction::None)
}

impl EntryAction {
    /// The name in JSON output.
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

impl ConfigChange {
    pub(crate) fn new(action: EntryAction, text: String) -> Self {
        Self { action, text: Some(text), can_delete_file: false }
    }

    pub(crate) fn unchanged(action: EntryAction) -> Self {
        Self { action, text: None, can_delete_file: false }
    }
}

/// Edits the text after its byte order mark. Then checks that the result can be parsed and that
/// a second edit would have no effect.
pub(crate) fn edit_checked(
    text: &str,
    edit: impl Fn(&str) -> Result<ConfigChange, EditError>,
    no_effect: EntryAction,
) -> Result<ConfigChange, EditError> {
    let body = text.strip_prefix('\u{feff}').unwrap_or(text);
    let byte_order_mark = &text[..text.len() - body.len()];
    let mut change = edit(body)?;
    if let Some(text) = &mut change.text {
        let again = edit(text).map_err(|_| EditError::UnsafeEdit)?;
        if again.action != no_effect {
            return Err(EditError::UnsafeEdit);
        }
        text.insert_str(0, byte_order_mark);
    }
    Ok(change)
}
