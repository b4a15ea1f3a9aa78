//! One command's work on a store: a runtime, an engine, and the signals that stop it.

use std::ops::Deref;
use std::time::Duration;

use isolate::{Interrupted, Signal, Signals, run_until_signalled};
use isolith_engine::{Engine, EngineOptions, StatusSocket, StorePlace};
use isolith_types::{Code, Failure};
use tokio::runtime::Runtime;

/// How long jobs may go on after the first signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// A store that is open for one command.
pub(crate) struct Session {
    runtime: Background,
    engine: Engine,
    signals: Signals,
}

impl Session {
    /// Opens the store in `folder`.
    pub(crate) fn open(store: &StorePlace, options: EngineOptions) -> Result<Self, Failure> {
        let (runtime, signals) = setup()?;
        let guard = runtime.enter();
        let engine = Engine::open(store, options)?;
        drop(guard);
        Ok(Self { runtime, engine, signals })
    }

    /// Works until it is done or a signal comes.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Engine) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.run_with_signal(work) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failure)) => {
                // The caller gives up; what the engine has learnt from it is kept.
                self.runtime.block_on(self.engine.close());
                Err(failure)
            }
            // What was finished in spite of the signal is told.
            Err((_, Some(Ok(result)))) => Ok(result),
            Err((signal, _)) => Err(interrupted(signal)),
        }
    }

    /// Works until it is done or a signal comes. After a signal the work may still end
    /// in order, within limits; then what it came to is there beside the signal.
    pub(crate) fn run_with_signal<T>(
        &mut self,
        work: impl AsyncFnOnce(&Engine) -> T,
    ) -> Result<T, (Signal, Option<T>)> {
        let Self { runtime, engine, signals } = self;
        let pools = engine.pools();
        let outcome = runtime.block_on(run_until_signalled(signals, &pools, DRAIN, work(engine)));
        outcome.map_err(|Interrupted { signal, output }| (signal, output))
    }

    /// Does what the command's writes have left to be done, then stops the workers.
    pub(crate) fn settle(mut self) -> Result<(), Failure> {
        self.run(async |engine| {
            engine.settle().await;
            Ok(())
        })?;
        self.close();
        Ok(())
    }

    /// Answers `isolith status` until the guard is dropped.
    pub(crate) fn serve_status(&self) -> Option<StatusSocket> {
        let _guard = self.runtime.enter();
        self.engine.serve_status()
    }

    /// Stops the workers.
    pub(crate) fn close(self) {
        let Self { runtime, engine, .. } = self;
        runtime.block_on(engine.close());
    }
}

/// What a command runs on, and the signals that stop it from now on.
pub(crate) fn setup() -> Result<(Background, Signals), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::Failed, format!("the command cannot be set up: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let guard = runtime.enter();
    let signals = Signals::listen().map_err(failed)?;
    drop(guard);
    Ok((Background(Some(runtime)), signals))
}

/// A runtime that does not wait for its threads at the end: one that reads from a disk
/// that does not answer must not keep the program.
pub(crate) struct Background(Option<Runtime>);

impl Deref for Background {
    type Target = Runtime;

    fn deref(&self) -> &Runtime {
        self.0.as_ref().expect("it is taken only when it is dropped")
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// What a signal makes of a command.
pub(crate) fn interrupted(signal: Signal) -> Failure {
    match signal {
        Signal::Interrupt => Failure::new(Code::Interrupted, "interrupted"),
        Signal::Terminate => Failure::new(Code::Terminated, "terminated"),
    }
    .with_hint("what was finished is kept; the same command continues")
}
