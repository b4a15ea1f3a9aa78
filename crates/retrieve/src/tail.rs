//! The tails of collections, kept between jobs: what no segment has yet.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use isolith_protocol::{CollectionState, StoreError};
use isolith_segment::text::TermCounts;
use isolith_store::{Scope, Snapshot};

use crate::texts::{analyzer, for_each_text};

/// Tails of more rows than this are read from the truth each time.
const MOST_ROWS: u64 = 20_000;

/// Collections whose tails are kept.
const MOST_TAILS: usize = 32;

/// What is newer than the segments of each collection, kept until it changes.
#[derive(Default)]
pub struct Tails {
    vectors: HashMap<u64, (Age, Rc<Vectors>)>,
    texts: HashMap<u64, (Age, Rc<Texts>)>,
    sums: HashMap<u64, (Age, Rc<Vec<Part>>)>,
}

/// The sum of some vectors, and how many they are.
pub(crate) type Part = (Vec<f32>, usize);

/// What a kept tail is as old as: generation and last change of the collection.
type Age = (u64, u64);

/// The vectors of a tail, by ascending row.
#[derive(Default)]
pub(crate) struct Vectors {
    pub(crate) rows: Vec<u64>,
    /// All vectors, one after the other, as the truth has them.
    pub(crate) data: Vec<u8>,
}

/// The words of a tail, by ascending row.
#[derive(Default)]
pub(crate) struct Texts {
    pub(crate) rows: Vec<u64>,
    pub(crate) counts: Vec<TermCounts>,
}

impl Tails {
    /// Forgets all of them, because another store is in the folder now.
    pub fn forget(&mut self) {
        *self = Self::default();
    }

    /// The vectors of a collection's tail; none if it is too long to be kept.
    pub(crate) fn vectors(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
    ) -> Result<Option<Rc<Vectors>>, StoreError> {
        keep(&mut self.vectors, state, || {
            let mut vectors = Vectors::default();
            snapshot.for_each_vector(state.id, tail_of(state), &mut |row, _, bytes| {
                vectors.rows.push(row);
                vectors.data.extend_from_slice(bytes);
                ControlFlow::Continue(())
            })?;
            Ok(vectors)
        })
    }

    /// What base and delta would have kept of the vectors in the truth, for a collection whose
    /// segments cannot be read: the next question needs it too.
    pub(crate) fn sums(
        &mut self,
        state: &CollectionState,
        read: impl FnOnce() -> Result<Vec<Part>, StoreError>,
    ) -> Result<Rc<Vec<Part>>, StoreError> {
        let age = (state.generation_number(), state.last_change);
        match self.sums.get(&state.id) {
            Some((kept, sums)) if *kept == age => Ok(Rc::clone(sums)),
            _ => {
                if self.sums.len() >= MOST_TAILS {
                    self.sums.clear();
                }
                let sums = Rc::new(read()?);
                self.sums.insert(state.id, (age, Rc::clone(&sums)));
                Ok(sums)
            }
        }
    }

    /// The words of a collection's tail; none if it is too long to be kept.
    pub(crate) fn texts(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
    ) -> Result<Option<Rc<Texts>>, StoreError> {
        keep(&mut self.texts, state, || {
            let mut texts = Texts::default();
            for_each_text(snapshot, state, tail_of(state), &mut |row, _, fields| {
                texts.rows.push(row);
                texts.counts.push(TermCounts::of(analyzer(state), fields));
                ControlFlow::Continue(())
            })?;
            Ok(texts)
        })
    }
}

/// The rows that are in no segment.
pub(crate) fn tail_of(state: &CollectionState) -> Scope {
    match &state.generation {
        Some(generation) => Scope::ChangedAfter(generation.complete_to),
        None => Scope::All,
    }
}

fn keep<T>(
    kept: &mut HashMap<u64, (Age, Rc<T>)>,
    state: &CollectionState,
    read: impl FnOnce() -> Result<T, StoreError>,
) -> Result<Option<Rc<T>>, StoreError> {
    let age = (state.generation_number(), state.last_change);
    if let Some((kept_age, tail)) = kept.get(&state.id)
        && *kept_age == age
    {
        return Ok(Some(Rc::clone(tail)));
    }
    kept.remove(&state.id);
    let rows = if state.generation.is_some() { state.unfolded } else { state.records };
    if rows > MOST_ROWS {
        return Ok(None);
    }
    if kept.len() >= MOST_TAILS {
        kept.clear();
    }
    let tail = Rc::new(read()?);
    kept.insert(state.id, (age, Rc::clone(&tail)));
    Ok(Some(tail))
}
