//! The worker roles of Isolith: glue between jobs and the crates that contain native code.
//!
//! Jobs and replies are plain data, and all that the front uses of this crate. Nothing here uses
//! the terminal or makes decisions about workers.

mod builder;
mod cypher;
mod drawers;
mod intake;
mod operation;
mod parse;
mod probe;
mod reader;
mod settings;
mod tile;
mod walk;
mod writer;

pub use builder::{BuildJob, BuildOutcome, FoldJob, GraphJob, StoreBuilder};
pub use cypher::CypherCheck;
pub use intake::{
    BatchStart, Intake, IntakeJob, IntakeReply, IntakeSettings, ReadHistory, ReadRecords,
    ReadTranscript, RecordBatch, TranscriptBatch, ValidateRecords, VectorsFrom,
};
pub use isolith_fault::environment;
pub use isolith_intake::records::Layout;
pub use isolith_intake::transcript::{
    Format as TranscriptFormat, SkippedItems, TranscriptCursor, TranscriptOptions,
};
pub use operation::{Operation, Operations};
pub use parse::{FileSummary, FileToParse, ParseJob, Parsed, Parser, ParserSettings};
pub use probe::{
    Adopt, Check, CollectionRebuild, CrashHistory, EnforceLimits, Finding, Health, Probe, ProbeJob,
    ProbeReply, RecoverLog, RemoveLeftovers, Repair, RunCheck, Salvage, bytes_below, crash_reports,
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
