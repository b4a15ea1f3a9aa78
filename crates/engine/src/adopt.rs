//! Adopts a store from another user or machine: checks it, then makes it this user's own.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use isolate::CallOptions;
use isolith_folder::Folder;
use isolith_roles::{Adopt, Operation};
use isolith_store::names::is_segment;
use isolith_store::new_uuid;
use isolith_types::{Code, Failure};

use crate::doctor::{Doctor, DoctorOptions, DoctorReport};
use crate::failure::of_call;
use crate::location::PROJECT_FOLDER;
use crate::open::{Engine, EngineOptions};
use crate::trust::{IfMissing, StorePlace};

/// Deadline for adopting a store after the check.
const ADOPT_DEADLINE: Duration = Duration::from_secs(300);

/// The result of examining a store that is not trusted yet.
#[derive(Debug)]
pub struct ForeignStore {
    /// The report of a full check.
    pub report: DoctorReport,
    /// Indexed folders that lie outside of the project.
    pub outside: Vec<PathBuf>,
}

/// Runs a full check of a store without this user's seal. Must be called within a tokio
/// runtime.
///
/// # Errors
/// `already_exists` if it is already trusted, `store_refused` if git tracks it or it contains
/// links, `no_store` if there is none.
pub async fn examine_foreign(
    place: &StorePlace,
    options: DoctorOptions,
) -> Result<ForeignStore, Failure> {
    match place.admit(IfMissing::Refuse) {
        Ok(_) => {
            let message = format!("the store in {} is already trusted", place.path().display());
            return Err(Failure::new(Code::AlreadyExists, message));
        }
        Err(failure) if failure.code == Code::StoreForeign => {}
        Err(failure) => return Err(failure),
    }
    let unsealed = place.unsealed()?;
    let program = options.program.clone();
    let options = DoctorOptions { full: true, repair: false, only_look: true, ..options };
    let doctor = Doctor::open(&unsealed, options, |_| {})?;
    let report = doctor.run().await;
    doctor.close().await;
    let mut outside = Vec::new();
    if report.error.is_none() && report.damaged_data().is_none() {
        let engine = Engine::open(&unsealed, EngineOptions { program, ..Default::default() })?;
        let roots = engine.roots().await;
        engine.close().await;
        let home = project_of(unsealed.path());
        outside = roots?.into_iter().map(|root| root.folder).collect();
        outside.retain(|folder| !home.as_ref().is_some_and(|home| folder.starts_with(home)));
    }
    Ok(ForeignStore { report, outside })
}

/// Makes a store this user's own: drops its derived files and receipts, gives it a new
/// identity, seals it, and rebuilds the derived files.
///
/// # Errors
/// `lock_held` while another process uses it; any error of a write.
pub async fn adopt(place: &StorePlace, program: Option<PathBuf>) -> Result<(), Failure> {
    let unsealed = place.unsealed()?;
    let uuid = new_uuid();
    let options = DoctorOptions { program: program.clone(), ..DoctorOptions::default() };
    let doctor = Doctor::open(&unsealed, options, |_| {})?;
    let call = CallOptions { deadline: Some(ADOPT_DEADLINE), ..CallOptions::default() };
    let answer = doctor.probes().call(&Adopt { uuid: uuid.clone() }.into(), call).await;
    doctor.close().await;
    Adopt::reply_from(answer.map_err(|error| of_call(&error))?.reply)?;
    remove_derived(unsealed.path());
    place.seal_anew(&uuid)?;
    rebuild(place, program).await
}

/// Renames a store that must not be used, whatever its content. Returns its new path.
///
/// # Errors
/// `no_store` if there is none, `store_refused` if git tracks it, `bad_input` if it is the
/// user's own store or contains other files; or if it cannot be renamed.
pub fn move_aside(place: &StorePlace) -> Result<PathBuf, Failure> {
    place.refuse_tracked()?;
    place.refuse_to_move()?;
    let path = place.path();
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let name = path.file_name().map_or_else(|| "store".into(), |name| name.to_string_lossy());
    let aside = path.with_file_name(format!("{name}.old-{}", since.as_millis()));
    match fs::rename(path, &aside) {
        Ok(()) => Ok(aside),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            Err(crate::open::no_store(path))
        }
        Err(error) => {
            let message = format!("cannot move {} aside: {error}", path.display());
            Err(Failure::new(Code::ReadOnly, message))
        }
    }
}

/// The project folder that a store belongs to.
fn project_of(store: &Path) -> Option<PathBuf> {
    let is_project = store.file_name().is_some_and(|name| name == PROJECT_FOLDER);
    store.parent().filter(|_| is_project).map(Path::to_owned)
}

fn remove_derived(store: &Path) {
    for name in ["segments", "quarantine"] {
        let Ok(folder) = Folder::open(store.join(name)) else { continue };
        for entry in folder.entries().unwrap_or_default() {
            if is_segment(&entry.name) {
                // The database no longer refers to it.
                let _ = folder.remove(&entry.name);
            }
        }
    }
}

async fn rebuild(place: &StorePlace, program: Option<PathBuf>) -> Result<(), Failure> {
    let engine = Engine::open(place, EngineOptions { program, ..Default::default() })?;
    let rebuilt = async {
        for collection in engine.states().await? {
            engine.fold(&collection.name, true, None).await?;
        }
        Ok(())
    };
    let rebuilt = rebuilt.await;
    engine.settle().await;
    engine.close().await;
    rebuilt
}
