use std::fmt;

use serde::ser::SerializeStruct;
use serde::{Deserialize, Serialize, Serializer};

use crate::Hint;

/// An error on its way to people, scripts and agents, who see it as a [`ShownFailure`].
///
/// As JSON it is what the terminal shows, because the reports of commands contain failures.
/// Only between our processes does it keep its [`Hint`].
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Failure {
    /// The kind of failure; scripts branch on it.
    pub code: Code,
    /// What happened, in one sentence.
    pub message: String,
    /// What to do about it.
    pub hint: Option<Hint>,
    /// The death of a worker that caused it.
    pub death: Option<Box<DeathNote>>,
}

/// A failure in the words of the place where it is shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ShownFailure {
    /// What kind of failure this is; scripts branch on it.
    pub code: Code,
    /// What happened, in one sentence.
    pub message: String,
    /// What to do about it; empty when there is nothing to do.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub hint: String,
    /// The death of a worker that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub death: Option<Box<DeathNote>>,
}

/// How a worker died, as reported to callers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeathNote {
    /// The class of the death, such as `crash` or `timeout`.
    pub class: String,
    /// The signal that ended the worker.
    pub signal: Option<i32>,
    /// The code it exited with.
    pub exit_code: Option<i32>,
    /// Its process id, which is also in its crash report.
    pub worker_pid: u32,
}

impl Failure {
    /// A failure without a hint.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), hint: None, death: None }
    }

    /// Adds the death that caused the failure.
    #[must_use]
    pub fn with_death(mut self, death: DeathNote) -> Self {
        self.death = Some(Box::new(death));
        self
    }

    /// The same failure with other advice; an empty text is none.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<Hint>) -> Self {
        self.hint = Some(hint.into()).filter(|hint| *hint != Hint::Text(String::new()));
        self
    }

    /// The failure in the words of a place, such as [`Hint::for_terminal`].
    pub fn worded(self, words: fn(&Hint) -> String) -> ShownFailure {
        ShownFailure {
            code: self.code,
            message: self.message,
            hint: self.hint.as_ref().map(words).unwrap_or_default(),
            death: self.death,
        }
    }
}

impl Serialize for Failure {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            return self.clone().worded(Hint::for_terminal).serialize(serializer);
        }
        let mut fields = serializer.serialize_struct("Failure", 4)?;
        fields.serialize_field("code", &self.code)?;
        fields.serialize_field("message", &self.message)?;
        fields.serialize_field("hint", &self.hint)?;
        fields.serialize_field("death", &self.death)?;
        fields.end()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}

/// The codes of [`Failure`]. They are a contract: codes can be added, but never renamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Code {
    /// The request failed for a reason that has no code of its own.
    Failed,
    /// The command line could not be understood.
    Usage,
    /// The input, or data in it, is invalid.
    BadInput,
    /// The request or its answer is larger than the limit.
    TooLarge,
    /// A path is outside the folders that may be read.
    ForbiddenPath,
    /// The request lacks the token that the server requires.
    Unauthorized,
    /// The server does not accept requests from this origin.
    Forbidden,
    /// The server has reached its connection limit.
    TooManyConnections,
    /// The requested item does not exist.
    NotFound,
    /// The item to create already exists.
    AlreadyExists,
    /// The collection's vectors come from another model.
    ModelMismatch,
    /// The collection's model is not available for embedding; pass a vector.
    ModelUnavailable,
    /// The idempotency key was used for a different request.
    KeyReused,
    /// The write was applied before, but its result is no longer stored.
    AlreadyApplied,
    /// The rest of an answer is no longer available.
    CursorExpired,
    /// There is no store here yet.
    NoStore,
    /// The store's file was deleted or replaced while it was open.
    StoreReplaced,
    /// The store was written by a newer version of the program.
    StoreNewer,
    /// The store must not be used: foreign owner, tracked by git, network filesystem.
    StoreRefused,
    /// The seal does not prove that this user created the store on this machine.
    StoreForeign,
    /// The store cannot be written: no permission, or a read-only filesystem.
    ReadOnly,
    /// The disk is full.
    DiskFull,
    /// Another process holds the lock.
    LockHeld,
    /// The job killed its worker, and those of all retries.
    WorkerDied,
    /// The job is known to kill workers and was not run.
    Quarantined,
    /// No worker could be started.
    StartFailure,
    /// Stored data is damaged.
    Corrupt,
    /// The job did not finish within its deadline.
    Timeout,
    /// Workers keep dying, so no more are started for a while.
    BreakerOpen,
    /// The queue is full.
    QueueFull,
    /// The program is stopping and accepts no more jobs.
    Draining,
    /// SIGINT stopped the command.
    Interrupted,
    /// SIGTERM stopped the command.
    Terminated,
}

impl Code {
    /// The exit status of a command that ends with this code.
    pub fn exit_status(self) -> u8 {
        match self {
            Code::Failed
            | Code::StoreRefused
            | Code::StoreForeign
            | Code::ReadOnly
            | Code::DiskFull
            | Code::Unauthorized
            | Code::Forbidden => 1,
            Code::Usage => 2,
            Code::BadInput
            | Code::TooLarge
            | Code::ForbiddenPath
            | Code::AlreadyExists
            | Code::ModelMismatch
            | Code::ModelUnavailable
            | Code::KeyReused
            | Code::AlreadyApplied => 3,
            Code::NotFound | Code::NoStore | Code::CursorExpired => 4,
            Code::WorkerDied | Code::Quarantined | Code::StartFailure => 70,
            Code::Corrupt => 74,
            Code::Timeout
            | Code::BreakerOpen
            | Code::QueueFull
            | Code::TooManyConnections
            | Code::Draining
            | Code::StoreReplaced
            | Code::StoreNewer
            | Code::LockHeld => 75,
            Code::Interrupted => 130,
            Code::Terminated => 143,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_fields_are_omitted_from_json() {
        let plain = Failure::new(Code::BreakerOpen, "workers keep dying");
        assert_eq!(
            serde_json::to_string(&plain).unwrap(),
            r#"{"code":"breaker_open","message":"workers keep dying"}"#
        );
        let advised = plain.with_hint("try again in 5 s");
        assert_eq!(
            serde_json::to_string(&advised).unwrap(),
            r#"{"code":"breaker_open","message":"workers keep dying","hint":"try again in 5 s"}"#
        );
        assert_eq!(advised.to_string(), "workers keep dying");
        assert_eq!(advised.with_hint("").hint, None);
    }

    #[test]
    fn hints_are_kept_between_processes_and_worded_for_people() {
        let hint = Hint::InvalidateFact { id: "f2".to_owned() };
        let failure = Failure::new(Code::AlreadyExists, "it is true").with_hint(hint);
        let bytes = postcard::to_stdvec(&failure).unwrap();
        assert_eq!(postcard::from_bytes::<Failure>(&bytes).unwrap(), failure);
        assert_eq!(
            serde_json::to_value(&failure).unwrap()["hint"],
            "if it has ended, `isolith fact invalidate f2 --at WHEN` says so"
        );
        assert_eq!(failure.worded(|_| "end it".to_owned()).hint, "end it");
    }

    /// Every code with its exit status is in docs/commands.md.
    #[test]
    fn all_codes_are_documented() {
        let source = include_str!("failure.rs");
        let variants = source.split_once("pub enum Code {").unwrap().1.split_once("\n}").unwrap().0;
        let variants = variants.lines().filter_map(|line| line.trim().strip_suffix(','));
        let names = variants.map(|variant| {
            let snake = variant.chars().enumerate().flat_map(|(at, letter)| {
                let gap = (at > 0 && letter.is_uppercase()).then_some('_');
                gap.into_iter().chain(letter.to_lowercase())
            });
            snake.collect::<String>()
        });
        let page = include_str!("../../../docs/commands.md");
        let table = page.split_once("## Error codes").unwrap().1;
        let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split('|').collect()).collect();
        let mut count = 0;
        for name in names {
            let code: Code = serde_json::from_str(&format!("\"{name}\"")).unwrap();
            let quoted = format!("`{name}`");
            let row = rows.iter().find(|row| row.len() > 3 && row[1].contains(&quoted));
            let row = row.unwrap_or_else(|| panic!("{name} is not in docs/commands.md"));
            let at = row[1].split(',').position(|it| it.trim() == quoted).unwrap();
            let statuses: Vec<&str> = row[2].split(',').map(str::trim).collect();
            let status = statuses.get(at).unwrap_or(&statuses[0]);
            assert_eq!(status.parse(), Ok(code.exit_status()), "{name}");
            count += 1;
        }
        assert!(count > 25, "{count}");
    }

    #[test]
    fn exit_statuses_follow_the_contract() {
        let table = [
            (Code::Failed, 1),
            (Code::Usage, 2),
            (Code::BadInput, 3),
            (Code::NotFound, 4),
            (Code::WorkerDied, 70),
            (Code::Corrupt, 74),
            (Code::Timeout, 75),
            (Code::BreakerOpen, 75),
            (Code::Interrupted, 130),
            (Code::Terminated, 143),
        ];
        for (code, status) in table {
            assert_eq!(code.exit_status(), status, "{code:?}");
        }
    }
}
