//! What runs inside the workers of Isolith: glue between the processes' protocol and
//! the crates that hold native engines.
//!
//! The types of jobs and replies are plain data and are all that the front knows of
//! this crate. Nothing here talks to a terminal or decides about workers.

mod builder;
mod cypher;
mod drawers;
mod intake;
mod parse;
mod probe;
mod reader;
mod settings;
mod walk;
mod writer;

pub use builder::{BuildJob, FoldDone, FoldJob, GraphJob, StoreBuilder};
pub use cypher::CypherCheck;
pub use intake::{Intake, IntakeJob, IntakeReply, IntakeSettings, Place, Turns};
pub use isolith_fault::environment;
pub use isolith_history::{FileChange, History, Repository, repository_of};
pub use isolith_intake::records::{Cursor, Layout};
pub use isolith_intake::transcript::{
    Format as TranscriptFormat, Problem as TranscriptProblem, TranscriptCursor, TranscriptOptions,
};
pub use parse::{FileToParse, ParseJob, ParseNote, Parsed, Parser, ParserSettings};
pub use probe::{
    Check, CrashHistory, Cure, Finding, Health, Probe, ProbeJob, ProbeReply, Rebuild, bytes_below,
    locks,
};
pub use reader::StoreReader;
pub use settings::StoreSettings;
pub use walk::{Walk, WalkJob};
pub use writer::{StoreWriter, WriteJob};

/// All roles, for `worker_main`.
pub fn entries() -> [isolate::RoleEntry; 8] {
    [
        isolate::role::<StoreWriter>(),
        isolate::role::<StoreReader>(),
        isolate::role::<StoreBuilder>(),
        isolate::role::<Parser>(),
        isolate::role::<Intake>(),
        isolate::role::<Probe>(),
        isolate::role::<Walk>(),
        isolate::role::<CypherCheck>(),
    ]
}
