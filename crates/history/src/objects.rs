use gix_hash::{Kind as HashKind, ObjectId, oid};
use gix_object::{CommitRefIter, Find, Kind, TreeRefIter, commit::ref_iter::Token};
use gix_odb::pack::cache::{lru, object};
use gix_odb::store::init::Options;
use gix_ref::{Target, file::Store as References};

use crate::bounds::{check_reference, check_repository};
use crate::{HistoryError, Repository};

/// The commits and trees of a repository, in bounded memory.
pub(crate) struct Objects {
    database: gix_odb::Handle,
}

/// What is needed of a commit.
#[derive(Debug)]
pub(crate) struct Commit {
    pub(crate) id: ObjectId,
    pub(crate) tree: ObjectId,
    pub(crate) parents: Vec<ObjectId>,
    pub(crate) author: String,
    /// When it was committed, in seconds since 1970.
    pub(crate) seconds: i64,
}

/// For deltas that build on each other, and for trees that are compared twice.
const CACHE_BYTES: usize = 24 << 20;

/// No commit and no tree has a reason to be larger.
const LARGEST_OBJECT: usize = 32 << 20;

/// The longest name of an author.
const LONGEST_NAME: usize = 200;

/// How often a reference may lead to another one.
const MOST_REFERENCES: usize = 5;

impl Objects {
    pub(crate) fn open(repository: &Repository) -> Result<Self, HistoryError> {
        let options = Options {
            alloc_limit_bytes: Some(LARGEST_OBJECT),
            current_dir: Some(repository.common_dir.clone()),
            ..Options::default()
        };
        let folder = repository.common_dir.join("objects");
        let mut database = gix_odb::at_opts(folder, HashKind::Sha1, None, options)
            .map_err(|source| HistoryError::Open { git_dir: repository.git_dir.clone(), source })?;
        database.set_pack_cache(|| Box::new(lru::MemoryCappedHashmap::new(CACHE_BYTES)));
        database.set_object_cache(|| Box::new(object::MemoryCappedHashmap::new(CACHE_BYTES)));
        // What a shallow clone lacks is not worth looking at the folder again.
        database.refresh_never();
        Ok(Self { database })
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
        // Git knows this one without having stored it.
        if id.is_empty_tree() {
            return (kind == Kind::Tree).then_some(&[]);
        }
        let data = self.database.try_find(id, buffer).ok()??;
        (data.kind == kind).then_some(data.data)
    }
}

/// The newest commit; none if there is no commit yet.
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
    let mut target = found.ok_or_else(|| fail("it is not there".to_owned()))?.target;
    for _ in 0..MOST_REFERENCES {
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
    Err(fail("too many references lead to each other".to_owned()))
}

/// A name as text of a bounded length, whatever its encoding was.
fn name(bytes: &[u8]) -> String {
    let bytes = &bytes[..bytes.len().min(LONGEST_NAME)];
    String::from_utf8_lossy(bytes).trim().to_owned()
}
