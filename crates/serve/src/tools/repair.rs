//! Tools that repair stores and reconnect to replaced ones.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{CheckReport, Doctor, DoctorOptions, DoctorReport, StorePlace};
use isolith_types::{Code, Failure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::stores::Whose;
use crate::tool::{Call, Effect, Shown, Tool};

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::new(
            "repair",
            Effect::Change,
            "Check the stores and repair damage. Use it after an error with code corrupt.",
            repair,
        ),
        Tool::new(
            "reconnect",
            Effect::AddOnce,
            "Close and reopen the stores, with fresh workers.",
            reconnect,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repair {
    /// Check indexes against tables too
    full: Option<bool>,
}

async fn repair(call: Call, asked: Repair) -> Result<Repaired, Failure> {
    let options =
        DoctorOptions { full: asked.full.unwrap_or(false), repair: true, ..Default::default() };
    let mut stores = Vec::new();
    for (whose, place) in call.server.stores().there() {
        let meanwhile = Failure::new(Code::LockHeld, "the store is being repaired")
            .with_hint("try again in a few seconds");
        let shut = call.server.shut(whose, meanwhile).await?;
        stores.push(examine(whose, &place, options.clone()).await);
        drop(shut);
    }
    call.server.warm_up().await;
    Ok(Repaired { ok: stores.iter().all(|store| store.ok), stores })
}

async fn examine(whose: Whose, place: &StorePlace, options: DoctorOptions) -> Examined {
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
            return Examined::of(whose, folder, report);
        }
    };
    let report = doctor.run().await;
    doctor.close().await;
    Examined::of(whose, folder, report)
}

#[derive(Serialize, JsonSchema)]
struct Repaired {
    ok: bool,
    stores: Vec<Examined>,
}

#[derive(Serialize, JsonSchema)]
struct Examined {
    whose: String,
    store: String,
    ok: bool,
    problems: Vec<String>,
    repaired: Vec<String>,
}

impl Examined {
    fn of(whose: Whose, folder: &Path, report: DoctorReport) -> Self {
        let problem = |check: &CheckReport| {
            let status = json!(check.status);
            let status = status.as_str().filter(|status| *status != "ok")?;
            Some(format!("{} {status}: {}", check.name, check.detail))
        };
        let error = report.error.map(|failure| failure.message);
        Self {
            whose: whose.name().to_owned(),
            store: folder.display().to_string(),
            ok: report.ok,
            problems: report.checks.iter().filter_map(problem).chain(error).collect(),
            repaired: report.repaired,
        }
    }
}

impl Shown for Repaired {
    fn text(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            let state = if store.ok { "ok" } else { "not ok" };
            let _ = writeln!(text, "{} store {}: {state}", store.whose, store.store);
            for line in store.problems.iter().chain(&store.repaired) {
                let _ = writeln!(text, "  {line}");
            }
        }
        if text.is_empty() { "there is no store yet".to_owned() } else { text }
    }

    fn is_ours(&self) -> bool {
        true
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reconnect {}

async fn reconnect(call: Call, Reconnect {}: Reconnect) -> Result<Reconnected, Failure> {
    for (whose, _) in call.server.stores().there() {
        let meanwhile = Failure::new(Code::LockHeld, "the store is being reopened")
            .with_hint("try again in a second");
        drop(call.server.shut(whose, meanwhile).await?);
    }
    call.server.warm_up().await;
    let opened = call.server.stores().all();
    let ok = opened.iter().all(|(_, opened)| opened.is_ok());
    let stores = opened.into_iter().map(|(whose, opened)| match opened {
        Ok(engine) => format!("{} store {}: open", whose.name(), engine.folder().display()),
        Err(failure) => format!("{} store: {}", whose.name(), failure.message),
    });
    Ok(Reconnected { ok, stores: stores.collect() })
}

#[derive(Serialize, JsonSchema)]
struct Reconnected {
    ok: bool,
    stores: Vec<String>,
}

impl Shown for Reconnected {
    fn text(&self) -> String {
        match self.stores.is_empty() {
            true => "there is no store yet".to_owned(),
            false => self.stores.join("\n"),
        }
    }

    fn is_ours(&self) -> bool {
        true
    }
}
