//! Checks that searches for stored vectors find them, through the normal search path.

use isolate::{Bulk, Context, InWorker, Role};
use isolith_protocol::{
    CollectionState, FindNearest, Page, ReadOperation, ReadReply, RecordsFound, Selection,
    StoreError, StoredRecord,
};
use isolith_store::Reader;
use isolith_types::{Failure, Metric};

use super::finding::{CollectionRebuild, Finding, Health, Repair};
use crate::reader::StoreReader;
use crate::settings::StoreSettings;

/// Number of vectors tried in each collection.
const SAMPLE: u64 = 16;

/// Number of hits requested; several records may have the same vector.
const HITS: u32 = 10;

/// Relative tolerance for the distance of a vector from itself.
const TOLERANCE: f32 = 1e-4;

pub(super) fn check(
    settings: &StoreSettings,
    reader: &mut Reader,
    context: &Context<'_>,
    token: InWorker,
) -> Result<Finding, StoreError> {
    let mut worker = match StoreReader::warm_up(settings.clone(), token) {
        Ok(worker) => worker,
        Err(refusal) => return Ok(Finding::new(Health::Failed, refusal.message)),
    };
    let states = reader.snapshot()?.collections()?;
    let mut results = SelfQueryResults::default();
    for state in states.iter().filter(|state| state.records > 0) {
        for stored in sample(reader, state)?.iter().filter(|it| can_be_found(state, it)) {
            let search = FindNearest {
                collection: state.name.clone(),
                vector: Bulk::from(bytes(&stored.record.vector)),
                limit: HITS,
                filter: None,
            };
            let reply = worker.handle(search.into(), context);
            results.add(reader, state, stored, reply)?;
        }
    }
    Ok(results.into_finding())
}

#[derive(Default)]
struct SelfQueryResults {
    tried: u64,
    lost: Vec<String>,
    failed: Vec<String>,
    degraded: Option<String>,
    repairs: Vec<Repair>,
}

impl SelfQueryResults {
    fn add(
        &mut self,
        reader: &mut Reader,
        state: &CollectionState,
        stored: &StoredRecord,
        reply: Result<ReadReply, Failure>,
    ) -> Result<(), StoreError> {
        self.tried += 1;
        let failure = match reply {
            Ok(reply) => match FindNearest::reply_from(reply) {
                Some(found) => return self.compare(reader, state, stored, found),
                None => "unexpected reply from the reader".to_owned(),
            },
            Err(failure) => format!("{}: {failure}", state.name),
        };
        self.failed.push(failure);
        Ok(())
    }

    fn compare(
        &mut self,
        reader: &mut Reader,
        state: &CollectionState,
        stored: &StoredRecord,
        found: RecordsFound,
    ) -> Result<(), StoreError> {
        if finds(state.metric, stored, &found) || !is_unchanged(reader, state, stored)? {
            self.degraded = self.degraded.take().or(found.degraded);
            return Ok(());
        }
        let id = &stored.record.id;
        self.lost
            .push(format!("{}: a search for the vector of {id:?} does not find it", state.name));
        let repair = Repair::RebuildCollection(CollectionRebuild {
            collection: state.name.clone(),
            id: state.id,
            generation: state.generation_number(),
            damaged: Vec::new(),
        });
        if !self.repairs.contains(&repair) {
            self.repairs.push(repair);
        }
        Ok(())
    }

    fn into_finding(self) -> Finding {
        let Self { tried, lost, mut failed, degraded, repairs } = self;
        // The searches of a collection usually fail for the same reason.
        failed.dedup();
        if !lost.is_empty() {
            return Finding { repairs, ..Finding::of_problems(Health::Corrupt, &lost) };
        }
        if !failed.is_empty() {
            return Finding::of_problems(Health::Failed, &failed);
        }
        match degraded {
            Some(degraded) => Finding::new(Health::Warn, degraded),
            None => Finding::ok(format!("searches find all {tried} sampled vectors")),
        }
    }
}

/// By cosine, nothing is near a zero vector, and queries for one are refused.
fn can_be_found(state: &CollectionState, stored: &StoredRecord) -> bool {
    state.metric != Metric::Cosine || stored.record.vector.iter().any(|number| *number != 0.0)
}

/// Whether the record is among the hits, or all hits are at least as near. By inner product,
/// longer vectors are nearer than the vector itself.
fn finds(metric: Metric, stored: &StoredRecord, found: &RecordsFound) -> bool {
    if found.hits.iter().any(|hit| hit.id == stored.record.id) {
        return true;
    }
    let own = match metric {
        Metric::Cosine | Metric::L2 => 0.0,
        Metric::Dot => 1.0 - stored.record.vector.iter().map(|value| value * value).sum::<f32>(),
    };
    let tolerance = TOLERANCE * own.abs().max(1.0);
    let near = |distance: f32| distance <= own + tolerance;
    found.hits.len() == HITS as usize && found.hits.iter().all(|hit| hit.distance.is_some_and(near))
}

/// Whether the record still exists in this version. Another process may have changed it.
fn is_unchanged(
    reader: &mut Reader,
    state: &CollectionState,
    stored: &StoredRecord,
) -> Result<bool, StoreError> {
    let snapshot = reader.snapshot()?;
    let now = snapshot.records(&[stored.row], false)?;
    let same = now.into_iter().flatten().any(|record| record.change == stored.change);
    Ok(same && snapshot.collection_by_id(state.id)?.is_some())
}

/// A sample of records, spread evenly over the rows.
fn sample(reader: &mut Reader, state: &CollectionState) -> Result<Vec<StoredRecord>, StoreError> {
    let snapshot = reader.snapshot()?;
    let end = state.last_change;
    let mut sample: Vec<StoredRecord> = Vec::new();
    for index in 0..SAMPLE {
        let after_row = end / SAMPLE * index;
        let page = Page { after_row, offset: 0, limit: 1 };
        for stored in snapshot.get(state.id, &Selection::All, page, true)? {
            if sample.last().is_none_or(|last| last.row != stored.row) {
                sample.push(stored);
            }
        }
    }
    Ok(sample)
}

fn bytes(vector: &[f32]) -> Vec<u8> {
    vector.iter().flat_map(|value| value.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use isolith_types::{Hit, Metadata, Record};

    use super::*;
    use isolith_protocol::Searched;

    fn stored(id: &str, vector: &[f32]) -> StoredRecord {
        StoredRecord {
            row: 1,
            change: 1,
            record: Record {
                id: id.to_owned(),
                document: None,
                metadata: Metadata::default(),
                vector: vector.to_vec(),
            },
            created_at: 0,
            updated_at: 0,
        }
    }

    fn found(hits: &[(&str, f32)]) -> RecordsFound {
        let hits = hits.iter().map(|(id, distance)| Hit {
            id: (*id).to_owned(),
            distance: Some(*distance),
            score: None,
            fused: None,
            why: Vec::new(),
            document: None,
            metadata: Metadata::default(),
        });
        RecordsFound { hits: hits.collect(), degraded: None, searched: Searched::default() }
    }

    #[test]
    fn accepts_the_record_or_equal_vectors() {
        let own = stored("a", &[3.0, 4.0]);
        assert!(finds(Metric::L2, &own, &found(&[("b", 0.0), ("a", 0.0)])));
        assert!(!finds(Metric::L2, &own, &found(&[("b", 0.0)])));
        assert!(!finds(Metric::L2, &own, &found(&[])));
        assert!(finds(Metric::L2, &own, &found(&[("b", 0.0); 10])));
        assert!(!finds(Metric::L2, &own, &found(&[("b", 0.5); 10])));
    }

    #[test]
    fn accepts_longer_vectors_by_inner_product() {
        let own = stored("a", &[3.0, 4.0]);
        assert!(finds(Metric::Dot, &own, &found(&[("b", -30.0); 10])));
        assert!(!finds(Metric::Dot, &own, &found(&[("b", -20.0); 10])));
    }
}
