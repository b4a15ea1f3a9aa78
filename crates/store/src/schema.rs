//! The tables of the truth; see docs/format.md.

/// "ISLT": tells a store from any other SQLite file.
pub(crate) const APPLICATION_ID: i32 = 0x4953_4C54;

/// The version that [`CREATE`] creates.
pub(crate) const FIRST_VERSION: u32 = 1;

/// Version 1. `STRICT` keeps values unchanged: without it, `ANY` would convert the text "123" to
/// a number.
pub(crate) const CREATE: &str = "
CREATE TABLE store (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  uuid TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  last_change INTEGER NOT NULL
) STRICT;
CREATE TABLE collection (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT UNIQUE,
  dimension INTEGER,
  metric TEXT NOT NULL,
  model TEXT,
  settings TEXT NOT NULL DEFAULT '{}',
  records INTEGER NOT NULL DEFAULT 0,
  last_change INTEGER NOT NULL DEFAULT 0,
  unfolded INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE record (
  row INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL REFERENCES collection,
  id TEXT NOT NULL,
  change INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  metadata TEXT NOT NULL,
  document TEXT,
  UNIQUE (collection, id),
  UNIQUE (collection, change)
) STRICT;
CREATE TABLE vector (
  row INTEGER PRIMARY KEY REFERENCES record,
  data BLOB NOT NULL
) STRICT;
CREATE TABLE field_key (
  id INTEGER PRIMARY KEY,
  collection INTEGER NOT NULL REFERENCES collection,
  name TEXT NOT NULL,
  type INTEGER NOT NULL,
  UNIQUE (collection, name, type)
) STRICT;
CREATE TABLE field (
  key INTEGER NOT NULL,
  value ANY NOT NULL,
  row INTEGER NOT NULL,
  PRIMARY KEY (key, value, row)
) STRICT, WITHOUT ROWID;
CREATE TABLE tombstone (
  collection INTEGER NOT NULL,
  row INTEGER NOT NULL,
  change INTEGER NOT NULL,
  died INTEGER NOT NULL,
  PRIMARY KEY (collection, row, change)
) STRICT, WITHOUT ROWID;
CREATE TABLE generation (
  collection INTEGER PRIMARY KEY REFERENCES collection,
  number INTEGER NOT NULL,
  base_to INTEGER NOT NULL,
  complete_to INTEGER NOT NULL,
  built_at INTEGER NOT NULL
) STRICT;
CREATE TABLE segment (
  collection INTEGER NOT NULL REFERENCES collection,
  level TEXT NOT NULL,
  kind TEXT NOT NULL,
  file TEXT NOT NULL,
  rows INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  quarantined TEXT,
  PRIMARY KEY (collection, level, kind)
) STRICT, WITHOUT ROWID;
CREATE TABLE receipt (
  key BLOB PRIMARY KEY NOT NULL,
  request BLOB NOT NULL,
  result TEXT NOT NULL,
  keep INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE load (
  source TEXT PRIMARY KEY NOT NULL,
  collection INTEGER NOT NULL REFERENCES collection,
  rows INTEGER NOT NULL,
  inserted INTEGER NOT NULL,
  updated INTEGER NOT NULL,
  unchanged INTEGER NOT NULL,
  rejected INTEGER NOT NULL,
  finished INTEGER NOT NULL,
  at INTEGER NOT NULL
) STRICT;
CREATE TABLE quarantined_job (
  role TEXT NOT NULL,
  input BLOB NOT NULL,
  poison TEXT NOT NULL,
  at INTEGER NOT NULL,
  PRIMARY KEY (role, input)
) STRICT, WITHOUT ROWID;
";

/// Version 2: the code index.
pub(crate) const ADD_CODE: &str = "
ALTER TABLE collection ADD COLUMN kind TEXT NOT NULL DEFAULT 'records';
UPDATE collection SET name = 'was-@code-' || id WHERE name = '@code';
CREATE TABLE root (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  path TEXT NOT NULL UNIQUE,
  created_at INTEGER NOT NULL,
  indexed_at INTEGER
) STRICT;
CREATE TABLE file (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  root INTEGER NOT NULL REFERENCES root,
  path TEXT NOT NULL,
  hash BLOB NOT NULL,
  size INTEGER NOT NULL,
  modified INTEGER NOT NULL,
  language TEXT NOT NULL,
  generated INTEGER NOT NULL,
  problem TEXT,
  chunks INTEGER NOT NULL,
  author TEXT,
  changed_at INTEGER,
  UNIQUE (root, path)
) STRICT;
CREATE TABLE chunk (
  row INTEGER PRIMARY KEY REFERENCES record,
  file INTEGER NOT NULL REFERENCES file,
  start_line INTEGER NOT NULL,
  end_line INTEGER NOT NULL,
  kind TEXT NOT NULL,
  symbols TEXT NOT NULL,
  parent TEXT,
  signature TEXT,
  doc TEXT
) STRICT;
CREATE INDEX chunk_file ON chunk (file, kind);
";

/// Version 3: facts and entities.
pub(crate) const ADD_FACTS: &str = "
CREATE TABLE entity (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE,
  type TEXT,
  created_at INTEGER NOT NULL
) STRICT;
CREATE TABLE alias (
  id INTEGER PRIMARY KEY,
  entity INTEGER NOT NULL REFERENCES entity,
  name TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE
) STRICT;
CREATE INDEX alias_entity ON alias (entity);
CREATE TABLE predicate (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL,
  folded TEXT NOT NULL UNIQUE
) STRICT;
CREATE TABLE fact (
  id INTEGER PRIMARY KEY,
  subject INTEGER NOT NULL REFERENCES entity,
  predicate INTEGER NOT NULL REFERENCES predicate,
  object INTEGER NOT NULL REFERENCES entity,
  valid_from INTEGER,
  from_day INTEGER NOT NULL,
  valid_to INTEGER,
  to_day INTEGER NOT NULL,
  until INTEGER,
  confidence REAL NOT NULL,
  drawer TEXT,
  file TEXT,
  agent TEXT,
  recorded_at INTEGER NOT NULL,
  changed_at INTEGER,
  superseded_by INTEGER REFERENCES fact
) STRICT;
CREATE INDEX fact_subject ON fact (subject, predicate, object);
CREATE INDEX fact_object ON fact (object, predicate);
CREATE TABLE fact_source (
  id INTEGER PRIMARY KEY,
  fact INTEGER NOT NULL REFERENCES fact,
  confidence REAL NOT NULL,
  drawer TEXT,
  file TEXT,
  agent TEXT,
  recorded_at INTEGER NOT NULL
) STRICT;
CREATE INDEX fact_source_fact ON fact_source (fact);
";

/// Version 4: memory.
pub(crate) const ADD_MEMORY: &str = "
UPDATE collection SET name = 'was-@memory-' || id WHERE name = '@memory';
CREATE TABLE drawer (
  number INTEGER PRIMARY KEY AUTOINCREMENT,
  id TEXT NOT NULL UNIQUE,
  content BLOB NOT NULL UNIQUE,
  wing TEXT NOT NULL,
  room TEXT NOT NULL,
  position INTEGER NOT NULL,
  source TEXT,
  author TEXT,
  date INTEGER,
  whole_day INTEGER NOT NULL,
  date_text TEXT,
  tags TEXT NOT NULL,
  metadata TEXT NOT NULL,
  passages INTEGER NOT NULL,
  created_at INTEGER NOT NULL,
  updated_at INTEGER NOT NULL,
  UNIQUE (wing, room, position)
) STRICT;
CREATE INDEX drawer_source ON drawer (source) WHERE source IS NOT NULL;
CREATE INDEX drawer_time ON drawer (coalesce(date, created_at));
CREATE TABLE passage (
  row INTEGER PRIMARY KEY REFERENCES record,
  drawer INTEGER NOT NULL REFERENCES drawer
) STRICT;
CREATE INDEX passage_drawer ON passage (drawer);
";

/// Version 5: the graph. Marks files as changed, because they must be parsed again.
pub(crate) const ADD_GRAPH: &str = "
CREATE TABLE graph (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  change INTEGER NOT NULL,
  last_node INTEGER NOT NULL,
  last_edge INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  edges INTEGER NOT NULL
) STRICT;
INSERT INTO graph VALUES (1, 0, 0, 0, 0, 0);
CREATE TABLE graph_segment (
  only INTEGER PRIMARY KEY CHECK (only = 1),
  change INTEGER NOT NULL,
  edges INTEGER NOT NULL,
  file TEXT NOT NULL,
  bytes INTEGER NOT NULL,
  checksum INTEGER NOT NULL,
  quarantined TEXT
) STRICT;
CREATE TABLE graph_name (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  kind INTEGER NOT NULL,
  name TEXT NOT NULL,
  uses INTEGER NOT NULL DEFAULT 0,
  indexed INTEGER NOT NULL DEFAULT 1,
  UNIQUE (kind, name)
) STRICT;
CREATE TABLE node (
  id INTEGER PRIMARY KEY,
  labels BLOB NOT NULL,
  properties BLOB NOT NULL,
  owner INTEGER,
  name TEXT
) STRICT;
CREATE UNIQUE INDEX node_owner ON node (owner, name) WHERE owner IS NOT NULL;
CREATE TABLE node_label (
  label INTEGER NOT NULL,
  node INTEGER NOT NULL,
  PRIMARY KEY (label, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE node_value (
  key INTEGER NOT NULL,
  value ANY NOT NULL,
  node INTEGER NOT NULL,
  PRIMARY KEY (key, value, node)
) STRICT, WITHOUT ROWID;
CREATE TABLE edge (
  id INTEGER PRIMARY KEY,
  type INTEGER NOT NULL,
  src INTEGER NOT NULL,
  dst INTEGER NOT NULL,
  properties BLOB,
  owner INTEGER
) STRICT;
CREATE INDEX edge_out ON edge (src, type, dst);
CREATE INDEX edge_in ON edge (dst, type, src);
CREATE TABLE code_graph (
  file INTEGER PRIMARY KEY REFERENCES file,
  outline BLOB NOT NULL,
  uses BLOB NOT NULL,
  due INTEGER NOT NULL
) STRICT;
CREATE INDEX code_graph_due ON code_graph (file) WHERE due > 0;
CREATE TABLE code_module (
  name TEXT NOT NULL,
  file INTEGER NOT NULL,
  PRIMARY KEY (name, file)
) STRICT, WITHOUT ROWID;
CREATE INDEX code_module_file ON code_module (file);
CREATE TABLE code_lookup (
  file INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
) STRICT;
UPDATE file SET hash = zeroblob(32), modified = 0;
";

/// Version 6: imports record whether they are type-only, so files must be parsed again.
pub(crate) const PARSE_AGAIN: &str = "
DELETE FROM code_graph;
UPDATE file SET hash = zeroblob(32), modified = 0;
";

/// Version 7, for stores of the first builds with a graph: one row per file for its lookups
/// instead of one per key. All files are parsed again anyway.
pub(crate) const LOOKUPS_BY_FILE: &str = "
DROP TABLE code_lookup;
CREATE TABLE code_lookup (
  file INTEGER PRIMARY KEY,
  keys BLOB NOT NULL
) STRICT;
";

/// Version 7, before facts are added to the graph: edges are found through endpoint tables, which
/// are written in order, instead of indexes.
pub(crate) const EDGES_BY_ENDS: &str = "
DROP INDEX edge_out;
DROP INDEX edge_in;
CREATE TABLE edge_out (
  src INTEGER NOT NULL,
  type INTEGER NOT NULL,
  dst INTEGER NOT NULL,
  edge INTEGER NOT NULL,
  PRIMARY KEY (src, type, dst, edge)
) STRICT, WITHOUT ROWID;
CREATE TABLE edge_in (
  dst INTEGER NOT NULL,
  type INTEGER NOT NULL,
  src INTEGER NOT NULL,
  edge INTEGER NOT NULL,
  PRIMARY KEY (dst, type, src, edge)
) STRICT, WITHOUT ROWID;
";

/// Version 9: the number of commits, which is compared with what was acknowledged.
pub(crate) const COUNT_COMMITS: &str = "
ALTER TABLE store ADD COLUMN commits INTEGER NOT NULL DEFAULT 0;
";

/// Version 10: secrets in files are detected, so files must be read again. Later changes to how
/// files are processed raise the parser version instead.
pub(crate) const FIND_SECRETS: &str = "
UPDATE file SET hash = zeroblob(32), modified = 0;
";

/// Version 11: the parser version for each file. Builds of version 10 had the first one, so
/// nothing must be parsed again.
pub(crate) const KEEP_PARSER: &str = "
ALTER TABLE file ADD COLUMN parser INTEGER NOT NULL DEFAULT 1;
";

/// A random uuid, as SQL, for `concat!`.
macro_rules! new_uuid {
    () => {
        "lower(hex(randomblob(4)) || '-' || hex(randomblob(2)) || '-4' || \
         substr(hex(randomblob(2)), 2) || '-a' || substr(hex(randomblob(2)), 2) || '-' || \
         hex(randomblob(6)))"
    };
}

pub(crate) use new_uuid;

/// A random uuid, as SQL.
pub(crate) const NEW_UUID: &str = new_uuid!();

/// Version 14: tenants, databases, and what clients store with collections.
pub(crate) const ADD_DATABASES: &str = concat!(
    "
CREATE TABLE tenant (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  resource_name TEXT,
  created_at INTEGER NOT NULL
) STRICT;
INSERT INTO tenant VALUES (1, 'default_tenant', NULL, 0);
CREATE TABLE database (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  uuid TEXT NOT NULL UNIQUE,
  tenant INTEGER NOT NULL REFERENCES tenant,
  name TEXT NOT NULL,
  created_at INTEGER NOT NULL,
  UNIQUE (tenant, name)
) STRICT;
INSERT INTO database
VALUES (1, '00000000-0000-0000-0000-000000000000', 1, 'default_database', 0);
ALTER TABLE collection ADD COLUMN uuid TEXT;
ALTER TABLE collection ADD COLUMN metadata TEXT;
UPDATE collection SET uuid = ",
    new_uuid!(),
    ";
CREATE UNIQUE INDEX collection_uuid ON collection (uuid);
"
);

/// Version 15: constraints of the graph.
pub(crate) const ADD_CONSTRAINTS: &str = "
CREATE TABLE graph_constraint (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  name TEXT NOT NULL UNIQUE,
  statement TEXT NOT NULL
) STRICT;
";

/// Version 17: facts that were never true, and predicates with one object at a time.
pub(crate) const ADD_RETRACTIONS: &str = "
ALTER TABLE fact ADD COLUMN retracted_at INTEGER;
ALTER TABLE predicate ADD COLUMN single_valued INTEGER NOT NULL DEFAULT 0;
";

/// Version 12: the folder that git keeps for a root that is a linked worktree.
pub(crate) const KEEP_WORKTREE: &str = "
ALTER TABLE root ADD COLUMN worktree TEXT;
";
