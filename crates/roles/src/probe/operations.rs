//! The operations of the probe.

use isolith_store::{LogRecovery, SalvageReport};
use serde::{Deserialize, Serialize};

use super::{Check, Finding, Probe};
use crate::operation::operations;

/// Runs a check.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RunCheck {
    /// The check.
    pub check: Check,
    /// Whether to include the slow parts.
    pub full: bool,
}

/// Removes leftovers of crashed processes. The reply describes what was done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RemoveLeftovers;

/// Removes files that exceed their limits. The reply describes what was done.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct EnforceLimits;

/// Makes a store from elsewhere the user's own: removes what others may have planted in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Adopt {
    /// The database's new identity.
    pub uuid: String,
}

/// Rebuilds the database from the old one and everything readable in its log. The reply is
/// `None` if no commits are missing.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct RecoverLog;

/// Salvages what can be read of the database into a new one.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Salvage;

operations!(Probe, ProbeJob, ProbeReply {
    RunCheck => Finding,
    RemoveLeftovers => Vec<String>,
    EnforceLimits => Vec<String>,
    Adopt => (),
    RecoverLog => Option<LogRecovery>,
    Salvage => SalvageReport,
});
