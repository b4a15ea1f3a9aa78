//! The session to which the lines of a file belong.

use isolith_types::Moment;
use serde::{Deserialize, Serialize};

/// The session of the current line. Wing and room come from its first event, because the folder may
/// change during a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) id: String,
    pub(crate) wing: Option<String>,
    pub(crate) room: String,
    pub(crate) branch: String,
    pub(crate) model: String,
}

impl Session {
    /// Starts a new session if the event belongs to another one.
    pub(crate) fn enter(&mut self, id: Option<&str>, date: Option<&str>, cwd: Option<&str>) {
        let id = id.unwrap_or("");
        if self.id == id && !self.room.is_empty() {
            return;
        }
        let start = date.and_then(|date| date.parse::<Moment>().ok());
        let day = start.map(|start| Moment::day_of(start.start()).to_string());
        let named: Vec<&str> =
            day.as_deref().into_iter().chain([short(id)]).filter(|it| !it.is_empty()).collect();
        let room = named.join(" ");
        *self =
            Self { id: id.to_owned(), wing: cwd.and_then(folder_name), room, ..Self::default() };
    }
}

/// The part of an id that tells sessions of a day apart. A UUID of version 7 begins with the time,
/// so that its end is used.
fn short(id: &str) -> &str {
    let is_version_7 = id.len() == 36 && id.as_bytes()[14] == b'7';
    let from =
        if is_version_7 { id.char_indices().rev().nth(7).map_or(0, |(at, _)| at) } else { 0 };
    let rest = &id[from..];
    let end = rest.char_indices().nth(8).map_or(rest.len(), |(at, _)| at);
    &rest[..end]
}

/// The last component of a Unix or Windows path.
fn folder_name(path: &str) -> Option<String> {
    let name = path.trim_end_matches(['/', '\\']).rsplit(['/', '\\']).next();
    name.filter(|name| !name.is_empty() && !name.ends_with(':')).map(str::to_owned)
}
