//! Lists and reads the files of a folder as `isolith index` does, in this process.

use std::path::Path;

use anyhow::Result;
use isolate::InWorker;
use isolith_folder::Folder;
use isolith_source::walk::{Contents, FoundFile, WalkOptions, Walker, read};

/// The default maximum size of an indexed file.
const LARGEST_FILE: u64 = 1 << 20;

pub(super) struct Files {
    folder: Folder,
    largest: u64,
    pub(super) found: Vec<FoundFile>,
}

impl Files {
    pub(super) fn of(code: &Path) -> Result<Self> {
        let what = WalkOptions {
            under: String::new(),
            largest_file: LARGEST_FILE,
            include_secrets: false,
            folders: false,
            except: Vec::new(),
            languages: Vec::new(),
            repository: None,
        };
        let root = Folder::resolve(code)?;
        let mut walker = Walker::begin(root, what, &[], None, InWorker::in_process())?;
        let mut found = Vec::new();
        loop {
            let page = walker.page(usize::MAX, &|| false);
            found.extend(page.files);
            if page.next.is_none() {
                break;
            }
        }
        Ok(Self { folder: Folder::resolve(code)?, largest: LARGEST_FILE, found })
    }

    pub(super) fn read(&self, path: &str) -> Result<Contents> {
        Ok(read(&self.folder, path, self.largest)?)
    }
}
