//! A lane is the only writer of its units, with one operation at a time, so that it always knows
//! their expected state.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::path::Path;
use std::time::Duration;

use fastrand::Rng;
use isolith_engine::{
    Engine, Key, Patch, PutMode, Records, RecordsDeleted, RecordsPut, RecordsUpdated, Which,
    Written,
};
use isolith_types::{Code, Comparison, Failure, Filter, Metadata, Scalar};
use serde_json::json;

use crate::content::{Place, SHELVES, State, UNITS};
use crate::journal::{Act, Entry, Fault, Journal, Op, now};

/// Acknowledged operations that may be sent once more.
const REMEMBERED: usize = 50;

/// Maximum number of attempts of an operation.
const TRIES: u32 = 5;

/// The lane cannot continue: its operation failed for good, or its journal is full.
#[derive(Debug)]
pub(crate) struct Stuck;

pub(crate) struct Lane {
    pub(crate) number: u32,
    pub(crate) random: Rng,
    pub(crate) states: HashMap<Place, State>,
    journal: Journal,
    next_op: u64,
    /// An unacknowledged operation of a predecessor.
    pending: Option<Op>,
    recent: VecDeque<(Op, Counts)>,
}

/// The counts that an operation reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Counts {
    inserted: u64,
    updated: u64,
    unchanged: u64,
    deleted: u64,
    missing: u64,
}

impl Lane {
    /// Continues where the journal ends.
    pub(crate) fn open(folder: &Path, number: u32, seed: u64) -> io::Result<Self> {
        let (journal, entries) = Journal::open(&Journal::path(folder, number))?;
        let random = Rng::with_seed(seed ^ u64::from(number) << 32 ^ entries.len() as u64);
        let mut lane = Self {
            number,
            random,
            states: HashMap::new(),
            journal,
            next_op: 1,
            pending: None,
            recent: VecDeque::new(),
        };
        for entry in entries {
            match entry {
                Entry::Intent { op, .. } => {
                    lane.next_op = op.number + 1;
                    lane.pending = Some(op);
                }
                Entry::Done { .. } => {
                    if let Some(op) = lane.pending.take() {
                        lane.apply(&op);
                    }
                }
                _ => {}
            }
        }
        Ok(lane)
    }

    /// Finishes the last operation of a predecessor, which may already have been applied.
    pub(crate) async fn resolve(&mut self, engine: &Engine) -> Result<(), Stuck> {
        match self.pending.take() {
            Some(op) => self.send(engine, op, true).await,
            None => Ok(()),
        }
    }

    /// Writes something.
    pub(crate) async fn write(&mut self, engine: &Engine) -> Result<(), Stuck> {
        let place = self.own_place();
        let act = self.choose(self.states.contains_key(&place));
        let op = Op { number: self.next_op, place, act };
        self.next_op += 1;
        self.note(&Entry::Intent { op, at: now() })?;
        self.send(engine, op, false).await
    }

    /// Repeats an acknowledged operation, which must have no effect.
    pub(crate) async fn repeat(&mut self, engine: &Engine) -> Result<(), Stuck> {
        if self.recent.is_empty() {
            return Ok(());
        }
        let (op, counts) = self.recent[self.random.usize(..self.recent.len())];
        let (from, result) = (now(), perform(engine, &op).await);
        match result {
            Ok(done) if done.repeated && done.counts == counts => {}
            Ok(done) => {
                let what = format!("{op:?} was applied again: {done:?}");
                self.problem(Fault::Duplicated, what)?;
            }
            Err(failure) => self.refused(&format!("repeat of {op:?}"), &failure)?,
        }
        self.note(&Entry::Aside { waited: now() - from })
    }

    /// Sends a request that must be refused: an existing id, a used key.
    pub(crate) async fn provoke(&mut self, engine: &Engine) -> Result<(), Stuck> {
        let from = now();
        let taken = self.states.iter().next().map(|(place, _)| *place);
        if let Some(place) = taken.filter(|_| self.random.bool()) {
            let op = Op { number: self.next_op, place, act: Act::Add };
            self.next_op += 1;
            let result = perform(engine, &op).await;
            self.must_fail(Code::AlreadyExists, &op, result)?;
        } else if let Some((op, _)) = self.recent.back().copied() {
            let unit = (op.place.unit + 1) % UNITS;
            let other = Op { place: Place { unit, ..op.place }, act: Act::Upsert, ..op };
            let result = perform(engine, &other).await;
            self.must_fail(Code::KeyReused, &other, result)?;
        }
        self.note(&Entry::Aside { waited: now() - from })
    }

    /// The expected state of a unit of this lane.
    pub(crate) fn expected(&self, place: Place) -> Option<State> {
        self.states.get(&place).copied()
    }

    pub(crate) fn last_written(&self) -> Option<Place> {
        self.recent.back().map(|(op, _)| op.place)
    }

    pub(crate) fn own_place(&mut self) -> Place {
        Place {
            shelf: self.random.usize(..SHELVES.len()),
            lane: self.number,
            unit: self.random.u32(..UNITS),
        }
    }

    pub(crate) fn note(&mut self, entry: &Entry) -> Result<(), Stuck> {
        self.journal.write(entry).map_err(|error| {
            eprintln!("torture: lane {}: cannot write the journal: {error}", self.number);
            Stuck
        })
    }

    pub(crate) fn problem(&mut self, fault: Fault, what: String) -> Result<(), Stuck> {
        eprintln!("torture: lane {}: {fault:?}: {what}", self.number);
        self.note(&Entry::Problem { fault, what })
    }

    pub(crate) fn refused(&mut self, what: &str, failure: &Failure) -> Result<(), Stuck> {
        let Failure { code, message, .. } = failure;
        self.problem(Fault::Refused, format!("{what}: {code:?}: {message}"))
    }

    fn choose(&mut self, present: bool) -> Act {
        let acts: &[Act] = if present {
            &[Act::Upsert, Act::Upsert, Act::Replace, Act::Touch, Act::Delete, Act::Prune]
        } else {
            &[Act::Add, Act::Add, Act::Add, Act::Add, Act::Upsert, Act::Upsert, Act::Upsert]
        };
        match self.random.u32(..12) {
            // Sometimes an operation without effect, because the unit does not exist.
            0 if !present => [Act::Replace, Act::Touch, Act::Delete][self.random.usize(..3)],
            _ => acts[self.random.usize(..acts.len())],
        }
    }

    /// Sends an operation until it is acknowledged, always with the same key.
    async fn send(&mut self, engine: &Engine, op: Op, resent: bool) -> Result<(), Stuck> {
        let from = now();
        if self.random.u32(..16) == 0 {
            // A caller stops waiting and asks again. The first request may be finished, running or
            // never sent.
            let patience = Duration::from_micros(self.random.u64(..20_000));
            let _ = tokio::time::timeout(patience, perform(engine, &op)).await;
        }
        for attempt in 1..=TRIES {
            match perform(engine, &op).await {
                Ok(Performed { counts, repeated }) => {
                    let at = now();
                    self.note(&Entry::Done { at, waited: at - from, resent, repeated })?;
                    return self.acknowledged(op, counts);
                }
                Err(failure) => {
                    self.refused(&format!("{op:?}, try {attempt}"), &failure)?;
                    tokio::time::sleep(Duration::from_millis(300)).await;
                }
            }
        }
        Err(Stuck)
    }

    fn acknowledged(&mut self, op: Op, found: Counts) -> Result<(), Stuck> {
        let expected = Counts::expected(&op, self.expected(op.place));
        if found != expected {
            let second = Counts::expected(&op, op.after(self.expected(op.place)));
            let unchanged = Counts { unchanged: u64::from(op.place.size()), ..Counts::default() };
            let twice = found == second || found == unchanged;
            let fault = if twice { Fault::Duplicated } else { Fault::Wrong };
            let what = format!("{op:?} answered {found:?} instead of {expected:?}");
            self.problem(fault, what)?;
        }
        self.apply(&op);
        self.recent.push_back((op, found));
        if self.recent.len() > REMEMBERED {
            self.recent.pop_front();
        }
        Ok(())
    }

    fn apply(&mut self, op: &Op) {
        match op.after(self.expected(op.place)) {
            Some(state) => self.states.insert(op.place, state),
            None => self.states.remove(&op.place),
        };
    }

    fn must_fail(
        &mut self,
        code: Code,
        op: &Op,
        result: Result<Performed, Failure>,
    ) -> Result<(), Stuck> {
        match result {
            Err(failure) if failure.code == code => Ok(()),
            Err(failure) => self.refused(&format!("{op:?}, to be refused as {code:?}"), &failure),
            Ok(done) => {
                let what = format!("{op:?} was not refused: {done:?}");
                self.problem(Fault::Wrong, what)
            }
        }
    }
}

impl Counts {
    /// The counts that `op` must report for a unit in this state.
    fn expected(op: &Op, before: Option<State>) -> Self {
        let size = u64::from(op.place.size());
        let nothing = Self::default();
        match (op.act, before) {
            (Act::Add | Act::Upsert, None) => Self { inserted: size, ..nothing },
            (Act::Add, Some(_)) => nothing,
            (Act::Upsert | Act::Replace | Act::Touch, Some(_)) => Self { updated: size, ..nothing },
            (Act::Delete | Act::Prune, Some(_)) => Self { deleted: size, ..nothing },
            (Act::Replace | Act::Touch | Act::Delete, None) => Self { missing: size, ..nothing },
            (Act::Prune, None) => nothing,
        }
    }
}

/// Only records of this unit.
pub(crate) fn unit_filter(place: Place) -> Filter {
    Filter::And(vec![equal("lane", place.lane), equal("unit", place.unit)])
}

/// Only records of this lane.
pub(crate) fn equal(key: &str, value: u32) -> Filter {
    let value = Scalar::Integer(i64::from(value));
    Filter::Compare { key: key.to_owned(), how: Comparison::Equal, value }
}

/// The reported counts of an operation.
#[derive(Debug)]
struct Performed {
    counts: Counts,
    repeated: bool,
}

impl<R: Into<Counts>> From<Written<R>> for Performed {
    fn from(written: Written<R>) -> Self {
        Self { repeated: written.done.repeated, counts: written.done.reply.into() }
    }
}

impl From<RecordsPut> for Counts {
    fn from(reply: RecordsPut) -> Self {
        let RecordsPut { inserted, updated, unchanged, .. } = reply;
        Self { inserted, updated, unchanged, ..Self::default() }
    }
}

impl From<RecordsUpdated> for Counts {
    fn from(reply: RecordsUpdated) -> Self {
        let RecordsUpdated { updated, unchanged, missing } = reply;
        Self { updated, unchanged, missing, ..Self::default() }
    }
}

impl From<RecordsDeleted> for Counts {
    fn from(reply: RecordsDeleted) -> Self {
        let RecordsDeleted { deleted, missing } = reply;
        Self { deleted, missing, ..Self::default() }
    }
}

async fn perform(engine: &Engine, op: &Op) -> Result<Performed, Failure> {
    let Op { number, place, act } = *op;
    let name = place.shelf().name;
    let key = Some(key(place.lane, number));
    let state = State { version: number, touched: None };
    let put = async |mode| {
        let records = Records::from_records(place.records(state));
        engine.put(name, records, mode, key).await.map(Performed::from)
    };
    let update = async |patches| engine.update(name, patches, key).await.map(Performed::from);
    let delete = async |which| engine.delete(name, which, key).await.map(Performed::from);
    match act {
        Act::Add => put(PutMode::Add { skip_existing: false }).await,
        Act::Upsert => put(PutMode::Upsert).await,
        Act::Replace => update(replacements(place, state)).await,
        Act::Touch => update(touches(place, number)).await,
        Act::Delete => delete(Which::Ids(place.ids())).await,
        Act::Prune => delete(Which::Matching(unit_filter(place))).await,
    }
}

fn key(lane: u32, op: u64) -> Key {
    let mut key = [0; 16];
    key[..4].copy_from_slice(&lane.to_le_bytes());
    key[8..].copy_from_slice(&op.to_le_bytes());
    Key(key)
}

fn replacements(place: Place, state: State) -> Vec<Patch> {
    let patch = |member| {
        let record = place.record(member, state);
        let mut metadata = record.metadata.to_json();
        // A null removes the key.
        metadata["touched"] = json!(null);
        Patch {
            id: record.id,
            document: Some(record.document),
            metadata: Some(plain(metadata)),
            vector: Some(record.vector),
        }
    };
    (0..place.size()).map(patch).collect()
}

fn touches(place: Place, number: u64) -> Vec<Patch> {
    let patch = |id| Patch {
        id,
        document: None,
        metadata: Some(plain(json!({ "touched": number }))),
        vector: None,
    };
    place.ids().into_iter().map(patch).collect()
}

fn plain(json: serde_json::Value) -> Metadata {
    Metadata::from_json(json).expect("it has only numbers, texts and a flat list")
}
