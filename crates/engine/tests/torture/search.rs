//! Reads of all kinds, and checks of their answers. A lane knows the state of its own units; what
//! it saw of others goes into its journal, and is compared with their journals at the end.

use std::collections::BTreeMap;
use std::time::Duration;

use isolith_engine::{Engine, Hits, Page, Selection};
use isolith_types::{Failure, Filter};

use crate::content::{Claim, Place, SHELVES, State, UNITS, random_vector};
use crate::journal::{Entry, Fault, now};
use crate::lane::{Lane, Stuck, equal, unit_filter};

/// How long a hit may be missing after a segment was damaged.
const NOTICED: Duration = Duration::from_secs(5);

/// Distances are computed in f32.
const TOLERANCE: f64 = 1e-3;

/// How a unit is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Look {
    /// By its ids, vectors included.
    Ids,
    /// By a filter.
    Matching,
    /// By a vector, with a filter that matches only the unit.
    Near,
    /// By its word.
    Word,
    /// By its word and words that all documents have.
    Words,
    /// By the vector of one of its records, among all.
    Itself,
    /// By the vector of one of its records, among those of its lane.
    ItselfInLane,
}

impl Look {
    const ALL: [Look; 7] = [
        Look::Ids,
        Look::Matching,
        Look::Near,
        Look::Word,
        Look::Words,
        Look::Itself,
        Look::ItselfInLane,
    ];

    /// Whether it returns all records of a unit or none.
    const WHOLE: [Look; 5] = [Look::Ids, Look::Matching, Look::Near, Look::Word, Look::Words];

    fn is_whole(self) -> bool {
        Self::WHOLE.contains(&self)
    }

    /// Whether it uses no segment, because few rows are compared in the database.
    fn reads_truth(self) -> bool {
        matches!(self, Look::Ids | Look::Matching | Look::Near)
    }
}

/// The answer to a search.
struct View {
    claims: Vec<Claim>,
    degraded: Option<String>,
    /// The record that must be found, if not all of them.
    sought: Option<u32>,
}

impl Lane {
    /// Searches for a random unit of any lane.
    pub(crate) async fn look_around(&mut self, engine: &Engine, lanes: u32) -> Result<(), Stuck> {
        let place = Place {
            shelf: self.random.usize(..SHELVES.len()),
            lane: self.random.u32(..lanes),
            unit: self.random.u32(..UNITS),
        };
        let look = Look::WHOLE[self.random.usize(..Look::WHOLE.len())];
        self.look(engine, place, look).await
    }

    /// Searches for the unit that was just written, which is in no segment yet.
    pub(crate) async fn look_at_last(&mut self, engine: &Engine) -> Result<(), Stuck> {
        let Some(place) = self.last_written() else { return Ok(()) };
        let look = Look::ALL[self.random.usize(..Look::ALL.len())];
        self.look(engine, place, look).await
    }

    /// Searches for a unit of this lane.
    pub(crate) async fn look_at_own(&mut self, engine: &Engine) -> Result<(), Stuck> {
        let place = self.own_place();
        let look = match self.random.u32(..4) {
            0 => Look::WHOLE[self.random.usize(..Look::WHOLE.len())],
            1 => Look::ItselfInLane,
            _ => Look::Itself,
        };
        self.look(engine, place, look).await
    }

    /// Starts a search and does not wait for its answer.
    pub(crate) async fn walk_away(&mut self, engine: &Engine) {
        let place = self.own_place();
        let vector = random_vector(&mut self.random, place.shelf());
        let patience = Duration::from_micros(self.random.u64(..5_000));
        let asked = engine.nearest(place.shelf().name, &vector, 10, None);
        let _ = tokio::time::timeout(patience, asked).await;
    }

    /// Searches for a unit, repeatedly if something is missing.
    pub(crate) async fn look(
        &mut self,
        engine: &Engine,
        place: Place,
        look: Look,
    ) -> Result<(), Stuck> {
        let expected = self.expected(place);
        if !look.is_whole() && expected.is_none() {
            return Ok(());
        }
        let began = now();
        let mut late = false;
        loop {
            let from = now();
            let view = self.view(engine, place, look, expected).await;
            let to = now();
            let view = match view {
                Ok(Ok(view)) => view,
                Ok(Err(wrong)) => return self.problem(Fault::Wrong, format!("{look:?}: {wrong}")),
                Err(failure) => return self.refused(&format!("{look:?} {place:?}"), &failure),
            };
            let units = self.judge(place, look, &view)?;
            let degraded = view.degraded.is_some();
            self.note(&Entry::Seen { from, to, degraded, units })?;
            let Some(missing) = self.missing(place, look, &view) else {
                return if late { self.note(&Entry::Late { after: from - began }) } else { Ok(()) };
            };
            if look.reads_truth() {
                return self.problem(Fault::Lost, missing);
            }
            if u128::from(now() - began) > NOTICED.as_micros() {
                return self.problem(Fault::Wrong, missing);
            }
            late = true;
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// What is missing, as far as it is known.
    fn missing(&self, place: Place, look: Look, view: &View) -> Option<String> {
        let expected = self.expected(place);
        let of_unit = view.claims.iter().filter(|claim| claim.place == place);
        let complete = match view.sought {
            Some(member) => of_unit.clone().any(|claim| claim.member == member),
            None => {
                let count = of_unit.count();
                count == place.size() as usize || (count == 0 && expected.is_none())
            }
        };
        let View { claims, degraded, .. } = view;
        (!complete).then(|| {
            format!("{look:?} of {place:?} {expected:?} shows {claims:?}, degraded: {degraded:?}")
        })
    }

    /// Compares the hits with the expected state; returns those of other lanes.
    fn judge(
        &mut self,
        place: Place,
        look: Look,
        view: &View,
    ) -> Result<Vec<(Place, Option<State>)>, Stuck> {
        let mut units: BTreeMap<Place, State> = BTreeMap::new();
        for claim in &view.claims {
            let state = *units.entry(claim.place).or_insert(claim.state);
            if state != claim.state {
                let what = format!("{look:?} shows half of {state:?}, half of {claim:?}");
                self.problem(Fault::Wrong, what)?;
            }
        }
        let (own, others): (Vec<_>, Vec<_>) =
            units.into_iter().partition(|(place, _)| place.lane == self.number);
        for (place, state) in own {
            let expected = self.expected(place);
            if expected != Some(state) {
                let what = format!("{look:?} shows {place:?} as {state:?}, it is {expected:?}");
                self.problem(Fault::Wrong, what)?;
            }
        }
        let mut seen: Vec<_> =
            others.into_iter().map(|(place, state)| (place, Some(state))).collect();
        // A hit may be missing because a segment is damaged; the database has everything.
        if look.reads_truth() && view.claims.is_empty() && place.lane != self.number {
            seen.push((place, None));
        }
        Ok(seen)
    }

    async fn view(
        &mut self,
        engine: &Engine,
        place: Place,
        look: Look,
        expected: Option<State>,
    ) -> Result<Result<View, String>, Failure> {
        let name = place.shelf().name;
        let by_filter = |filter| engine.get(name, filter, Page::default(), true);
        let records = match look {
            Look::Ids => by_filter(Selection::Ids(place.ids())).await?,
            Look::Matching => by_filter(Selection::Matching(unit_filter(place))).await?,
            Look::Near => {
                let vector = random_vector(&mut self.random, place.shelf());
                let filter = Some(unit_filter(place));
                let hits = engine.nearest(name, &vector, 20, filter).await?;
                return Ok(check_hits(place, hits, Some(&vector)));
            }
            Look::Word => {
                let hits = engine.keywords(name, &place.word(), 20, None).await?;
                return Ok(check_hits(place, hits, None));
            }
            Look::Words => {
                let text = format!("common {} words", place.word());
                let hits = engine.keywords(name, &text, place.size(), None).await?;
                return Ok(check_hits(place, hits, None).map(|view| only(place, view)));
            }
            Look::Itself | Look::ItselfInLane => {
                let member = self.random.u32(..place.size());
                let version = expected.map_or(0, |state| state.version);
                let vector = place.vector(member, version);
                let limit = self.random.u32(1..=10);
                let filter = self.widest_filter(look);
                let hits = engine.nearest(name, &vector, limit, filter).await?;
                let view = check_hits(place, hits, Some(&vector));
                return Ok(view.map(|view| View { sought: Some(member), ..view }));
            }
        };
        let claims = records.iter().map(|stored| {
            let record = &stored.record;
            let claim =
                Claim::read(place.shelf, &record.id, record.document.as_deref(), &record.metadata)?;
            if record.vector != claim.place.vector(claim.member, claim.state.version) {
                return Err(format!("{claim:?} has another version's vector"));
            }
            Ok(claim)
        });
        Ok(claims.collect::<Result<_, _>>().map(|claims| View {
            claims,
            degraded: None,
            sought: None,
        }))
    }

    fn widest_filter(&self, look: Look) -> Option<Filter> {
        (look == Look::ItselfInLane).then(|| equal("lane", self.number))
    }
}

/// Checks each hit by itself, and their order.
fn check_hits(place: Place, hits: Hits, query: Option<&[f32]>) -> Result<View, String> {
    let mut claims: Vec<Claim> = Vec::new();
    let mut last = f32::NEG_INFINITY;
    for hit in &hits.hits {
        let claim = Claim::read(place.shelf, &hit.id, hit.document.as_deref(), &hit.metadata)?;
        if let Some(query) = query {
            let (reported, real) = (hit.distance.unwrap_or(f32::NAN), claim.distance(query));
            let error = (f64::from(reported) - real).abs();
            if error.is_nan() || error > TOLERANCE * real.max(1.0) {
                return Err(format!("{claim:?} has the distance {reported} instead of {real}"));
            }
            if reported < last {
                return Err(format!("{claim:?} at {reported} comes after one at {last}"));
            }
            last = reported;
        } else if hit.score.is_none_or(|score| score.is_nan() || score <= 0.0) {
            return Err(format!("{claim:?} has the score {:?}", hit.score));
        }
        let same = |other: &Claim| (other.place, other.member) == (claim.place, claim.member);
        if claims.iter().any(same) {
            return Err(format!("{claim:?} was found twice"));
        }
        claims.push(claim);
    }
    Ok(View { claims, degraded: hits.degraded, sought: None })
}

/// Removes hits of other units, which common words may have found.
fn only(place: Place, mut view: View) -> View {
    view.claims.retain(|claim| claim.place == place);
    view
}
