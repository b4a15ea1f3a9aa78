use proptest::prelude::*;

use super::*;

fn symbol(name: &str, kind: SymbolKind) -> Symbol {
    Symbol { name: name.to_owned(), kind, line: 1 }
}

fn files(paths: &[&str]) -> Vec<CandidateFile> {
    let file = |path: &&str| CandidateFile { path: (*path).to_owned(), generated: false };
    paths.iter().map(file).collect()
}

fn candidate(file: u32, start_line: u32, keywords: f32, vector: f32) -> ChunkCandidate<'static> {
    let row = u64::from(file) * 1000 + u64::from(start_line);
    ChunkCandidate {
        row,
        file,
        keywords,
        vector,
        phrase: 0.0,
        qualified: 0.0,
        start_line,
        symbols: &[],
        parent: None,
    }
}

struct Search<'s> {
    query: &'s str,
    paths: &'s [&'s str],
    candidates: &'s [ChunkCandidate<'s>],
    definitions: &'s [IdentifierDefinition],
    weights: CodeWeights,
    mode: SearchMode,
    limit: usize,
}

impl Default for Search<'_> {
    fn default() -> Self {
        Self {
            query: "how connections are retried",
            paths: &[],
            candidates: &[],
            definitions: &[],
            weights: CodeWeights::default(),
            mode: SearchMode::Hybrid,
            limit: 10,
        }
    }
}

impl Search<'_> {
    fn run(&self) -> Vec<RankedChunk> {
        rank_chunks(
            &CodeQuery::parse(self.query),
            &files(self.paths),
            self.candidates,
            self.definitions,
            &self.weights,
            self.mode,
            self.limit,
        )
    }

    /// One line per hit: path, line, symbol, score, explanation.
    fn shown(&self) -> String {
        let line = |hit: &RankedChunk| {
            let ChunkCandidate { file, start_line, symbols, .. } = self.candidates[hit.candidate];
            let symbol = CodeQuery::parse(self.query).best_symbol(
                "",
                start_line,
                symbols,
                &mut Stemmer::new(),
            );
            let symbol = symbol.map_or("", |index| &symbols[index].name);
            let path = self.paths[file as usize];
            format!("{path}:{start_line} {symbol} {:.3}: {}\n", hit.score, hit.explanation)
        };
        self.run().iter().map(line).collect()
    }
}

#[test]
fn files_are_ranked_by_all_their_chunks_and_shown_by_the_best() {
    let search = Search {
        paths: &["src/one.rs", "src/many.rs", "src/near.rs"],
        candidates: &[
            candidate(0, 1, 10.0, 0.0),
            candidate(1, 40, 9.0, 0.1),
            candidate(1, 10, 9.0, 0.2),
            candidate(1, 90, 1.0, 0.0),
            candidate(2, 5, 0.0, 0.4),
        ],
        ..Search::default()
    };
    insta::assert_snapshot!(search.shown(), @r"
    src/many.rs:10  0.812: keywords 0.50, meaning 0.31
    src/near.rs:5  0.500: meaning 0.50
    src/one.rs:1  0.364: keywords 0.36
    src/many.rs:40  0.364: keywords 0.45, meaning 0.12
    src/many.rs:90  0.050: keywords 0.05
    ");
}

#[test]
fn file_names_and_definitions_boost_files() {
    let class = [symbol("helper", SymbolKind::Function), symbol("RetryPolicy", SymbolKind::Class)];
    let function = [symbol("RetryPolicy", SymbolKind::Function)];
    let search = Search {
        query: "where does RetryPolicy decide about the back-off",
        paths: &["src/uses.rs", "src/policies.rs", "src/make.rs", "src/retry_policy.rs"],
        candidates: &[
            candidate(0, 1, 8.0, 0.3),
            candidate(1, 1, 6.0, 0.2),
            ChunkCandidate { symbols: &class, ..candidate(1, 50, 5.0, 0.1) },
            ChunkCandidate { symbols: &function, ..candidate(2, 7, 0.0, 0.0) },
            candidate(3, 1, 5.0, 0.2),
        ],
        definitions: &[
            IdentifierDefinition { file: 1, identifier: 0, kind: SymbolKind::Class },
            IdentifierDefinition { file: 1, identifier: 0, kind: SymbolKind::Function },
            IdentifierDefinition { file: 2, identifier: 0, kind: SymbolKind::Function },
            IdentifierDefinition { file: 99, identifier: 0, kind: SymbolKind::Method },
            IdentifierDefinition { file: 1, identifier: 99, kind: SymbolKind::Class },
            IdentifierDefinition { file: 2, identifier: 0, kind: SymbolKind::Heading },
        ],
        ..Search::default()
    };
    insta::assert_snapshot!(search.shown(), @r"
    src/policies.rs:50 RetryPolicy 1.505: keywords 0.50, meaning 0.42, file name matches, defines RetryPolicy
    src/uses.rs:1  0.971: keywords 0.47, meaning 0.50
    src/retry_policy.rs:1  0.927: keywords 0.29, meaning 0.33, file name matches
    src/make.rs:7 RetryPolicy 0.115: defines RetryPolicy
    src/policies.rs:1  0.115: keywords 0.38, meaning 0.33, file name matches
    ");
    let vector = Search { mode: SearchMode::Vector, ..search };
    insta::assert_snapshot!(vector.shown(), @r"
    src/uses.rs:1  1.000: meaning 1.00
    src/policies.rs:1  0.833: meaning 0.83
    src/retry_policy.rs:1  0.667: meaning 0.67
    src/policies.rs:50 RetryPolicy 0.333: meaning 0.33
    ");
}

#[test]
fn file_roles_are_penalized_unless_requested() {
    let paths = [
        "tests/retry.rs",
        "src/retry.rs",
        "vendor/legacy/retry_test.go",
        "docs/retry.md",
        "src/__init__.py",
    ];
    let candidates: Vec<ChunkCandidate<'_>> =
        (0..5).map(|file| candidate(file, 1, 10.0 - file as f32, 0.5)).collect();
    let search = Search {
        query: "connections over and over",
        paths: &paths,
        candidates: &candidates,
        ..Search::default()
    };
    insta::assert_snapshot!(search.shown(), @r"
    src/retry.rs:1  0.950: keywords 0.45, meaning 0.50
    src/__init__.py:1  0.400: keywords 0.30, meaning 0.50, entry file ×0.5
    tests/retry.rs:1  0.300: keywords 0.50, meaning 0.50, test file ×0.3
    docs/retry.md:1  0.255: keywords 0.35, meaning 0.50, document ×0.3
    vendor/legacy/retry_test.go:1  0.041: keywords 0.40, meaning 0.50, test file ×0.3, legacy folder ×0.3, vendored ×0.5
    ");
    let requested = Search { query: "tests of connections", ..search };
    insta::assert_snapshot!(requested.shown(), @r"
    tests/retry.rs:1  1.000: keywords 0.50, meaning 0.50
    src/retry.rs:1  0.950: keywords 0.45, meaning 0.50
    src/__init__.py:1  0.400: keywords 0.30, meaning 0.50, entry file ×0.5
    docs/retry.md:1  0.255: keywords 0.35, meaning 0.50, document ×0.3
    vendor/legacy/retry_test.go:1  0.135: keywords 0.40, meaning 0.50, legacy folder ×0.3, vendored ×0.5
    ");
    let named = Search { query: "what is in __init__.py", ..requested };
    insta::assert_snapshot!(named.shown(), @r"
    src/__init__.py:1  1.100: keywords 0.30, meaning 0.50, file name matches
    src/retry.rs:1  0.950: keywords 0.45, meaning 0.50
    tests/retry.rs:1  0.300: keywords 0.50, meaning 0.50, test file ×0.3
    docs/retry.md:1  0.255: keywords 0.35, meaning 0.50, document ×0.3
    vendor/legacy/retry_test.go:1  0.041: keywords 0.40, meaning 0.50, test file ×0.3, legacy folder ×0.3, vendored ×0.5
    ");
}

/// The paths of the hits, best first, if every file scores a little less than the previous one.
fn order(query: &str, paths: &[&str]) -> Vec<String> {
    let candidates: Vec<ChunkCandidate<'_>> =
        (0..paths.len()).map(|file| candidate(file as u32, 1, 20.0 - file as f32, 0.5)).collect();
    let search = Search { query, paths, candidates: &candidates, ..Search::default() };
    let path = |hit: &RankedChunk| paths[candidates[hit.candidate].file as usize].to_owned();
    search.run().iter().map(path).collect()
}

#[test]
fn older_versions_follow_newer_ones() {
    let paths = ["apps/v1beta1/defaults.go", "apps/v1/defaults.go", "apps/v2alpha1/defaults.go"];
    let current = ["apps/v1/defaults.go", "apps/v2alpha1/defaults.go", "apps/v1beta1/defaults.go"];
    for (query, expected) in [
        ("how are defaults set", current),
        // Unless the query names them.
        ("how are v1beta1 defaults set", paths),
    ] {
        assert_eq!(order(query, &paths), expected, "{query}");
    }
    let paths = ["lib/v1/fields.py", "lib/v1/main.py", "lib/fields.py", "lib/main.py"];
    let current = ["lib/fields.py", "lib/main.py", "lib/v1/fields.py", "lib/v1/main.py"];
    assert_eq!(order("how are fields validated", &paths), current);
}

#[test]
fn variants_for_platforms_do_not_fill_the_list() {
    let paths = ["sys/unix/pipe.rs", "sys/windows/pipe.rs", "sys/wasm/pipe.rs", "io/copy.rs"];
    let collapsed = ["sys/unix/pipe.rs", "io/copy.rs", "sys/windows/pipe.rs", "sys/wasm/pipe.rs"];
    let windows = ["sys/unix/pipe.rs", "sys/windows/pipe.rs", "io/copy.rs", "sys/wasm/pipe.rs"];
    for (query, expected) in [
        ("how are pipes read", collapsed),
        ("how are pipes read on Windows", windows),
        ("what does pipe.rs do", paths),
    ] {
        assert_eq!(order(query, &paths), expected, "{query}");
    }
    let all = CodeWeights { variant: 1.0, ..CodeWeights::default() };
    let candidates = [candidate(0, 1, 9.0, 0.5), candidate(1, 1, 8.9, 0.5)];
    let search =
        Search { paths: &paths[..2], candidates: &candidates, weights: all, ..Search::default() };
    assert!(search.run().iter().all(|hit| hit.explanation.penalties.is_empty()));
}

#[test]
fn files_marked_as_generated_are_penalized() {
    let files = [CandidateFile { path: "src/api.rs".to_owned(), generated: true }];
    let hits = rank_chunks(
        &CodeQuery::parse("requests"),
        &files,
        &[candidate(0, 1, 1.0, 1.0)],
        &[],
        &CodeWeights::default(),
        SearchMode::Hybrid,
        1,
    );
    assert_eq!(hits[0].explanation.penalties, [Penalty { role: FileRole::Generated, factor: 0.5 }]);
    assert_eq!(hits[0].score, 0.5);
}

#[test]
fn modes_select_signals() {
    let order = |mode| {
        let search = Search {
            paths: &["a.rs", "b.rs"],
            candidates: &[candidate(0, 1, 5.0, 0.1), candidate(1, 1, 1.0, 0.9)],
            mode,
            ..Search::default()
        };
        search.run().iter().map(|hit| (hit.candidate, hit.score)).collect::<Vec<_>>()
    };
    assert_eq!(order(SearchMode::Keyword), [(0, 1.0), (1, 0.2)]);
    assert_eq!(order(SearchMode::Vector), [(1, 1.0), (0, 0.1 / 0.9)]);
    assert_eq!(order(SearchMode::Hybrid).len(), 2);
}

#[test]
fn equal_scores_are_ordered_by_path_and_line() {
    let search = Search {
        paths: &["b.rs", "a.rs"],
        candidates: &[
            candidate(0, 1, 1.0, 0.0),
            candidate(1, 9, 1.0, 0.0),
            candidate(1, 2, 1.0, 0.0),
            candidate(0, 5, 1.0, 0.0),
        ],
        weights: CodeWeights { chunks: 1, ..CodeWeights::default() },
        ..Search::default()
    };
    let hits: Vec<usize> = search.run().iter().map(|hit| hit.candidate).collect();
    assert_eq!(hits, [2, 0, 1, 3]);
}

fn any_number() -> impl Strategy<Value = f32> {
    prop_oneof![4 => 0.0..20.0_f32, 1 => any::<f32>()]
}

fn any_name() -> impl Strategy<Value = String> {
    prop_oneof!["[a-c]{1,2}", "RetryPolicy|retry|Test|\u{e9}Z", ".{0,4}"]
}

fn any_symbol() -> impl Strategy<Value = Symbol> {
    let kinds = [SymbolKind::Class, SymbolKind::Method, SymbolKind::Constant, SymbolKind::Heading];
    (any_name(), proptest::sample::select(kinds.to_vec())).prop_map(|(name, kind)| Symbol {
        name,
        kind,
        line: 1,
    })
}

fn any_file() -> impl Strategy<Value = CandidateFile> {
    let path = prop_oneof!["(tests|src|vendor)/[a-c]{1,2}\\.(rs|md|json)", ".{0,12}"];
    (path, any::<bool>()).prop_map(|(path, generated)| CandidateFile { path, generated })
}

fn any_weights() -> impl Strategy<Value = CodeWeights> {
    (any::<[f32; 6]>(), any::<u32>(), any::<bool>()).prop_map(|(numbers, count, usual)| {
        let [vectors, keywords, next_chunk, stem, type_definition, test] = numbers;
        let odd = CodeWeights {
            vectors,
            keywords,
            next_chunk,
            stem,
            type_definition,
            test,
            chunks: count,
            stem_words: count,
            ..CodeWeights::default()
        };
        if usual { CodeWeights::default() } else { odd }
    })
}

type Chunks = Vec<(u32, u32, f32, f32, Vec<Symbol>)>;

fn any_chunks() -> impl Strategy<Value = Chunks> {
    let symbols = proptest::collection::vec(any_symbol(), 0..3);
    let chunk = (0..6_u32, 0..4_u32, any_number(), any_number(), symbols);
    proptest::collection::vec(chunk, 0..20)
}

proptest! {
    #[test]
    fn any_input_is_ranked(
        text in prop_oneof!["(where|RetryPolicy|tests|a|b| ){0,9}", ".{0,40}"],
        files in proptest::collection::vec(any_file(), 0..5),
        chunks in any_chunks(),
        defined in proptest::collection::vec((0..6_u32, 0..3_usize), 0..6),
        weights in any_weights(),
        mode in proptest::sample::select(SearchMode::ALL.to_vec()),
        limit in 0..25_usize,
    ) {
        let candidates: Vec<ChunkCandidate<'_>> = chunks
            .iter()
            .map(|(file, line, keywords, vector, symbols)| {
                ChunkCandidate { symbols, ..candidate(*file, *line, *keywords, *vector) }
            })
            .collect();
        let definitions: Vec<IdentifierDefinition> = defined
            .into_iter()
            .map(|(file, identifier)| IdentifierDefinition { file, identifier, kind: SymbolKind::Class })
            .collect();
        let query = CodeQuery::parse(&text);
        let run = || rank_chunks(&query, &files, &candidates, &definitions, &weights, mode, limit);
        let hits = run();
        prop_assert_eq!(&hits, &run());

        let known = candidates.iter().filter(|it| (it.file as usize) < files.len()).count();
        prop_assert!(hits.len() <= limit.min(known));
        prop_assert!(hits.iter().all(|hit| hit.score.is_finite() && hit.score > 0.0));
        prop_assert!(hits.is_sorted_by(|a, b| a.score >= b.score));
        let mut shown: Vec<usize> = hits.iter().map(|hit| hit.candidate).collect();
        let first: Vec<u32> = shown.iter().map(|&hit| candidates[hit].file).collect();
        shown.sort_unstable();
        shown.dedup();
        prop_assert_eq!(shown.len(), hits.len());

        // No file appears twice before every file has appeared once.
        let again = (0..first.len()).find(|&at| first[..at].contains(&first[at]));
        let rest = &first[again.unwrap_or(first.len())..];
        prop_assert!(rest.iter().all(|file| first[..first.len() - rest.len()].contains(file)));
    }

    #[test]
    fn the_order_of_candidates_does_not_matter(chunks in any_chunks(), turn in 0..20_usize) {
        let mut candidates: Vec<ChunkCandidate<'_>> = chunks
            .iter()
            .enumerate()
            .map(|(row, (file, line, keywords, vector, symbols))| {
                let row = row as u64;
                ChunkCandidate { row, symbols, ..candidate(*file, *line, *keywords, *vector) }
            })
            .collect();
        let query = CodeQuery::parse("where does RetryPolicy wait");
        let files = files(&["a.rs", "b.rs", "c.rs", "d.rs", "e.rs", "f.rs"]);
        let rows = |candidates: &[ChunkCandidate<'_>]| {
            let hits =
                rank_chunks(&query, &files, candidates, &[], &CodeWeights::default(), SearchMode::Hybrid, 50);
            hits.iter().map(|hit| candidates[hit.candidate].row).collect::<Vec<_>>()
        };
        let before = rows(&candidates);
        if !candidates.is_empty() {
            let turn = turn % candidates.len();
            candidates.rotate_left(turn);
        }
        prop_assert_eq!(before, rows(&candidates));
    }
}

#[test]
fn qualified_definitions_come_first() {
    let save = [symbol("save", SymbolKind::Method)];
    let method = |file, keywords, qualified| ChunkCandidate {
        symbols: &save,
        qualified,
        ..candidate(file, 1, keywords, 0.1)
    };
    let hits = Search {
        query: "Model.save",
        paths: &["forms.py", "base.py"],
        candidates: &[method(0, 5.0, 0.0), method(1, 3.0, 1.0)],
        ..Search::default()
    }
    .run();
    assert_eq!(hits.iter().map(|hit| hit.candidate).collect::<Vec<_>>(), [1, 0]);
}

#[test]
fn a_class_comes_before_its_constructors() {
    let class = [symbol("Field", SymbolKind::Class)];
    let constructor = [symbol("Field", SymbolKind::Method)];
    let hits = Search {
        query: "Field",
        paths: &["field.java"],
        candidates: &[
            ChunkCandidate { symbols: &class, ..candidate(0, 10, 1.0, 0.1) },
            ChunkCandidate {
                symbols: &constructor,
                parent: Some("Field"),
                ..candidate(0, 20, 5.0, 0.3)
            },
        ],
        limit: 1,
        ..Search::default()
    }
    .run();
    assert_eq!(hits[0].candidate, 0);
}
