//! The role that checks a store: one check per process, so that a crash does not affect other
//! checks.

mod crashes;
mod finding;
mod log;
mod losses;
mod machine;
mod operations;
mod permissions;
mod retention;
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

use crate::drawers;
use crate::operation::Perform;
use crate::settings::{StoreSettings, pass_on_if_replaced, replaced_error, store_sandbox};
pub use crashes::{CrashHistory, crash_reports};
pub use finding::{Check, CollectionRebuild, Finding, Health, Repair};
pub use machine::{bytes_below, locks};
pub use operations::{
    Adopt, EnforceLimits, ProbeJob, ProbeReply, RecoverLog, RemoveLeftovers, RunCheck, Salvage,
};

/// Checks a store, and makes the repairs that need neither writer nor builder.
pub struct Probe {
    settings: StoreSettings,
    token: InWorker,
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
        fault::point(&format!("probe.{}", job.name()), context);
        if pass_on_if_replaced(context) {
            return Err(failure(replaced_error(&self.settings)));
        }
        job.perform(self, context)
    }

    fn kind(job: &ProbeJob) -> &'static str {
        job.name()
    }

    fn sandbox(settings: &StoreSettings) -> Sandbox {
        store_sandbox(settings, &["/proc/meminfo"])
    }
}

type ReaderCheck<'a> = &'a dyn Fn(&mut Reader) -> Result<Finding, StoreError>;

impl Perform<Probe> for RunCheck {
    fn name(&self) -> &'static str {
        self.check.name()
    }

    fn perform(self, probe: &mut Probe, context: &Context<'_>) -> Result<Finding, Failure> {
        let finding = probe.run_check(self, context);
        Ok(finding.unwrap_or_else(|error| truth::finding_of(&error)))
    }
}

impl Perform<Probe> for RemoveLeftovers {
    fn name(&self) -> &'static str {
        "remove_leftovers"
    }

    fn perform(self, probe: &mut Probe, context: &Context<'_>) -> Result<Vec<String>, Failure> {
        let folder = probe.checked_folder()?;
        let mut done =
            retention::remove_leftovers(&folder).map_err(|error| refused(&folder, &error))?;
        let mut reader = truth::open(&folder, context, probe.token).map_err(failure)?;
        done.extend(segments::remove_unreferenced(&folder, &mut reader).map_err(failure)?);
        Ok(done)
    }
}

impl Perform<Probe> for EnforceLimits {
    fn name(&self) -> &'static str {
        "enforce_limits"
    }

    fn perform(self, probe: &mut Probe, _: &Context<'_>) -> Result<Vec<String>, Failure> {
        let folder = probe.checked_folder()?;
        retention::enforce(&folder).map_err(|error| refused(&folder, &error))
    }
}

impl Perform<Probe> for Adopt {
    fn name(&self) -> &'static str {
        "adopt"
    }

    fn perform(self, probe: &mut Probe, context: &Context<'_>) -> Result<(), Failure> {
        let folder = probe.settings.folder().with_truth(TruthId::Becomes(self.uuid));
        Truth::adopt(&folder, deadline(context), probe.token).map_err(failure)
    }
}

impl Perform<Probe> for RecoverLog {
    fn name(&self) -> &'static str {
        "recover_log"
    }

    fn perform(
        self,
        probe: &mut Probe,
        context: &Context<'_>,
    ) -> Result<Option<LogRecovery>, Failure> {
        let folder = probe.settings.folder();
        Truth::recover_log(&folder, deadline(context), probe.token).map_err(failure)
    }
}

impl Perform<Probe> for Salvage {
    fn name(&self) -> &'static str {
        "salvage"
    }

    fn perform(self, probe: &mut Probe, context: &Context<'_>) -> Result<SalvageReport, Failure> {
        let model = Model::embedded(probe.token);
        let embed = |passage: &str| drawers::embed_passage(model, passage);
        let embedder = Embedder { model: model_name(), embed: &embed };
        let folder = probe.settings.folder();
        Truth::salvage(&folder, deadline(context), &embedder, probe.token).map_err(failure)
    }
}

impl Probe {
    /// The folder, if files in it may be changed.
    fn checked_folder(&self) -> Result<StoreFolder, Failure> {
        let folder = self.settings.folder();
        folder.check().map_err(failure)?;
        Ok(folder)
    }

    fn run_check(&self, job: RunCheck, context: &Context<'_>) -> Result<Finding, StoreError> {
        let RunCheck { check, full } = job;
        let (folder, token) = (&self.settings.folder(), self.token);
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
            Check::Kept => Ok(retention::check(folder)),
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

/// Leaves some time for the reply.
fn deadline(context: &Context<'_>) -> Instant {
    Instant::now() + context.remaining().mul_f32(0.9)
}

fn failure(error: StoreError) -> Failure {
    error.to_failure()
}

fn refused(folder: &StoreFolder, error: &io::Error) -> Failure {
    let path = folder.path().display();
    Failure::new(Code::ReadOnly, format!("cannot remove files of {path}: {error}"))
}
