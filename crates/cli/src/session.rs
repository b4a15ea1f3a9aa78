//! A store that is open for one command: runtime, engine and signals.

use std::ops::Deref;
use std::time::Duration;

use isolate::{Interrupted, Signal, Signals, run_until_signalled};
use isolith_engine::{CypherQuery, Engine, EngineOptions, QueryCheck, StatusSocket, StorePlace};
use isolith_types::{Code, Failure};
use tokio::runtime::Runtime;

use crate::output::{Output, read_answer};

/// How long running jobs may take after the first signal.
pub(crate) const DRAIN: Duration = Duration::from_secs(10);

/// A store that is open for one command.
pub(crate) struct Session {
    runtime: Background,
    engine: Engine,
    signals: Signals,
}

impl Session {
    /// Opens the store.
    pub(crate) fn open(store: &StorePlace, options: EngineOptions) -> Result<Self, Failure> {
        let (runtime, signals) = setup()?;
        let guard = runtime.enter();
        let engine = Engine::open(store, options)?;
        drop(guard);
        Ok(Self { runtime, engine, signals })
    }

    /// Runs `work` until it is done or a signal arrives.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&Engine) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        match self.run_with_signal(work) {
            Ok(Ok(result)) => Ok(result),
            Ok(Err(failure)) => {
                // The caller gives up; the engine still stores what it has learnt.
                self.runtime.block_on(self.engine.close());
                Err(failure)
            }
            // The work was finished in spite of the signal.
            Err((_, Some(Ok(result)))) => Ok(result),
            Err((signal, _)) => Err(interrupted(signal)),
        }
    }

    /// Runs `work` until it is done or a signal arrives. After a signal, the work may still
    /// finish within a time limit; its result is then returned with the signal.
    pub(crate) fn run_with_signal<T>(
        &mut self,
        work: impl AsyncFnOnce(&Engine) -> T,
    ) -> Result<T, (Signal, Option<T>)> {
        let Self { runtime, engine, signals } = self;
        let pools = || engine.pools();
        let outcome = runtime.block_on(run_until_signalled(signals, pools, DRAIN, work(engine)));
        outcome.map_err(|Interrupted { signal, output }| (signal, output))
    }

    /// Asks for confirmation; `None` without a terminal. A signal ends the command, as while work
    /// is done.
    pub(crate) fn ask(&mut self, question: &str, output: &Output) -> Result<Option<bool>, Failure> {
        if !output.show_question(question) {
            return Ok(None);
        }
        let Self { runtime, engine, signals } = self;
        runtime.block_on(async {
            tokio::select! {
                answer = tokio::task::spawn_blocking(read_answer) => Ok(answer.ok().flatten()),
                signal = signals.next() => {
                    engine.close().await;
                    Err(interrupted(signal))
                }
            }
        })
    }

    /// Finishes what the command's writes left to do, then stops the workers.
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

/// Whether a query changes the graph, for a command that has no store to ask.
pub(crate) fn changes_graph(options: &EngineOptions, query: &CypherQuery) -> Result<bool, Failure> {
    let (runtime, mut signals) = setup()?;
    let guard = runtime.enter();
    let check = QueryCheck::start(options)?;
    drop(guard);
    let work = check.changes_graph(&query.text);
    let pools = || check.pools();
    let outcome = runtime.block_on(run_until_signalled(&mut signals, pools, DRAIN, work));
    outcome.unwrap_or_else(|Interrupted { signal, .. }| Err(interrupted(signal)))
}

/// A runtime, and the signals, which are handled from now on.
pub(crate) fn setup() -> Result<(Background, Signals), Failure> {
    let failed = |error: std::io::Error| {
        Failure::new(Code::Failed, format!("cannot start the command: {error}"))
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(failed)?;
    let guard = runtime.enter();
    let signals = Signals::listen().map_err(failed)?;
    drop(guard);
    Ok((Background(Some(runtime)), signals))
}

/// A runtime that does not wait for its threads at the end: one of them may be blocked by a
/// disk that does not respond.
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

/// The failure of a command that was stopped by a signal.
pub(crate) fn interrupted(signal: Signal) -> Failure {
    match signal {
        Signal::Interrupt => Failure::new(Code::Interrupted, "interrupted"),
        Signal::Terminate => Failure::new(Code::Terminated, "terminated"),
    }
    .with_hint("finished work is kept; run the same command to continue")
}
