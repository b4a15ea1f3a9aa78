//! Caches the tails of collections: the records that no segment contains yet.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use isolith_protocol::{CodeScope, CollectionState, StoreError};
use isolith_segment::text::TermCounts;
use isolith_store::{Scope, Snapshot};

use crate::indexed_text::{analyzer, for_each_text};

/// Longer tails are read from the database each time.
const MAX_ROWS: u64 = 20_000;

/// Maximum number of cached collections.
const MAX_COLLECTIONS: usize = 32;

/// Maximum number of cached filters.
const MAX_SCOPES: usize = 4;

/// The tails of collections, and what else is cached until a collection changes.
#[derive(Default)]
pub struct Tails {
    vectors: HashMap<u64, (CollectionVersion, Rc<TailVectors>)>,
    texts: HashMap<u64, (CollectionVersion, Rc<TailTexts>)>,
    sums: HashMap<u64, (CollectionVersion, Rc<Vec<PartialSum>>)>,
    /// The rows that filters of code searches select, the latest filter last.
    scopes: Vec<(CollectionVersion, CodeScope, Rc<Vec<u64>>)>,
}

/// The sum of some vectors, and their number.
pub(crate) type PartialSum = (Vec<f32>, usize);

/// Generation and last change number of a collection.
type CollectionVersion = (u64, u64);

/// The vectors of a tail, by ascending row.
#[derive(Default)]
pub(crate) struct TailVectors {
    pub(crate) rows: Vec<u64>,
    /// The vectors as stored in the database, concatenated.
    pub(crate) data: Vec<u8>,
}

/// The terms of a tail, by ascending row.
#[derive(Default)]
pub(crate) struct TailTexts {
    pub(crate) rows: Vec<u64>,
    pub(crate) counts: Vec<TermCounts>,
}

impl Tails {
    /// Clears the cache. Required after the store in the folder was replaced.
    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// The vectors of a collection's tail; `None` if it is too long to cache.
    pub(crate) fn vectors(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
    ) -> Result<Option<Rc<TailVectors>>, StoreError> {
        cached(&mut self.vectors, state, || {
            let mut vectors = TailVectors::default();
            snapshot.for_each_vector(state.id, tail_of(state), &mut |row, _, bytes| {
                vectors.rows.push(row);
                vectors.data.extend_from_slice(bytes);
                ControlFlow::Continue(())
            })?;
            Ok(vectors)
        })
    }

    /// The vector sums of base and delta, computed by `read` if they are not cached. For a
    /// collection whose segments cannot be read.
    pub(crate) fn sums(
        &mut self,
        state: &CollectionState,
        read: impl FnOnce() -> Result<Vec<PartialSum>, StoreError>,
    ) -> Result<Rc<Vec<PartialSum>>, StoreError> {
        let version = (state.generation_number(), state.last_change);
        match self.sums.get(&state.id) {
            Some((cached, sums)) if *cached == version => Ok(Rc::clone(sums)),
            _ => {
                if self.sums.len() >= MAX_COLLECTIONS {
                    self.sums.clear();
                }
                let sums = Rc::new(read()?);
                self.sums.insert(state.id, (version, Rc::clone(&sums)));
                Ok(sums)
            }
        }
    }

    /// The rows of the code index that a filter selects, computed by `read` if they are not cached.
    /// The filter must depend on nothing but the records and the paths of their files.
    pub(crate) fn scope(
        &mut self,
        state: &CollectionState,
        filter: &CodeScope,
        read: impl FnOnce() -> Result<Vec<u64>, StoreError>,
    ) -> Result<Rc<Vec<u64>>, StoreError> {
        let version = (state.generation_number(), state.last_change);
        self.scopes.retain(|(cached, ..)| *cached == version);
        if let Some((_, _, rows)) = self.scopes.iter().find(|(_, cached, _)| cached == filter) {
            return Ok(Rc::clone(rows));
        }
        let rows = Rc::new(read()?);
        if self.scopes.len() >= MAX_SCOPES {
            self.scopes.remove(0);
        }
        self.scopes.push((version, filter.clone(), Rc::clone(&rows)));
        Ok(rows)
    }

    /// The terms of a collection's tail; `None` if it is too long to cache.
    pub(crate) fn texts(
        &mut self,
        snapshot: &Snapshot<'_>,
        state: &CollectionState,
    ) -> Result<Option<Rc<TailTexts>>, StoreError> {
        cached(&mut self.texts, state, || {
            let mut texts = TailTexts::default();
            for_each_text(snapshot, state, tail_of(state), &mut |row, _, fields| {
                texts.rows.push(row);
                texts.counts.push(TermCounts::of(analyzer(state), fields));
                ControlFlow::Continue(())
            })?;
            Ok(texts)
        })
    }
}

/// The records that no segment contains.
pub(crate) fn tail_of(state: &CollectionState) -> Scope {
    match &state.generation {
        Some(generation) => Scope::ChangedAfter(generation.complete_to),
        None => Scope::All,
    }
}

fn cached<T>(
    cache: &mut HashMap<u64, (CollectionVersion, Rc<T>)>,
    state: &CollectionState,
    read: impl FnOnce() -> Result<T, StoreError>,
) -> Result<Option<Rc<T>>, StoreError> {
    let version = (state.generation_number(), state.last_change);
    if let Some((cached, tail)) = cache.get(&state.id)
        && *cached == version
    {
        return Ok(Some(Rc::clone(tail)));
    }
    cache.remove(&state.id);
    let rows = if state.generation.is_some() { state.unfolded } else { state.records };
    if rows > MAX_ROWS {
        return Ok(None);
    }
    if cache.len() >= MAX_COLLECTIONS {
        cache.clear();
    }
    let tail = Rc::new(read()?);
    cache.insert(state.id, (version, Rc::clone(&tail)));
    Ok(Some(tail))
}
