//! Builds a truth from the file and all trusted frames of its log.

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

use super::frames::{FrameState, Frames};
use super::{MissingCommits, TruthFiles};
use crate::acknowledged::{self, Progress};
use crate::create::{self, Aside, copy_content, sync_folder};
use crate::deadline::Deadline;
use crate::folder::{StoreFolder, io_failure};
use crate::lock::Lock;
use crate::open::Truth;
use crate::pragmas::{self, Durability, PAGE_SIZE};
use crate::salvage::put_in_place;
use crate::sqlite::{SqliteDuring, explain};

/// Something that missing commits wrote.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LostPart {
    /// What it is, in the plural.
    pub kind: String,
    /// How many.
    pub count: u64,
    /// The first ids.
    pub ids: Vec<String>,
}

/// The result of recovering a damaged log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogRecovery {
    /// What SQLite did not see before.
    pub missing: MissingCommits,
    /// Where the damaged files are now. `None` if nothing was done: there are commits after
    /// unreadable pages, and only a salvage can recover them row by row.
    pub kept_as: Option<PathBuf>,
}

impl LogRecovery {
    /// Number of acknowledged commits that are not in the new truth.
    pub fn lost_commits(&self) -> u64 {
        self.missing.to.commits.saturating_sub(self.missing.recoverable_to.commits)
    }

    /// Whether the truth must be salvaged.
    pub fn needs_salvage(&self) -> bool {
        self.kept_as.is_none()
    }
}

/// Maximum number of ids in a report.
const MAX_NAMED_IDS: usize = 20;

impl Truth {
    /// Builds a new truth from the file and all trusted frames of its log, including those
    /// after damage. It replaces the old files, which are kept. Returns `None` if nothing that
    /// was acknowledged is missing.
    ///
    /// # Errors
    /// [`StoreError::LockHeld`] while any process uses the store, or the reason why the new
    /// truth cannot be built. On error nothing has changed.
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
        let files = TruthFiles::look(folder)?;
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

/// A rebuilt truth that is not in place yet.
struct Candidate {
    aside: Aside,
    reached: Progress,
    /// Whether a salvage could recover more.
    falls_short: bool,
}

/// A copy of the truth with all commits of its log, for a salvage. Pages whose newest state is
/// lost are made unreadable, so that their contents are reported as lost and no older state is
/// used instead. `None` if SQLite sees all commits by itself. The caller must hold the store's
/// lock exclusively.
pub(crate) fn all_commits(folder: &StoreFolder) -> Result<Option<Aside>, StoreError> {
    let files = TruthFiles::look(folder)?;
    match files.frames.commits().next_back() {
        Some(last) if files.is_behind() && files.frames.goes_on() => {
            files.copy_with_gaps(folder, last).map(Some)
        }
        _ => Ok(None),
    }
}

impl TruthFiles {
    /// The truth as of the last commit at which every page is known.
    fn best(&self, folder: &StoreFolder, deadline: &Deadline) -> Result<Candidate, StoreError> {
        let end = self.frames.last_whole();
        let mut whole = self.candidate(folder, end, deadline)?;
        let is_last = end == self.frames.commits().next_back();
        let is_enough = is_last || whole.reached.commits >= self.expected().commits;
        whole.falls_short = !is_enough || !is_sound(&whole.aside, deadline)?;
        Ok(whole)
    }

    /// A copy of the file with all frames up to this one.
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

    /// A copy as of this commit, with unreadable pages where the state is unknown.
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

    /// How far a repair could get, and what the recovered commits contain.
    pub(super) fn preview(
        &self,
        folder: &StoreFolder,
        reached: Progress,
        _token: InWorker,
    ) -> Result<(Progress, Vec<LostPart>), StoreError> {
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

/// Offset in SQLite's header of the number of reserved bytes per page.
const RESERVED_AT: u64 = 20;

/// Writes the newest state of every page in the log up to `end`.
fn play(frames: &Frames, log: &File, end: usize, file: &File) -> std::io::Result<()> {
    let mut newest = HashMap::new();
    for (place, frame) in frames.all[..=end].iter().enumerate() {
        if let (Some(page), true) = (frame.page, frame.state != FrameState::Damaged) {
            newest.insert(page, place);
        }
    }
    let mut reserved = [0];
    file.read_exact_at(&mut reserved, RESERVED_AT)?;
    for (page, place) in newest {
        if let Some(mut bytes) = frames.page(log, place)? {
            // Pages get their checksums when they move from the log to the file.
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
        .map_err(|error| explain(error, path, "open"))?;
    pragmas::for_every_connection(&mut db, deadline).during(&db, "set up")?;
    pragmas::for_writers(&db, Durability::Full).during(&db, "set up")?;
    Ok(db)
}

/// Runs SQLite's own check.
fn is_sound(aside: &Aside, deadline: &Deadline) -> Result<bool, StoreError> {
    let db = open(aside, deadline)?;
    let said: Result<String, _> = db.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0));
    match said.during(&db, "check the recovered truth") {
        Ok(said) => Ok(said == "ok"),
        Err(StoreError::Corrupt { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What the second truth has and the first lacks.
fn parts(seen: &Connection, best: &Connection, change: u64) -> Vec<LostPart> {
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
        (count > 0).then(|| LostPart { kind: kind.to_owned(), count, ids })
    });
    parts.collect()
}

/// Unreadable items are left out: this is informational, and a repair reports what is lost.
fn list(db: &Connection, sql: &str, after: i64) -> Option<(u64, Vec<String>)> {
    let mut statement = db.prepare(sql).ok()?;
    let mut rows = statement.query([after]).ok()?;
    let (mut count, mut ids) = (0, Vec::new());
    while let Ok(Some(row)) = rows.next() {
        count += 1;
        if ids.len() < MAX_NAMED_IDS {
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
