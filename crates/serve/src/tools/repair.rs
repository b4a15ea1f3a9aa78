//! Tools that mend: a store that is damaged, a connection to one that was replaced.

use std::fmt::Write as _;
use std::path::Path;

use isolith_engine::{CheckReport, Doctor, DoctorOptions, DoctorReport};
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
            "Check the stores and mend what is damaged; nothing that can be read is lost.",
            repair,
        ),
        Tool::new(
            "reconnect",
            Effect::AddOnce,
            "Close the stores and open them anew, with fresh workers.",
            reconnect,
        ),
    ]
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Repair {
    /// Compare indexes with their tables too
    full: Option<bool>,
}

async fn repair(call: Call, asked: Repair) -> Result<Repaired, Failure> {
    let options =
        DoctorOptions { full: asked.full.unwrap_or(false), repair: true, ..Default::default() };
    let mut stores = Vec::new();
    for (whose, folder) in call.server.stores().there() {
        let meanwhile = Failure::new(Code::LockHeld, "the store is being repaired")
            .with_hint("try again in some seconds");
        let shut = call.server.shut(whose, meanwhile).await?;
        stores.push(examine(whose, &folder, options.clone()).await);
        drop(shut);
    }
    call.server.warm_up().await;
    Ok(Repaired { ok: stores.iter().all(|store| store.ok), stores })
}

async fn examine(whose: Whose, folder: &Path, options: DoctorOptions) -> Examined {
    let doctor = match Doctor::open(folder, options, |_| {}) {
        Ok(doctor) => doctor,
        Err(failure) => {
            let report =
                DoctorReport { ok: false, checks: vec![], repaired: vec![], error: Some(failure) };
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
    checks: Vec<Checked>,
    repaired: Vec<String>,
    error: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct Checked {
    name: String,
    status: String,
    detail: String,
}

impl Examined {
    fn of(whose: Whose, folder: &Path, report: DoctorReport) -> Self {
        let checked = |check: CheckReport| Checked {
            name: check.name.to_owned(),
            status: json!(check.status).as_str().unwrap_or_default().to_owned(),
            detail: check.detail,
        };
        Self {
            whose: whose.name().to_owned(),
            store: folder.display().to_string(),
            ok: report.ok,
            checks: report.checks.into_iter().map(checked).collect(),
            repaired: report.repaired,
            error: report.error.map(|failure| failure.message),
        }
    }
}

impl Shown for Repaired {
    fn text(&self) -> String {
        let mut text = String::new();
        for store in &self.stores {
            let state = if store.ok { "ok" } else { "not ok" };
            let _ = writeln!(text, "{} store {}: {state}", store.whose, store.store);
            for check in store.checks.iter().filter(|check| check.status != "ok") {
                let _ = writeln!(text, "  {} {}: {}", check.name, check.status, check.detail);
            }
            for line in store.repaired.iter().chain(&store.error) {
                let _ = writeln!(text, "  {line}");
            }
        }
        if text.is_empty() { "there is no store yet".to_owned() } else { text }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Reconnect {}

async fn reconnect(call: Call, Reconnect {}: Reconnect) -> Result<Reconnected, Failure> {
    for (whose, _) in call.server.stores().there() {
        let meanwhile = Failure::new(Code::LockHeld, "the store is being opened anew")
            .with_hint("try again in a second");
        drop(call.server.shut(whose, meanwhile).await?);
    }
    call.server.warm_up().await;
    let reopened = call.server.stores().all().into_iter().map(|(whose, opened)| {
        let (store, error) = match opened {
            Ok(engine) => (engine.folder().display().to_string(), None),
            Err(failure) => (String::new(), Some(failure.message)),
        };
        Reopened { whose: whose.name().to_owned(), store, error }
    });
    let stores: Vec<Reopened> = reopened.collect();
    Ok(Reconnected { ok: stores.iter().all(|store| store.error.is_none()), stores })
}

#[derive(Serialize, JsonSchema)]
struct Reconnected {
    ok: bool,
    stores: Vec<Reopened>,
}

#[derive(Serialize, JsonSchema)]
struct Reopened {
    whose: String,
    store: String,
    error: Option<String>,
}

impl Shown for Reconnected {
    fn text(&self) -> String {
        let line = |it: &Reopened| {
            let outcome = it.error.as_deref().unwrap_or("open");
            format!("{} store {}: {outcome}\n", it.whose, it.store)
        };
        match self.stores.is_empty() {
            true => "there is no store yet".to_owned(),
            false => self.stores.iter().map(line).collect(),
        }
    }
}
