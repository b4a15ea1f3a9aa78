//! What is known, and when it was true. docs/facts.md has the rules.

use isolith_protocol::{
    AddFact, CountFacts, DescribeEntity, FactSuperseded, GetEntity, InvalidateFact, Key,
    ListEntities, ListTimeline, QueryFacts, SupersedeFact,
};
use isolith_types::{
    AddedFact, Code, EndedFact, Entity, EntityPatch, EntityQuery, Fact, FactQuery, FactStats,
    Failure, Hint, Moment, NewFact, Supersede, SupersededFact, WhichFact,
};

use crate::open::Engine;

/// The most facts or entities that one answer has: a page of a thousand, and one that says
/// that there are more.
pub const MOST_FACTS: u32 = 1_001;

impl Engine {
    /// Adds a fact, or finds the one that says the same at the same times. With a key, a
    /// repeat of the same call changes nothing and answers the same; so for all that write
    /// facts.
    ///
    /// # Errors
    /// `bad_input` for what cannot be a fact; `already_exists` if one that says the same
    /// overlaps it and ends at another time; or what keeps it from being written.
    pub async fn add_fact(&self, fact: NewFact, key: Option<Key>) -> Result<AddedFact, Failure> {
        Ok(self.write(AddFact { fact }, key).await?.done.reply.fact)
    }

    /// Ends a fact: at `at`, or now.
    ///
    /// # Errors
    /// `not_found` if there is no such fact, or by what it says none that has not ended;
    /// `bad_input` if it would end before it began, or has ended before; or what keeps it
    /// from being written.
    pub async fn invalidate_fact(
        &self,
        which: WhichFact,
        at: Option<Moment>,
        key: Option<Key>,
    ) -> Result<EndedFact, Failure> {
        Ok(self.write(InvalidateFact { which, at }, key).await?.done.reply.ended_fact)
    }

    /// Ends a fact and puts another in its place, at the same moment and in one
    /// transaction.
    ///
    /// # Errors
    /// As [`Engine::invalidate_fact`] and [`Engine::add_fact`].
    pub async fn supersede_fact(
        &self,
        change: Supersede,
        key: Option<Key>,
    ) -> Result<SupersededFact, Failure> {
        let written = self.write(SupersedeFact { change }, key).await?;
        let FactSuperseded { fact, ended_fact: old } = written.done.reply;
        let AddedFact { id, created, .. } = fact;
        Ok(SupersededFact { old: old.id, id, created, at: old.valid_to })
    }

    /// Notes what is known of an entity, which is made if it is not there. Returns it as
    /// it is then.
    ///
    /// # Errors
    /// `already_exists` if a name belongs to another entity, `bad_input` for what cannot be
    /// a name, or what keeps it from being written.
    pub async fn describe_entity(
        &self,
        patch: EntityPatch,
        key: Option<Key>,
    ) -> Result<Entity, Failure> {
        let described = self.write(DescribeEntity { patch }, key).await?.done.reply;
        described.entity.ok_or_else(|| Failure::new(Code::NotFound, "the entity was deleted"))
    }

    /// What is known: what is true now comes first, then what will be, then what was. An
    /// entity that nobody knows has no facts, which is not an error.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn query_facts(&self, query: &FactQuery) -> Result<Vec<Fact>, Failure> {
        let limit = query.limit.min(MOST_FACTS);
        self.ask(QueryFacts { query: FactQuery { limit, ..query.clone() } }).await
    }

    /// Facts in the order in which they became true, those without any date last; of all
    /// entities if none is named.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn fact_timeline(
        &self,
        entity: Option<&str>,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<Fact>, Failure> {
        let (entity, limit) = (entity.map(str::to_owned), limit.min(MOST_FACTS));
        self.ask(ListTimeline { entity, limit, offset }).await
    }

    /// How many facts there are: true now, no longer, not yet.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn fact_stats(&self) -> Result<FactStats, Failure> {
        self.ask(CountFacts).await
    }

    /// What facts are about, by name.
    ///
    /// # Errors
    /// What keeps the store from being read.
    pub async fn entities(&self, query: &EntityQuery) -> Result<Vec<Entity>, Failure> {
        let limit = query.limit.min(MOST_FACTS);
        self.ask(ListEntities { query: EntityQuery { limit, ..query.clone() } }).await
    }

    /// The entity that has this name or goes by it.
    ///
    /// # Errors
    /// `not_found`, or what keeps the store from being read.
    pub async fn entity(&self, name: &str) -> Result<Entity, Failure> {
        let found = self.ask(GetEntity { name: name.to_owned() }).await?;
        found.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("nothing is known of {name:?}"))
                .with_hint(Hint::ListEntities)
        })
    }
}
