use super::*;

const UNSCORED: DrawerCandidate =
    DrawerCandidate { room: 1, position: 0, keywords: 0.0, vector: 0.0, likeness: 0.0 };

fn order(candidates: &[DrawerCandidate], coherence: f32, mode: SearchMode) -> Vec<usize> {
    let ranked = rank_drawers(candidates, coherence, &MemoryWeights::default(), mode, 10);
    ranked.into_iter().map(|it| it.candidate).collect()
}

#[test]
fn modes_select_signals() {
    let candidates = [
        DrawerCandidate { position: 10, keywords: 0.9, ..UNSCORED },
        DrawerCandidate { position: 20, vector: 0.4, ..UNSCORED },
        DrawerCandidate { position: 30, likeness: 0.3, ..UNSCORED },
        DrawerCandidate { position: 40, ..UNSCORED },
    ];
    for (mode, expected) in [
        (SearchMode::Hybrid, vec![0, 1, 2]),
        (SearchMode::Keyword, vec![0]),
        (SearchMode::Vector, vec![1]),
    ] {
        assert_eq!(order(&candidates, 1.0, mode), expected, "{mode}");
    }
}

#[test]
fn one_common_word_does_not_beat_a_paraphrase() {
    let candidates = [
        DrawerCandidate { position: 10, keywords: 0.25, likeness: 0.3, ..UNSCORED },
        DrawerCandidate { position: 20, vector: 0.2, likeness: 0.3, ..UNSCORED },
    ];
    assert_eq!(order(&candidates, 0.0, SearchMode::Hybrid), [1, 0]);
}

#[test]
fn neighbors_count_if_memory_is_coherent() {
    let candidates = [
        DrawerCandidate { position: 5, likeness: 0.9, ..UNSCORED },
        DrawerCandidate { position: 50, likeness: 0.30, ..UNSCORED },
        DrawerCandidate { position: 6, likeness: 0.25, ..UNSCORED },
        DrawerCandidate { position: 6, room: 2, likeness: 0.26, ..UNSCORED },
    ];
    assert_eq!(order(&candidates, -0.02, SearchMode::Hybrid), [0, 1, 3, 2]);
    assert_eq!(order(&candidates, 0.08, SearchMode::Hybrid), [0, 2, 1, 3]);
}

#[test]
fn reasons_are_sorted_by_score() {
    let candidates = [
        DrawerCandidate { position: 1, keywords: 0.5, vector: 0.3, likeness: 0.6, ..UNSCORED },
        DrawerCandidate { position: 2, likeness: 0.1, ..UNSCORED },
    ];
    let ranked = rank_drawers(&candidates, 1.0, &MemoryWeights::default(), SearchMode::Hybrid, 10);
    assert_eq!(ranked[0].why, ["similar words 0.60", "meaning 0.30", "keywords 0.25"]);
    assert_eq!(ranked[1].why, ["neighbours 0.40", "similar words 0.10"]);
}

#[test]
fn candidates_without_score_are_dropped() {
    assert!(order(&[], 1.0, SearchMode::Hybrid).is_empty());
    assert!(order(&[UNSCORED], 1.0, SearchMode::Hybrid).is_empty());
    let edge = DrawerCandidate { position: u64::MAX, likeness: 0.5, ..UNSCORED };
    assert_eq!(order(&[edge], f32::NAN, SearchMode::Hybrid), [0]);
}
