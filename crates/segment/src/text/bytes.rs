//! Mapped files, as the index wants them.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;
use stable_deref_trait::StableDeref;
use tantivy::directory::OwnedBytes;

use crate::Container;

/// A part of a segment. The segment stays mapped as long as the bytes are in use.
///
/// A section that fails its checks is empty; those of text segments passed them at open.
pub(super) fn section(container: &Arc<Container>, range: Range<usize>) -> OwnedBytes {
    OwnedBytes::new(Mapped::Section(Arc::clone(container), range))
}

/// A whole file of a build that is under way.
#[allow(unsafe_code)]
pub(super) fn scratch_file(file: &File) -> io::Result<OwnedBytes> {
    if file.metadata()?.len() == 0 {
        return Ok(OwnedBytes::empty());
    }
    // SAFETY: the file is in a folder of this build alone, which writes each file once and
    // unlinks it without changing it. Should something outside truncate it, the
    // worker dies of a signal, which its supervisor expects.
    let map = unsafe { Mmap::map(file)? };
    Ok(OwnedBytes::new(Mapped::File(map)))
}

enum Mapped {
    Section(Arc<Container>, Range<usize>),
    File(Mmap),
}

impl Deref for Mapped {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Mapped::Section(container, range) => container.bytes(range.clone()).unwrap_or(&[]),
            Mapped::File(map) => map,
        }
    }
}

// SAFETY: the bytes are those of a mapping, which stays where it is when its owner moves
// and lasts as long as the owner or, for sections, as any clone of the `Arc`.
#[allow(unsafe_code)]
unsafe impl StableDeref for Mapped {}
