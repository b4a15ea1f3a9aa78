use std::cmp::Ordering;
use std::iter::Peekable;

use gix_hash::oid;
use gix_object::TreeRefIter;
use gix_object::tree::{EntryRef, name_order};

use crate::clock::{Clock, TimeUp};
use crate::listing::{Listing, ROOT};
use crate::objects::Objects;

/// What became of files on the way from a commit to one of its parents. Files that are
/// in neither list are the same in both.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The parent has another content, or no such file. In rising order.
    pub(crate) differing: Vec<u32>,
    /// It cannot be told, as a tree is missing or damaged. In rising order.
    pub(crate) unknown: Vec<u32>,
}

/// Compares files that are in a commit as they are in the newest one with a parent of
/// the commit. Only trees that differ and have such files below them are read.
pub(crate) struct Comparison<'a> {
    pub(crate) objects: &'a Objects,
    pub(crate) listing: &'a Listing,
    pub(crate) clock: &'a Clock<'a>,
}

impl Comparison<'_> {
    /// `ours` and `theirs` are the trees of the commit and of the parent; `files` are in
    /// rising order.
    pub(crate) fn run(
        &self,
        files: &[u32],
        ours: &oid,
        theirs: &oid,
    ) -> Result<Differences, TimeUp> {
        let mut differences = Differences::default();
        self.folder(ROOT, files, ours, theirs, &mut differences)?;
        Ok(differences)
    }

    /// Goes as deep as the listing does, which is limited.
    fn folder(
        &self,
        folder: usize,
        files: &[u32],
        ours: &oid,
        theirs: &oid,
        found: &mut Differences,
    ) -> Result<(), TimeUp> {
        if ours == theirs {
            return Ok(());
        }
        self.clock.check()?;
        let (mut our_buffer, mut their_buffer) = (Vec::new(), Vec::new());
        let ours = self.objects.tree(ours, &mut our_buffer);
        let theirs = self.objects.tree(theirs, &mut their_buffer);
        let (Some(ours), Some(theirs)) = (ours, theirs) else {
            found.unknown.extend(files);
            return Ok(());
        };
        let (mut ours, mut theirs) = (Lookup::new(ours), Lookup::new(theirs));
        let mut rest = files;
        while let Some(first) = rest.first() {
            let file = self.listing.file(*first);
            if file.folder == folder {
                match theirs.find(&file.name, false) {
                    Entry::Is(it) if it.oid == file.id && it.mode.kind() == file.kind => {}
                    Entry::Is(_) | Entry::IsNot => found.differing.push(*first),
                    Entry::Unknown => found.unknown.push(*first),
                }
                rest = &rest[1..];
                continue;
            }
            let Some((inner, its)) = self.listing.folder_with(folder, *first) else {
                found.unknown.extend(rest);
                break;
            };
            let count = rest.partition_point(|number| *number < its.end);
            let (inside, after) = rest.split_at(count);
            match (ours.find(&its.name, true), theirs.find(&its.name, true)) {
                (Entry::Is(our), Entry::Is(their)) => {
                    self.folder(inner, inside, our.oid, their.oid, found)?;
                }
                (_, Entry::IsNot) => found.differing.extend(inside),
                _ => found.unknown.extend(inside),
            }
            rest = after;
        }
        Ok(())
    }
}

/// Finds entries of a tree, asked for in the order of trees.
struct Lookup<'a> {
    entries: Peekable<TreeRefIter<'a>>,
}

enum Entry<'a> {
    Is(EntryRef<'a>),
    IsNot,
    /// The tree ends in garbage before the place.
    Unknown,
}

impl<'a> Lookup<'a> {
    fn new(entries: TreeRefIter<'a>) -> Self {
        Self { entries: entries.peekable() }
    }

    fn find(&mut self, name: &str, is_folder: bool) -> Entry<'a> {
        loop {
            let entry = match self.entries.peek() {
                Some(Ok(entry)) => *entry,
                Some(Err(_)) => return Entry::Unknown,
                None => return Entry::IsNot,
            };
            let is_tree = entry.mode.is_tree();
            match name_order(entry.filename, is_tree, name.as_bytes(), is_folder) {
                Ordering::Less => drop(self.entries.next()),
                Ordering::Equal => return Entry::Is(entry),
                Ordering::Greater => return Entry::IsNot,
            }
        }
    }
}
