//! Matches of a store that is written to, folded and damaged, compared with a plain scan.

use std::collections::BTreeMap;
use std::time::Duration;

use isolate::{Context, InWorker};
use isolith_protocol::{
    AddRoot, FoundMatch, IndexKind, Key, Level, MoveFile, Pattern, PatternSyntax, PutFiles,
    RemoveFiles, SegmentEntry, SwapPlan, SwapSegments, WriteOperation, code_spec,
};
use isolith_segment::storage::Disk;
use isolith_segment::{SourceBuilder, SourceChunk, SourceFile};
use isolith_store::{ChunkStart, Durability, Reader, StoreFolder, Truth, Writer, WriterOptions};
use isolith_types::{Chunk, ChunkKind, FileGraph, FileVersion, ParsedFile};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use tempfile::TempDir;

use super::*;

const MODEL: &str = "none";

fn source_chunk(chunk: &ChunkStart) -> SourceChunk<'_> {
    let ChunkStart { row, change, start, lines, ref parent, ref symbols } = *chunk;
    SourceChunk { row, change, start, lines, parent: parent.as_deref(), symbols }
}

/// A store, and the texts that it should hold.
struct Project {
    _place: TempDir,
    folder: StoreFolder,
    writer: Writer,
    reader: Reader,
    segments: Segments,
    root: u64,
    texts: BTreeMap<String, String>,
    next: u32,
}

fn token() -> InWorker {
    InWorker::in_process()
}

fn vectors(count: usize) -> Vec<u8> {
    [1.0_f32, 0.0].map(f32::to_le_bytes).as_flattened().repeat(count)
}

/// A chunk for every few lines of a text.
fn chunks(text: &str) -> Vec<Chunk> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let chunk = |(at, lines): (usize, &[&str])| Chunk {
        start_line: 1 + 3 * at as u32,
        end_line: 3 * at as u32 + lines.len() as u32,
        kind: if at % 2 == 0 { ChunkKind::Function } else { ChunkKind::Text },
        symbols: Vec::new(),
        parent: None,
        signature: None,
        doc: None,
        text: lines.concat(),
    };
    lines.chunks(3).enumerate().map(chunk).collect()
}

impl Project {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path().join("store"));
        let options = WriterOptions { durability: Durability::Normal, create: true };
        let writer = Truth::open_writer(&folder, options, token()).unwrap();
        let reader = Truth::open_reader(&folder, token()).unwrap();
        let segments = Segments::in_folder(folder.path(), token());
        let mut project = Self {
            _place: place,
            folder,
            writer,
            reader,
            segments,
            root: 0,
            texts: BTreeMap::new(),
            next: 0,
        };
        let spec = code_spec(2, MODEL);
        project.root =
            project.write(AddRoot { path: "/project".to_owned(), spec, worktree: None }).root.id;
        project
    }

    fn write<O: WriteOperation>(&mut self, operation: O) -> O::Reply {
        self.next += 1;
        let key = Key(u128::from(self.next).to_le_bytes());
        self.writer.apply_one(key, operation).unwrap().reply
    }

    fn put(&mut self, path: &str, text: &str) {
        let file = ParsedFile {
            path: path.to_owned(),
            version: FileVersion { size: text.len() as u64, ..FileVersion::default() },
            language: "rust".to_owned(),
            generated: false,
            problem: None,
            chunks: chunks(text),
            graph: FileGraph::default(),
            parser: 2,
        };
        let vectors = vectors(file.chunks.len()).into();
        let files = postcard::to_allocvec(&[file].as_slice()).unwrap().into();
        let (root, model) = (self.root, MODEL.to_owned());
        self.write(PutFiles { root, files, ages: Vec::new(), dimension: 2, vectors, model });
        self.texts.insert(path.to_owned(), text.to_owned());
    }

    fn remove(&mut self, path: &str) {
        self.write(RemoveFiles { root: self.root, paths: vec![path.to_owned()] });
        self.texts.remove(path);
    }

    fn rename(&mut self, from: &str, to: &str) {
        let Some(text) = self.texts.remove(from) else { return };
        let version = FileVersion { size: text.len() as u64, ..FileVersion::default() };
        let vectors = vectors(chunks(&text).len()).into();
        let (from, to, model) = (from.to_owned(), to.to_owned(), MODEL.to_owned());
        self.texts.insert(to.clone(), text);
        let root = self.root;
        self.write(MoveFile { root, from, to, version, dimension: 2, vectors, model });
    }

    /// Folds as the builder does, with a source segment alone.
    fn fold(&mut self, level: Level) {
        let plan = {
            let snapshot = self.reader.snapshot().unwrap();
            let state = snapshot.code_state().unwrap().unwrap();
            let level = if state.generation.is_none() { Level::Base } else { level };
            let scope = match (&state.generation, level) {
                (Some(generation), Level::Delta) => Scope::ChangedAfter(generation.base_to),
                _ => Scope::All,
            };
            let disk = Disk::new(self.folder.segments());
            self.next += 1;
            let name = format!("c1-1-base-{:08x}.src", self.next);
            let mut builder = SourceBuilder::create(&disk, &name, token()).unwrap();
            let each = &mut |file: &isolith_store::FileText| {
                let chunks: Vec<SourceChunk<'_>> = file.chunks.iter().map(source_chunk).collect();
                let (id, root, path, text) = (file.id, file.root, &*file.path, &*file.text);
                let (generated, chunks) = (file.generated, &chunks);
                builder.push(&SourceFile { id, root, path, generated, chunks, text }).unwrap();
                ControlFlow::Continue(())
            };
            snapshot.for_each_file_text(state.id, scope, each).unwrap();
            let (published, rows) = builder.finish().unwrap();
            SwapPlan {
                collection: state.id,
                from_generation: state.generation_number(),
                level,
                complete_to: snapshot.last_change().unwrap(),
                segments: vec![SegmentEntry {
                    level,
                    kind: IndexKind::Source,
                    file: published.file,
                    rows,
                    bytes: published.bytes,
                    checksum: published.checksum,
                    quarantined: None,
                }],
            }
        };
        assert!(self.write(SwapSegments { plan }).swapped);
    }

    /// Flips a byte in the middle of every segment.
    fn damage(&mut self) {
        self.segments.clear();
        for entry in std::fs::read_dir(self.folder.segments()).unwrap() {
            let path = entry.unwrap().path();
            let mut bytes = std::fs::read(&path).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            std::fs::write(&path, bytes).unwrap();
        }
    }

    fn find(&mut self, query: &FindMatches) -> MatchesFound {
        let snapshot = self.reader.snapshot().unwrap();
        let context = Context::in_process(Duration::from_secs(60));
        let search = &mut MatchSearch {
            snapshot: &snapshot,
            segments: &mut self.segments,
            tails: &mut Tails::default(),
            model: Model::embedded(token()),
            context: &context,
        };
        search.run(query).unwrap()
    }

    /// Compares an answer with a scan of all texts.
    fn check(&mut self, query: &FindMatches) -> MatchesFound {
        let found = self.find(query);
        let (hits, counts) = self.scan(query);
        assert_eq!(found.counts, counts, "{query:?}");
        let shown: Vec<_> = found.hits.iter().map(shown).collect();
        assert_eq!(shown, hits[..hits.len().min(query.limit as usize)], "{query:?}");
        found
    }

    fn scan(&self, query: &FindMatches) -> (Vec<Hit>, MatchCounts) {
        let escaped = regex::escape(&query.pattern.text);
        let regex = match query.pattern.syntax {
            PatternSyntax::Literal => &escaped,
            PatternSyntax::Regex => &query.pattern.text,
        };
        let regex = regex::Regex::new(regex).unwrap();
        let mut counts = MatchCounts::default();
        let mut hits = Vec::new();
        for (path, text) in &self.texts {
            let before = hits.len();
            for (at, line) in text.lines().enumerate() {
                let is_searched = query.filter.kinds.is_empty() || at / 3 % 2 == 0;
                let matches = regex.find_iter(line).count() as u64;
                if matches > 0 && is_searched {
                    counts.matches += matches;
                    hits.push((path.clone(), at as u32 + 1, matches, line.to_owned()));
                }
            }
            counts.files += u64::from(hits.len() > before);
        }
        counts.lines = hits.len() as u64;
        (hits, counts)
    }
}

/// Path, line, number of matches and text.
type Hit = (String, u32, u64, String);

fn shown(hit: &FoundMatch) -> Hit {
    (hit.path.clone(), hit.line, hit.matches, hit.snippet.clone())
}

fn query(text: &str, syntax: PatternSyntax) -> FindMatches {
    FindMatches {
        pattern: Pattern { text: text.to_owned(), syntax, ignore_case: false },
        filter: CodeScope::default(),
        limit: 1_000,
        context: 0,
        by_file: false,
    }
}

#[derive(Debug, Clone)]
enum Step {
    Put(usize, String),
    Remove(usize),
    Rename(usize, usize),
    Fold(Level),
    Damage,
}

const PATHS: [&str; 6] = ["a.rs", "b/c.rs", "b-c.rs", "b/d.rs", "z", "ä/ö.rs"];

fn text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "lock(",
        "fn take_lock(x) {",
        "\n",
        "\n",
        "\n\n",
        "  ",
        "ab",
        "é",
        "}\n",
    ]);
    // A chunk has a word, or it is not stored.
    prop::collection::vec(piece, 0..40).prop_map(|pieces| format!("word{}", pieces.concat()))
}

fn step() -> impl Strategy<Value = Step> {
    let path = || 0..PATHS.len();
    prop_oneof![
        6 => (path(), text()).prop_map(|(path, text)| Step::Put(path, text)),
        1 => path().prop_map(Step::Remove),
        1 => (path(), path()).prop_map(|(from, to)| Step::Rename(from, to)),
        2 => Just(Step::Fold(Level::Base)),
        2 => Just(Step::Fold(Level::Delta)),
        1 => Just(Step::Damage),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        rng_seed: RngSeed::Fixed(42),
        failure_persistence: None,
        ..ProptestConfig::with_cases(12)
    })]

    #[test]
    fn every_match_is_found(steps in prop::collection::vec(step(), 1..25)) {
        let mut project = Project::new();
        project.put("a.rs", "word lock(\n");
        for step in steps {
            match &step {
                Step::Put(path, text) => project.put(PATHS[*path], text),
                Step::Remove(path) => project.remove(PATHS[*path]),
                Step::Rename(from, to) if from != to => project.rename(PATHS[*from], PATHS[*to]),
                Step::Rename(..) => {}
                Step::Fold(level) => project.fold(*level),
                Step::Damage => project.damage(),
            }
            for (pattern, syntax) in [
                ("lock(", PatternSyntax::Literal),
                ("nowhere", PatternSyntax::Literal),
                (r"\w+_lock\(", PatternSyntax::Regex),
                ("^$", PatternSyntax::Regex),
                (r"[a-z]\s*$", PatternSyntax::Regex),
            ] {
                let mut query = query(pattern, syntax);
                project.check(&query);
                query.filter.kinds = vec![ChunkKind::Function];
                query.limit = 2;
                project.check(&query);
            }
        }
    }
}

#[test]
fn filters_limits_and_context_are_honored() {
    let mut project = Project::new();
    project.put("src/a.rs", "fn one() {\n    lock();\n}\n\nfn two() {\n    lock(); lock();\n}\n");
    project.put("src/b.rs", "lock();\n");
    project.put("tests/a_test.rs", "lock();\n");
    for fold in [false, true] {
        if fold {
            project.fold(Level::Base);
        }
        let all = query("lock()", PatternSyntax::Literal);
        let found = project.check(&all);
        assert_eq!(found.counts, MatchCounts { matches: 5, lines: 4, files: 3 });
        let mut some = FindMatches { limit: 1, context: 1, ..all.clone() };
        some.filter.paths = vec!["src/".to_owned()];
        let found = project.find(&some);
        assert_eq!(found.counts, MatchCounts { matches: 4, lines: 3, files: 2 });
        let [hit] = found.hits.as_slice() else { panic!("{:?}", found.hits) };
        assert_eq!((hit.line, hit.snippet_line, hit.spans.as_slice()), (2, 1, &[(4, 10)][..]));
        assert_eq!(hit.snippet, "fn one() {\n    lock();\n}");
        some.filter.paths.clear();
        some.filter.tests = Some(true);
        assert_eq!(project.find(&some).counts, MatchCounts { matches: 1, lines: 1, files: 1 });
        let files = project.find(&FindMatches { by_file: true, limit: 2, ..all });
        let files: Vec<_> = files.hits.iter().map(|hit| (hit.path.as_str(), hit.matches)).collect();
        assert_eq!(files, [("src/a.rs", 3), ("src/b.rs", 1)]);
    }
}

#[test]
fn matches_across_chunks_are_found() {
    let mut project = Project::new();
    // Chunks end after every third line.
    project.put("a.rs", "word 1\nword 2\nbegin\nend\nword 5\n");
    for fold in [false, true] {
        if fold {
            project.fold(Level::Base);
        }
        let found = project.find(&query(r"begin\nend", PatternSyntax::Regex));
        let [hit] = found.hits.as_slice() else { panic!("{:?}", found.hits) };
        assert_eq!((hit.line, hit.last_line, hit.start_line, hit.end_line), (3, 4, 1, 3));
        assert_eq!(hit.snippet, "begin\nend");
        assert_eq!(project.find(&query("begin\nend", PatternSyntax::Literal)).counts, found.counts);
    }
}

#[test]
fn long_lines_are_shortened_around_the_match() {
    let mut project = Project::new();
    let long = format!("{}needle{}\n", "é".repeat(5_000), "é".repeat(5_000));
    project.put("a.rs", &long);
    let found = project.find(&query("needle", PatternSyntax::Literal));
    let [hit] = found.hits.as_slice() else { panic!("{:?}", found.hits) };
    assert!(hit.shortened && hit.snippet.contains("needle") && hit.snippet.len() <= 2_000);
    assert_eq!(hit.spans, [(10_000, 10_006)]);
}

#[test]
fn damaged_segments_are_reported_and_change_no_answer() {
    let mut project = Project::new();
    project.put("a.rs", &"word lock(\n".repeat(20_000));
    project.fold(Level::Base);
    let asked = query("lock(", PatternSyntax::Literal);
    let sound = project.check(&asked);
    assert_eq!((sound.degraded, sound.unsegmented), (None, false));
    project.damage();
    let damaged = project.check(&asked);
    assert_eq!(damaged.degraded.unwrap().why, "a segment cannot be used: exact scan used");
    assert_eq!(damaged.searched.damaged.len(), 1);
}

impl Project {
    /// The places of the chunks that contain texts, by path and number, and what is missing.
    fn required(
        &mut self,
        parts: &[&str],
        filter: &CodeScope,
    ) -> (Vec<(String, u32)>, Vec<String>) {
        let snapshot = self.reader.snapshot().unwrap();
        let context = Context::in_process(Duration::from_secs(60));
        let required =
            RequiredText::new(parts.iter().map(|it| (*it).to_owned()).collect()).unwrap();
        let mut search = MatchSearch {
            snapshot: &snapshot,
            segments: &mut self.segments,
            tails: &mut Tails::default(),
            model: Model::embedded(token()),
            context: &context,
        };
        let state = snapshot.code_state().unwrap().unwrap();
        let searched = &mut Searched::default();
        let RequiredRows { rows, missing } =
            search.rows_with(&state, &required, filter, searched).unwrap();
        assert!(rows.is_sorted());
        let chunks = snapshot.chunks(&rows, false).unwrap();
        let mut places: Vec<(String, u32)> = chunks
            .into_iter()
            .flatten()
            .map(|chunk| {
                let file = snapshot.files_by_id(&[chunk.file]).unwrap().remove(0).unwrap();
                (file.path, chunk.start_line)
            })
            .collect();
        places.sort();
        (places, missing)
    }
}

#[test]
fn required_texts_are_found_in_segments_tails_and_after_damage() {
    let mut project = Project::new();
    // Chunks begin at every third line.
    project.put("a.rs", "word Alpha\nbeta (x+\n\nword\nalpha\n\nword\nbeta\n");
    project.put("b.rs", "word ALPHA\n");
    project.put("src/c.rs", "word gamma beta\n\n\nword\n\n\nword delta\n");
    let all = CodeScope::default();
    let folder = CodeScope { paths: vec!["src/".to_owned()], ..CodeScope::default() };
    let functions = CodeScope { kinds: vec![ChunkKind::Text], ..CodeScope::default() };
    let check = |project: &mut Project| {
        for (parts, filter, expected, missing) in [
            (&["alpha"][..], &all, "a.rs:1 a.rs:4 b.rs:1", ""),
            (&["alpha", "beta"], &all, "a.rs:1", ""),
            (&["(x+"], &all, "a.rs:1", ""),
            (&["gamma", "delta"], &all, "src/c.rs:1 src/c.rs:7", ""),
            (&["gamma", "alpha"], &all, "", "gamma alpha"),
            (&["gamma", "nowhere"], &all, "", "nowhere"),
            (&["beta"], &folder, "src/c.rs:1", ""),
            (&["alpha"], &folder, "", "alpha"),
            (&["alpha"], &functions, "a.rs:4", ""),
        ] {
            let (places, absent) = project.required(parts, filter);
            let places: Vec<String> =
                places.into_iter().map(|(path, line)| format!("{path}:{line}")).collect();
            assert_eq!(places.join(" "), expected, "{parts:?}");
            assert_eq!(absent.join(" "), missing, "{parts:?}");
        }
    };
    check(&mut project);
    project.fold(Level::Base);
    check(&mut project);
    project.put("b.rs", "word\n");
    project.remove("a.rs");
    assert_eq!(project.required(&["alpha"], &all).1, ["alpha"]);
    project.put("a.rs", "word Alpha\nbeta (x+\n\nword\nalpha\n\nword\nbeta\n");
    project.put("b.rs", "word ALPHA\n");
    check(&mut project);
    project.fold(Level::Delta);
    check(&mut project);
    project.damage();
    check(&mut project);
}

#[test]
fn required_texts_are_literal() {
    let required = |text: &str| RequiredText::new(vec![text.to_owned()]).unwrap();
    for (text, within, expected) in [
        ("a+(b*", "x A+(B* y", true),
        ("a.c", "abc", false),
        ("^", "a ^ b", true),
        ("ÜNÏ", "ünï", true),
        ("(?i)", "i", false),
        ("\\", "a\\b", true),
        ("日本 語", "日本 語", true),
    ] {
        assert_eq!(required(text).is_partly_in(within), expected, "{text} {within}");
    }
    assert!(RequiredText::new(vec![String::new()]).is_err());
    assert!(required(&"(".repeat(8 << 10)).is_partly_in(&"(".repeat(9 << 10)));
}
