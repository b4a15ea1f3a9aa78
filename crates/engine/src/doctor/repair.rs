//! Repairs what the checks found.

use std::time::{Duration, Instant};

use isolate::Role;
use isolith_protocol::{Damage, ForgetPoison, Recount, Searched, SegmentsOf, Tidy};
use isolith_roles::{CollectionRebuild, RemoveLeftovers, Repair, Salvage, StoreReader};
use isolith_store::{Loss, SalvageReport};
use isolith_types::{Code, Failure, counted};

use super::log::AfterLog;
use super::{CheckOutcome, Doctor, MIN_DEADLINE, permissions};
use crate::open::{Engine, no_store};

/// How long to wait for another process's builder.
const BUILDER_PATIENCE: Duration = Duration::from_secs(600);
const BUILDER_BUSY: Duration = Duration::from_millis(200);

/// Maximum number of transactions for removing expired data.
const MAX_CLEANUP_TRANSACTIONS: u32 = 100;

/// Maximum number of lost ids to list.
const MAX_LISTED_IDS: usize = 10;

/// The repairs to make, in this order.
#[derive(Default)]
struct RepairPlan {
    permissions: bool,
    recover_log: bool,
    salvage: bool,
    recount: bool,
    leftovers: bool,
    rebuilds: Vec<CollectionRebuild>,
    /// Damaged graph segments, if the graph needs a new one.
    graph: Option<Vec<Damage>>,
}

impl RepairPlan {
    fn of(found: &[CheckOutcome]) -> Self {
        let mut plan = Self::default();
        for repair in found.iter().flat_map(|examined| &examined.repairs) {
            match repair {
                Repair::Permissions => plan.permissions = true,
                Repair::RecoverLog => plan.recover_log = true,
                Repair::Salvage => plan.salvage = true,
                Repair::Recount => plan.recount = true,
                Repair::Leftovers => plan.leftovers = true,
                Repair::RebuildCollection(rebuild) => plan.add(rebuild),
                Repair::RebuildGraph(damaged) => {
                    plan.graph.get_or_insert_default().extend(damaged.iter().cloned());
                }
            }
        }
        plan
    }

    /// Merges requests: several checks may blame different files of one collection.
    fn add(&mut self, rebuild: &CollectionRebuild) {
        match self.rebuilds.iter_mut().find(|known| known.id == rebuild.id) {
            None => self.rebuilds.push(rebuild.clone()),
            Some(known) => {
                for damage in &rebuild.damaged {
                    if known.damaged.iter().all(|other| other.file != damage.file) {
                        known.damaged.push(damage.clone());
                    }
                }
            }
        }
    }
}

impl Doctor {
    /// Makes the repairs and reports them in `done`. Continues after a failed repair;
    /// returns the first failure.
    pub(super) async fn repair(
        &self,
        found: &[CheckOutcome],
        done: &mut Vec<String>,
        lost: &mut Vec<Loss>,
    ) -> Result<(), Failure> {
        let mut plan = RepairPlan::of(found);
        let mut first = Ok(());
        if plan.permissions {
            first = first.and(self.mend_permissions(done));
        }
        if plan.recover_log && !plan.salvage {
            match self.recover_log(done).await? {
                AfterLog::Nothing => {}
                AfterLog::Salvage => plan.salvage = true,
                AfterLog::Rebuild => first = first.and(self.rebuild_all(done).await),
            }
        }
        if plan.salvage {
            // Everything else relies on an intact database.
            lost.extend(self.salvage(done).await?);
            first = first.and(self.rebuild_all(done).await);
        }
        if plan.leftovers {
            let removed = self.probe(RemoveLeftovers, MIN_DEADLINE).await;
            first = first.and(removed.map(|removed| done.extend(removed)));
        }
        if plan.recount && !plan.salvage {
            first = first.and(self.recount(done).await);
        }
        for rebuild in plan.rebuilds.iter().filter(|_| !plan.salvage) {
            first = first.and(self.rebuild(rebuild, done).await);
        }
        if let Some(damaged) = plan.graph.filter(|_| !plan.salvage) {
            let searched = Searched { damaged, ..Searched::default() };
            self.engine()?.quarantine(SegmentsOf::Graph, &searched, false).await;
            first = first.and(self.rebuild_graph(done).await);
        }
        first
    }

    fn mend_permissions(&self, done: &mut Vec<String>) -> Result<(), Failure> {
        // Change nothing in a folder that must not be used.
        self.folder.check().map_err(|error| error.to_failure())?;
        let path = self.folder.path();
        let mended = permissions::mend(path).map_err(|error| {
            let message = format!("cannot make {} private: {error}", path.display());
            Failure::new(Code::ReadOnly, message)
        })?;
        match mended {
            0 => {}
            1 => done.push("made 1 file or folder private".to_owned()),
            mended => done.push(format!("made {mended} files and folders private")),
        }
        Ok(())
    }

    async fn salvage(&self, done: &mut Vec<String>) -> Result<Vec<Loss>, Failure> {
        match self.probe(Salvage, self.salvage_deadline()).await {
            Ok(report) => {
                done.extend(describe(&report));
                Ok(report.lost)
            }
            Err(failure) if failure.code == Code::Corrupt => {
                let message = format!("no data can be recovered: {}", failure.message);
                Err(Failure::new(Code::Corrupt, message).with_hint(
                    "restore truth.sqlite from a backup, or move the folder away and start again",
                ))
            }
            Err(failure) => Err(failure),
        }
    }

    async fn recount(&self, done: &mut Vec<String>) -> Result<(), Failure> {
        self.engine()?.write(Recount, None).await?;
        done.push("counted the records of all collections again".to_owned());
        Ok(())
    }

    /// After a salvage no collection has segments.
    async fn rebuild_all(&self, done: &mut Vec<String>) -> Result<(), Failure> {
        for state in self.engine()?.states().await? {
            self.fold(&state.name, done).await?;
        }
        self.rebuild_graph(done).await
    }

    async fn rebuild(
        &self,
        rebuild: &CollectionRebuild,
        done: &mut Vec<String>,
    ) -> Result<(), Failure> {
        let searched = Searched {
            collection: rebuild.id,
            generation: rebuild.generation,
            damaged: rebuild.damaged.clone(),
            ..Searched::default()
        };
        self.engine()?.quarantine_segments(&rebuild.collection, &searched, false).await;
        self.fold(&rebuild.collection, done).await
    }

    async fn fold(&self, collection: &str, done: &mut Vec<String>) -> Result<(), Failure> {
        let engine = self.engine()?;
        let started = Instant::now();
        loop {
            let folded = match engine.fold(collection, true, None).await {
                // It was deleted in the meantime.
                Err(failure) if failure.code == Code::NotFound => return Ok(()),
                folded => folded?,
            };
            // No new generation: another process is building, or was faster.
            if folded.generation.is_some() {
                let records = counted(folded.rows, "record");
                done.push(format!("rebuilt the segments of {collection} from {records}"));
                return Ok(());
            }
            wait_for_builder(started, collection).await?;
        }
    }

    async fn rebuild_graph(&self, done: &mut Vec<String>) -> Result<(), Failure> {
        let started = Instant::now();
        loop {
            let built = self.engine()?.rebuild_graph().await?;
            if built.rows > 0 {
                let edges = counted(built.rows, "edge");
                done.push(format!("rebuilt the segment of the graph from {edges}"));
            }
            // A graph that has changed in the meantime, or is small, needs no segment.
            if !built.busy {
                return Ok(());
            }
            wait_for_builder(started, "the graph").await?;
        }
    }

    /// Releases quarantined read jobs: they may have failed because of the damage that is now
    /// repaired.
    pub(super) async fn release_read_jobs(&self) {
        let Ok(engine) = self.engine() else { return };
        let role = Some(StoreReader::NAME.to_owned());
        let _ = engine.write(ForgetPoison { role, input: None }, None).await;
    }

    fn engine(&self) -> Result<&Engine, Failure> {
        self.engine.as_ref().ok_or_else(|| match self.folder.check() {
            Err(error) => error.to_failure(),
            Ok(()) => no_store(self.folder.path()),
        })
    }
}

impl Engine {
    /// Removes expired data: keys of writes, finished loads, old quarantined jobs. Returns
    /// how many; 0 if the store cannot be written.
    pub(super) async fn remove_expired(&self) -> u64 {
        let mut removed = 0;
        for _ in 0..MAX_CLEANUP_TRANSACTIONS {
            match self.write(Tidy, None).await {
                Ok(written) => {
                    removed += written.done.reply.deleted;
                    if !written.done.reply.more {
                        break;
                    }
                }
                Err(failure) => {
                    tracing::debug!(%failure, "nothing was tidied");
                    break;
                }
            }
        }
        removed
    }
}

/// Waits a moment for another process's builder; fails after [`BUILDER_PATIENCE`].
async fn wait_for_builder(started: Instant, whose: &str) -> Result<(), Failure> {
    if started.elapsed() > BUILDER_PATIENCE {
        let message = format!("{whose}: another process keeps building segments");
        return Err(Failure::new(Code::LockHeld, message).with_hint("try again later"));
    }
    tokio::time::sleep(BUILDER_BUSY).await;
    Ok(())
}

/// Describes the result of a salvage.
fn describe(report: &SalvageReport) -> Vec<String> {
    let SalvageReport { collections, records, facts, lost, kept_as, report, .. } = report;
    let facts =
        if *facts > 0 { format!(" and {}", counted(*facts, "fact")) } else { String::new() };
    let mut messages = vec![format!(
        "saved {} in {}{facts} into a new truth; the damaged one is {}",
        counted(*records, "record"),
        counted(*collections, "collection"),
        kept_as.display()
    )];
    messages.extend(lost.iter().map(|loss| loss.in_words(MAX_LISTED_IDS)));
    if !lost.is_empty() {
        messages.push(format!("the whole report of what was lost is {}", report.display()));
    }
    messages
}
