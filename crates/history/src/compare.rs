use std::cmp::Ordering;
use std::iter::Peekable;

use gix_hash::oid;
use gix_object::TreeRefIter;
use gix_object::tree::{EntryRef, name_order};

use crate::clock::{Clock, TimeUp};
use crate::listing::{Listing, ROOT};
use crate::objects::Objects;

/// The differences between a commit and one of its parents. Files in neither list are the same
/// in both.
#[derive(Debug, Default)]
pub(crate) struct Differences {
    /// The parent has different content, or no such file. Sorted.
    pub(crate) differing: Vec<u32>,
    /// Unknown, because a tree is missing or damaged. Sorted.
    pub(crate) unknown: Vec<u32>,
}

/// Compares the files of a commit, which has them in their newest version, with a parent of
/// that commit. Reads only trees that differ and contain such files.
pub(crate) struct Comparison<'a> {
    pub(crate) objects: &'a Objects<'a>,
    pub(crate) listing: &'a Listing,
    pub(crate) clock: &'a Clock<'a>,
}

impl Comparison<'_> {
    /// `ours` and `theirs` are the trees of the commit and of the parent; `files` must be
    /// sorted.
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

    /// The recursion is as deep as the listing, which is limited.
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
        let (mut ours, mut theirs) = (TreeLookup::new(ours), TreeLookup::new(theirs));
        let mut rest = files;
        while let Some(first) = rest.first() {
            let file = self.listing.file(*first);
            if file.folder == folder {
                match theirs.find(&file.name, false) {
                    EntryLookup::Found(it) if it.oid == file.id && it.mode.kind() == file.kind => {}
                    EntryLookup::Found(_) | EntryLookup::Absent => found.differing.push(*first),
                    EntryLookup::Unknown => found.unknown.push(*first),
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
                (EntryLookup::Found(our), EntryLookup::Found(their)) => {
                    self.folder(inner, inside, our.oid, their.oid, found)?;
                }
                (_, EntryLookup::Absent) => found.differing.extend(inside),
                _ => found.unknown.extend(inside),
            }
            rest = after;
        }
        Ok(())
    }
}

/// Finds entries of a tree; must be called in the sort order of trees.
struct TreeLookup<'a> {
    entries: Peekable<TreeRefIter<'a>>,
}

enum EntryLookup<'a> {
    Found(EntryRef<'a>),
    Absent,
    /// The tree is damaged before the entry's position.
    Unknown,
}

impl<'a> TreeLookup<'a> {
    fn new(entries: TreeRefIter<'a>) -> Self {
        Self { entries: entries.peekable() }
    }

    fn find(&mut self, name: &str, is_folder: bool) -> EntryLookup<'a> {
        loop {
            let entry = match self.entries.peek() {
                Some(Ok(entry)) => *entry,
                Some(Err(_)) => return EntryLookup::Unknown,
                None => return EntryLookup::Absent,
            };
            let is_tree = entry.mode.is_tree();
            match name_order(entry.filename, is_tree, name.as_bytes(), is_folder) {
                Ordering::Less => drop(self.entries.next()),
                Ordering::Equal => return EntryLookup::Found(entry),
                Ordering::Greater => return EntryLookup::Absent,
            }
        }
    }
}
