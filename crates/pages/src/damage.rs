use std::cell::Cell;
use std::fmt;

/// A damaged page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageDamage {
    /// The page number, from 1; 0 if unknown.
    pub page: u32,
    /// The file it was read from.
    pub part: DatabasePart,
    /// What is wrong with it.
    pub fault: PageDamageKind,
}

/// The files that make up a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DatabasePart {
    /// The database file.
    File,
    /// The write-ahead log.
    Log,
}

/// What can be wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageDamageKind {
    /// The checksum does not match the content.
    Mismatch,
    /// There is no checksum: another program wrote the page, which may still be intact.
    Unsealed,
    /// The file ends before the end of the page.
    Missing,
}

impl fmt::Display for PageDamage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            DatabasePart::File => "",
            DatabasePart::Log => " in the write-ahead log",
        };
        let page = match self.page {
            0 => "a page".to_owned(),
            number => format!("page {number}"),
        };
        let fault = match self.fault {
            PageDamageKind::Mismatch => "does not match its checksum",
            PageDamageKind::Unsealed => "has no checksum: another program has written to the file",
            PageDamageKind::Missing => "is missing: the file is too short",
        };
        write!(f, "{page}{part} {fault}")
    }
}

thread_local! {
    static LAST: Cell<Option<PageDamage>> = const { Cell::new(None) };
}

/// Returns the damage that made the last read on this thread fail, and clears it.
pub fn take_damage() -> Option<PageDamage> {
    LAST.take()
}

/// SQLite reports errors on the calling thread, so their cause is stored there.
pub(crate) fn note(damage: PageDamage) {
    LAST.set(Some(damage));
}
