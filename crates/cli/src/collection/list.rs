//! `isolith collection list`.

use std::process::ExitCode;

use isolith_engine::{EngineOptions, StorePlace};
use isolith_types::{Code, Collection, Failure};
use serde::Serialize;
use serde_json::json;

use super::place::{CollectionPlaces, StoreOwner};
use crate::output::Output;
use crate::session::Session;
use crate::table::table;

/// A collection with its store.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    collection: Collection,
    store: &'static str,
}

/// Lists the collections of the project's store and of the user's.
pub(super) fn list(places: &CollectionPlaces, output: &Output) -> Result<ExitCode, Failure> {
    let first = list_store(places, &places.store, places.owner);
    let mut listed = match (first, &places.users) {
        // The project has no collections yet.
        (Err(failure), Some(users)) if is_missing(&failure) => {
            return show(&list_store(places, users, StoreOwner::User)?, output);
        }
        (first, _) => first?,
    };
    if let Some(users) = &places.users {
        match list_store(places, users, StoreOwner::User) {
            Ok(more) => listed.extend(more),
            Err(failure) if is_missing(&failure) => {}
            // The project's collections are worth showing.
            Err(failure) => output.note(&format!("cannot list the user's store: {failure}")),
        }
    }
    show(&listed, output)
}

/// Whether there is no such store, or no such database in it.
fn is_missing(failure: &Failure) -> bool {
    matches!(failure.code, Code::NoStore | Code::NotFound)
}

fn list_store(
    places: &CollectionPlaces,
    store: &StorePlace,
    owner: StoreOwner,
) -> Result<Vec<Listed>, Failure> {
    let mut session = Session::open(store, EngineOptions::default())?;
    let collections = session.run(async |engine| engine.collections_of(&places.database).await)?;
    session.close();
    let store = owner.name();
    Ok(collections.into_iter().map(|collection| Listed { collection, store }).collect())
}

fn show(listed: &[Listed], output: &Output) -> Result<ExitCode, Failure> {
    let text = match listed {
        [] => "no collections\n".to_owned(),
        listed => as_table(listed),
    };
    output.result(&json!({ "collections": listed }), &text)?;
    Ok(ExitCode::SUCCESS)
}

fn as_table(listed: &[Listed]) -> String {
    let rows: Vec<Vec<String>> = listed
        .iter()
        .map(|Listed { collection: it, store }| {
            vec![
                it.name.clone(),
                it.records.to_string(),
                it.dimension.map_or("-".to_owned(), |dimension| dimension.to_string()),
                it.metric.to_string(),
                it.model.clone().unwrap_or_else(|| "-".to_owned()),
                it.generation.to_string(),
                it.tail.to_string(),
                (*store).to_owned(),
            ]
        })
        .collect();
    let headings =
        ["NAME", ">RECORDS", ">DIMENSION", "METRIC", "MODEL", ">GENERATION", ">TAIL", "STORE"];
    table(&headings, &rows)
}
