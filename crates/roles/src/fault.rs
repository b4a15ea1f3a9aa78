//! Fail-points for tests: `ISOLITH_FAULT=<point>:<kind>[:<nth>]` makes the nth passage
//! of a named point go wrong. Builds without the feature `faults` contain none of it.

#[cfg(feature = "faults")]
pub(crate) use armed::{point, point_of_file};

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn point(_name: &str, _context: &isolate::Context<'_>) {}

/// Nothing goes wrong here.
#[cfg(not(feature = "faults"))]
#[inline]
pub(crate) fn point_of_file(_name: &str, _path: &str, _context: &isolate::Context<'_>) {}

#[cfg(feature = "faults")]
mod armed {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    use isolate::Context;
    use isolate::misbehave::Fault;

    struct Plan {
        point: String,
        fault: Fault,
        nth: u64,
        passed: AtomicU64,
    }

    /// Goes wrong here if the environment says so.
    pub(crate) fn point(name: &str, context: &Context<'_>) {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        let Some(plan) = PLAN.get_or_init(read) else { return };
        if plan.point == name && plan.passed.fetch_add(1, Ordering::Relaxed) + 1 == plan.nth {
            plan.fault.commit(context);
        }
    }

    /// Goes wrong at one file: the point's name is followed by a dot and the file's.
    pub(crate) fn point_of_file(name: &str, path: &str, context: &Context<'_>) {
        let file = path.rsplit('/').next().unwrap_or(path);
        point(&format!("{name}.{file}"), context);
    }

    fn read() -> Option<Plan> {
        let text = std::env::var("ISOLITH_FAULT").ok()?;
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let fault = match parts.next()? {
            "crash" => Fault::Segfault,
            "bus" => Fault::BusError,
            "hang" => Fault::Hang,
            "panic" => Fault::Panic,
            "leak" => Fault::OutOfMemory,
            "corrupt" => Fault::Garbage,
            "kill" => Fault::Kill,
            "exit" => Fault::ExitZero,
            _ => return None,
        };
        let nth = parts.next().map_or(Some(1), |nth| nth.parse().ok())?;
        Some(Plan { point, fault, nth, passed: AtomicU64::new(0) })
    }
}
