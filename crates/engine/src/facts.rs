//! Facts and entities. docs/facts.md describes the rules.

use isolith_protocol::{
    AddFact, CountFacts, DescribeEntity, FactSuperseded, GetEntity, InvalidateFact, Key,
    ListEntities, ListTimeline, QueryFacts, SupersedeFact,
};
use isolith_types::{
    AddedFact, Code, EndedFact, Entity, EntityPatch, EntityQuery, Fact, FactQuery, FactStats,
    Failure, Hint, Moment, NewFact, Supersede, SupersededFact, WhichFact,
};

use crate::open::Engine;

/// Maximum number of facts or entities in one reply: a page of a thousand, and one more to
/// show that there are more.
pub const MOST_FACTS: u32 = 1_001;

impl Engine {
    /// Adds a fact, or finds the existing one with the same content and period. With a key,
    /// repeating the call changes nothing and returns the same result; this holds for all
    /// writes of facts.
    ///
    /// # Errors
    /// `bad_input` for an invalid fact; `already_exists` if a fact with the same content
    /// overlaps it and ends at another time; any error of a write.
    pub async fn add_fact(&self, fact: NewFact, key: Option<Key>) -> Result<AddedFact, Failure> {
        Ok(self.write(AddFact { fact }, key).await?.done.reply.fact)
    }

    /// Ends a fact: at `at`, or now.
    ///
    /// # Errors
    /// `not_found` if there is no such fact, or none that is still open if given by content;
    /// `bad_input` if it would end before it began, or has already ended; any error of a
    /// write.
    pub async fn invalidate_fact(
        &self,
        which: WhichFact,
        at: Option<Moment>,
        key: Option<Key>,
    ) -> Result<EndedFact, Failure> {
        Ok(self.write(InvalidateFact { which, at }, key).await?.done.reply.ended_fact)
    }

    /// Ends a fact and adds its replacement from the same moment on, in one transaction.
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

    /// Creates or updates an entity. Returns its new state.
    ///
    /// # Errors
    /// `already_exists` if a name belongs to another entity, `bad_input` for an invalid name;
    /// any error of a write.
    pub async fn describe_entity(
        &self,
        patch: EntityPatch,
        key: Option<Key>,
    ) -> Result<Entity, Failure> {
        let described = self.write(DescribeEntity { patch }, key).await?.done.reply;
        described.entity.ok_or_else(|| Failure::new(Code::NotFound, "the entity was deleted"))
    }

    /// Lists facts: first those that are true now, then future, then past ones. An unknown
    /// entity has no facts; that is not an error.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn query_facts(&self, query: &FactQuery) -> Result<Vec<Fact>, Failure> {
        let limit = query.limit.min(MOST_FACTS);
        self.ask(QueryFacts { query: FactQuery { limit, ..query.clone() } }).await
    }

    /// Lists facts by the time they became true, undated ones last; of all entities if none
    /// is given.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn fact_timeline(
        &self,
        entity: Option<&str>,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<Fact>, Failure> {
        let (entity, limit) = (entity.map(str::to_owned), limit.min(MOST_FACTS));
        self.ask(ListTimeline { entity, limit, offset }).await
    }

    /// Counts the current, past and future facts.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn fact_stats(&self) -> Result<FactStats, Failure> {
        self.ask(CountFacts).await
    }

    /// Lists entities by name.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn entities(&self, query: &EntityQuery) -> Result<Vec<Entity>, Failure> {
        let limit = query.limit.min(MOST_FACTS);
        self.ask(ListEntities { query: EntityQuery { limit, ..query.clone() } }).await
    }

    /// Finds an entity by its name or an alias.
    ///
    /// # Errors
    /// `not_found`; any error of a read.
    pub async fn entity(&self, name: &str) -> Result<Entity, Failure> {
        let found = self.ask(GetEntity { name: name.to_owned() }).await?;
        found.ok_or_else(|| {
            Failure::new(Code::NotFound, format!("nothing is known of {name:?}"))
                .with_hint(Hint::ListEntities)
        })
    }
}
