//! Searches in the golden files give the expected results.

use isolate_types::InWorker;
use isolith_graph::Direction;
use isolith_segment::exact::ExactQuery;
use isolith_segment::text::{Analyzer, Keywords, Ranking, TextSegment};
use isolith_segment::{GraphSegment, SearchBuffers, SourceSegment, VectorSegment};
use isolith_types::Metric;

use crate::golden;
use crate::inputs::{
    FILES, Input, NODES, ROWS, chunks, is_generated, row_and_change, symbols, vector,
};

#[test]
fn vector_search() {
    for input in Input::ALL {
        let Input::Vector(metric, dimension) = input else { continue };
        let segment = VectorSegment::open(&golden(input).0, None, InWorker::in_process()).unwrap();
        segment.verify().unwrap();
        assert_eq!((segment.len(), segment.dimension()), (ROWS, dimension as usize));
        assert_eq!(segment.metric(), metric);
        let target = vector(1000, dimension);
        let found =
            segment.search(&target, ROWS, None, None, &mut SearchBuffers::default()).unwrap();
        assert_eq!(found.len(), ROWS);
        let query = ExactQuery::new(metric, &target).unwrap();
        for hit in found {
            assert_eq!((hit.row, hit.change), row_and_change(hit.position));
            let distance = query.distance(&vector(hit.position, dimension)).unwrap();
            let tolerance = if metric == Metric::Cosine { 0.01 } else { 0.2 };
            assert!((hit.distance_estimate - distance).abs() < tolerance, "{input:?} {hit:?}");
            assert!(hit.distance_at_least <= distance, "{input:?} {hit:?}: {distance}");
        }
    }
}

#[test]
fn keyword_search() {
    type Answers<'a> = &'a [(&'a str, &'a [(u64, f32)])];
    let expected: [(Analyzer, Answers<'_>); 2] = [
        (
            Analyzer::Code,
            &[
                ("parse header", &[(10, 2.1262), (13, 1.8137)]),
                ("HTTPServer2", &[(13, 8.1395)]),
                ("grosse", &[(13, 1.0275)]),
                ("設定", &[(16, 1.2416)]),
                ("config", &[(16, 1.6734)]),
            ],
        ),
        (
            Analyzer::Prose,
            &[
                ("header parsing", &[(10, 2.7766)]),
                ("cafe", &[(13, 1.2871)]),
                ("天気", &[(16, 1.0085)]),
                // Only the body counts.
                ("2024", &[]),
            ],
        ),
    ];
    for (analyzer, answers) in expected {
        let path = golden(Input::Text(analyzer)).0;
        let segment = TextSegment::open(&path, None, InWorker::in_process()).unwrap();
        assert_eq!((segment.len(), segment.analyzer()), (4, analyzer));
        for (words, rows) in answers {
            let keywords = Keywords::of(analyzer, words, 2.0);
            let ranking = Ranking::new(&keywords, &segment.statistics(&keywords).unwrap());
            let found = segment.search(&ranking, 10, None, None).unwrap();
            let rounded = |score: f32| (score * 1e4).round() / 1e4;
            let found: Vec<(u64, f32)> =
                found.iter().map(|hit| (hit.row, rounded(hit.score))).collect();
            assert_eq!(found, **rows, "{words}");
        }
    }
}

#[test]
fn graph_traversal() {
    let path = golden(Input::Graph).0;
    let segment = GraphSegment::open(&path, None, InWorker::in_process()).unwrap();
    let adjacency = segment.adjacency();
    assert_eq!((segment.len(), adjacency.nodes), (5, &NODES[..]));
    let both = adjacency.lists(Direction::Both, &[]);
    let mut found = Vec::new();
    adjacency.edges(&both, 0, &mut found);
    let mut found: Vec<(i64, i64)> = found.iter().map(|hop| (hop.edge, hop.node)).collect();
    found.sort_unstable();
    assert_eq!(found, [(10, 2), (11, 5), (12, 2), (1 << 41, 1 << 40)]);
}

#[test]
fn texts_of_files_are_found() {
    let path = golden(Input::Source).0;
    let segment = SourceSegment::open(&path, None, InWorker::in_process()).unwrap();
    segment.verify().unwrap();
    assert_eq!((segment.files(), segment.len()), (3, 4));
    for (at, (id, root, path, starts, text)) in FILES.into_iter().enumerate() {
        let file = segment.file(at).unwrap();
        assert_eq!((file.id, file.root, file.path, file.starts), (id, root, path, starts));
        assert_eq!(file.generated, is_generated(id));
        assert_eq!(segment.text(at).unwrap(), text.as_bytes());
        for chunk in chunks(id, starts, &symbols()) {
            let position = segment.chunk_of(chunk.row).unwrap();
            let facts = segment.facts(position).unwrap();
            assert_eq!((segment.file_of(position), facts.change), (at, chunk.change));
            assert_eq!((facts.start_line, facts.end_line), chunk.lines);
            assert_eq!((facts.parent.as_deref(), &*facts.symbols), (chunk.parent, chunk.symbols));
        }
    }
}
