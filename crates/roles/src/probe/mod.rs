//! The role that checks a store: one check per process, so that a crash does not affect other
//! checks.

mod crashes;
mod finding;
mod kept;
mod log;
mod losses;
mod machine;
mod permissions;
mod segments;
mod self_queries;
mod truth;

use std::io;
use std::time::Instant;

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{Model, model_name};
use isolith_fault as fault;
use isolith_protocol::StoreError;
use isolith_store::{
    Check as TruthCheck, Embedder, LogRecovery, Reader, SalvageReport, StoreFolder, Truth, TruthId,
};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::drawers;
use crate::settings::{StoreSettings, pass_on_if_replaced, replaced_error, store_sandbox};
pub use crashes::CrashHistory;
pub use finding::{Check, CollectionRebuild, Finding, Health, Repair};
pub use machine::{bytes_below, locks};

/// Checks a store, and makes the repairs that need neither writer nor builder.
pub struct Probe {
    settings: StoreSettings,
    token: InWorker,
}

/// A job of the probe.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeJob {
    /// Runs a check.
    Check {
        /// The check.
        check: Check,
        /// Whether to include the slow parts.
        full: bool,
    },
    /// Removes leftovers of crashed processes.
    RemoveLeftovers,
    /// Removes files that exceed their limits.
    EnforceLimits,
    /// Makes a store from elsewhere the user's own: removes what others may have planted in it.
    Adopt {
        /// The database's new identity.
        uuid: String,
    },
    /// Rebuilds the database from the old one and everything readable in its log.
    RecoverLog,
    /// Salvages what can be read of the database into a new one.
    Salvage,
}

/// The reply to a [`ProbeJob`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeReply {
    /// The result of a check.
    Checked(Finding),
    /// Descriptions of what was done.
    Repaired(Vec<String>),
    /// The result of recovering the log; `None` if no commits are missing.
    Recovered(Option<LogRecovery>),
    /// The result of a salvage.
    Salvaged(SalvageReport),
}

impl Role for Probe {
    const NAME: &'static str = "probe";
    type Settings = StoreSettings;
    type Request = ProbeJob;
    type Reply = Result<ProbeReply, Failure>;

    fn warm_up(settings: StoreSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self { settings, token })
    }

    fn handle(&mut self, job: ProbeJob, context: &Context<'_>) -> Self::Reply {
        fault::point(&format!("probe.{}", Self::kind(&job)), context);
        if pass_on_if_replaced(context) {
            return Err(failure(replaced_error(&self.settings)));
        }
        let folder = self.settings.folder();
        match job {
            ProbeJob::Check { check, full } => {
                let finding = self.run_check(&folder, check, full, context);
                Ok(ProbeReply::Checked(finding.unwrap_or_else(|error| truth::finding_of(&error))))
            }
            ProbeJob::RemoveLeftovers => {
                check_folder(&folder)?;
                let mut done =
                    kept::remove_leftovers(&folder).map_err(|error| refused(&folder, &error))?;
                let mut reader = truth::open(&folder, context, self.token).map_err(failure)?;
                done.extend(segments::remove_unreferenced(&folder, &mut reader).map_err(failure)?);
                Ok(ProbeReply::Repaired(done))
            }
            ProbeJob::EnforceLimits => {
                check_folder(&folder)?;
                let done = kept::enforce(&folder).map_err(|error| refused(&folder, &error))?;
                Ok(ProbeReply::Repaired(done))
            }
            ProbeJob::Adopt { uuid } => {
                let folder = folder.with_truth(TruthId::Becomes(uuid));
                let deadline = Instant::now() + context.remaining().mul_f32(0.9);
                Truth::adopt(&folder, deadline, self.token).map_err(failure)?;
                Ok(ProbeReply::Repaired(Vec::new()))
            }
            ProbeJob::RecoverLog => {
                let deadline = Instant::now() + context.remaining().mul_f32(0.9);
                let recovery =
                    Truth::recover_log(&folder, deadline, self.token).map_err(failure)?;
                Ok(ProbeReply::Recovered(recovery))
            }
            ProbeJob::Salvage => {
                let deadline = Instant::now() + context.remaining().mul_f32(0.9);
                let model = Model::embedded(self.token);
                let embed = |passage: &str| drawers::embed_passage(model, passage);
                let embedder = Embedder { model: model_name(), embed: &embed };
                let report = Truth::salvage(&folder, deadline, &embedder, self.token);
                let report = report.map_err(failure)?;
                Ok(ProbeReply::Salvaged(report))
            }
        }
    }

    fn kind(job: &ProbeJob) -> &'static str {
        match job {
            ProbeJob::Check { check, .. } => check.name(),
            ProbeJob::RemoveLeftovers => "remove_leftovers",
            ProbeJob::EnforceLimits => "enforce_limits",
            ProbeJob::Adopt { .. } => "adopt",
            ProbeJob::RecoverLog => "recover_log",
            ProbeJob::Salvage => "salvage",
        }
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &["/proc/meminfo"])
    }
}

type ReaderCheck<'a> = &'a dyn Fn(&mut Reader) -> Result<Finding, StoreError>;

impl Probe {
    fn run_check(
        &self,
        folder: &StoreFolder,
        check: Check,
        full: bool,
        context: &Context<'_>,
    ) -> Result<Finding, StoreError> {
        let token = self.token;
        // If the database cannot be opened, only the check of its integrity reports the damage.
        let reading = |check: ReaderCheck<'_>| match truth::open(folder, context, token) {
            Ok(mut reader) => check(&mut reader),
            Err(error) => Ok(Finding::new(Health::Failed, format!("not checked: {error}"))),
        };
        match check {
            Check::Permissions => Ok(permissions::check(folder)),
            Check::Disk => Ok(machine::disk(folder)),
            // A worker cannot inspect other processes: see [`locks`].
            Check::Locks => Ok(Finding::new(Health::Failed, "not checked in a worker")),
            Check::Limits => Ok(machine::limits()),
            Check::Crashes => Ok(crashes::check(&folder.crashes())),
            Check::Kept => Ok(kept::check(folder)),
            Check::Log => log::check(folder, token),
            Check::Losses => Ok(losses::check(folder)),
            Check::Integrity => truth::integrity(&mut truth::open(folder, context, token)?, full),
            Check::Schema => reading(&|reader| {
                let ok = "tables, indexes and version are correct";
                truth::run_checks(reader, &[TruthCheck::Schema], ok, Repair::Salvage)
            }),
            Check::References => reading(&|reader| {
                let checks = [TruthCheck::References, TruthCheck::Orphans];
                truth::run_checks(reader, &checks, "no dangling references", Repair::Salvage)
            }),
            Check::Counts => reading(&|reader| {
                let ok = truth::contents(reader)?;
                truth::run_checks(reader, &[TruthCheck::Counts], ok, Repair::Recount)
            }),
            Check::Vectors => reading(&|reader| {
                let ok = truth::models(reader)?;
                truth::run_checks(reader, &[TruthCheck::Vectors], ok, Repair::Salvage)
            }),
            Check::Fields => reading(&|reader| {
                let ok = "indexed fields match the metadata";
                truth::run_checks(reader, &[TruthCheck::Fields], ok, Repair::Salvage)
            }),
            Check::Generations => reading(&truth::generations),
            Check::Segments => reading(&|reader| segments::check(folder, reader, token)),
            Check::SelfQueries => {
                reading(&|reader| self_queries::check(&self.settings, reader, context, token))
            }
            Check::Quarantine => reading(&truth::quarantined_jobs),
        }
    }
}

/// Nothing may be changed in a folder that fails this check.
fn check_folder(folder: &StoreFolder) -> Result<(), Failure> {
    folder.check().map_err(failure)
}

fn failure(error: StoreError) -> Failure {
    error.to_failure()
}

fn refused(folder: &StoreFolder, error: &io::Error) -> Failure {
    let path = folder.path().display();
    Failure::new(Code::ReadOnly, format!("cannot remove files of {path}: {error}"))
}
