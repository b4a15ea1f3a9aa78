//! The sizes of the open stores. Measuring them takes a job of a reader and looks at all files, so
//! each store is measured at most every few seconds, however often it is asked for.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use isolith_engine::{Engine, StoreFigures};
use tokio::sync::watch;

use crate::stores::StoreOwner;

/// For how long figures are used.
const MAX_AGE: Duration = Duration::from_secs(5);

/// How long to wait for figures. A store that takes longer is reported as not readable.
const PATIENCE: Duration = Duration::from_secs(2);

/// The last figures of each store.
#[derive(Debug, Default)]
pub(crate) struct FiguresCache(Mutex<BTreeMap<StoreOwner, Measurement>>);

/// A measurement, done or running.
#[derive(Debug)]
struct Measurement {
    started: Instant,
    figures: watch::Receiver<Option<Arc<StoreFigures>>>,
}

impl Measurement {
    fn start(engine: Engine) -> Self {
        let (done, figures) = watch::channel(None);
        // Not cancelled when nobody waits any more: that would cost the reader its process.
        tokio::spawn(async move {
            let figures = engine.figures().await;
            let _ = done.send(Some(Arc::new(figures)));
        });
        Self { started: Instant::now(), figures }
    }

    fn is_usable(&self) -> bool {
        match &*self.figures.borrow() {
            Some(_) => self.started.elapsed() < MAX_AGE,
            // It is lost if the runtime was stopping.
            None => self.figures.has_changed().is_ok(),
        }
    }
}

impl FiguresCache {
    /// The figures of a store; `None` if it does not answer in time.
    pub(crate) async fn of(&self, owner: StoreOwner, engine: &Engine) -> Option<Arc<StoreFigures>> {
        let mut figures = {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            match known.get(&owner).filter(|measurement| measurement.is_usable()) {
                Some(measurement) => measurement.figures.clone(),
                None => {
                    let measurement = Measurement::start(engine.clone());
                    let figures = measurement.figures.clone();
                    known.insert(owner, measurement);
                    figures
                }
            }
        };
        let ready = tokio::time::timeout(PATIENCE, figures.wait_for(Option::is_some)).await;
        ready.ok()?.ok()?.clone()
    }
}
