//! `repair` and `reconnect`.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{CheckReport, Doctor, DoctorOptions, DoctorReport, StorePlace};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::arguments::NoArguments;
use crate::stores::StoreOwner;
use crate::tool::{Call, Effect, Tool, ToolAnswer};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "repair",
            Effect::Change,
            "Check the stores and repair damage. Use it after an error with code corrupt. To only look use health. Example: {}",
            repair,
        ),
        Tool::new(
            "reconnect",
            Effect::AddOnce,
            "Close and reopen the stores. Use it after a store was restored or replaced. For damage use repair. Example: {}",
            reconnect,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repair {
    /// Also check indexes against tables
    full: Option<bool>,
}

async fn repair(call: Call, arguments: Repair) -> Result<RepairResult, Failure> {
    let options =
        DoctorOptions { full: arguments.full.unwrap_or(false), repair: true, ..Default::default() };
    let mut stores = Vec::new();
    for (owner, place) in call.server.stores().existing() {
        let reason = Failure::new(Code::LockHeld, "the store is being repaired")
            .with_hint("try again in a few seconds");
        let closed = call.server.close_store(owner, reason).await?;
        stores.push(examine(owner, &place, options.clone()).await);
        drop(closed);
    }
    call.server.warm_up().await;
    Ok(RepairResult { ok: stores.iter().all(|store| store.ok), stores })
}

async fn examine(owner: StoreOwner, place: &StorePlace, options: DoctorOptions) -> StoreRepair {
    let folder = place.path();
    let doctor = match Doctor::open(place, options, |_| {}) {
        Ok(doctor) => doctor,
        Err(failure) => {
            let report = DoctorReport {
                ok: false,
                checks: vec![],
                repaired: vec![],
                lost: vec![],
                error: Some(failure),
            };
            return StoreRepair::of(owner, folder, report);
        }
    };
    let report = doctor.run().await;
    doctor.close().await;
    StoreRepair::of(owner, folder, report)
}

#[derive(Serialize, JsonSchema)]
struct RepairResult {
    ok: bool,
    stores: Vec<StoreRepair>,
}

#[derive(Serialize, JsonSchema)]
struct StoreRepair {
    whose: String,
    store: String,
    ok: bool,
    problems: Vec<String>,
    repaired: Vec<String>,
}

impl StoreRepair {
    fn of(owner: StoreOwner, folder: &Path, report: DoctorReport) -> Self {
        let problem = |check: &CheckReport| {
            let status = json!(check.status);
            let status = status.as_str().filter(|status| *status != "ok")?;
            Some(format!("{} {status}: {}", check.name, check.detail))
        };
        let error = report.error.map(|failure| failure.message);
        Self {
            whose: owner.name().to_owned(),
            store: folder.display().to_string(),
            ok: report.ok,
            problems: report.checks.iter().filter_map(problem).chain(error).collect(),
            repaired: report.repaired,
        }
    }
}

impl ToolAnswer for RepairResult {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            let state = if store.ok { "ok" } else { "not ok" };
            let _ = writeln!(text, "{} store {}: {state}", store.whose, store.store);
            for line in store.problems.iter().chain(&store.repaired) {
                let _ = writeln!(text, "  {line}");
            }
        }
        if text.is_empty() { "no store exists yet".to_owned() } else { text }
    }
}

pub(crate) async fn reconnect(call: Call, _: NoArguments) -> Result<ReconnectResult, Failure> {
    for (owner, _) in call.server.stores().existing() {
        let reason = Failure::new(Code::LockHeld, "the store is being reopened")
            .with_hint("try again in a second");
        drop(call.server.close_store(owner, reason).await?);
    }
    call.server.warm_up().await;
    let opened = call.server.stores().all();
    let ok = opened.iter().all(|(_, opened)| opened.is_ok());
    let stores = opened.into_iter().map(|(owner, opened)| match opened {
        Ok(engine) => format!("{} store {}: open", owner.name(), engine.folder().display()),
        Err(failure) => format!("{} store: {}", owner.name(), failure.message),
    });
    Ok(ReconnectResult { ok, stores: stores.collect() })
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ReconnectResult {
    ok: bool,
    stores: Vec<String>,
}

impl ToolAnswer for ReconnectResult {
    const TRUSTED: bool = true;

    fn text(&self) -> String {
        match self.stores.is_empty() {
            true => "no store exists yet".to_owned(),
            false => self.stores.join("\n"),
        }
    }
}
