//! Fail points for tests: `ISOLITH_FAULT=<point>:<kind>[:<nth>]` triggers a fault when a named
//! point is reached for the nth time. The kind `hostile` makes the worker try what its sandbox
//! must not allow, including access to files in `ISOLITH_FAULT_HOME`. Builds without the
//! feature `faults` contain no fail points.

#[cfg(not(feature = "faults"))]
use std::ffi::OsString;

#[cfg(feature = "faults")]
pub use armed::environment;
#[cfg(feature = "faults")]
pub use armed::{point, point_at_start, point_of};

/// The environment variables that workers need from the front: none. With the feature `faults`,
/// those that configure faults.
#[cfg(not(feature = "faults"))]
pub fn environment() -> Vec<(OsString, OsString)> {
    Vec::new()
}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline]
pub fn point(_name: &str, _context: &isolate::Context<'_>) {}

/// Does nothing without the feature `faults`.
#[cfg(not(feature = "faults"))]
#[inline]
pub fn point_at_start(_name: &str) {}

/// Does nothing without the feature `faults`.
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

    const FAULT_VARIABLE: &str = "ISOLITH_FAULT";
    const HOME_VARIABLE: &str = "ISOLITH_FAULT_HOME";

    #[derive(Clone, Copy)]
    enum FaultAction {
        Fault(Fault),
        Hostile,
    }

    struct FaultPlan {
        point: String,
        action: FaultAction,
        nth: u64,
        reached: AtomicU64,
    }

    /// The variables that configure faults, for the environment of workers.
    pub fn environment() -> Vec<(OsString, OsString)> {
        let names = [FAULT_VARIABLE, HOME_VARIABLE].into_iter();
        names.filter_map(|name| Some((name.into(), std::env::var_os(name)?))).collect()
    }

    /// Commits the configured fault, if this point is due.
    pub fn point(name: &str, context: &Context<'_>) {
        match due(name) {
            Some(FaultAction::Fault(fault)) => fault.commit(context),
            Some(FaultAction::Hostile) => {
                let home = std::env::var_os(HOME_VARIABLE).unwrap_or_default();
                hostile::panic_with_attempts(Path::new(&home));
            }
            None => {}
        }
    }

    /// Commits the configured fault before the worker is ready, if this point is due.
    pub fn point_at_start(name: &str) {
        if let Some(FaultAction::Fault(fault)) = due(name) {
            fault.commit_at_start();
        }
    }

    fn due(name: &str) -> Option<FaultAction> {
        static CONFIGURED: OnceLock<Option<FaultPlan>> = OnceLock::new();
        let plan = CONFIGURED.get_or_init(read_plan).as_ref()?;
        let due =
            plan.point == name && plan.reached.fetch_add(1, Ordering::Relaxed) + 1 == plan.nth;
        due.then_some(plan.action)
    }

    /// A fail point for one file or one kind of job: its name is `name`, a dot, and the last
    /// component of `path`.
    pub fn point_of(name: &str, path: &str, context: &Context<'_>) {
        let last = path.rsplit('/').next().unwrap_or(path);
        point(&format!("{name}.{last}"), context);
    }

    fn read_plan() -> Option<FaultPlan> {
        let text = std::env::var(FAULT_VARIABLE).ok()?;
        let mut parts = text.split(':');
        let point = parts.next()?.to_owned();
        let action = match parts.next()? {
            "hostile" => FaultAction::Hostile,
            "crash" => FaultAction::Fault(Fault::Segfault),
            "bus" => FaultAction::Fault(Fault::BusError),
            "leak" => FaultAction::Fault(Fault::OutOfMemory),
            "corrupt" => FaultAction::Fault(Fault::Garbage),
            "exit" => FaultAction::Fault(Fault::ExitZero),
            // All other faults have their serde names.
            name => {
                FaultAction::Fault(Fault::deserialize(StrDeserializer::<Error>::new(name)).ok()?)
            }
        };
        let nth = parts.next().map_or(Some(1), |nth| nth.parse().ok())?;
        Some(FaultPlan { point, action, nth, reached: AtomicU64::new(0) })
    }
}
