//! The files of the pages, compressed, as the build of the program found them.

use std::io::Read;

use axum::body::Bytes;
use flate2::read::GzDecoder;

/// A file that browsers load.
pub(super) struct Asset {
    pub(super) path: &'static str,
    pub(super) kind: &'static str,
    pub(super) gzipped: &'static [u8],
}

include!(concat!(env!("OUT_DIR"), "/assets.rs"));

/// What is served at `/` if the pages are not in the program.
pub(super) const NO_PAGES: &str = include_str!("no_pages.html");

impl Asset {
    /// Whether its name changes with its content.
    pub(super) fn is_immutable(&self) -> bool {
        self.path.starts_with("/ui/assets/")
    }

    /// The content, for the few clients that do not accept gzip.
    pub(super) fn unpacked(&self) -> Bytes {
        let mut content = Vec::new();
        // What the program was built with is whole.
        let _ = GzDecoder::new(self.gzipped).read_to_end(&mut content);
        content.into()
    }
}

pub(super) fn find(path: &str) -> Option<&'static Asset> {
    ASSETS.iter().find(|asset| asset.path == path)
}
