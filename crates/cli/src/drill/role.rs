use std::io;
use std::path::PathBuf;

use isolate::misbehave::Fault;
use isolate::{Context, InWorker, Refusal, Role, Sandbox};
use serde::{Deserialize, Serialize};

use super::ledger::Ledger;

/// A role that fails as instructed on the first attempt of a job, and succeeds on the next.
pub(crate) struct Saboteur {
    folder: PathBuf,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Settings {
    /// Folder of the ledgers.
    pub(super) folder: PathBuf,
    /// The job whose first worker fails at startup, and the fault.
    pub(super) at_start: Option<(u64, Fault)>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Request {
    pub(super) token: u64,
    pub(super) fault: Fault,
    /// Fail after the effect but before the reply, when a careless retry would repeat the
    /// effect.
    pub(super) after_effect: bool,
}

impl Role for Saboteur {
    const NAME: &'static str = "drill";
    type Settings = Settings;
    type Request = Request;
    type Reply = Result<u64, String>;

    fn warm_up(settings: Settings, _: InWorker) -> Result<Self, Refusal> {
        if let Some((token, fault)) = settings.at_start {
            let ledger = Ledger::of(&settings.folder, token);
            let refuse = |error: io::Error| Refusal::new("ledger", error.to_string());
            if ledger.read().map_err(refuse)?.fault_ns.is_none() {
                ledger.note_fault().map_err(refuse)?;
                fault.commit_at_start();
            }
        }
        Ok(Self { folder: settings.folder })
    }

    fn handle(&mut self, request: Request, context: &Context<'_>) -> Self::Reply {
        self.job(request, context).map_err(|error| error.to_string())
    }

    fn kind(request: &Request) -> &'static str {
        request.fault.describe()
    }

    /// Sandboxed like the workers of a store: faults must be detected inside a sandbox too.
    fn sandbox(settings: &Settings) -> Sandbox {
        Sandbox::folder(settings.folder.clone(), false, [])
    }
}

impl Saboteur {
    fn job(&self, request: Request, context: &Context<'_>) -> io::Result<u64> {
        let ledger = Ledger::of(&self.folder, request.token);
        let before = ledger.read()?;
        ledger.note_try()?;
        let fails = before.tries == 0 && !request.fault.is_at_start();
        if fails && !request.after_effect {
            ledger.note_fault()?;
            request.fault.commit(context);
        }
        // The token is an idempotency key: an existing effect is not repeated.
        if before.effects == 0 {
            ledger.note_effect()?;
        }
        if fails && request.after_effect {
            ledger.note_fault()?;
            request.fault.commit(context);
        }
        Ok(request.token)
    }
}
