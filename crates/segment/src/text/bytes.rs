//! Memory-mapped bytes in the form that tantivy needs.

use std::fs::File;
use std::io;
use std::ops::{Deref, Range};
use std::sync::Arc;

use memmap2::Mmap;
use stable_deref_trait::StableDeref;
use tantivy::directory::OwnedBytes;

use crate::Container;

/// A section of a segment, which stays mapped while the bytes are in use. A section with a wrong
/// checksum reads as empty, but sections of text segments were verified at open.
pub(super) fn section(container: &Arc<Container>, range: Range<usize>) -> OwnedBytes {
    OwnedBytes::new(Mapped::Section(Arc::clone(container), range))
}

/// A whole file of a running build.
#[allow(unsafe_code)]
pub(super) fn scratch_file(file: &File) -> io::Result<OwnedBytes> {
    if file.metadata()?.len() == 0 {
        return Ok(OwnedBytes::empty());
    }
    // SAFETY: the file is in a private folder of this build, which writes each file once and
    // never changes it. If another program truncates it, the worker is killed by SIGBUS, which
    // its supervisor handles.
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

// SAFETY: the bytes belong to a mapping. Its address does not change when the owner moves, and
// it lives as long as the owner or, for sections, as any clone of the `Arc`.
#[allow(unsafe_code)]
unsafe impl StableDeref for Mapped {}
