use std::cell::Cell;
use std::fmt;

/// A page that cannot be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Damage {
    /// The page's number, from 1; 0 if even that cannot be told.
    pub page: u32,
    /// Where it was read from.
    pub part: Part,
    /// What is wrong with it.
    pub fault: Fault,
}

/// The files that make up a database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The database file.
    File,
    /// The write-ahead log.
    Log,
}

/// What can be wrong with a page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// The checksum does not match the content.
    Mismatch,
    /// There is no checksum: another program wrote the page, which may be as it should be.
    Unsealed,
    /// The file ends before the end of the page.
    Missing,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let part = match self.part {
            Part::File => "",
            Part::Log => " in the write-ahead log",
        };
        let page = match self.page {
            0 => "a page".to_owned(),
            number => format!("page {number}"),
        };
        let fault = match self.fault {
            Fault::Mismatch => "does not match its checksum",
            Fault::Unsealed => "has no checksum: another program has written to the file",
            Fault::Missing => "is missing: the file is too short",
        };
        write!(f, "{page}{part} {fault}")
    }
}

thread_local! {
    static LAST: Cell<Option<Damage>> = const { Cell::new(None) };
}

/// The damage that made the last read on this thread fail, once.
pub fn take_damage() -> Option<Damage> {
    LAST.take()
}

/// SQLite hands errors to the thread that asked, so that is where their cause waits.
pub(crate) fn note(damage: Damage) {
    LAST.set(Some(damage));
}
