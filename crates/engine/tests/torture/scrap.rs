//! Temporary collections: each lane creates, fills, renames and deletes one. After a crash it may
//! be in any of these states.

use isolith_engine::{Engine, Page, PutMode, Records, Selection};
use isolith_types::{Code, CollectionSpec, Failure};

use crate::content::{Place, SHELVES, State};
use crate::journal::{Entry, Fault, now};
use crate::lane::{Lane, Stuck};

/// Units of a temporary collection.
const UNITS: u32 = 20;

impl Lane {
    /// Creates, uses and deletes the lane's temporary collection.
    pub(crate) async fn scrap(&mut self, engine: &Engine) -> Result<(), Stuck> {
        let place = self.own_place();
        let mut longest = 0;
        match live_and_die(engine, place, &mut longest).await {
            Ok(None) => {}
            Ok(Some(wrong)) => self.problem(Fault::Wrong, wrong)?,
            Err(failure) => self.refused("a temporary collection", &failure)?,
        }
        self.note(&Entry::Aside { waited: longest })
    }
}

/// Makes a call, and records the longest duration.
async fn timed<T>(longest: &mut u64, call: impl Future<Output = T>) -> T {
    let from = now();
    let answer = call.await;
    *longest = (*longest).max(now() - from);
    answer
}

/// Returns a problem, if there is one.
async fn live_and_die(
    engine: &Engine,
    place: Place,
    longest: &mut u64,
) -> Result<Option<String>, Failure> {
    let shelf = &SHELVES[0];
    let name = format!("scrap-{}", place.lane);
    let renamed = format!("renamed-{}", place.lane);
    let spec =
        CollectionSpec { name: name.clone(), dimension: None, metric: shelf.metric, model: None };
    // A predecessor may have left it under either name.
    for name in [&name, &renamed] {
        match timed(longest, engine.delete_collection(name)).await {
            Err(failure) if failure.code != Code::NotFound => return Err(failure),
            _ => {}
        }
    }
    timed(longest, engine.create_collection(spec, false)).await?;
    let state = State { version: 1, touched: None };
    let places = (0..UNITS).map(|unit| Place { shelf: 0, unit, ..place });
    let records: Vec<_> = places.flat_map(|place| place.records(state)).collect();
    let count = records.len();
    let put = Records::from_records(records);
    timed(longest, engine.put(&name, put, PutMode::Add { skip_existing: false }, None)).await?;
    timed(longest, engine.rename_collection(&name, &renamed)).await?;
    let found =
        timed(longest, engine.get(&renamed, Selection::All, Page::default(), false)).await?.len();
    let own = Place { shelf: 0, unit: 3, ..place };
    let hits = timed(longest, engine.keywords(&renamed, &own.word(), 20, None)).await?.hits.len();
    timed(longest, engine.delete_collection(&renamed)).await?;
    let gone = timed(longest, engine.collection(&renamed)).await;
    let gone = gone.is_err_and(|failure| failure.code == Code::NotFound);
    if found == count && hits == own.size() as usize && gone {
        return Ok(None);
    }
    Ok(Some(format!("{renamed}: {found} of {count} records, {hits} hits, gone: {gone}")))
}
