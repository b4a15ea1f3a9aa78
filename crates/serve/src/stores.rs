//! The two stores of a server: the project's for code, the user's for memory. Each is opened on
//! first use and has its own workers.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use isolith_config::Layers;
use isolith_engine::{
    Engine, EngineOptions, Life, QueryCheck, StorePlace, StoreScope, Surroundings, Within,
    find_store, project_names, project_store, repository_top, store_above,
};
use isolith_types::{Code, DatabaseName, Failure, Hint};

use crate::confine::Confinement;
use crate::server::ServerOptions;
use crate::tool::Surface;

/// Concurrent reads per store.
const READERS: usize = 2;

/// The folder of a project's store.
const PROJECT_STORE: &str = ".isolith";

/// The file that makes a folder a store.
const TRUTH_FILE: &str = "truth.sqlite";

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum StoreOwner {
    /// The project's, for code.
    Project,
    /// The user's, for memory.
    User,
}

impl StoreOwner {
    /// The name in answers.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
        }
    }
}

/// Both stores. They are the same if the user named one store for everything.
#[derive(Debug)]
pub(crate) struct Stores {
    surroundings: Surroundings,
    allowed: Vec<PathBuf>,
    /// Isolith's own folders, which no tool may name.
    private: Vec<PathBuf>,
    deadline: Duration,
    settings: Layers,
    database: DatabaseName,
    project: Arc<Store>,
    user: Arc<Store>,
}

/// A store, open or not.
#[derive(Debug, Default)]
struct Store(Mutex<StoreState>);

#[derive(Debug, Default)]
struct StoreState {
    engine: Option<Engine>,
    /// Why it cannot be opened at the moment.
    unavailable: Option<Failure>,
}

impl Store {
    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> Option<Engine> {
        self.state().engine.clone()
    }
}

/// Keeps a store closed until dropped.
#[derive(Debug)]
pub(crate) struct ClosedStore(Arc<Store>);

impl Drop for ClosedStore {
    fn drop(&mut self) {
        let mut state = self.0.state();
        // A server that is stopping must not reopen stores.
        if state.unavailable.as_ref().is_some_and(|failure| failure.code != Code::Draining) {
            state.unavailable = None;
        }
    }
}

impl Stores {
    pub(crate) fn new(options: ServerOptions) -> Self {
        let ServerOptions { surroundings, allowed, deadline, settings, database, .. } = options;
        let project = Arc::<Store>::default();
        let user = match surroundings.given.is_some() {
            true => Arc::clone(&project),
            false => Arc::default(),
        };
        let private = private_folders(&surroundings);
        Self { surroundings, allowed, private, deadline, settings, database, project, user }
    }

    /// The store of code.
    ///
    /// # Errors
    /// `no_store` if nothing has been indexed here.
    pub(crate) fn code(&self) -> Result<Engine, Failure> {
        self.open_existing(StoreOwner::Project)?.ok_or_else(|| {
            Failure::new(Code::NoStore, "no code is indexed yet").with_hint(Hint::IndexProject)
        })
    }

    /// The store of the graph, which is the one of code.
    ///
    /// # Errors
    /// `no_store` if nothing has been indexed or written here.
    pub(crate) fn graph(&self) -> Result<Engine, Failure> {
        self.open_existing(StoreOwner::Project)?.ok_or_else(|| {
            Failure::new(Code::NoStore, "there is no graph yet").with_hint(Hint::CreateGraph)
        })
    }

    /// Finds out whether a query writes, without a store.
    pub(crate) fn query_check(&self) -> Result<QueryCheck, Failure> {
        QueryCheck::start(&EngineOptions { deadline: self.deadline, ..EngineOptions::default() })
    }

    /// The store of code, created if needed.
    pub(crate) fn code_to_index(&self) -> Result<Engine, Failure> {
        self.open(StoreOwner::Project, true)
    }

    /// The store of collections, if it exists: the project's, else the user's.
    pub(crate) fn collections(&self) -> Result<Option<Engine>, Failure> {
        match self.open_existing(StoreOwner::Project)? {
            Some(engine) => Ok(Some(engine)),
            None => self.open_existing(StoreOwner::User),
        }
    }

    /// The stores with collections that exist, each opened when it is asked for; the one that new
    /// collections go to comes first.
    pub(crate) fn with_collections(
        &self,
    ) -> impl Iterator<Item = Result<(StoreOwner, Engine), Failure>> {
        self.owners().iter().filter_map(|owner| {
            let engine = self.open_existing(*owner).transpose()?;
            Some(engine.map(|engine| (*owner, engine)))
        })
    }

    /// The database of collections.
    pub(crate) fn database(&self) -> &DatabaseName {
        &self.database
    }

    /// The store of collections, created if needed: the project's, else the user's.
    pub(crate) fn collections_to_write(&self) -> Result<Engine, Failure> {
        match self.open_existing(StoreOwner::Project)? {
            Some(engine) => Ok(engine),
            None => self.open(StoreOwner::User, true),
        }
    }

    /// The store of memory and facts, if it exists.
    pub(crate) fn memory(&self) -> Result<Option<Engine>, Failure> {
        self.open_existing(StoreOwner::User)
    }

    /// The store of memory and facts, created if needed.
    pub(crate) fn memory_to_write(&self) -> Result<Engine, Failure> {
        self.open(StoreOwner::User, true)
    }

    /// The existing stores, each once.
    pub(crate) fn all(&self) -> Vec<(StoreOwner, Result<Engine, Failure>)> {
        let open = |owner: &StoreOwner| Some((*owner, self.open_existing(*owner).transpose()?));
        self.owners().iter().filter_map(open).collect()
    }

    /// The stores that are open, each once.
    pub(crate) fn opened(&self) -> Vec<(StoreOwner, Engine)> {
        let opened = |owner: &StoreOwner| Some((*owner, self.store(*owner).opened()?));
        self.owners().iter().filter_map(opened).collect()
    }

    /// The locations of existing stores, usable or not.
    pub(crate) fn existing(&self) -> Vec<(StoreOwner, StorePlace)> {
        let existing = |owner: &StoreOwner| {
            let place = self.place(*owner, false).ok()?;
            place.path().join(TRUTH_FILE).exists().then_some((*owner, place))
        };
        self.owners().iter().filter_map(existing).collect()
    }

    fn owners(&self) -> &'static [StoreOwner] {
        if self.is_shared() {
            &[StoreOwner::User]
        } else {
            &[StoreOwner::Project, StoreOwner::User]
        }
    }

    /// The paths that tools may name.
    pub(crate) fn confinement(&self) -> Confinement {
        let base = self.project_folder();
        let open = self.distinct().into_iter().filter_map(Store::opened);
        let mut stores: Vec<PathBuf> = open.map(|engine| engine.folder().to_owned()).collect();
        stores.extend(self.all_private_folders());
        Confinement::new(base, &self.allowed(), stores)
    }

    /// The folders of the stores and of this user's secrets.
    fn all_private_folders(&self) -> Vec<PathBuf> {
        let folders = [self.project_folder(), self.store_holder()].into_iter().flatten();
        let stores = folders.map(|folder| folder.join(PROJECT_STORE));
        self.private.iter().cloned().chain(stores).collect()
    }

    /// What an engine may read and return, regardless of the roots that its store lists.
    fn within(&self) -> Within {
        let project = self.project_folder();
        Confinement::new(project.clone(), &self.allowed(), self.all_private_folders())
            .within()
            .clone()
            .with_worktrees_of(project.as_deref())
    }

    /// The project's folder: the one with the project's store, or the repository or worktree that
    /// the server was started in if the store belongs to a folder around it or to the main
    /// checkout; without a store, the working folder. For a server started in the home folder or
    /// in `/`, the first allowed folder, if any.
    pub(crate) fn project_folder(&self) -> Option<PathBuf> {
        let Surroundings { working_folder: here, home, .. } = &self.surroundings;
        if let Some(holder) = self.store_holder() {
            let top = repository_top(here).filter(|top| !holder.starts_with(top));
            return Some(top.map_or(holder, Path::to_owned));
        }
        let at_home = home.as_ref().is_some_and(|home| home == here);
        match at_home || here.parent().is_none() {
            true => self.allowed.first().cloned(),
            false => Some(here.clone()),
        }
    }

    /// The names under which this project may be remembered.
    pub(crate) fn project_names(&self) -> Vec<String> {
        let here = &self.surroundings.working_folder;
        match self.project_folder() {
            Some(project) if !here.starts_with(&project) => project_names(&project),
            Some(_) => project_names(here),
            None => Vec::new(),
        }
    }

    /// The folder that contains the project's store.
    fn store_holder(&self) -> Option<PathBuf> {
        let Surroundings { given, working_folder: here, .. } = &self.surroundings;
        let store = project_store(here).filter(|store| given.is_none() && store.is_dir())?;
        store.parent().map(Path::to_owned)
    }

    /// The folder that questions are asked in.
    fn here(&self) -> Option<PathBuf> {
        let (here, project) = (&self.surroundings.working_folder, self.project_folder()?);
        Some(if here.starts_with(&project) { here.clone() } else { project })
    }

    /// The folders that paths may lie in, besides the project's: those that were allowed, and the
    /// one around a project that has no store of its own.
    fn allowed(&self) -> Vec<PathBuf> {
        let project = self.project_folder();
        let around = self.store_holder().filter(|holder| {
            project.as_ref().is_some_and(|project| project != holder && project.starts_with(holder))
        });
        self.allowed.iter().cloned().chain(around).collect()
    }

    /// A note that another store may hold the same code, in the words of a surface.
    pub(crate) fn notice(&self, engine: &Engine, surface: Surface) -> Option<String> {
        let store = engine.folder();
        let above = store_above(store).filter(|_| self.surroundings.given.is_none())?;
        let folder = store.parent().unwrap_or(store).display().to_string();
        let (used, above) = (store.display(), above.display());
        let hint = surface.words()(&Hint::MergeStore { folder });
        Some(format!("searched {used}; {above} may hold the same code; {hint}"))
    }

    /// Refuses new calls. Running ones get up to `budget`.
    pub(crate) fn begin_drain(&self, budget: Duration) {
        for store in self.distinct() {
            let mut state = store.state();
            state.unavailable = Some(Failure::new(Code::Draining, "the server is stopping"));
            let pools = state.engine.iter().flat_map(Engine::pools);
            pools.for_each(|pool| pool.begin_drain(budget));
        }
    }

    /// Waits until all workers have exited, after [`Self::begin_drain`].
    pub(crate) async fn drained(&self) {
        for engine in self.distinct().into_iter().filter_map(Store::opened) {
            for pool in engine.pools() {
                pool.drained().await;
            }
        }
    }

    /// Kills all workers.
    pub(crate) fn kill(&self) {
        for engine in self.distinct().into_iter().filter_map(Store::opened) {
            engine.pools().into_iter().for_each(|pool| pool.kill());
        }
    }

    /// Lets running jobs finish, and stops all workers.
    pub(crate) async fn close(&self) {
        for engine in self.distinct().into_iter().filter_map(Store::opened) {
            engine.close().await;
        }
    }

    /// Closes a store until the guard is dropped. Calls in the meantime fail with `reason`.
    ///
    /// # Errors
    /// If the store is already closed.
    pub(crate) async fn close_store(
        &self,
        owner: StoreOwner,
        reason: Failure,
    ) -> Result<ClosedStore, Failure> {
        let store = self.store(owner);
        let (engine, closed) = {
            let mut state = store.state();
            if let Some(failure) = &state.unavailable {
                return Err(failure.clone());
            }
            state.unavailable = Some(reason);
            (state.engine.take(), ClosedStore(Arc::clone(store)))
        };
        if let Some(engine) = engine {
            engine.close().await;
        }
        Ok(closed)
    }

    fn store(&self, owner: StoreOwner) -> &Arc<Store> {
        match owner {
            StoreOwner::Project => &self.project,
            StoreOwner::User => &self.user,
        }
    }

    /// Whether one store is used for everything.
    fn is_shared(&self) -> bool {
        Arc::ptr_eq(&self.project, &self.user)
    }

    fn distinct(&self) -> Vec<&Store> {
        self.owners().iter().map(|owner| &**self.store(*owner)).collect()
    }

    fn open_existing(&self, owner: StoreOwner) -> Result<Option<Engine>, Failure> {
        match self.open(owner, false) {
            // A new store has no file before its first write.
            Ok(engine) => Ok(Some(engine).filter(|it| it.folder().join(TRUTH_FILE).exists())),
            Err(failure) if failure.code == Code::NoStore => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    fn open(&self, owner: StoreOwner, create: bool) -> Result<Engine, Failure> {
        let mut state = self.store(owner).state();
        if let Some(failure) = &state.unavailable {
            return Err(failure.clone());
        }
        if let Some(engine) = &state.engine {
            return Ok(engine.clone());
        }
        let place = self.place(owner, create)?;
        let options = EngineOptions {
            create,
            life: Life::Server,
            readers: READERS,
            deadline: self.deadline,
            within: Some(self.within()),
            here: self.here(),
            also: self.allowed.clone(),
            settings: self.settings.clone(),
            ..EngineOptions::default()
        };
        let engine = Engine::open(&place, options)?;
        state.engine = Some(engine.clone());
        Ok(engine)
    }

    /// The folder of a store, or where it would be created.
    fn place(&self, owner: StoreOwner, create: bool) -> Result<StorePlace, Failure> {
        if owner == StoreOwner::User {
            return find_store(&self.surroundings, StoreScope::User);
        }
        let no_project = || {
            Failure::new(Code::NoStore, "this server has no project")
                .with_hint(Hint::StartInProject)
        };
        let folder = self.project_folder().ok_or_else(no_project)?;
        if !create && self.surroundings.given.is_none() && self.store_holder().is_none() {
            return Err(Failure::new(Code::NoStore, "the project has no store yet"));
        }
        find_store(&self.surroundings, StoreScope::Indexed(&folder))
    }
}

/// The user's or named store, and the folder of this user's secrets.
fn private_folders(surroundings: &Surroundings) -> Vec<PathBuf> {
    let given = surroundings.given.as_ref().map(|it| surroundings.working_folder.join(it));
    let without_given = Surroundings { given: None, ..surroundings.clone() };
    let user = find_store(&without_given, StoreScope::User).ok();
    let user = user.map(|store| store.path().to_owned());
    [given, user, surroundings.state_folder().ok()].into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::DefaultLimits;

    #[test]
    fn the_project_folder_has_the_store() {
        let root = tempfile::tempdir().unwrap();
        let deep = root.path().join("project/src");
        let home = root.path().join("home");
        std::fs::create_dir_all(&deep).unwrap();
        let stores = |here: &Path, given: Option<&str>| {
            let surroundings = Surroundings {
                given: given.map(PathBuf::from),
                working_folder: here.to_owned(),
                home: Some(home.clone()),
                ..Surroundings::default()
            };
            let allowed = vec![PathBuf::from("/allowed")];
            Stores::new(ServerOptions {
                tools: crate::tool::ToolSelection::default(),
                surroundings,
                allowed,
                deadline: Duration::from_secs(1),
                settings: Layers::default(),
                database: DatabaseName::default(),
                defaults: DefaultLimits::default(),
            })
        };
        let folder = |here: &Path, given| stores(here, given).project_folder().unwrap();
        assert_eq!(folder(&deep, None), deep);
        std::fs::create_dir(root.path().join("project/.isolith")).unwrap();
        assert_eq!(folder(&deep, None), root.path().join("project"));
        assert_eq!(folder(&deep, Some("/store")), deep);
        std::fs::create_dir(deep.join(".git")).unwrap();
        assert_eq!(folder(&deep.join("inner"), None), deep, "a repository of its own");
        let allowed = stores(&deep, None).allowed();
        assert_eq!(allowed, [PathBuf::from("/allowed"), root.path().join("project")]);
        std::fs::remove_dir(deep.join(".git")).unwrap();
        assert_eq!(folder(&home, None), Path::new("/allowed"));
        assert_eq!(folder(Path::new("/"), None), Path::new("/allowed"));
        assert!(stores(&deep, Some("/store")).is_shared());
        assert!(!stores(&deep, None).is_shared());
    }
}
