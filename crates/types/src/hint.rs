use serde::{Deserialize, Serialize};

/// What to do about a failure. Libraries say which advice applies; the words are chosen where
/// it is shown: [`Hint::for_terminal`] here, and for agents in `isolith-serve`.
///
/// A variant is needed for advice that names a command, an option, a variable or a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Hint {
    /// Reads the same everywhere, or is made in the place where it is shown.
    Text(String),

    /// No code is indexed here.
    IndexProject,
    /// Indexing of a folder was not finished.
    ResumeIndexing {
        /// The indexed folder.
        folder: String,
    },
    /// The vectors of the code index come from another model.
    ReembedIndex,
    /// A regular expression for a search of code is invalid.
    SearchExact,
    /// Another process is indexing the folder.
    WaitForIndexing,
    /// The folder has no index.
    ListIndexes,
    /// A repository or worktree is not indexed, although code around it is.
    IndexRepository {
        /// Its top.
        folder: String,
    },
    /// Both a folder and one that contains it have a store.
    MergeStore {
        /// The inner folder.
        folder: String,
    },
    /// A folder with an index of its own is in the way.
    RemoveInnerIndex {
        /// The folder that has it.
        folder: String,
    },
    /// An indexed folder has no files any more.
    RemoveEmptyIndex {
        /// The indexed folder.
        folder: String,
    },
    /// An indexed folder cannot be opened.
    RemoveIndex,
    /// The server may not read this folder.
    AllowFolder,
    /// The server may not read any of the indexed folders.
    AllowIndexedFolder,
    /// A path is outside the folders that the server may read.
    UseAllowedFolder {
        /// Those folders, separated by commas; empty if there are none.
        folders: String,
    },
    /// The server was started outside of any project.
    StartInProject,

    /// There is no store in this folder.
    CreateStore,
    /// The store should be in another folder.
    NameStore {
        /// Which folder, and what else helps.
        advice: String,
    },
    /// The store may be somebody else's.
    AdoptStore {
        /// The store's folder.
        store: String,
        /// The folder of code that it belongs to; its index can be made again.
        project: Option<String>,
    },
    /// Something is wrong with the store.
    CheckStore,
    /// The store is damaged.
    RepairStore,
    /// The store lacks writes that its log may hold.
    RepairIdleStore,
    /// The user's secret cannot be used, and a new one has a price.
    RestoreSecret,
    /// The user's secret should be in another file.
    NameSecretFile {
        /// Which file, and what else helps.
        advice: String,
    },

    /// The input is in quarantine.
    InspectQuarantine,
    /// No job in quarantine has this id.
    ListQuarantine,

    /// There is no such collection.
    ListCollections,
    /// No model here embeds texts for this collection.
    PassVectorOrKeywords,
    /// The collection has another metric.
    LeaveOutMetric,
    /// Loading the file stopped before its end.
    ContinueLoading,
    /// Some records of the file are invalid.
    SkipBadRecords,
    /// A row of a table for the graph is invalid.
    SkipBadRows,
    /// The file is not an exported collection.
    IngestFile,
    /// The file is an export of several collections.
    ImportExport,

    /// There is no such drawer.
    ListDrawers,
    /// Nothing in the file has the format that was recognized.
    NameFormat,
    /// The file does not have the format that was named.
    DetectFormat,

    /// There is no such fact.
    QueryFacts,
    /// There is no such entity.
    ListEntities,
    /// A fact is still true.
    InvalidateFact {
        /// The fact's id.
        id: String,
    },
    /// Another fact excludes the new one.
    SupersedeFact {
        /// The id of the other fact.
        id: String,
    },
    /// There are no facts yet.
    AddFact,
    /// A query tried to change a fact.
    UseFacts,
    /// There is no graph yet.
    CreateGraph,
}

impl Hint {
    /// The advice for somebody who types commands.
    pub fn for_terminal(&self) -> String {
        let words = match self {
            Self::Text(text) => text,
            Self::IndexProject => {
                "`isolith index` indexes the working folder, `isolith index PATH` another one"
            }
            Self::ResumeIndexing { folder } => {
                return format!("`isolith index {}` resumes it", quoted(folder));
            }
            Self::ReembedIndex => "`isolith index --reembed` rebuilds it with the current model",
            Self::SearchExact => {
                "`--mode exact` searches for the text as it is; in a regex, `\\` before ( [ { . * + ? | ^ $ makes them ordinary"
            }
            Self::WaitForIndexing => "try again later, or leave out --no-wait to wait for it",
            Self::ListIndexes => "`isolith status` shows what has one",
            Self::IndexRepository { folder } => {
                let folder = quoted(folder);
                return format!(
                    "`isolith index {folder}` indexes it; --all-roots searches what is indexed"
                );
            }
            Self::MergeStore { folder } => {
                let folder = quoted(folder);
                return format!("`isolith index --merge {folder}` merges it into the other");
            }
            Self::RemoveInnerIndex { folder } => {
                let folder = quoted(folder);
                return format!(
                    "`isolith index --remove {folder}` drops that one; or index the others beside it one by one"
                );
            }
            Self::RemoveEmptyIndex { folder } => {
                let folder = quoted(folder);
                return format!(
                    "check that it is mounted and not ignored; `isolith index --remove {folder}` drops its index"
                );
            }
            Self::RemoveIndex => "what is in the index stays there; `--remove` drops it",
            Self::AllowFolder => "start the server with --allow DIR to add a folder",
            Self::AllowIndexedFolder => {
                "`isolith status` lists the folders; --allow DIR adds one to the server, `isolith index --remove DIR` drops its index"
            }
            Self::UseAllowedFolder { folders } if !folders.is_empty() => {
                return format!(
                    "allowed: {folders}; start the server with --allow DIR to add a folder"
                );
            }
            Self::UseAllowedFolder { .. } | Self::StartInProject => {
                "start the server in a project's folder, or with --allow DIR"
            }
            Self::CreateStore => {
                "`isolith index` creates one for code, `isolith memory add` for memory, `isolith ingest` for collections, `isolith graph import` and queries that write for the graph; --store names another folder"
            }
            Self::NameStore { advice } => return format!("{advice}: --store DIR or ISOLITH_STORE"),
            Self::AdoptStore { store, project } => {
                let adopt = format!(
                    "`isolith adopt --store '{store}'` checks it and trusts it from then on"
                );
                return match project {
                    Some(project) => format!(
                        "it may have come with a clone or an archive: `isolith index --fresh \
                         '{project}'` moves it aside and indexes again; {adopt}"
                    ),
                    None => format!("it may have come from another machine or user: {adopt}"),
                };
            }
            Self::CheckStore => "run `isolith doctor`",
            Self::RepairStore => "run `isolith doctor --repair`",
            Self::RepairIdleStore => {
                "stop the processes that use the store, then run `isolith doctor --repair`; keep \
                 truth.sqlite-wal, which may hold what is missing"
            }
            Self::RestoreSecret => {
                "restore it, or move it away: a new one is created on the next run, and your \
                 project stores have to be adopted again (`isolith adopt`)"
            }
            Self::NameSecretFile { advice } => return format!("{advice} with ISOLITH_SECRET_FILE"),
            Self::InspectQuarantine => {
                "this input is skipped until it or the program changes; `isolith doctor --quarantine list` shows it"
            }
            Self::ListQuarantine => "`isolith doctor --quarantine list` shows them all",
            Self::ListCollections => "`isolith collection list` shows what there is",
            Self::PassVectorOrKeywords => {
                "pass the text's vector with --vector, or its words with --keywords"
            }
            Self::LeaveOutMetric => "leave --metric out, or choose another collection",
            Self::ContinueLoading => "the same command continues; --timeout gives it more time",
            Self::SkipBadRecords => "correct these rows, or leave them out with --on-error skip",
            Self::SkipBadRows => {
                "rows are counted after the header; `--on-error skip` leaves bad ones out"
            }
            Self::IngestFile => "`isolith ingest --collection NAME` loads files without a header",
            Self::ImportExport => "bring an export of several collections in with `isolith import`",
            Self::ListDrawers => "`isolith memory list` shows what there is",
            Self::NameFormat => "correct the file, or say with --format what it is",
            Self::DetectFormat => {
                "leave --format out to see what it is; docs/memory.md tells what can be imported"
            }
            Self::QueryFacts => "`isolith fact query NAME` shows what is known",
            Self::ListEntities => "`isolith fact entities` shows what there is",
            Self::InvalidateFact { id } => {
                return format!(
                    "if it has ended, `isolith fact invalidate {id} --at WHEN` says so"
                );
            }
            Self::SupersedeFact { id } => {
                return format!(
                    "`isolith fact supersede {id} NEW --at WHEN` replaces it; if it was never \
                     true, `isolith fact retract {id}` says so"
                );
            }
            Self::AddFact => "`isolith fact add` records one",
            Self::UseFacts => "use `isolith fact`; nodes and edges of your own can point to it",
            Self::CreateGraph => {
                "`isolith index` creates the code graph; `isolith graph query` can CREATE nodes of your own"
            }
        };
        words.to_owned()
    }
}

/// A word as a shell takes it: in quotes unless all of its characters are harmless.
pub fn quoted(word: &str) -> String {
    let is_plain = |letter: char| letter.is_alphanumeric() || "_./-+@:,=%~".contains(letter);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

impl From<&str> for Hint {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Hint {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// Why an answer is incomplete, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Degraded {
    /// What is missing, and why.
    pub why: String,
    /// What to do about it.
    pub hint: Option<Hint>,
}

impl Degraded {
    /// One sentence in the words of a place, such as [`Hint::for_terminal`].
    pub fn worded(&self, words: fn(&Hint) -> String) -> String {
        match &self.hint {
            Some(hint) => format!("{}; {}", self.why, words(hint)),
            None => self.why.clone(),
        }
    }
}
