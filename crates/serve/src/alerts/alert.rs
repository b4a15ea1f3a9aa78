//! What an alert says.

use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Serialize;

/// Why an alert is raised.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Cause {
    /// Too many jobs failed.
    FailureRate,
    /// Workers of a role keep dying, and its jobs are refused.
    BreakerOpen,
    /// Stored data is damaged, or a segment is not rebuilt.
    StoreDamaged,
    /// There is little free space on the disk of a store.
    DiskNearlyFull,
}

/// An alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Alert {
    pub(super) cause: Cause,
    /// Whose store it is about: `project` or `user`.
    pub(super) store: &'static str,
    /// The folder of the store.
    pub(super) folder: PathBuf,
    /// The role of the workers, if it is about some.
    pub(super) role: Option<String>,
    /// What is wrong, in one line.
    pub(super) message: String,
    /// When it was noticed, in milliseconds since 1970.
    pub(super) unix_ms: u64,
}

impl Cause {
    /// The name in JSON and in metrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::FailureRate => "failure_rate",
            Self::BreakerOpen => "breaker_open",
            Self::StoreDamaged => "store_damaged",
            Self::DiskNearlyFull => "disk_nearly_full",
        }
    }
}

impl Alert {
    pub(super) fn new(
        cause: Cause,
        store: &'static str,
        folder: PathBuf,
        role: Option<String>,
        message: &str,
    ) -> Self {
        // Errors can contain names of files, and those any character.
        let message = message.chars().map(|it| if it.is_control() { ' ' } else { it }).collect();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let unix_ms = u64::try_from(since.as_millis()).unwrap_or(u64::MAX);
        Self { cause, store, folder, role, message, unix_ms }
    }

    /// The alert as JSON, in one line.
    pub(super) fn json(&self) -> String {
        // Only strings and numbers; a path that is not UTF-8 would fail.
        let lossy =
            Self { folder: self.folder.to_string_lossy().into_owned().into(), ..self.clone() };
        serde_json::to_string(&lossy).unwrap_or_default() + "\n"
    }

    /// The alert as environment variables.
    pub(super) fn variables(&self) -> [(&'static str, String); 6] {
        [
            ("ISOLITH_ALERT_CAUSE", self.cause.name().to_owned()),
            ("ISOLITH_ALERT_STORE", self.store.to_owned()),
            ("ISOLITH_ALERT_FOLDER", self.folder.to_string_lossy().into_owned()),
            ("ISOLITH_ALERT_ROLE", self.role.clone().unwrap_or_default()),
            ("ISOLITH_ALERT_MESSAGE", self.message.clone()),
            ("ISOLITH_ALERT_UNIX_MS", self.unix_ms.to_string()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_alert_is_one_line_of_json() {
        let message = "cannot read a\0b\n\u{1b}[1mc";
        let alert = Alert::new(Cause::StoreDamaged, "user", "/s".into(), None, message);
        let text = alert.json();
        assert_eq!(text.lines().count(), 1);
        let document: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(document["cause"], alert.cause.name());
        assert_eq!(document["message"], "cannot read a b  [1mc");
        assert!(!alert.variables().iter().any(|(_, value)| value.contains('\0')));
    }
}
