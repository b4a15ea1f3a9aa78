//! Evaluates filters on metadata and documents.
//!
//! Each comparison reads one range of the covering table `field`, with bound parameters; and, or
//! and not operate on the resulting sorted lists of rows. Documents are only read where the rest
//! of the filter does not decide.

use std::collections::HashSet;

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, params};
use isolith_types::{Comparison, Filter, Scalar};
use regex::{Regex, RegexBuilder};

use super::scan::all_rows;
use crate::deadline::Deadline;
use crate::sqlite::During;
use crate::write::{AsValue, IN_A_LIST, type_of};

/// Maximum nesting depth of a filter.
const MAX_DEPTH: usize = 64;

/// Maximum memory of a compiled pattern.
const MAX_PATTERN_SIZE: usize = 4 << 20;

/// The rows of the collection that match, in ascending order.
pub(crate) fn rows_matching(
    db: &dyn Connection,
    deadline: &Deadline,
    collection: u64,
    filter: &Filter,
) -> Result<Vec<u64>, StoreError> {
    let search = Search { db, deadline, collection };
    // Compiled before anything is read, so that a bad pattern is an error even for an empty
    // collection.
    let plan = CompiledFilter::of(filter, 0)?;
    search.matching(&plan, None)
}

/// A filter with its patterns compiled.
enum CompiledFilter<'f> {
    All(Vec<CompiledFilter<'f>>),
    Any(Vec<CompiledFilter<'f>>),
    Not(Box<CompiledFilter<'f>>),
    Compare { key: &'f str, how: Comparison, value: &'f Scalar },
    In { key: &'f str, values: &'f [Scalar] },
    Contains { key: &'f str, value: &'f Scalar },
    Document(TextTest<'f>),
    Id(&'f [String]),
}

enum TextTest<'f> {
    Has(&'f str),
    Matches(Regex),
}

impl<'f> CompiledFilter<'f> {
    fn of(filter: &'f Filter, depth: usize) -> Result<Self, StoreError> {
        if depth > MAX_DEPTH {
            return Err(StoreError::BadFilter(format!("nested deeper than {MAX_DEPTH}")));
        }
        let each = |filters: &'f [Filter]| {
            filters.iter().map(|filter| Self::of(filter, depth + 1)).collect::<Result<Vec<_>, _>>()
        };
        Ok(match filter {
            Filter::And(filters) => Self::All(each(filters)?),
            Filter::Or(filters) => Self::Any(each(filters)?),
            Filter::Not(filter) => Self::Not(Box::new(Self::of(filter, depth + 1)?)),
            Filter::Compare { key, how, value } => Self::Compare { key, how: *how, value },
            Filter::In { key, values } => Self::In { key, values },
            Filter::Contains { key, value } => Self::Contains { key, value },
            Filter::Id(ids) => Self::Id(ids),
            Filter::DocumentContains(text) => Self::Document(TextTest::Has(text)),
            Filter::DocumentMatches(pattern) => {
                let compiled = RegexBuilder::new(pattern).size_limit(MAX_PATTERN_SIZE).build();
                Self::Document(TextTest::Matches(compiled.map_err(|error| {
                    StoreError::BadFilter(format!("pattern {pattern:?}: {error}"))
                })?))
            }
        })
    }

    /// Whether evaluating it reads documents.
    fn reads_documents(&self) -> bool {
        match self {
            Self::All(plans) | Self::Any(plans) => plans.iter().any(Self::reads_documents),
            Self::Not(plan) => plan.reads_documents(),
            Self::Document(_) => true,
            Self::Compare { .. } | Self::In { .. } | Self::Contains { .. } | Self::Id(_) => false,
        }
    }
}

impl TextTest<'_> {
    fn passes(&self, document: &str) -> bool {
        match self {
            Self::Has(text) => document.contains(text),
            Self::Matches(pattern) => pattern.is_match(document),
        }
    }
}

struct Search<'a> {
    db: &'a dyn Connection,
    deadline: &'a Deadline,
    collection: u64,
}

impl Search<'_> {
    /// The matching rows, among `within` if given, in ascending order.
    fn matching(
        &self,
        plan: &CompiledFilter<'_>,
        within: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        self.deadline.check("filter")?;
        match plan {
            CompiledFilter::All(plans) => self.all(plans, within),
            CompiledFilter::Any(plans) => {
                let mut rows = Vec::new();
                for plan in plans {
                    rows.extend(self.matching(plan, within)?);
                }
                Ok(sorted(rows))
            }
            CompiledFilter::Not(plan) => {
                let not = self.matching(plan, within)?;
                match within {
                    Some(within) => Ok(without(within, &not)),
                    None => Ok(without(&all_rows(self.db, self.collection)?, &not)),
                }
            }
            CompiledFilter::Compare { key, how, value } => {
                self.indexed(key, type_of(value), within, |id| self.compare(id, *how, value))
            }
            CompiledFilter::In { key, values } => self.is_in(key, values, within),
            CompiledFilter::Contains { key, value } => {
                self.indexed(key, type_of(value) + IN_A_LIST, within, |id| {
                    self.compare(id, Comparison::Equal, value)
                })
            }
            CompiledFilter::Id(ids) => {
                let rows = self.rows_of(ids).during(self.db, "look for ids")?;
                Ok(within.map_or_else(|| rows.clone(), |within| common(&rows, within)))
            }
            CompiledFilter::Document(test) => self.with_document(test, within),
        }
    }

    /// Documents are read last, and only for rows that passed everything else.
    fn all(
        &self,
        plans: &[CompiledFilter<'_>],
        within: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut rows: Option<Vec<u64>> = None;
        for late in [false, true] {
            for plan in plans.iter().filter(|plan| plan.reads_documents() == late) {
                let passed = self.matching(plan, rows.as_deref().or(within))?;
                let is_empty = passed.is_empty();
                rows = Some(passed);
                if is_empty {
                    return Ok(Vec::new());
                }
            }
        }
        match (rows, within) {
            (Some(rows), _) => Ok(rows),
            (None, Some(within)) => Ok(within.to_vec()),
            (None, None) => all_rows(self.db, self.collection),
        }
    }

    fn indexed(
        &self,
        key: &str,
        of_type: u8,
        within: Option<&[u64]>,
        find: impl Fn(i64) -> isolith_sql::Result<Vec<u64>>,
    ) -> Result<Vec<u64>, StoreError> {
        let Some(id) = self.key(key, of_type)? else { return Ok(Vec::new()) };
        let rows = find(id).during(self.db, "filter")?;
        Ok(match within {
            Some(within) => common(&rows, within),
            None => rows,
        })
    }

    fn key(&self, name: &str, of_type: u8) -> Result<Option<i64>, StoreError> {
        self.db
            .prepare_cached(
                "SELECT id FROM field_key WHERE collection = ?1 AND name = ?2 AND type = ?3",
            )
            .and_then(|mut statement| {
                statement
                    .query_row(params![self.collection, name, of_type], |row| row.get(0))
                    .optional()
            })
            .during(self.db, "look for a key")
    }

    fn compare(&self, key: i64, how: Comparison, value: &Scalar) -> isolith_sql::Result<Vec<u64>> {
        let sql = match how {
            Comparison::Equal => EQUAL,
            Comparison::Less => "SELECT row FROM field WHERE key = ?1 AND value < ?2",
            Comparison::AtMost => "SELECT row FROM field WHERE key = ?1 AND value <= ?2",
            Comparison::Greater => "SELECT row FROM field WHERE key = ?1 AND value > ?2",
            Comparison::AtLeast => "SELECT row FROM field WHERE key = ?1 AND value >= ?2",
        };
        let rows = self
            .db
            .prepare_cached(sql)?
            .query_map(params![key, AsValue(value)], |row| row.get(0))?
            .collect::<Result<Vec<u64>, _>>()?;
        // Rows of one value are sorted; those of a range are sorted by value first.
        Ok(if how == Comparison::Equal { rows } else { sorted(rows) })
    }

    fn rows_of(&self, ids: &[String]) -> isolith_sql::Result<Vec<u64>> {
        let mut find =
            self.db.prepare_cached("SELECT row FROM record WHERE collection = ?1 AND id = ?2")?;
        let mut rows = Vec::with_capacity(ids.len());
        for id in ids {
            let row = find.query_row(params![self.collection, id], |row| row.get::<_, u64>(0));
            rows.extend(row.optional()?);
        }
        Ok(sorted(rows))
    }

    fn is_in(
        &self,
        key: &str,
        values: &[Scalar],
        within: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        let mut rows = Vec::new();
        for of_type in values.iter().map(type_of).collect::<HashSet<_>>() {
            let found = self.indexed(key, of_type, within, |id| {
                let mut find = self.db.prepare_cached(EQUAL)?;
                let mut rows = Vec::new();
                for value in values.iter().filter(|value| type_of(value) == of_type) {
                    let mut found = find.query(params![id, AsValue(value)])?;
                    while let Some(row) = found.next()? {
                        rows.push(row.get(0)?);
                    }
                }
                Ok(sorted(rows))
            })?;
            rows.extend(found);
        }
        Ok(sorted(rows))
    }

    fn with_document(
        &self,
        test: &TextTest<'_>,
        within: Option<&[u64]>,
    ) -> Result<Vec<u64>, StoreError> {
        let all;
        let rows = match within {
            Some(rows) => rows,
            None => {
                all = all_rows(self.db, self.collection)?;
                &all
            }
        };
        let mut find = self
            .db
            .prepare_cached("SELECT document FROM record WHERE row = ?1")
            .during(self.db, "read documents")?;
        let mut passed = Vec::new();
        for (at, row) in rows.iter().enumerate() {
            if at % 64 == 0 {
                self.deadline.check("read documents")?;
            }
            let passes = find
                .query_row([row], |found| {
                    Ok(found.get_ref(0)?.as_str_or_null()?.is_some_and(|text| test.passes(text)))
                })
                .optional()
                .during(self.db, "read a document")?;
            if passes == Some(true) {
                passed.push(*row);
            }
        }
        Ok(passed)
    }
}

const EQUAL: &str = "SELECT row FROM field WHERE key = ?1 AND value = ?2 ORDER BY row";

fn sorted(mut rows: Vec<u64>) -> Vec<u64> {
    rows.sort_unstable();
    rows.dedup();
    rows
}

/// The intersection of two ascending lists.
fn common(one: &[u64], other: &[u64]) -> Vec<u64> {
    let (few, many) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let mut rest = many;
    let mut both = Vec::with_capacity(few.len());
    for row in few {
        rest = &rest[rest.partition_point(|there| there < row)..];
        if rest.first() == Some(row) {
            both.push(*row);
        }
    }
    both
}

/// The difference of two ascending lists.
fn without(all: &[u64], not: &[u64]) -> Vec<u64> {
    let mut not = not.iter().peekable();
    all.iter()
        .filter(|row| {
            while not.next_if(|there| there < row).is_some() {}
            not.peek() != Some(row)
        })
        .copied()
        .collect()
}
