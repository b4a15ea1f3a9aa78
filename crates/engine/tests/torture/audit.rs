//! The end of a run: compares the journals of all lanes with each other and with the store.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;
use fastrand::Rng;
use isolith_engine::{Engine, Page, Selection, StoredRecord};

use crate::account::Account;
use crate::content::{Claim, Place, SHELVES, State};
use crate::journal::{Entry, Fault, Journal, Op};
use crate::lane::Lane;
use crate::search::Look;

/// Records in one page.
const PAGE: u64 = 500;

/// Units of each collection that are searched for at the end.
const SAMPLE: usize = 100;

pub(crate) struct Audit<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) folder: &'a Path,
    pub(crate) account: &'a mut Account,
}

/// A state of a unit, with the earliest and latest time at which it was reached.
#[derive(Debug, Clone, Copy)]
struct Step {
    state: Option<State>,
    earliest: u64,
    latest: u64,
}

type History = HashMap<Place, Vec<Step>>;

impl Audit<'_> {
    pub(crate) async fn run(&mut self, lanes: u32, seed: u64) -> Result<()> {
        let journals = self.folder.join("journals");
        let mut open = Vec::new();
        for number in 0..lanes {
            let mut lane = Lane::open(&journals, number, seed)?;
            // Remaining failures are in the journal.
            let _ = lane.resolve(self.engine).await;
            open.push(lane);
        }
        let mut final_states = HashMap::new();
        for lane in &open {
            final_states.extend(lane.states.iter().map(|(place, state)| (*place, *state)));
        }
        let history = history(&Journal::read_all(&journals)?);
        for shelf in 0..SHELVES.len() {
            self.compare(shelf, &final_states, &history).await?;
        }
        for rebuilt in [false, true] {
            for shelf in &SHELVES {
                if rebuilt && let Err(failure) = self.engine.fold(shelf.name, true, None).await {
                    self.account.problem(Fault::Refused, format!("the last fold: {failure}"));
                }
            }
            self.search(&mut open, seed).await;
        }
        drop(open);
        for (lane, entries) in Journal::read_all(&journals)? {
            self.sum_up(lane, entries, &history);
        }
        Ok(())
    }

    /// Compares all records of a collection with the acknowledged writes.
    async fn compare(
        &mut self,
        shelf: usize,
        expected: &HashMap<Place, State>,
        history: &History,
    ) -> Result<()> {
        let name = SHELVES[shelf].name;
        let mut missing: HashMap<String, (Place, State)> = HashMap::new();
        for (place, state) in expected.iter().filter(|(place, _)| place.shelf == shelf) {
            missing.extend(place.ids().into_iter().map(|id| (id, (*place, *state))));
        }
        let whole = missing.len() as u64;
        let mut ids = HashSet::new();
        let mut after_row = 0;
        loop {
            let page = Page { after_row, offset: 0, limit: PAGE };
            let records = self.engine.get(name, Selection::All, page, true).await?;
            let Some(last) = records.last() else { break };
            after_row = last.row;
            for stored in &records {
                self.account.records += 1;
                let expected = missing.remove(&stored.record.id);
                let again = !ids.insert(stored.record.id.clone());
                self.compare_one(shelf, stored, expected, again, history);
            }
        }
        for (id, (_, state)) in missing {
            self.account.problem(Fault::Lost, format!("{id} of {name} is missing, {state:?}"));
        }
        let counted = self.engine.collection(name).await?.records;
        if counted != whole {
            let what = format!("{name} counts {counted} records, it must have {whole}");
            self.account.problem(Fault::Wrong, what);
        }
        Ok(())
    }

    fn compare_one(
        &mut self,
        shelf: usize,
        stored: &StoredRecord,
        expected: Option<(Place, State)>,
        again: bool,
        history: &History,
    ) {
        let record = &stored.record;
        let claim = Claim::read(shelf, &record.id, record.document.as_deref(), &record.metadata);
        let claim = match claim {
            Ok(claim) => claim,
            Err(what) => return self.account.problem(Fault::Wrong, what),
        };
        if record.vector != claim.place.vector(claim.member, claim.state.version) {
            self.account.problem(Fault::Wrong, format!("{claim:?} has another version's vector"));
        }
        if again {
            self.account.problem(Fault::Duplicated, format!("{claim:?} was found twice"));
        } else if expected.is_none_or(|(_, state)| state != claim.state) {
            let steps = history.get(&claim.place).map_or(&[][..], Vec::as_slice);
            let was = steps.iter().any(|step| step.state == Some(claim.state));
            let fault = match expected {
                // An earlier version is still there, or there again.
                Some(_) if was => Fault::Lost,
                None if was => Fault::Duplicated,
                _ => Fault::Wrong,
            };
            self.account.problem(fault, format!("{claim:?} must be {expected:?}"));
        }
    }

    /// Searches for some units of each collection, each by a different kind of search.
    async fn search(&mut self, lanes: &mut [Lane], seed: u64) {
        let mut random = Rng::with_seed(seed);
        for _ in 0..SAMPLE * SHELVES.len() {
            let lane = &mut lanes[random.usize(..lanes.len())];
            let mut places: Vec<Place> = lane.states.keys().copied().collect();
            places.sort_unstable();
            if let Some(place) = random.choice(places) {
                let looks = [Look::Itself, Look::ItselfInLane, Look::Word, Look::Words];
                let look = looks[random.usize(..looks.len())];
                // Problems are in the journal.
                let _ = lane.look(self.engine, place, look).await;
            }
        }
    }

    fn sum_up(&mut self, lane: u32, entries: Vec<Entry>, history: &History) {
        for entry in entries {
            let account = &mut *self.account;
            let mut answered = |waited: u64| {
                account.operations += 1;
                account.longest_wait_ms = account.longest_wait_ms.max(waited / 1_000);
            };
            match entry {
                Entry::Intent { .. } => {}
                Entry::Done { waited, resent, repeated, .. } => {
                    answered(waited);
                    account.writes += 1;
                    account.resent += u64::from(resent);
                    account.resent_after_commit += u64::from(resent && repeated);
                }
                Entry::Seen { from, to, degraded, units } => {
                    answered(to - from);
                    account.reads += 1;
                    account.degraded += u64::from(degraded);
                    for (place, state) in units {
                        if !was_so(history, place, state, from, to) {
                            let steps = history.get(&place);
                            let what = format!(
                                "lane {lane} saw {place:?} as {state:?} from {from} to {to}, it was {steps:?}"
                            );
                            account.problem(Fault::Wrong, what);
                        }
                    }
                }
                Entry::Late { after } => {
                    account.late_hits += 1;
                    account.latest_hit_ms = account.latest_hit_ms.max(after / 1_000);
                }
                Entry::Folded { swapped } => account.folds += u64::from(swapped),
                Entry::Aside { waited } => answered(waited),
                Entry::Problem { fault, what } => account.count(fault, &what),
            }
        }
    }
}

/// The history of every unit.
fn history(journals: &[(u32, Vec<Entry>)]) -> History {
    let mut history = History::new();
    for (_, entries) in journals {
        let mut sent: Option<(Op, u64)> = None;
        for entry in entries {
            match entry {
                Entry::Intent { op, at } => sent = Some((*op, *at)),
                Entry::Done { at, .. } => {
                    let Some((op, earliest)) = sent.take() else { continue };
                    let steps = history.entry(op.place).or_default();
                    let before = steps.last().and_then(|step: &Step| step.state);
                    steps.push(Step { state: op.after(before), earliest, latest: *at });
                }
                _ => {}
            }
        }
    }
    history
}

/// Whether a unit can have had this state at some time between `from` and `to`.
fn was_so(history: &History, place: Place, state: Option<State>, from: u64, to: u64) -> bool {
    let steps = history.get(&place).map_or(&[][..], Vec::as_slice);
    // Before its first step it does not exist.
    let ended = |next: usize| steps.get(next).is_none_or(|step| step.latest >= from);
    (state.is_none() && ended(0))
        || steps
            .iter()
            .enumerate()
            .any(|(at, step)| step.state == state && step.earliest <= to && ended(at + 1))
}

/// A unit that is written between 10 and 20, and removed between 30 and 40.
pub(crate) fn what_can_have_been_seen() {
    let place = Place { shelf: 0, lane: 0, unit: 0 };
    let state = Some(State { version: 1, touched: None });
    let written = Step { state, earliest: 10, latest: 20 };
    let removed = Step { state: None, earliest: 30, latest: 40 };
    let history = History::from([(place, vec![written, removed])]);
    for (from, to, there, absent) in [
        (0, 9, false, true),
        (5, 12, true, true),
        (15, 18, true, true),
        (21, 29, true, false),
        (19, 29, true, true),
        (25, 35, true, true),
        (35, 38, true, true),
        (41, 50, false, true),
    ] {
        assert_eq!(was_so(&history, place, state, from, to), there, "{from} to {to}");
        assert_eq!(was_so(&history, place, None, from, to), absent, "{from} to {to}");
    }
    let other = Some(State { version: 2, touched: None });
    assert!(!was_so(&history, place, other, 0, 100));
}
