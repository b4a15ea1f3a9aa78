/// Proof of running inside a worker process: only `isolate::worker_main` issues it. Code that
/// must never run in the front requires one as an argument.
#[derive(Debug, Clone, Copy)]
pub struct InWorker(());

#[cfg(feature = "in-process")]
impl InWorker {
    /// A token for tests and benchmarks that run a role's code in their own process.
    pub fn in_process() -> Self {
        Self(())
    }
}

/// The token of this process. `isolate` calls it after the worker has set its limits and
/// entered its sandbox.
pub fn issue() -> InWorker {
    InWorker(())
}
