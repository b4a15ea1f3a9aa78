//! Fail-points for tests: `ISOLITH_FAULT=<point>:<kind>[:<nth>]` makes the nth passage
//! of a named point go wrong. Builds without the feature `faults` contain none of it.

#[cfg(feature = "faults")]
pub(crate) use armed::{point, point_at_start, point_of};

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn point(_name: &str, _context: &isolate::Context<'_>) {}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn point_at_start(_name: &str) {}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn point_of(_name: &str, _path: &str, _context: &isolate::Context<'_>) {}

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use isolate::Context;
    use isolate::misbehave::Fault;
    use serde::Deserialize;
    use serde::de::value::{Error, StrDeserializer};

    struct Plan {
        point: String,
        fault: Fault,
        nth: u64,
        passed: AtomicU64,
    }

    /// Goes wrong here if the environment says so.
    pub(crate) fn point(name: &str, context: &Context<'_>) {
        if let Some(fault) = due(name) {
            fault.commit(context);
        }
    }

    /// Goes wrong before the worker is ready, if the environment says so.
    pub(crate) fn point_at_start(name: &str) {
        if let Some(fault) = due(name) {
            fault.commit_at_start();
        }
    }

    fn due(name: &str) -> Option<Fault> {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        let plan = PLAN.get_or_init(read).as_ref()?;
        let due = plan.point == name && plan.passed.fetch_add(1, Ordering::Relaxed) + 1 == plan.nth;
        due.then_some(plan.fault)
    }

    /// Goes wrong at one file, or one kind of job: the point's name is followed by a dot
    /// and the file's or the kind's.
    pub(crate) fn point_of(name: &str, path: &str, context: &Context<'_>) {
        let last = path.rsplit('/').next().unwrap_or(path);
        point(&format!("{name}.{last}"), context);
    }

    fn read() -> Option<Plan> {
        let text = std::env::var("ISOLITH_FAULT").ok()?;
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let fault = match parts.next()? {
            "crash" => Fault::Segfault,
            "bus" => Fault::BusError,
            "leak" => Fault::OutOfMemory,
            "corrupt" => Fault::Garbage,
            "exit" => Fault::ExitZero,
            // The others go by their own names.
            name => Fault::deserialize(StrDeserializer::<Error>::new(name)).ok()?,
        };
        let nth = parts.next().map_or(Some(1), |nth| nth.parse().ok())?;
        Some(Plan { point, fault, nth, passed: AtomicU64::new(0) })
    }
}
