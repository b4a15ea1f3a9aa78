//! A truth made of the file and of all that can be relied on in its log.

use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use isolate::InWorker;
use isolith_pages::{Checking, RESERVED, seal};
use isolith_protocol::StoreError;
use rusqlite::{Connection, OpenFlags};
use serde::{Deserialize, Serialize};

use super::frames::{Frames, State};
use super::{Files, Missing};
use crate::acknowledged::{self, Progress};
use crate::create::{self, Aside, copy_content, sync_folder};
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, io_failure};
use crate::lock::Lock;
use crate::open::Truth;
use crate::pragmas::{self, Durability, PAGE_SIZE};
use crate::salvage::put_in_place;
use crate::sqlite::{During, explain};

/// Something that missing commits wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    /// What it is, in the plural.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first of them.
    pub ids: Vec<String>,
}

/// What became of a truth whose log was damaged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecovery {
    /// What SQLite did not see before.
    pub missing: Missing,
    /// Where the damaged files are now. None if nothing was done: there are commits beyond
    /// pages that cannot be read, and a salvage gets at them row by row.
    pub kept_as: Option<PathBuf>,
}

impl LogRecovery {
    /// Acknowledged commits that are not in the new truth.
    pub fn lost_commits(&self) -> u64 {
        self.missing.to.commits.saturating_sub(self.missing.recoverable_to.commits)
    }

    /// Whether the truth has to be salvaged.
    pub fn needs_salvage(&self) -> bool {
        self.kept_as.is_none()
    }
}

/// Ids that a report names.
const NAMED: usize = 20;

impl Truth {
    /// Makes a new truth of the file and of everything in its log that can be relied on, past
    /// damage too. It takes the place of the old files, which are kept. None if nothing that
    /// was acknowledged is missing.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] while any process uses the store, or what kept the new truth
    /// from being made; then all is as it was.
    pub fn recover_log(
        folder: &StoreFolder,
        deadline: impl Into<Option<Instant>>,
        token: InWorker,
    ) -> Result<Option<LogRecovery>, StoreError> {
        let deadline = Deadline::at(deadline.into());
        folder.check()?;
        folder.create()?;
        let _alone = Lock::exclusive_now(&folder.lock_file())?;
        put_in_place(folder)?;
        Aside::clear_leftovers(&folder.run(), "recover");
        let files = Files::look(folder)?;
        if !files.is_behind() {
            return Ok(None);
        }
        let Some(missing) = files.missing(folder, token)? else { return Ok(None) };
        let best = files.best(folder, &deadline)?;
        if best.falls_short {
            return Ok(Some(LogRecovery { missing, kept_as: None }));
        }
        let db = open(&best.aside, &deadline)?;
        acknowledged::outrank(folder, &db)?;
        create::close_completely(db, best.aside.path())?;
        drop(files);
        best.aside.become_file(&folder.salvaged())?;
        sync_folder(folder.path())?;
        Ok(Some(LogRecovery { missing, kept_as: put_in_place(folder)? }))
    }
}

/// A truth in the making.
struct Candidate {
    aside: Aside,
    reached: Progress,
    /// Whether more can be had by a salvage.
    falls_short: bool,
}

/// A copy of the truth with all commits of its log, for a salvage: pages whose newest state
/// cannot be read are made unreadable, so that what was on them is said to be lost and nothing
/// older is taken for it. None if SQLite sees all commits by itself. The caller has the store
/// to itself.
pub(crate) fn all_commits(folder: &StoreFolder) -> Result<Option<Aside>, StoreError> {
    let files = Files::look(folder)?;
    match files.frames.commits().next_back() {
        Some(last) if files.is_behind() && files.frames.goes_on() => {
            files.copy_with_gaps(folder, last).map(Some)
        }
        _ => Ok(None),
    }
}

impl Files {
    /// The truth as of the last commit at which every page is known.
    fn best(&self, folder: &StoreFolder, deadline: &Deadline) -> Result<Candidate, StoreError> {
        let end = self.frames.last_whole();
        let mut whole = self.candidate(folder, end, deadline)?;
        let is_last = end == self.frames.commits().next_back();
        let is_enough = is_last || whole.reached.commits >= self.expected().commits;
        whole.falls_short = !is_enough || !is_sound(&whole.aside, deadline)?;
        Ok(whole)
    }

    /// The file with all frames up to this one, in a file of its own.
    fn candidate(
        &self,
        folder: &StoreFolder,
        end: Option<usize>,
        deadline: &Deadline,
    ) -> Result<Candidate, StoreError> {
        let aside = self.copy(folder, end)?;
        let (_, reached) = acknowledged::progress_of(&open(&aside, deadline)?)?;
        Ok(Candidate { aside, reached, falls_short: false })
    }

    fn copy(&self, folder: &StoreFolder, end: Option<usize>) -> Result<Aside, StoreError> {
        let aside = Aside::new(&folder.run(), "recover")?;
        let fill = || {
            copy_content(&folder.truth(), aside.path())?;
            let file = File::options().read(true).write(true).open(aside.path())?;
            if let (Some(end), Some(log)) = (end, &self.log) {
                play(&self.frames, log, end, &file)?;
            }
            file.sync_all()
        };
        fill().map_err(|error| io_failure(aside.path(), "copy the truth to", &error))?;
        Ok(aside)
    }

    /// As of this commit, with pages that nobody can read where they are not known.
    fn copy_with_gaps(&self, folder: &StoreFolder, end: usize) -> Result<Aside, StoreError> {
        let aside = self.copy(folder, Some(end))?;
        let spoil = || {
            let file = File::options().write(true).open(aside.path())?;
            for page in self.frames.stale_until(end).into_iter().filter(|page| *page > 1) {
                let place = u64::from(page - 1) * u64::from(PAGE_SIZE);
                file.write_all_at(&[0xFF; PAGE_SIZE as usize], place)?;
            }
            file.sync_all()
        };
        spoil().map_err(|error| io_failure(aside.path(), "copy the truth to", &error))?;
        Ok(aside)
    }

    /// How far a repair could come, and what the commits wrote that it would have back.
    pub(super) fn preview(
        &self,
        folder: &StoreFolder,
        reached: Progress,
        _token: InWorker,
    ) -> Result<(Progress, Vec<Part>), StoreError> {
        let deadline = Deadline::at(None);
        let used = self.frames.used.checked_sub(1);
        if !self.frames.goes_on() {
            return Ok((reached, Vec::new()));
        }
        let best = self.best(folder, &deadline)?;
        let newest = match self.frames.commits().next_back() {
            Some(last) if best.falls_short => self.copy_with_gaps(folder, last)?,
            _ => best.aside,
        };
        let seen = self.candidate(folder, used, &deadline)?;
        let (seen, newest) = (open(&seen.aside, &deadline)?, open(&newest, &deadline)?);
        Ok((best.reached, parts(&seen, &newest, reached.change)))
    }
}

/// Where SQLite's header says how many bytes at the end of pages are not its own.
const RESERVED_AT: u64 = 20;

/// Writes the newest state of every page that the log has until `end`.
fn play(frames: &Frames, log: &File, end: usize, file: &File) -> std::io::Result<()> {
    let mut newest = HashMap::new();
    for (place, frame) in frames.all[..=end].iter().enumerate() {
        if let (Some(page), true) = (frame.page, frame.state != State::Damaged) {
            newest.insert(page, place);
        }
    }
    let mut reserved = [0];
    file.read_exact_at(&mut reserved, RESERVED_AT)?;
    for (page, place) in newest {
        if let Some(mut bytes) = frames.page(log, place)? {
            // Pages get their checksums on the way from the log into the file.
            if reserved == [RESERVED] {
                seal(&mut bytes, page);
            }
            file.write_all_at(&bytes, u64::from(page - 1) * u64::from(PAGE_SIZE))?;
        }
    }
    file.set_len(u64::from(frames.all[end].pages_after) * u64::from(PAGE_SIZE))
}

fn open(aside: &Aside, deadline: &Deadline) -> Result<Connection, StoreError> {
    let path = aside.path();
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_NOFOLLOW;
    let mut db = isolith_pages::open(path, flags, Checking::Every)
        .map_err(|error| explain(&error, path, "open"))?;
    pragmas::for_every_connection(&mut db, deadline).during(&db, "set up")?;
    pragmas::for_writers(&db, Durability::Full).during(&db, "set up")?;
    Ok(db)
}

/// SQLite's own check.
fn is_sound(aside: &Aside, deadline: &Deadline) -> Result<bool, StoreError> {
    let db = open(aside, deadline)?;
    let said: Result<String, _> = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    match said.during(&db, "check the recovered truth") {
        Ok(said) => Ok(said == "ok"),
        Err(StoreError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the second truth has and the first has not.
fn parts(seen: &Connection, best: &Connection, change: u64) -> Vec<Part> {
    let changed = |kind: &str| {
        format!(
            "SELECT r.id FROM record r JOIN collection c ON c.id = r.collection \
             WHERE r.change > ?1 AND c.kind = '{kind}' ORDER BY r.change"
        )
    };
    let highest = |table: &str, column: &str| -> i64 {
        let sql = format!("SELECT coalesce(max({column}), 0) FROM {table}");
        seen.query_row(&sql, [], |row| row.get(0)).unwrap_or(0)
    };
    let change = i64::try_from(change).unwrap_or(i64::MAX);
    let removed = "SELECT 'row ' || row FROM tombstone t WHERE died > ?1 AND NOT EXISTS \
                   (SELECT 1 FROM record WHERE row = t.row)";
    let drawers = "SELECT id FROM drawer WHERE number > ?1 ORDER BY number";
    let facts = "SELECT 'f' || id FROM fact WHERE id > ?1 ORDER BY id";
    let nodes = "SELECT id FROM node WHERE id > ?1 AND owner IS NULL ORDER BY id";
    let edges = "SELECT id FROM edge WHERE id > ?1 AND owner IS NULL ORDER BY id";
    let asked = [
        ("records", changed("records"), change),
        ("records removed", removed.to_owned(), change),
        ("chunks of code", changed("code"), change),
        ("drawers", drawers.to_owned(), highest("drawer", "number")),
        ("facts", facts.to_owned(), highest("fact", "id")),
        ("nodes of the graph", nodes.to_owned(), highest("node", "id")),
        ("relationships of the graph", edges.to_owned(), highest("edge", "id")),
    ];
    let parts = asked.into_iter().filter_map(|(kind, sql, after)| {
        let (count, ids) = list(best, &sql, after)?;
        (count > 0).then(|| Part { kind: kind.to_owned(), count, ids })
    });
    parts.collect()
}

/// What cannot be read is left out: this is for people, and a repair says what is lost.
fn list(db: &Connection, sql: &str, after: i64) -> Option<(u64, Vec<String>)> {
    let mut statement = db.prepare(sql).ok()?;
    let mut rows = statement.query([after]).ok()?;
    let (mut count, mut ids) = (0, Vec::new());
    while let Ok(Some(row)) = rows.next() {
        count += 1;
        if ids.len() < NAMED {
            let id: rusqlite::types::Value = row.get(0).ok()?;
            ids.push(match id {
                rusqlite::types::Value::Text(text) => text,
                rusqlite::types::Value::Integer(number) => number.to_string(),
                other => format!("{other:?}"),
            });
        }
    }
    Some((count, ids))
}
