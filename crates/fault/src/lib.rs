//! Fail-points for tests: `ISOLITH_FAULT=<point>:<kind>[:<nth>]` makes the nth passage
//! of a named point go wrong. The kind `hostile` has the worker try what its sandbox must
//! not allow, among it on files in `ISOLITH_FAULT_HOME`. Builds without the feature
//! `faults` contain none of it.

#[cfg(not(feature = "faults"))]
use std::ffi::OsString;

#[cfg(feature = "faults")]
pub use armed::environment;
#[cfg(feature = "faults")]
pub use armed::{point, point_at_start, point_of};

/// What workers need of the front's environment: nothing. In builds with the feature
/// `faults`, the plan of what is to go wrong.
#[cfg(not(feature = "faults"))]
pub fn environment() -> Vec<(OsString, OsString)> {
    Vec::new()
}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub fn point(_name: &str, _context: &isolate::Context<'_>) {}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub fn point_at_start(_name: &str) {}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub fn point_of(_name: &str, _path: &str, _context: &isolate::Context<'_>) {}

#[cfg(feature = "faults")]
mod armed {
    use std::ffi::OsString;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use isolate::Context;
    use isolate::misbehave::{Fault, hostile};
    use serde::Deserialize;
    use serde::de::value::{Error, StrDeserializer};

    const PLAN: &str = "ISOLITH_FAULT";
    const HOME: &str = "ISOLITH_FAULT_HOME";

    #[derive(Clone, Copy)]
    enum Deed {
        Fault(Fault),
        Hostile,
    }

    struct Plan {
        point: String,
        deed: Deed,
        nth: u64,
        passed: AtomicU64,
    }

    /// The plan of what is to go wrong, for the environment of workers.
    pub fn environment() -> Vec<(OsString, OsString)> {
        let names = [PLAN, HOME].into_iter();
        names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
    }

    /// Goes wrong here if the environment says so.
    pub fn point(name: &str, context: &Context<'_>) {
        match due(name) {
            Some(Deed::Fault(fault)) => fault.commit(context),
            Some(Deed::Hostile) => {
                let home = std::env::var_os(HOME).unwrap_or_default();
                hostile::panic_with_attempts(Path::new(&home));
            }
            None => {}
        }
    }

    /// Goes wrong before the worker is ready, if the environment says so.
    pub fn point_at_start(name: &str) {
        if let Some(Deed::Fault(fault)) = due(name) {
            fault.commit_at_start();
        }
    }

    fn due(name: &str) -> Option<Deed> {
        static READ: OnceLock<Option<Plan>> = OnceLock::new();
        let plan = READ.get_or_init(read).as_ref()?;
        let due = plan.point == name && plan.passed.fetch_add(1, Ordering::Relaxed) + 1 == plan.nth;
        due.then_some(plan.deed)
    }

    /// Goes wrong at one file, or one kind of job: the point's name is followed by a dot
    /// and the file's or the kind's.
    pub fn point_of(name: &str, path: &str, context: &Context<'_>) {
        let last = path.rsplit('/').next().unwrap_or(path);
        point(&format!("{name}.{last}"), context);
    }

    fn read() -> Option<Plan> {
        let text = std::env::var(PLAN).ok()?;
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let deed = match parts.next()? {
            "hostile" => Deed::Hostile,
            "crash" => Deed::Fault(Fault::Segfault),
            "bus" => Deed::Fault(Fault::BusError),
            "leak" => Deed::Fault(Fault::OutOfMemory),
            "corrupt" => Deed::Fault(Fault::Garbage),
            "exit" => Deed::Fault(Fault::ExitZero),
            // The others go by their own names.
            name => Deed::Fault(Fault::deserialize(StrDeserializer::<Error>::new(name)).ok()?),
        };
        let nth = parts.next().map_or(Some(1), |nth| nth.parse().ok())?;
        Some(Plan { point, deed, nth, passed: AtomicU64::new(0) })
    }
}
