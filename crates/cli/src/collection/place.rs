//! Where commands look for collections: a project's store and the user's.

use isolith_engine::{CollectionState, EngineOptions, StorePlace};
use isolith_types::{Code, DatabaseName, Failure};

use crate::output::Output;
use crate::session::Session;

/// Whose store it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum StoreOwner {
    Project,
    User,
    /// The user named it.
    Given,
}

impl StoreOwner {
    /// The name in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::User => "user",
            Self::Given => "given",
        }
    }
}

/// Where a command looks for collections.
#[derive(Debug)]
pub(crate) struct CollectionPlaces {
    /// Where it creates and changes them.
    pub(crate) store: StorePlace,
    pub(crate) owner: StoreOwner,
    /// The user's store, if the command is about a project's and was not told to keep to it.
    pub(crate) users: Option<StorePlace>,
    pub(crate) database: DatabaseName,
}

impl CollectionPlaces {
    /// Opens the store that has the collection. Commands that only read it may find it in the
    /// user's store.
    pub(crate) fn find(
        &self,
        name: &str,
        reads: bool,
        output: &Output,
    ) -> Result<(Session, CollectionState), Failure> {
        let failure = match self.look(&self.store, name) {
            Err(failure) if matches!(failure.code, Code::NotFound | Code::NoStore) => failure,
            outcome => return outcome,
        };
        let users = self.users.as_ref().and_then(|users| self.look(users, name).ok());
        let Some((session, state)) = users else { return Err(failure) };
        if !reads {
            session.close();
            let hint = "the user's store has a collection with this name; change it with --user";
            return Err(failure.with_hint(hint));
        }
        output.note(&format!(
            "the project's store has no collection {name:?}; reading that of the user's store"
        ));
        Ok((session, state))
    }

    fn look(&self, store: &StorePlace, name: &str) -> Result<(Session, CollectionState), Failure> {
        let mut session = Session::open(store, EngineOptions::default())?;
        let state = session.run(async |engine| engine.collection_in(&self.database, name).await)?;
        Ok((session, state))
    }
}
