use super::*;

const PLAIN: DrawerCandidate =
    DrawerCandidate { room: 1, position: 0, keywords: 0.0, vector: 0.0, likeness: 0.0 };

fn order(candidates: &[DrawerCandidate], coherence: f32, mode: Mode) -> Vec<usize> {
    let ranked = rank_drawers(candidates, coherence, &MemoryWeights::default(), mode, 10);
    ranked.into_iter().map(|it| it.candidate).collect()
}

#[test]
fn each_signal_counts_in_its_modes() {
    let candidates = [
        DrawerCandidate { position: 10, keywords: 0.9, ..PLAIN },
        DrawerCandidate { position: 20, vector: 0.4, ..PLAIN },
        DrawerCandidate { position: 30, likeness: 0.3, ..PLAIN },
        DrawerCandidate { position: 40, ..PLAIN },
    ];
    for (mode, expected) in
        [(Mode::Hybrid, vec![0, 1, 2]), (Mode::Keyword, vec![0]), (Mode::Vector, vec![1])]
    {
        assert_eq!(order(&candidates, 1.0, mode), expected, "{mode}");
    }
}

#[test]
fn one_common_word_does_not_beat_a_paraphrase() {
    let candidates = [
        DrawerCandidate { position: 10, keywords: 0.25, likeness: 0.3, ..PLAIN },
        DrawerCandidate { position: 20, vector: 0.2, likeness: 0.3, ..PLAIN },
    ];
    assert_eq!(order(&candidates, 0.0, Mode::Hybrid), [1, 0]);
}

#[test]
fn neighbours_count_where_texts_are_like_their_neighbours() {
    let candidates = [
        DrawerCandidate { position: 5, likeness: 0.9, ..PLAIN },
        DrawerCandidate { position: 50, likeness: 0.30, ..PLAIN },
        DrawerCandidate { position: 6, likeness: 0.25, ..PLAIN },
        DrawerCandidate { position: 6, room: 2, likeness: 0.26, ..PLAIN },
    ];
    assert_eq!(order(&candidates, -0.02, Mode::Hybrid), [0, 1, 3, 2]);
    assert_eq!(order(&candidates, 0.08, Mode::Hybrid), [0, 2, 1, 3]);
}

#[test]
fn reasons_come_with_the_most_important_first() {
    let candidates = [
        DrawerCandidate { position: 1, keywords: 0.5, vector: 0.3, likeness: 0.6, ..PLAIN },
        DrawerCandidate { position: 2, likeness: 0.1, ..PLAIN },
    ];
    let ranked = rank_drawers(&candidates, 1.0, &MemoryWeights::default(), Mode::Hybrid, 10);
    assert_eq!(ranked[0].why, ["like words 0.60", "meaning 0.30", "keywords 0.25"]);
    assert_eq!(ranked[1].why, ["neighbours 0.40", "like words 0.10"]);
}

#[test]
fn nothing_in_nothing_out() {
    assert!(order(&[], 1.0, Mode::Hybrid).is_empty());
    assert!(order(&[PLAIN], 1.0, Mode::Hybrid).is_empty());
    let edge = DrawerCandidate { position: u64::MAX, likeness: 0.5, ..PLAIN };
    assert_eq!(order(&[edge], f32::NAN, Mode::Hybrid), [0]);
}
