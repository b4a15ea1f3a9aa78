//! The files of a folder as `isolith index` finds and reads them, in this process.

use std::path::Path;

use anyhow::Result;
use isolate::InWorker;
use isolith_source::folder::Folder;
use isolith_source::walk::{Contents, FoundFile, WalkOptions, Walker, Walking, read};

pub(super) struct Files {
    folder: Folder,
    largest: u64,
    pub(super) found: Vec<FoundFile>,
}

impl Files {
    pub(super) fn of(code: &Path) -> Result<Self> {
        let WalkOptions { largest_file, include_secrets } = WalkOptions::default();
        let what = Walking {
            under: String::new(),
            largest_file,
            include_secrets,
            folders: false,
            except: Vec::new(),
        };
        let root = Folder::open(code)?;
        let mut walker = Walker::begin(root, what, &[], None, InWorker::in_process())?;
        let mut found = Vec::new();
        loop {
            let page = walker.page(usize::MAX, &|| false);
            found.extend(page.files);
            if page.next.is_none() {
                break;
            }
        }
        Ok(Self { folder: Folder::open(code)?, largest: largest_file, found })
    }

    pub(super) fn read(&self, path: &str) -> Result<Contents> {
        Ok(read(&self.folder, path, self.largest)?)
    }
}
