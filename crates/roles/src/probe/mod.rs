//! The role that examines a store: one check, one process, so that a check that crashes
//! takes no other with it.

mod crashes;
mod finding;
mod kept;
mod log;
mod losses;
mod machine;
mod permissions;
mod segments;
mod selves;
mod truth;

use std::io;
use std::time::Instant;

use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{Model, model_name};
use isolith_fault as fault;
use isolith_protocol::StoreError;
use isolith_store::{
    Check as Look, Embedder, LogRecovery, SalvageReport, StoreFolder, Truth, TruthId,
};
use isolith_types::{Code, Failure};
use serde::{Deserialize, Serialize};

use crate::drawers;
use crate::settings::{StoreSettings, must_pass_on, passed_on, store_sandbox};
pub use crashes::CrashHistory;
pub use finding::{Check, Cure, Finding, Health, Rebuild};
pub use machine::{bytes_below, locks};

/// Examines a store, and mends what needs neither writer nor builder.
pub struct Probe {
    settings: StoreSettings,
    token: InWorker,
}

/// What a probe is asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeJob {
    /// To look at something.
    Check {
        /// At what.
        check: Check,
        /// Whether to take the time for all of it.
        full: bool,
    },
    /// To remove what processes left behind when they died.
    RemoveLeftovers,
    /// To remove what is over its limit.
    EnforceLimits,
    /// To forget what others may have prepared in a store that came from somewhere else.
    Adopt {
        /// The truth's new identity.
        uuid: String,
    },
    /// To make a new truth of the old one and all that can be read of its log.
    RecoverLog,
    /// To save what can be read of the truth into a new one.
    Salvage,
}

/// What it answers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum ProbeReply {
    /// To a check.
    Found(Finding),
    /// What was done, in sentences.
    Mended(Vec<String>),
    /// What became of a damaged log; nothing if it is not.
    Recovered(Option<LogRecovery>),
    /// To a salvage.
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
        if must_pass_on(context) {
            return Err(failure(passed_on(&self.settings)));
        }
        let folder = self.settings.folder();
        match job {
            ProbeJob::Check { check, full } => {
                let finding = self.look(&folder, check, full, context);
                Ok(ProbeReply::Found(finding.unwrap_or_else(|error| truth::finding_of(&error))))
            }
            ProbeJob::RemoveLeftovers => {
                ours(&folder)?;
                let mut done =
                    kept::remove_leftovers(&folder).map_err(|error| refused(&folder, &error))?;
                let mut reader = truth::open(&folder, context, self.token).map_err(failure)?;
                done.extend(segments::remove_unnamed(&folder, &mut reader).map_err(failure)?);
                Ok(ProbeReply::Mended(done))
            }
            ProbeJob::EnforceLimits => {
                ours(&folder)?;
                let done = kept::enforce(&folder).map_err(|error| refused(&folder, &error))?;
                Ok(ProbeReply::Mended(done))
            }
            ProbeJob::Adopt { uuid } => {
                let folder = folder.with_truth(TruthId::Becomes(uuid));
                let deadline = Instant::now() + context.remaining().mul_f32(0.9);
                Truth::adopt(&folder, deadline, self.token).map_err(failure)?;
                Ok(ProbeReply::Mended(Vec::new()))
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
                let embed = |passage: &str| drawers::of_passage(model, passage);
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

impl Probe {
    fn look(
        &self,
        folder: &StoreFolder,
        check: Check,
        full: bool,
        context: &Context<'_>,
    ) -> Result<Finding, StoreError> {
        match check {
            Check::Permissions => return Ok(permissions::check(folder)),
            Check::Disk => return Ok(machine::disk(folder)),
            // A worker cannot look at other processes: see [`locks`].
            Check::Locks => return Ok(Finding::new(Health::Failed, "not checked in a worker")),
            Check::Limits => return Ok(machine::limits()),
            Check::Crashes => return Ok(crashes::check(&folder.crashes())),
            Check::Kept => return Ok(kept::check(folder)),
            Check::Log => return log::check(folder, self.token),
            Check::Losses => return Ok(losses::check(folder)),
            _ => {}
        }
        let reader = &mut match truth::open(folder, context, self.token) {
            Ok(reader) => reader,
            Err(error) if check == Check::Integrity => return Err(error),
            // The check of the truth's integrity says why, and what can be done.
            Err(error) => {
                return Ok(Finding::new(Health::Failed, format!("not checked: {error}")));
            }
        };
        match check {
            Check::Integrity => {
                let contents = truth::contents(reader).unwrap_or_default();
                let (looks, content): (&[Look], _) = if full {
                    (&[Look::Full, Look::Checksums], contents)
                } else {
                    let rest = "not checked without --full: free pages, indexes against tables";
                    (&[Look::Quick], format!("{contents}; {rest}"))
                };
                truth::look(reader, looks, content, Cure::Salvage)
            }
            Check::Schema => {
                let content = "tables and version are as they should be";
                truth::look(reader, &[Look::Schema], content, Cure::Salvage)
            }
            Check::References => {
                let content = "everything belongs to something";
                truth::look(reader, &[Look::References, Look::Orphans], content, Cure::Salvage)
            }
            Check::Counts => {
                let content = truth::contents(reader)?;
                truth::look(reader, &[Look::Counts], content, Cure::Recount)
            }
            Check::Vectors => {
                let content = truth::models(reader)?;
                truth::look(reader, &[Look::Vectors], content, Cure::Salvage)
            }
            Check::Fields => {
                let content = "filters see what the metadata says";
                truth::look(reader, &[Look::Fields], content, Cure::Salvage)
            }
            Check::Generations => truth::generations(reader),
            Check::Segments => segments::check(folder, reader, self.token),
            Check::SelfQueries => selves::check(&self.settings, reader, context, self.token),
            _ => truth::quarantined_jobs(reader),
        }
    }
}

/// Nothing is changed in a folder that must not be used.
fn ours(folder: &StoreFolder) -> Result<(), Failure> {
    folder.check().map_err(failure)
}

fn failure(error: StoreError) -> Failure {
    error.to_failure()
}

fn refused(folder: &StoreFolder, error: &io::Error) -> Failure {
    Failure::new(Code::ReadOnly, format!("{} cannot be mended: {error}", folder.path().display()))
}
