//! The names of definitions, from the lookup table of the graph.

use isolith_protocol::StoreError;
use isolith_sql::{Connection, OptionalExtension, Statement, params};

use super::Snapshot;
use crate::sqlite::During;

/// Maximum number of lookups for names with a typing error. A name needs some hundred, however
/// many names there are.
const MAX_LOOKUPS: u32 = 10_000;

/// Maximum length of a name that is looked up with a typing error.
const MAX_CHARS: usize = 128;

/// Maximum number of names with a prefix that are read. The lookup table is in byte order.
const MAX_WITH_PREFIX: usize = 1_000;

impl Snapshot<'_> {
    /// The definitions of a name: their files, and their names with those of enclosing
    /// definitions, joined by dots.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn definitions_named(
        &self,
        name: &str,
        limit: u32,
    ) -> Result<Vec<(u64, String)>, StoreError> {
        self.db.deadline.check("look for definitions")?;
        let db = self.connection();
        let read = || match names(db)? {
            None => Ok(Vec::new()),
            Some(names) => names.definitions(name, limit),
        };
        read().during(db, "look for definitions")
    }

    /// Names of definitions that begin with `prefix` and are longer, the shortest first.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn names_with_prefix(&self, prefix: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        self.db.deadline.check("look for names")?;
        let db = self.connection();
        find_with_prefix(db, prefix, limit).during(db, "look for names")
    }

    /// Names of definitions that differ from `name` in one typing error: a missing, additional or
    /// wrong character, or two that are swapped.
    ///
    /// # Errors
    /// If the deadline passes or the truth cannot be read.
    pub fn names_one_error_from(
        &self,
        name: &str,
        limit: usize,
    ) -> Result<Vec<String>, StoreError> {
        self.db.deadline.check("look for names")?;
        let db = self.connection();
        find_one_error_from(db, name, limit).during(db, "look for names")
    }
}

fn find_with_prefix(
    db: &dyn Connection,
    prefix: &str,
    limit: usize,
) -> isolith_sql::Result<Vec<String>> {
    let Some(names) = names(db)? else { return Ok(Vec::new()) };
    let mut lookups = Lookups::of(&names)?;
    let mut found = Vec::new();
    let mut next = lookups.first_from(prefix)?;
    while let Some(name) = next.filter(|name| name.starts_with(prefix)) {
        next = lookups.first_after(&name)?;
        if name.len() > prefix.len() && is_name(&name) {
            found.push(name);
        }
        if found.len() == MAX_WITH_PREFIX {
            break;
        }
    }
    found.sort_by(|one, other| one.len().cmp(&other.len()).then_with(|| one.cmp(other)));
    names.keep_definitions(found, limit)
}

fn find_one_error_from(
    db: &dyn Connection,
    name: &str,
    limit: usize,
) -> isolith_sql::Result<Vec<String>> {
    let chars: Vec<char> = name.chars().take(MAX_CHARS + 1).collect();
    let names = names(db)?.filter(|_| chars.len() <= MAX_CHARS);
    let Some(names) = names else { return Ok(Vec::new()) };
    let lookups = Lookups::of(&names)?;
    let mut search = ErrorSearch { lookups, chars, left: MAX_LOOKUPS, found: Vec::new() };
    search.run()?;
    let ErrorSearch { mut found, .. } = search;
    found.retain(|found| found != name);
    found.sort_unstable();
    found.dedup();
    names.keep_definitions(found, limit)
}

/// The names in the lookup table.
struct Names<'a> {
    db: &'a dyn Connection,
    /// The number of the property that is the name.
    key: u32,
}

/// `None` if there is no graph.
fn names(db: &dyn Connection) -> isolith_sql::Result<Option<Names<'_>>> {
    let key = db
        .prepare_cached("SELECT id FROM graph_name WHERE kind = 2 AND name = 'name'")?
        .query_row([], |row| row.get(0))
        .optional()?;
    Ok(key.map(|key| Names { db, key }))
}

/// Statements that look for names, prepared once.
struct Lookups<'a> {
    key: u32,
    from: Statement<'a>,
    after: Statement<'a>,
    equal: Statement<'a>,
}

impl<'a> Lookups<'a> {
    fn of(names: &Names<'a>) -> isolith_sql::Result<Self> {
        let db = names.db;
        Ok(Self {
            key: names.key,
            from: db.prepare_cached(
                "SELECT value FROM node_value \
                 WHERE key = ?1 AND value >= ?2 AND typeof(value) = 'text' LIMIT 1",
            )?,
            after: db.prepare_cached(
                "SELECT value FROM node_value \
                 WHERE key = ?1 AND value > ?2 AND typeof(value) = 'text' LIMIT 1",
            )?,
            equal: db.prepare_cached("SELECT 1 FROM node_value WHERE key = ?1 AND value = ?2")?,
        })
    }

    /// The first name from `from` on.
    fn first_from(&mut self, from: &str) -> isolith_sql::Result<Option<String>> {
        self.from.query_row(params![self.key, from], |row| row.get(0)).optional()
    }

    /// The first name after `name`.
    fn first_after(&mut self, name: &str) -> isolith_sql::Result<Option<String>> {
        self.after.query_row(params![self.key, name], |row| row.get(0)).optional()
    }

    fn exists(&mut self, name: &str) -> isolith_sql::Result<bool> {
        self.equal.exists(params![self.key, name])
    }
}

impl Names<'_> {
    fn definitions(&self, name: &str, limit: u32) -> isolith_sql::Result<Vec<(u64, String)>> {
        self.db
            .prepare_cached(
                "SELECT node.owner, node.name FROM node_value JOIN node ON node.id = node_value.node \
                 WHERE key = ?1 AND value = ?2 AND node.owner > 0 AND node.name <> '' LIMIT ?3",
            )?
            .query_map(params![self.key, name, limit], |row| Ok((row.get(0)?, row.get(1)?)))?
            .collect()
    }

    /// The first names that definitions have; files and people have names, too.
    fn keep_definitions(
        &self,
        names: Vec<String>,
        limit: usize,
    ) -> isolith_sql::Result<Vec<String>> {
        let mut kept = Vec::new();
        for name in names {
            if kept.len() == limit {
                break;
            }
            if !self.definitions(&name, 1)?.is_empty() {
                kept.push(name);
            }
        }
        Ok(kept)
    }
}

/// Looks for names that differ from another in one typing error.
struct ErrorSearch<'a> {
    lookups: Lookups<'a>,
    chars: Vec<char>,
    /// Remaining lookups.
    left: u32,
    found: Vec<String>,
}

impl ErrorSearch<'_> {
    fn run(&mut self) -> isolith_sql::Result<()> {
        for at in 0..=self.chars.len() {
            let prefix: String = self.chars[..at].iter().collect();
            let Some(first) = self.lookups.first_from(&prefix)? else { break };
            if !first.starts_with(&prefix) {
                break;
            }
            self.without_or_swapped(at)?;
            self.with_another(&prefix, at, first)?;
            if self.left == 0 {
                break;
            }
        }
        Ok(())
    }

    /// An additional character at this place, or one that was swapped with the next.
    fn without_or_swapped(&mut self, at: usize) -> isolith_sql::Result<()> {
        if at < self.chars.len() {
            let mut other = self.chars.clone();
            other.remove(at);
            self.check(&other, "")?;
        }
        if at + 1 < self.chars.len() {
            let mut other = self.chars.clone();
            other.swap(at, at + 1);
            self.check(&other, "")?;
        }
        Ok(())
    }

    /// A missing or wrong character at this place. Only characters that follow the prefix in a
    /// name are tried; `next` is the first name with the prefix.
    fn with_another(&mut self, prefix: &str, at: usize, next: String) -> isolith_sql::Result<()> {
        let mut next = Some(next);
        while let Some(name) = next.filter(|_| self.left > 0) {
            let Some(rest) = name.strip_prefix(prefix) else { break };
            let Some(another) = rest.chars().next() else {
                next = self.lookups.first_after(&name)?;
                continue;
            };
            if is_name_char(another) {
                let mut other = self.chars.clone();
                other.insert(at, another);
                self.check(&other, &name)?;
                if at < self.chars.len() {
                    other.remove(at + 1);
                    self.check(&other, &name)?;
                }
            }
            let Some(following) = successor(another) else { break };
            next = self.lookups.first_from(&format!("{prefix}{following}"))?;
            self.left = self.left.saturating_sub(1);
        }
        Ok(())
    }

    /// Adds a name if it exists. No name that could be it is before `first`.
    fn check(&mut self, chars: &[char], first: &str) -> isolith_sql::Result<()> {
        self.left = self.left.saturating_sub(1);
        let name: String = chars.iter().collect();
        if name.as_str() >= first && self.lookups.exists(&name)? {
            self.found.push(name);
        }
        Ok(())
    }
}

fn successor(c: char) -> Option<char> {
    (c as u32 + 1..=0x0010_FFFF).find_map(char::from_u32)
}

/// Headings and file names are no names of definitions that a query could mean.
fn is_name(name: &str) -> bool {
    name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFINED: [&str; 12] = [
        "prefetch",
        "prefetch_related",
        "prefetch_related_objects",
        "PrefetchError",
        "QuerySet",
        "save",
        "saved",
        "saves",
        "slave",
        "größe",
        "größer",
        "a",
    ];

    /// Names of definitions, and others.
    fn database() -> rusqlite::Connection {
        let db = rusqlite::Connection::open_in_memory().unwrap();
        db.execute_batch(
            "CREATE TABLE graph_name (id INTEGER PRIMARY KEY, kind, name);
             CREATE TABLE node (id INTEGER PRIMARY KEY, owner, name);
             CREATE TABLE node_value (key, value, node, PRIMARY KEY (key, value, node)) WITHOUT ROWID;
             INSERT INTO graph_name VALUES (1, 2, 'id'), (2, 2, 'name'), (3, 0, 'name');",
        )
        .unwrap();
        let add = |owner: Option<i64>, qualified: &str, name: &str| {
            db.execute("INSERT INTO node (owner, name) VALUES (?1, ?2)", params![owner, qualified])
                .unwrap();
            let node = db.last_insert_rowid();
            db.execute("INSERT INTO node_value VALUES (2, ?1, ?2)", params![name, node]).unwrap();
        };
        for (at, name) in DEFINED.iter().enumerate() {
            add(Some(1 + at as i64), &format!("Class.{name}"), name);
            add(Some(40 + at as i64), name, name);
        }
        add(Some(1), "", "prefetch.py");
        add(Some(0), "folder", "sav");
        add(Some(-3), "fact", "savex");
        add(None, "", "users_node");
        add(Some(2), "a heading", "save the data");
        db.execute("INSERT INTO node_value VALUES (2, 17, 1), (2, x'00', 1)", []).unwrap();
        db
    }

    fn with_prefix(db: &dyn Connection, prefix: &str) -> Vec<String> {
        find_with_prefix(db, prefix, 10).unwrap()
    }

    fn one_error_from(db: &dyn Connection, name: &str) -> Vec<String> {
        find_one_error_from(db, name, 100).unwrap()
    }

    #[test]
    fn names_are_completed() {
        let db = database();
        for (prefix, expected) in [
            ("prefetch_rel", "prefetch_related prefetch_related_objects"),
            ("prefetch", "prefetch_related prefetch_related_objects"),
            ("Pre", "PrefetchError"),
            ("sav", "save saved saves"),
            ("grö", "größe größer"),
            ("users", ""),
            ("x", ""),
            ("%", ""),
        ] {
            assert_eq!(with_prefix(&db, prefix).join(" "), expected, "{prefix}");
        }
        assert_eq!(find_with_prefix(&db, "sav", 1).unwrap(), ["save"]);
    }

    #[test]
    fn one_error_is_forgiven() {
        let db = database();
        let letters: Vec<char> = "aes_QößE".chars().collect();
        let mut asked: Vec<String> = DEFINED.map(str::to_owned).to_vec();
        for name in DEFINED {
            let chars: Vec<char> = name.chars().collect();
            for at in 0..=chars.len() {
                let mut change = |change: &dyn Fn(&mut Vec<char>)| {
                    let mut other = chars.clone();
                    change(&mut other);
                    asked.push(other.iter().collect());
                };
                for letter in &letters {
                    change(&|other| other.insert(at, *letter));
                    change(&|other| {
                        other.splice(at..other.len().min(at + 1), [*letter]).for_each(drop)
                    });
                }
                change(&|other| other.splice(at..other.len().min(at + 1), []).for_each(drop));
                change(&|other| other.splice(at..other.len().min(at + 2), []).for_each(drop));
                change(&|other| {
                    if at + 1 < other.len() {
                        other.swap(at, at + 1);
                    }
                });
            }
        }
        for name in asked {
            let mut expected: Vec<&str> =
                DEFINED.into_iter().filter(|it| is_one_error(&name, it)).collect();
            expected.sort_unstable();
            assert_eq!(one_error_from(&db, &name), expected, "{name}");
        }
        assert!(one_error_from(&db, &"a".repeat(1 << 20)).is_empty());
    }

    /// The definition of one error, by trying all places.
    fn is_one_error(one: &str, other: &str) -> bool {
        let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
        let (long, short) = if one.len() > other.len() { (&one, &other) } else { (&other, &one) };
        let without = |chars: &[char], at: usize| [&chars[..at], &chars[at + 1..]].concat();
        if long.len() == short.len() {
            let different: Vec<usize> =
                (0..one.len()).filter(|at| one[*at] != other[*at]).collect();
            return match different.as_slice() {
                [_] => true,
                [first, second] => {
                    first + 1 == *second
                        && one[*first] == other[*second]
                        && one[*second] == other[*first]
                }
                _ => false,
            };
        }
        long.len() == short.len() + 1 && (0..long.len()).any(|at| without(long, at) == *short)
    }

    #[test]
    fn definitions_have_files_and_qualified_names() {
        let db = database();
        let names = names(&db).unwrap().unwrap();
        let found = names.definitions("save", 10).unwrap();
        assert_eq!(found, [(6, "Class.save".to_owned()), (45, "save".to_owned())]);
        assert_eq!(names.definitions("save", 1).unwrap().len(), 1);
        assert!(names.definitions("prefetch.py", 10).unwrap().is_empty());
        db.execute("DELETE FROM graph_name", []).unwrap();
        assert!(super::names(&db).unwrap().is_none());
        assert!(with_prefix(&db, "s").is_empty() && one_error_from(&db, "sve").is_empty());
    }
}
