//! Facts and entities. docs/facts.md describes the rules.

use isolith_protocol::{
    AddFact, AddFacts, CountFacts, DeclarePredicate, DescribeEntity, FactSuperseded, FactsAdded,
    GetEntity, InvalidateFact, Key, ListEntities, ListPredicates, ListTimeline, QueryFacts,
    RetractFact, SupersedeFact,
};
use isolith_types::{
    AddedFact, Code, EndedFact, Entity, EntityPatch, EntityQuery, Fact, FactQuery, FactStats,
    Failure, Hint, Moment, NewFact, Predicate, RetractedFact, Supersede, SupersededFact, WhichFact,
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

    /// Adds up to 500 facts in one transaction. One that is invalid, or that others exclude, is
    /// refused by itself.
    ///
    /// # Errors
    /// `bad_input` for too many facts; any error of a write.
    pub async fn add_facts(
        &self,
        facts: Vec<NewFact>,
        key: Option<Key>,
    ) -> Result<FactsAdded, Failure> {
        Ok(self.write(AddFacts { facts }, key).await?.done.reply)
    }

    /// Marks a fact as never true. It is kept, but only shown on request.
    ///
    /// # Errors
    /// `not_found` if there is no such fact; `bad_input` if several say this; any error of a
    /// write.
    pub async fn retract_fact(
        &self,
        which: WhichFact,
        key: Option<Key>,
    ) -> Result<RetractedFact, Failure> {
        Ok(self.write(RetractFact { which }, key).await?.done.reply.retracted_fact)
    }

    /// Declares whether a subject can have only one object of a predicate at a time.
    ///
    /// # Errors
    /// `already_exists` if facts contradict this; any error of a write.
    pub async fn declare_predicate(
        &self,
        name: String,
        single_valued: bool,
        key: Option<Key>,
    ) -> Result<Predicate, Failure> {
        Ok(self.write(DeclarePredicate { name, single_valued }, key).await?.done.reply.predicate)
    }

    /// Lists predicates by name.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn predicates(&self, limit: u32, offset: u64) -> Result<Vec<Predicate>, Failure> {
        self.ask(ListPredicates { limit: limit.min(MOST_FACTS), offset }).await
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
    /// is given. With a time, only those that had become true by then.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn fact_timeline(
        &self,
        entity: Option<&str>,
        as_of: Option<Moment>,
        limit: u32,
        offset: u64,
    ) -> Result<Vec<Fact>, Failure> {
        let (entity, limit) = (entity.map(str::to_owned), limit.min(MOST_FACTS));
        self.ask(ListTimeline { entity, as_of, limit, offset }).await
    }

    /// Counts the facts that are current, past and future at `as_of`, or now.
    ///
    /// # Errors
    /// Any error of a read.
    pub async fn fact_stats(&self, as_of: Option<Moment>) -> Result<FactStats, Failure> {
        self.ask(CountFacts { as_of }).await
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
