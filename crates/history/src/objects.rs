use std::cell::{Cell, RefCell};

use gix_hash::{Kind as HashKind, ObjectId, oid};
use gix_object::{CommitRefIter, Find, Kind, TreeRefIter, commit::ref_iter::Token};
use gix_odb::pack::cache::{lru, object};
use gix_odb::store::init::Options;
use gix_ref::{Target, file::Store as References};

use crate::bounds::{check_reference, check_repository};
use crate::{HistoryError, Repository};

/// Reads the commits and trees of a repository, in bounded memory.
pub(crate) struct Objects<'r> {
    repository: &'r Repository,
    database: RefCell<gix_odb::Handle>,
    /// How many objects were read since the database was opened.
    reads: Cell<u32>,
}

/// The relevant parts of a commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) author: String,
    /// The commit time, in seconds since 1970.
    pub(crate) seconds: i64,
}

/// Caches delta bases, and trees that are compared twice.
const CACHE_BYTES: usize = 24 << 20;

/// The database is opened again after this many objects: packs are mapped, and what was read of them
/// counts as memory until they are unmapped. The kernel maps up to 64 kB around each page.
const READS_PER_OPEN: u32 = 3_000;

/// The maximum size of a commit or tree.
const MAX_OBJECT_BYTES: usize = 32 << 20;

/// The maximum length of an author's name, in bytes.
const MAX_NAME_BYTES: usize = 200;

/// How many symbolic references are followed.
const MAX_REFERENCE_HOPS: usize = 5;

impl<'r> Objects<'r> {
    pub(crate) fn open(repository: &'r Repository) -> Result<Self, HistoryError> {
        let database = RefCell::new(open(repository)?);
        Ok(Self { repository, database, reads: Cell::new(0) })
    }

    /// A commit, if it can be read.
    pub(crate) fn commit(&self, id: &oid) -> Option<Commit> {
        let mut buffer = Vec::new();
        let data = self.read(id, Kind::Commit, &mut buffer)?;
        let mut tokens = CommitRefIter::from_bytes(data, HashKind::Sha1);
        let tree = tokens.tree_id().ok()?;
        let mut parents = Vec::new();
        let mut author = None;
        for token in tokens {
            match token.ok()? {
                Token::Parent { id } => parents.push(id),
                Token::Author { signature } => author = Some(name(signature.name)),
                Token::Committer { signature } => {
                    let seconds = signature.seconds();
                    return Some(Commit { id: id.into(), tree, parents, author: author?, seconds });
                }
                _ => return None,
            }
        }
        None
    }

    /// The entries of a tree, if it can be read.
    pub(crate) fn tree<'a>(&self, id: &oid, buffer: &'a mut Vec<u8>) -> Option<TreeRefIter<'a>> {
        let data = self.read(id, Kind::Tree, buffer)?;
        Some(TreeRefIter::from_bytes(data, HashKind::Sha1))
    }

    fn read<'a>(&self, id: &oid, kind: Kind, buffer: &'a mut Vec<u8>) -> Option<&'a [u8]> {
        // The empty tree exists without being stored.
        if id.is_empty_tree() {
            return (kind == Kind::Tree).then_some(&[]);
        }
        if self.reads.replace(self.reads.get() + 1) >= READS_PER_OPEN {
            self.reads.set(1);
            if let Ok(database) = open(self.repository) {
                self.database.replace(database);
            }
        }
        let database = self.database.borrow();
        let data = database.try_find(id, buffer).ok()??;
        (data.kind == kind).then_some(data.data)
    }
}

/// Opens the object database.
fn open(repository: &Repository) -> Result<gix_odb::Handle, HistoryError> {
    let options = Options {
        alloc_limit_bytes: Some(MAX_OBJECT_BYTES),
        current_dir: Some(repository.common_dir.clone()),
        ..Options::default()
    };
    let folder = repository.common_dir.join("objects");
    let mut database = gix_odb::at_opts(folder, HashKind::Sha1, None, options)
        .map_err(|source| HistoryError::Open { git_dir: repository.git_dir.clone(), source })?;
    database.set_pack_cache(|| Box::new(lru::MemoryCappedHashmap::new(CACHE_BYTES)));
    database.set_object_cache(|| Box::new(object::MemoryCappedHashmap::new(CACHE_BYTES)));
    // Objects missing from a shallow clone are not worth rescanning the folder.
    database.refresh_never();
    Ok(database)
}

/// The newest commit; `None` if there is no commit yet.
pub(crate) fn head(repository: &Repository) -> Result<Option<ObjectId>, HistoryError> {
    let Repository { git_dir, common_dir, .. } = repository;
    let fail = |detail: String| HistoryError::Head { git_dir: git_dir.clone(), detail };
    check_repository(repository)?;
    let references = if git_dir == common_dir {
        References::at(git_dir.clone(), HashKind::Sha1)
    } else {
        References::for_linked_worktree(git_dir.clone(), common_dir.clone(), HashKind::Sha1)
    };
    let found = references.try_find("HEAD").map_err(|error| fail(error.to_string()))?;
    let mut target = found.ok_or_else(|| fail("it does not exist".to_owned()))?.target;
    for _ in 0..MAX_REFERENCE_HOPS {
        let name = match target {
            Target::Object(id) => return Ok(Some(id)),
            Target::Symbolic(name) => name,
        };
        check_reference(repository, &name.as_bstr().to_string())?;
        let found = references.try_find(name.as_ref().as_partial_name());
        match found.map_err(|error| fail(error.to_string()))? {
            Some(reference) => target = reference.target,
            None => return Ok(None),
        }
    }
    Err(fail("too many symbolic references in a row".to_owned()))
}

/// Decodes a name lossily and truncates it.
fn name(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(MAX_NAME_BYTES)];
    String::from_utf8_lossy(bytes).trim().to_owned()
}
