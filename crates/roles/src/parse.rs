use std::time::Duration;

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{ChunkWeights, Model, PathVector};
use isolith_source::secrets::{Finding, Secrets};
use isolith_source::{Chunker, Mode, PARSER_VERSION};
use isolith_types::{Chunk, FileGraph, FileVersion, ParsedFile};
use serde::{Deserialize, Serialize};

use isolith_fault as fault;

/// Turns files into chunks and chunks into vectors. It sees bytes, never a file.
pub struct Parser {
    chunker: Chunker,
    model: Model,
    secrets: Secrets,
}

/// Some files to be parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ParseJob {
    /// Which they are.
    pub files: Vec<FileToParse>,
    /// Their contents, one after the other.
    pub contents: Bulk,
    /// Cut them as plain text: no grammar touches them.
    pub plain: bool,
    /// Parse files that hold secrets like any other, and note that they do.
    pub include_secrets: bool,
}

/// A file to be parsed.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileToParse {
    /// Relative to the root: it tells the language, and is part of the vectors.
    pub path: String,
    /// BLAKE3 of its content. Its age is nobody's business here: the same content is the
    /// same job.
    pub hash: [u8; 32],
    /// How many of the bytes are its content.
    pub length: u64,
    /// What the index says of a secret in this same content: if that still holds, there is
    /// nothing to be stored.
    pub secret: Option<String>,
}

/// Files as the writer wants them.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parsed {
    /// What the front is to know of each.
    pub notes: Vec<ParseNote>,
    /// The files that are to be stored, as [`PutFiles`](isolith_protocol::PutFiles) takes
    /// them.
    pub files: Bulk,
    /// The vectors of all their chunks: f32, little-endian.
    pub vectors: Bulk,
}

impl Parsed {
    /// The files, for whoever wants to look into them.
    ///
    /// # Errors
    /// If a worker sent something else.
    pub fn decode(&self) -> Result<Vec<ParsedFile>, postcard::Error> {
        postcard::from_bytes(&self.files)
    }
}

/// What the front is to know of a parsed file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ParseNote {
    /// Why it is not as well cut as it might be.
    pub problem: Option<String>,
    /// The secret that it holds: the rule that found it, and the line.
    pub secret: Option<(String, u64)>,
    /// Whether it is among the files to be stored; the index has the others as they are.
    pub stored: bool,
}

/// One file may take this long; what takes longer is cut as text.
const FILE_BUDGET: Duration = Duration::from_secs(2);

/// A file with a NUL in so many first bytes is not text.
const BINARY_CHECK: usize = 8 << 10;

/// Why a file is cut as text that a grammar would have cut better.
const PLAIN: &str = "its parser died of it";

/// The language of files that are no text.
const BINARY: &str = "binary";

/// The language of files that are left out because they hold a secret.
const SECRET: &str = "secret";

impl Role for Parser {
    const NAME: &'static str = "parse";
    type Settings = ();
    type Request = ParseJob;
    type Reply = Parsed;

    fn warm_up((): (), token: InWorker) -> Result<Self, Refusal> {
        Ok(Self {
            chunker: Chunker::new(token),
            model: Model::embedded(token),
            secrets: Secrets::new(),
        })
    }

    fn handle(&mut self, job: ParseJob, context: &Context<'_>) -> Parsed {
        fault::point("parse", context);
        let mut rest: &[u8] = &job.contents;
        let mut files = Vec::with_capacity(job.files.len());
        let mut notes = Vec::with_capacity(job.files.len());
        let mut vectors = Vec::new();
        let how = How { plain: job.plain, include_secrets: job.include_secrets };
        for file in job.files {
            let (bytes, after) = rest.split_at(rest.len().min(file.length as usize));
            rest = after;
            if !job.plain {
                fault::point_of("parse", &file.path, context);
            }
            let (file, note) = self.parse(file, bytes, how, &mut vectors, context);
            files.extend(file);
            notes.push(note);
        }
        Parsed { notes, files: encode(&files), vectors: Bulk::from(vectors) }
    }

    fn sandbox((): &()) -> Sandbox {
        Sandbox::sealed()
    }
}

/// How the files of a job are parsed.
#[derive(Clone, Copy)]
struct How {
    plain: bool,
    include_secrets: bool,
}

impl Parser {
    /// The file as it is to be stored, unless the index has it like that, and what the front
    /// is to know of it.
    fn parse(
        &mut self,
        file: FileToParse,
        bytes: &[u8],
        how: How,
        vectors: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> (Option<ParsedFile>, ParseNote) {
        let FileToParse { path, hash, length, secret: known } = file;
        let version = FileVersion { hash, size: length, modified: 0 };
        let Some(text) = decode(bytes) else {
            let file = without_chunks(path, version, BINARY, None);
            return (Some(file), ParseNote::default());
        };
        let finding = self.secrets.find(&path, &text);
        let secret = finding.map(|it| it.problem(how.include_secrets));
        let mut note = ParseNote::of(finding);
        if secret.is_some() && secret == known {
            return (None, ParseNote { stored: false, ..note });
        }
        if secret.is_some() && !how.include_secrets {
            return (Some(without_chunks(path, version, SECRET, secret)), note);
        }
        let mode = if how.plain { Mode::Plain } else { Mode::Parsed };
        let cancelled = || context.cancelled();
        let chunked = self.chunker.chunk(&path, &text, mode, FILE_BUDGET, &cancelled);
        // What has no word in it has no direction, and nobody could ask for it.
        let mut chunks = chunked.chunks;
        let of_path = self.model.embed_path(&path);
        chunks.retain(|chunk| self.embed(chunk, &of_path, vectors));
        // Whoever asks for plain text knows why.
        note.problem = chunked.problem.clone().filter(|_| !how.plain);
        let problem = chunked.problem.or_else(|| how.plain.then(|| PLAIN.to_owned()));
        let file = ParsedFile {
            path,
            version,
            language: chunked.language.name().to_owned(),
            generated: chunked.generated,
            problem: secret.or(problem),
            chunks,
            graph: chunked.graph,
            parser: PARSER_VERSION,
        };
        (Some(file), note)
    }

    fn embed(&self, chunk: &Chunk, path: &PathVector, vectors: &mut Vec<u8>) -> bool {
        let names = chunk.symbols.iter().map(|symbol| symbol.name.as_str());
        let Some(vector) =
            self.model.embed_chunk(&chunk.text, path, names, ChunkWeights::default())
        else {
            return false;
        };
        vectors.extend(vector.iter().flat_map(|value| value.to_le_bytes()));
        true
    }
}

impl Default for ParseNote {
    fn default() -> Self {
        Self { problem: None, secret: None, stored: true }
    }
}

impl ParseNote {
    fn of(finding: Option<Finding>) -> Self {
        let secret = finding.map(|it| (it.rule.to_owned(), it.line as u64));
        Self { secret, ..Self::default() }
    }
}

/// A file of which the index knows that it is there, and nothing of what is in it.
fn without_chunks(
    path: String,
    version: FileVersion,
    language: &str,
    problem: Option<String>,
) -> ParsedFile {
    let language = language.to_owned();
    ParsedFile {
        path,
        version,
        graph: FileGraph { language: language.clone(), ..FileGraph::default() },
        language,
        generated: false,
        problem,
        chunks: Vec::new(),
        parser: PARSER_VERSION,
    }
}

/// The text of a file; none if it is not text.
fn decode(bytes: &[u8]) -> Option<std::borrow::Cow<'_, str>> {
    if let Some(units) = utf16(bytes) {
        return Some(String::from_utf16_lossy(&units).into());
    }
    if bytes[..bytes.len().min(BINARY_CHECK)].contains(&0) {
        return None;
    }
    let bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
    Some(String::from_utf8_lossy(bytes))
}

/// The units of a text in UTF-16, which says so at its start.
fn utf16(bytes: &[u8]) -> Option<Vec<u16>> {
    let (mark, rest) = bytes.split_at_checked(2)?;
    let read: fn([u8; 2]) -> u16 = match mark {
        [0xFF, 0xFE] => u16::from_le_bytes,
        [0xFE, 0xFF] => u16::from_be_bytes,
        _ => return None,
    };
    Some(rest.chunks_exact(2).map(|pair| read([pair[0], pair[1]])).collect())
}

fn encode(files: &[ParsedFile]) -> Bulk {
    // Plain values in memory: there is nothing that could fail.
    Bulk::from(postcard::to_stdvec(files).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_told_from_binary_files() {
        assert_eq!(decode(b"fn a() {}").as_deref(), Some("fn a() {}"));
        assert_eq!(decode(b"\xEF\xBB\xBFa").as_deref(), Some("a"));
        assert_eq!(decode(b"\xFF\xFEa\0b\0").as_deref(), Some("ab"));
        assert_eq!(decode(b"\xFE\xFF\0a\0b").as_deref(), Some("ab"));
        assert_eq!(decode(b"caf\xE9").as_deref(), Some("caf\u{FFFD}"));
        assert_eq!(decode(b"\x7FELF\0\0"), None);
        assert_eq!(decode(b"").as_deref(), Some(""));
    }
}
