use std::time::Duration;

use isolate::{Bulk, Context, InWorker, Refusal, Role, Sandbox};
use isolith_embed::{ChunkWeights, Model, PathVector};
use isolith_source::secrets::{Finding, Secrets};
use isolith_source::{Chunker, Mode, PARSER_VERSION, WorkLimit};
use isolith_types::{Chunk, FileGraph, FileVersion, ParsedFile};
use serde::{Deserialize, Serialize};

use crate::tile::tile;
use isolith_fault as fault;

/// Cuts files into chunks and embeds them. It gets contents as bytes and cannot open files.
pub struct Parser {
    chunker: Chunker,
    model: Model,
    secrets: Secrets,
    file_cpu: Duration,
}

/// How a parser is started.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ParserSettings {
    /// The CPU time that one file may take before the parser is ended: a guard against grammars
    /// that loop for ever, far above what an ordinary file is allowed.
    pub file_cpu: Duration,
}

impl Default for ParserSettings {
    fn default() -> Self {
        Self { file_cpu: Duration::from_secs(30) }
    }
}

/// Parses a batch of files.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ParseJob {
    /// The files.
    pub files: Vec<FileToParse>,
    /// Their contents, concatenated.
    pub contents: Bulk,
    /// Whether to cut them as plain text, without a grammar.
    pub plain: bool,
    /// Whether to parse files with secrets like any other; they are reported either way.
    pub include_secrets: bool,
}

/// A file to parse.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileToParse {
    /// The path relative to the root, which determines the language and is part of the vectors.
    pub path: String,
    /// BLAKE3 of the content. The modification time is not part of the job, so that the same
    /// content is always the same job.
    pub hash: [u8; 32],
    /// Length of the content in bytes.
    pub length: u64,
    /// The secret that the index has recorded for this content. If it is found again, the file
    /// is not stored again.
    pub secret: Option<String>,
}

/// A batch of parsed files, ready for the writer.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Parsed {
    /// A summary of each file, for the front.
    pub summaries: Vec<FileSummary>,
    /// The files to store, encoded for [`PutFiles`](isolith_protocol::PutFiles).
    pub files: Bulk,
    /// The vectors of all their chunks: f32, little-endian.
    pub vectors: Bulk,
}

impl Parsed {
    /// Decodes the files to store. Fails if the worker sent invalid data.
    pub fn decode(&self) -> Result<Vec<ParsedFile>, postcard::Error> {
        postcard::from_bytes(&self.files)
    }
}

/// What the front needs to know about a parsed file.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct FileSummary {
    /// Why the file was not parsed completely.
    pub problem: Option<String>,
    /// The secret that was found: the rule and the line.
    pub secret: Option<(String, u64)>,
    /// Whether the file is to be stored; otherwise the index is up to date.
    pub stored: bool,
}

/// The work limit per file, after which it is cut as text. It counts steps and CPU time instead of
/// elapsed time, so that the index does not depend on how busy the machine is. An ordinary file of
/// one megabyte takes 5,000 to 30,000 steps of about 25 µs.
const FILE_WORK: WorkLimit = WorkLimit::steps(100_000).with_cpu(Duration::from_secs(10));

/// A file with a NUL in its first 8 KiB is binary.
const BINARY_CHECK: usize = 8 << 10;

/// Why a file was cut as plain text.
const PARSER_CRASHED: &str = "its parser crashed";

/// The language of files that are not text.
const BINARY: &str = "binary";

/// The language of files that are not indexed because they contain a secret.
const SECRET: &str = "secret";

impl Role for Parser {
    const NAME: &'static str = "parse";
    type Settings = ParserSettings;
    type Request = ParseJob;
    type Reply = Parsed;

    fn warm_up(settings: ParserSettings, token: InWorker) -> Result<Self, Refusal> {
        Ok(Self {
            file_cpu: settings.file_cpu,
            chunker: Chunker::new(token),
            model: Model::embedded(token),
            secrets: Secrets::new(),
        })
    }

    fn handle(&mut self, job: ParseJob, context: &Context<'_>) -> Parsed {
        fault::point("parse", context);
        let mut rest: &[u8] = &job.contents;
        let mut files = Vec::with_capacity(job.files.len());
        let mut summaries = Vec::with_capacity(job.files.len());
        let mut vectors = Vec::new();
        let options = ParseOptions { plain: job.plain, include_secrets: job.include_secrets };
        for file in job.files {
            let (bytes, after) = rest.split_at(rest.len().min(file.length as usize));
            rest = after;
            context.limit_cpu(self.file_cpu);
            if !job.plain {
                fault::point_of("parse", &file.path, context);
            }
            let (file, summary) = self.parse(file, bytes, options, &mut vectors, context);
            files.extend(file);
            summaries.push(summary);
        }
        Parsed { summaries, files: encode(&files), vectors: Bulk::from(vectors) }
    }

    fn sandbox(_: &ParserSettings) -> Sandbox {
        Sandbox::sealed()
    }
}

#[derive(Clone, Copy)]
struct ParseOptions {
    plain: bool,
    include_secrets: bool,
}

impl Parser {
    /// Parses a file. Returns `None` instead of the file if the index is up to date.
    fn parse(
        &mut self,
        file: FileToParse,
        bytes: &[u8],
        options: ParseOptions,
        vectors: &mut Vec<u8>,
        context: &Context<'_>,
    ) -> (Option<ParsedFile>, FileSummary) {
        let FileToParse { path, hash, length, secret: known } = file;
        let version = FileVersion { hash, size: length, modified: 0 };
        let Some(text) = decode(bytes) else {
            let file = without_chunks(path, version, BINARY, None);
            return (Some(file), FileSummary::default());
        };
        let finding = self.secrets.find(&path, &text);
        let secret = finding.map(|it| it.problem(options.include_secrets));
        let mut summary = FileSummary::of(finding);
        if secret.is_some() && secret == known {
            return (None, FileSummary { stored: false, ..summary });
        }
        if secret.is_some() && !options.include_secrets {
            return (Some(without_chunks(path, version, SECRET, secret)), summary);
        }
        let mode = if options.plain { Mode::Plain } else { Mode::Parsed };
        let cancelled = || context.cancelled();
        let chunked = self.chunker.chunk(&path, &text, mode, FILE_WORK, &cancelled);
        // A chunk without words has no vector; its neighbor takes its text.
        let path_vector = self.model.embed_path(&path);
        let embed = |chunk: &Chunk| self.embed(chunk, &path_vector, vectors);
        let embedded: Vec<bool> = chunked.chunks.iter().map(embed).collect();
        let chunks = tile(&text, chunked.chunks, &embedded);
        // The front already knows why it asked for plain text.
        summary.problem = chunked.problem.clone().filter(|_| !options.plain);
        let crashed = || options.plain.then(|| PARSER_CRASHED.to_owned());
        let problem = chunked.problem.or_else(crashed);
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
        (Some(file), summary)
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

impl Default for FileSummary {
    fn default() -> Self {
        Self { problem: None, secret: None, stored: true }
    }
}

impl FileSummary {
    fn of(finding: Option<Finding>) -> Self {
        let secret = finding.map(|it| (it.rule.to_owned(), it.line as u64));
        Self { secret, ..Self::default() }
    }
}

/// A file whose content is not indexed.
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

/// The text of a file; `None` if it is binary.
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

/// The code units of a UTF-16 text; `None` without a byte order mark.
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
    // Encoding plain values into memory cannot fail.
    Bulk::from(postcard::to_stdvec(files).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decodes_text_and_detects_binary_files() {
        assert_eq!(decode(b"fn a() {}").as_deref(), Some("fn a() {}"));
        assert_eq!(decode(b"\xEF\xBB\xBFa").as_deref(), Some("a"));
        assert_eq!(decode(b"\xFF\xFEa\0b\0").as_deref(), Some("ab"));
        assert_eq!(decode(b"\xFE\xFF\0a\0b").as_deref(), Some("ab"));
        assert_eq!(decode(b"caf\xE9").as_deref(), Some("caf\u{FFFD}"));
        assert_eq!(decode(b"\x7FELF\0\0"), None);
        assert_eq!(decode(b"").as_deref(), Some(""));
    }
}
