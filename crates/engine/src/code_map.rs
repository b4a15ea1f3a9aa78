//! All files of the indexed code with their sizes, for a picture of it.

use std::collections::HashMap;
use std::path::PathBuf;

use isolith_protocol::{CountLines, FileState, ListFiles};
use isolith_types::Failure;

use crate::code::nothing_indexed;
use crate::open::Engine;

/// Number of files that are read at a time.
const PAGE: u32 = 5_000;

/// The files of the indexed code.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CodeMap {
    /// The files, the longest first.
    pub files: Vec<MappedFile>,
    /// Number of files that were left out, the shortest ones.
    pub left_out: usize,
}

/// A file of the indexed code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MappedFile {
    /// The indexed folder that it is in.
    pub root: PathBuf,
    /// Its path, relative to that folder.
    pub path: String,
    /// Its language.
    pub language: String,
    /// Number of lines, up to the last one that is not blank.
    pub lines: u32,
    /// Its size.
    pub bytes: u64,
    /// Whether it is marked as generated.
    pub generated: bool,
    /// Who changed it last, if known from git.
    pub author: Option<String>,
    /// When, in milliseconds since 1970.
    pub changed_at: Option<i64>,
    /// Number of places in other files that call something in it.
    pub calls: u64,
    /// The number of its import cycle, from 1; the smallest first.
    pub cycle: Option<usize>,
}

impl Engine {
    /// The files of the code that questions are answered for, at most `limit`.
    ///
    /// # Errors
    /// `not_found` if nothing is indexed, or an error of the store.
    pub async fn code_map(&self, limit: usize) -> Result<CodeMap, Failure> {
        let roots = self.roots_here().await?;
        if roots.is_empty() {
            return Err(nothing_indexed());
        }
        let calls = self.calls_into_files().await?;
        let mut cycles: HashMap<String, usize> = HashMap::new();
        for (at, cycle) in
            self.import_cycles(false, usize::MAX).await?.items.into_iter().enumerate()
        {
            cycles.extend(cycle.files.into_iter().map(|path| (path, at + 1)));
        }
        let mut map = CodeMap::default();
        for root in roots {
            let lines: HashMap<u64, u32> =
                self.ask(CountLines { root: root.id }).await?.into_iter().collect();
            let files = self.files_of(root.id).await?.into_iter().map(|file| MappedFile {
                root: root.folder.clone(),
                lines: lines.get(&file.id).copied().unwrap_or(0),
                calls: calls.get(&file.path).copied().unwrap_or(0),
                cycle: cycles.get(&file.path).copied(),
                bytes: file.version.size,
                path: file.path,
                language: file.language,
                generated: file.generated,
                author: file.author,
                changed_at: file.changed_at,
            });
            map.files.extend(files);
        }
        map.files.sort_by(|a, b| b.lines.cmp(&a.lines).then_with(|| a.path.cmp(&b.path)));
        map.left_out = map.files.len().saturating_sub(limit);
        map.files.truncate(limit);
        Ok(map)
    }

    async fn files_of(&self, root: u64) -> Result<Vec<FileState>, Failure> {
        let (mut files, mut after): (Vec<FileState>, _) = (Vec::new(), None);
        loop {
            let page = self.ask(ListFiles { root, under: None, after, limit: PAGE }).await?;
            let is_last = (page.len() as u64) < u64::from(PAGE);
            after = page.last().map(|file| file.path.clone());
            files.extend(page);
            if is_last {
                return Ok(files);
            }
        }
    }
}
