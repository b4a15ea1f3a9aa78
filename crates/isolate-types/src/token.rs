/// Proof of being inside a worker process: only `isolate::worker_main` hands it out. Code
/// that must never run in the front asks for one.
#[derive(Debug, Clone, Copy)]
pub struct InWorker(());

#[cfg(feature = "in-process")]
impl InWorker {
    /// A token for tests and benchmarks that call a role's code where they run.
    pub fn in_process() -> Self {
        Self(())
    }
}

/// The token of this process. `isolate` calls it once a process has become a worker: its
/// limits are set and its sandbox is closed.
pub fn issue() -> InWorker {
    InWorker(())
}
