//! Facts. A fact whose entity is lost is kept, with a placeholder name for the entity.

use std::collections::{BTreeSet, HashMap, HashSet};

use isolith_protocol::StoreError;
use isolith_sql::Value;
use isolith_sql::{Connection, OptionalExtension, Row, params, params_from_iter};

use super::graph_copy::{GraphEntity, GraphFact};
use super::indexes::{Index, evidence};
use super::rebuild::{Rescue, text, violates_schema};
use super::report::Extent;
use super::table::{Completed, TableCopy};
use crate::facts::id_of;
use crate::facts::names::{fold, fold_predicate};
use crate::read::facts::makes_sense;
use crate::sqlite::During;

const ENTITY: TableCopy = TableCopy {
    table: "entity",
    select: "SELECT id, name, folded, type, created_at \
             FROM entity WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO entity (id, name, folded, type, created_at) \
             VALUES (?1, ?2, ?3, ?4, ?5)",
    columns: 5,
    key: "id",
    name: "folded",
    indexes: &[Index {
        from: "entity INDEXED BY sqlite_autoindex_entity_1",
        row: "id",
        columns: &["folded"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

const PREDICATE: TableCopy = TableCopy {
    table: "predicate",
    select: "SELECT id, name, folded, single_valued FROM predicate \
             WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO predicate (id, name, folded, single_valued) VALUES (?1, ?2, ?3, ?4 = 1)",
    columns: 4,
    key: "id",
    name: "folded",
    indexes: &[Index {
        from: "predicate INDEXED BY sqlite_autoindex_predicate_1",
        row: "id",
        columns: &["folded"],
        unique: true,
        has_all: true,
    }],
    is_derived: false,
};

/// For versions before 17.
const PREDICATE_BEFORE_DECLARATIONS: &str =
    "SELECT id, name, folded, 0 FROM predicate WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

const ALIAS: TableCopy = TableCopy {
    table: "alias",
    select: "SELECT id, entity, name, folded FROM alias WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO alias (id, entity, name, folded) VALUES (?1, ?2, ?3, ?4)",
    columns: 4,
    key: "id",
    name: "folded",
    indexes: &[
        Index {
            from: "alias INDEXED BY sqlite_autoindex_alias_1",
            row: "id",
            columns: &["folded"],
            unique: true,
            has_all: true,
        },
        Index {
            from: "alias INDEXED BY alias_entity",
            row: "id",
            columns: &["entity"],
            unique: false,
            has_all: true,
        },
    ],
    is_derived: false,
};

const SOURCE: TableCopy = TableCopy {
    table: "fact_source",
    select: "SELECT id, fact, confidence, drawer, file, agent, recorded_at \
             FROM fact_source WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
    insert: "INSERT INTO fact_source (id, fact, confidence, drawer, file, agent, recorded_at) \
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    columns: 7,
    key: "id",
    name: "fact",
    indexes: &[Index {
        from: "fact_source INDEXED BY fact_source_fact",
        row: "id",
        columns: &["fact"],
        unique: false,
        has_all: true,
    }],
    is_derived: false,
};

/// Columns 2 to 7 are validated together.
const FACTS: &str = "SELECT id, valid_from, from_day, valid_to, to_day, until, confidence, \
    subject, predicate, object, drawer, file, agent, recorded_at, changed_at, retracted_at, \
    superseded_by FROM fact WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

/// For versions before 17.
const FACTS_BEFORE_RETRACTION: &str = "SELECT id, valid_from, from_day, valid_to, to_day, until, \
    confidence, subject, predicate, object, drawer, file, agent, recorded_at, changed_at, NULL, \
    superseded_by FROM fact WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

const FACT_INDEXES: [Index; 2] = [
    Index {
        from: "fact INDEXED BY fact_subject",
        row: "id",
        columns: &["subject", "predicate", "object"],
        unique: false,
        has_all: true,
    },
    Index {
        from: "fact INDEXED BY fact_object",
        row: "id",
        columns: &["object", "predicate"],
        unique: false,
        has_all: true,
    },
];

const NAMES_LOST: &str = "their names are lost; placeholders were assigned";
const MALFORMED: &str = "they are malformed";

impl Rescue<'_> {
    /// Saves entities, predicates, and facts with their sources.
    pub(super) fn facts(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        if !self.knows("SELECT until FROM fact") {
            return Ok(());
        }
        self.entities()?;
        self.repair_names("entity", fold)?;
        self.predicates()?;
        self.repair_names("predicate", fold_predicate)?;
        self.aliases()?;
        let gone = drop_wrong_aliases(db).during(db, "save names")?;
        self.lose_named(
            "alias",
            Extent::Lost,
            gone,
            "they clash with other names or are malformed".to_owned(),
        );
        self.fact_rows()?;
        self.table(&SOURCE)?;
        let gone = db
            .prepare("DELETE FROM fact_source WHERE NOT confidence BETWEEN 0 AND 1 RETURNING fact")
            .and_then(|mut statement| {
                statement
                    .query_map([], |row| row.get::<_, i64>(0).map(id_of))?
                    .collect::<Result<Vec<_>, _>>()
            })
            .during(db, "save sources")?;
        self.lose_named("fact_source", Extent::Lost, gone, MALFORMED.to_owned());
        Ok(())
    }

    fn repair_names(&mut self, table: &str, fold: fn(&str) -> String) -> Result<(), StoreError> {
        let db = self.work.db;
        let (repaired, placeholder_name) =
            repair_names(db, table, fold).during(db, "save names")?;
        let reason = "the name and its lookup form disagree; the name was kept";
        self.lose_named(table, Extent::Doubtful, repaired, reason.to_owned());
        self.lose_named(table, Extent::Partial, placeholder_name, NAMES_LOST.to_owned());
        Ok(())
    }

    /// The graph has the entities' names as written; the index has the folded ones.
    fn entities(&mut self) -> Result<(), StoreError> {
        let (db, now) = (self.work.db, self.work.now);
        self.table_with(&ENTITY, &mut |id, known| {
            let Some(Value::Text(folded)) = known.get("folded") else {
                return Ok(Completed::Nothing);
            };
            let in_graph =
                GraphEntity::read(db, id)?.filter(|in_graph| fold(&in_graph.name) == *folded);
            let lacks = match in_graph {
                Some(_) => "when they were created is lost",
                None => "their types and the spelling of their names are lost",
            };
            let (name, of_type) = match in_graph {
                Some(in_graph) => (in_graph.name, in_graph.of_type.map_or(Value::Null, text)),
                None => (folded.clone(), Value::Null),
            };
            let row = vec![id.into(), text(name), text(folded), of_type, now.into()];
            Ok(Completed::Row(row, lacks))
        })
        .map(|_| ())
    }

    fn predicates(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let types = types_by_predicate(db).during(db, "read the names of the graph")?;
        let select = match self.knows("SELECT single_valued FROM predicate") {
            true => PREDICATE.select,
            false => PREDICATE_BEFORE_DECLARATIONS,
        };
        self.table_with(&TableCopy { select, ..PREDICATE }, &mut |id, known| {
            let Some(Value::Text(folded)) = known.get("folded") else {
                return Ok(Completed::Nothing);
            };
            let name = types.get(folded);
            let lacks = match name {
                Some(_) => "whether they are single-valued is lost",
                None => "the spelling of their names, and whether they are single-valued, is lost",
            };
            let name = name.unwrap_or(folded);
            Ok(Completed::Row(vec![id.into(), text(name), text(folded), 0.into()], lacks))
        })
        .map(|_| ())
    }

    fn aliases(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        self.table_with(&ALIAS, &mut |id, known| {
            let (Some(Value::Text(folded)), Some(Value::Integer(entity))) =
                (known.get("folded"), known.get("entity"))
            else {
                return Ok(Completed::Nothing);
            };
            let in_graph = GraphEntity::read(db, *entity)?;
            let spelt = in_graph.and_then(|in_graph| {
                in_graph.aliases.into_iter().find(|alias| fold(alias) == *folded)
            });
            let lacks = if spelt.is_some() { "" } else { "the spelling of their names is lost" };
            let name = spelt.unwrap_or_else(|| folded.clone());
            let row = vec![id.into(), (*entity).into(), text(name), text(folded)];
            Ok(Completed::Row(row, lacks))
        })
        .map(|_| ())
    }

    fn fact_rows(&mut self) -> Result<(), StoreError> {
        let db = self.work.db;
        let mut saver = FactSaver::new(db, self.work.now);
        let highest = self.highest("fact", &FACT_INDEXES)?;
        let select = match self.knows("SELECT retracted_at FROM fact") {
            true => FACTS,
            false => FACTS_BEFORE_RETRACTION,
        };
        let gaps = self.walk(select, 0..=highest, &mut |row| {
            saver.take(row);
            Ok(())
        })?;
        let found = evidence(
            (self.old, db),
            self.work.deadline,
            ("fact", "id"),
            &FACT_INDEXES,
            &saver.broken,
        )?;
        let (mut partial, mut bare, mut lost, mut doubtful) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for (id, missing) in &found.missing {
            let number = |name: &str| match missing.known.get(name) {
                Some(Value::Integer(number)) => Some(*number),
                _ => None,
            };
            let ends = (number("subject"), number("predicate"), number("object"));
            let list = match ends {
                // A single index entry may have a wrong row number.
                _ if !gaps.contains(*id) => &mut doubtful,
                (Some(subject), Some(predicate), Some(object)) => {
                    let in_graph = GraphFact::read(db, *id, subject).during(db, "save facts")?;
                    let list = if in_graph.is_some() { &mut partial } else { &mut bare };
                    let said = (subject, predicate, object);
                    match saver.restore(*id, said, in_graph).during(db, "save facts")? {
                        true => list,
                        false => &mut lost,
                    }
                }
                _ => &mut lost,
            };
            list.push(id_of(*id));
        }
        let FactSaver {
            broken,
            superseded,
            failed,
            placeholder_entities,
            placeholder_predicates,
            ..
        } = saver;
        if let Some(error) = failed {
            return Err(error).during(db, "save facts");
        }
        let ids = |numbers: HashSet<i64>| {
            let mut numbers: Vec<i64> = numbers.into_iter().collect();
            numbers.sort_unstable();
            numbers.into_iter().map(id_of).collect::<Vec<_>>()
        };
        let unknown = found.unknown(&gaps);
        for (extent, ids, reason) in [
            (Extent::Partial, partial, "dates and sources were restored from the graph"),
            (
                Extent::Partial,
                bare,
                "their dates, confidence and sources, and whether they were retracted, are lost",
            ),
            (Extent::Lost, lost, "they could not be read, but an index still lists them"),
            (Extent::Lost, ids(broken), MALFORMED),
            (Extent::Doubtful, doubtful, "an index has rows that are not in the table"),
            (Extent::Doubtful, ids(found.different), "the table and an index disagree"),
        ] {
            self.lose_named("fact", extent, ids, reason.to_owned());
        }
        self.lose_unknown("fact", unknown, &gaps.reason, false);
        for (table, numbers) in
            [("entity", placeholder_entities), ("predicate", placeholder_predicates)]
        {
            let names = numbers.into_iter().map(|number| placeholder_name(table, number)).collect();
            self.lose_named(table, Extent::Partial, names, NAMES_LOST.to_owned());
        }
        let link = || {
            let mut link = db.prepare(
                "UPDATE fact SET superseded_by = ?2 WHERE id = ?1 \
                 AND EXISTS (SELECT 1 FROM fact WHERE id = ?2)",
            )?;
            superseded.iter().try_for_each(|pair| link.execute(*pair).map(|_| ()))
        };
        link().during(db, "save facts")
    }
}

/// Saves facts one by one.
struct FactSaver<'a> {
    db: &'a dyn Connection,
    now: i64,
    broken: HashSet<i64>,
    /// Entities and predicates that got a placeholder name.
    placeholder_entities: BTreeSet<i64>,
    placeholder_predicates: BTreeSet<i64>,
    /// Superseded facts and their successors, which may come later.
    superseded: Vec<(i64, i64)>,
    /// The error that keeps the new truth from being written.
    failed: Option<isolith_sql::Error>,
}

impl<'a> FactSaver<'a> {
    fn new(db: &'a dyn Connection, now: i64) -> Self {
        Self {
            db,
            now,
            broken: HashSet::new(),
            placeholder_entities: BTreeSet::new(),
            placeholder_predicates: BTreeSet::new(),
            superseded: Vec::new(),
            failed: None,
        }
    }

    fn take(&mut self, row: &Row<'_>) {
        match self.save(row) {
            Ok(true) => {}
            Ok(false) => self.broken.extend(row.get::<_, i64>(0)),
            Err(error) => self.failed = Some(error),
        }
    }

    fn save(&mut self, row: &Row<'_>) -> isolith_sql::Result<bool> {
        if !makes_sense(row).unwrap_or(false) {
            return Ok(false);
        }
        let values = (0..16).map(|at| row.get::<_, Value>(at)).collect::<Result<Vec<_>, _>>()?;
        let [Value::Integer(subject), Value::Integer(predicate), Value::Integer(object)] =
            values[7..10]
        else {
            return Ok(false);
        };
        if !self.insert(values, (subject, predicate, object))? {
            return Ok(false);
        }
        if let Ok(by) = row.get::<_, i64>(16) {
            self.superseded.push((row.get(0)?, by));
        }
        Ok(true)
    }

    /// Saves a fact known only from an index, and perhaps from the graph.
    fn restore(
        &mut self,
        id: i64,
        (subject, predicate, object): (i64, i64, i64),
        in_graph: Option<GraphFact>,
    ) -> isolith_sql::Result<bool> {
        let in_graph = in_graph.unwrap_or_else(|| GraphFact::unknown(self.now));
        let mut values = vec![id.into()];
        values.extend(in_graph.validity());
        values.extend([subject.into(), predicate.into(), object.into()]);
        values.extend(in_graph.source());
        // The graph has only facts that are not retracted.
        values.extend([in_graph.recorded_at.into(), self.now.into(), Value::Null]);
        if !self.insert(values, (subject, predicate, object))? {
            return Ok(false);
        }
        self.superseded.extend(in_graph.superseded_by.map(|by| (id, by)));
        Ok(true)
    }

    fn insert(
        &mut self,
        values: Vec<Value>,
        (subject, predicate, object): (i64, i64, i64),
    ) -> isolith_sql::Result<bool> {
        self.ensure_entity(subject)?;
        self.ensure_predicate(predicate)?;
        self.ensure_entity(object)?;
        let saved = self
            .db
            .prepare_cached(
                "INSERT INTO fact (id, valid_from, from_day, valid_to, to_day, until, \
                 confidence, subject, predicate, object, drawer, file, agent, recorded_at, \
                 changed_at, retracted_at) VALUES \
                 (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
            )?
            .execute(params_from_iter(values));
        match saved {
            Ok(_) => Ok(true),
            Err(error) if violates_schema(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ensures that the entity exists, with a placeholder name if its own is lost.
    fn ensure_entity(&mut self, number: i64) -> isolith_sql::Result<()> {
        let made = self
            .db
            .prepare_cached(
                "INSERT OR IGNORE INTO entity (id, name, folded, created_at) \
                 VALUES (?1, ?2, ?2, ?3)",
            )?
            .execute(params![number, placeholder_name("entity", number), self.now])?;
        self.placeholder_entities.extend((made > 0).then_some(number));
        Ok(())
    }

    fn ensure_predicate(&mut self, number: i64) -> isolith_sql::Result<()> {
        let made = self
            .db
            .prepare_cached(
                "INSERT OR IGNORE INTO predicate (id, name, folded) VALUES (?1, ?2, ?2)",
            )?
            .execute(params![number, placeholder_name("predicate", number)])?;
        self.placeholder_predicates.extend((made > 0).then_some(number));
        Ok(())
    }
}

fn placeholder_name(table: &str, number: i64) -> String {
    format!("recovered-{table}-{number}")
}

/// Corrects the lookup form of rows that do not match their name. If it is taken by another row,
/// the row gets a placeholder name. Returns the names of both kinds.
fn repair_names(
    db: &dyn Connection,
    table: &str,
    fold: fn(&str) -> String,
) -> isolith_sql::Result<(Vec<String>, Vec<String>)> {
    let mut wrong = Vec::new();
    let mut statement = db.prepare(&format!("SELECT id, name, folded FROM {table}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (number, name, folded): (i64, String, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        if folded.is_empty() || fold(&name) != folded {
            wrong.push((number, name));
        }
    }
    let mut repair =
        db.prepare(&format!("UPDATE OR IGNORE {table} SET name = ?2, folded = ?3 WHERE id = ?1"))?;
    let (mut repaired, mut new) = (Vec::new(), Vec::new());
    for (number, name) in wrong {
        let folded = fold(&name);
        if folded.is_empty() || repair.execute(params![number, name, folded])? == 0 {
            let name = placeholder_name(table, number);
            repair.execute(params![number, name, name])?;
            new.push(name);
        } else {
            repaired.push(name);
        }
    }
    Ok((repaired, new))
}

/// The spelling of predicates in the graph.
fn types_by_predicate(db: &dyn Connection) -> isolith_sql::Result<HashMap<String, String>> {
    db.prepare("SELECT name FROM graph_name WHERE kind = 1")?
        .query_map([], |row| row.get(0).map(|name: String| (fold_predicate(&name), name)))?
        .collect()
}

/// Deletes aliases that are also the name of an entity, or whose lookup form is wrong.
fn drop_wrong_aliases(db: &dyn Connection) -> isolith_sql::Result<Vec<String>> {
    let mut wrong: Vec<i64> = db
        .prepare("SELECT a.id FROM alias a JOIN entity e ON e.folded = a.folded")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    let mut statement = db.prepare("SELECT id, name, folded FROM alias")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let (name, folded) = (row.get_ref(1)?.as_str()?, row.get_ref(2)?.as_str()?);
        if folded.is_empty() || fold(name) != folded {
            wrong.push(row.get(0)?);
        }
    }
    let mut remove = db.prepare("DELETE FROM alias WHERE id = ?1 RETURNING name")?;
    let mut gone = Vec::new();
    for id in wrong {
        gone.extend(remove.query_row([id], |row| row.get::<_, String>(0)).optional()?);
    }
    Ok(gone)
}
