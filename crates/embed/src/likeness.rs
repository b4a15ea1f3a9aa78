//! Similarity of texts to a query, piece by piece.

use crate::Model;
use crate::model::{DIMENSION, rows};
use crate::pieces::{Budget, each_piece};

/// The maximum number of query pieces compared; the first ones describe a longer query well
/// enough.
const MAX_QUERY_PIECES: usize = 64;

/// Compares texts with a query piece by piece: each query piece is matched with the most
/// similar piece of the text. A word that occurs in the text counts fully, a related word
/// partly. Unlike a single vector, this does not get less precise with longer texts.
#[derive(Debug, Clone)]
pub struct Likeness {
    query: Vec<QueryPiece>,
    /// For each row: its position in `known`, from 1; 0 if not computed yet.
    places: Vec<u32>,
    /// For each row seen so far: its similarity with each query piece.
    known: Vec<f32>,
    best: Vec<f32>,
}

#[derive(Debug, Clone)]
struct QueryPiece {
    row: u16,
    numbers: Numbers,
    /// Its share of the total weight.
    share: f32,
}

/// The numbers of a row, widened for multiplication, and the sum of their squares.
#[derive(Debug, Clone)]
struct Numbers {
    wide: [i16; DIMENSION],
    square: i32,
}

impl Model {
    /// Prepares the comparison with a query, given as words and their weights. Words without
    /// pieces or weight are ignored.
    pub fn likeness<'t>(&self, question: impl IntoIterator<Item = (&'t str, f32)>) -> Likeness {
        let mut query: Vec<QueryPiece> = Vec::new();
        for (word, worth) in question {
            let mut pieces = Vec::new();
            each_piece(word, &mut Budget::default(), |row| pieces.push(row));
            let share = worth.max(0.0) / pieces.len().max(1) as f32;
            // The length of a piece's vector says how informative it is in general.
            query.extend(pieces.into_iter().map(|row| {
                let numbers = Numbers::of(row);
                let share = share * (numbers.length() * scale(row));
                QueryPiece { row, numbers, share }
            }));
        }
        query.retain(|piece| piece.share > 0.0);
        query.truncate(MAX_QUERY_PIECES);
        let total: f32 = query.iter().map(|piece| piece.share).sum();
        query.iter_mut().for_each(|piece| piece.share /= total);
        let best = vec![0.0; query.len()];
        Likeness { query, places: vec![0; rows().0.len()], known: Vec::new(), best }
    }
}

impl Likeness {
    /// The similarity of a text, from 0 to 1; 1 if it contains all pieces of the query.
    pub fn of(&mut self, text: &str) -> f32 {
        let Self { query, places, known, best } = self;
        best.fill(0.0);
        each_piece(text, &mut Budget::default(), |row| {
            let place = &mut places[usize::from(row)];
            if *place == 0 {
                let numbers = Numbers::of(row);
                known.extend(query.iter().map(|piece| piece.similarity(row, &numbers)));
                *place = (known.len() / query.len().max(1)) as u32;
            }
            let end = *place as usize * query.len();
            let similarities = &known[end.saturating_sub(query.len())..end];
            for (best, similarity) in best.iter_mut().zip(similarities) {
                *best = best.max(*similarity);
            }
        });
        best.iter().zip(query).map(|(best, piece)| best * piece.share).sum()
    }
}

impl QueryPiece {
    /// The cosine with another row, or 0 if it is negative. It does not depend on the rows'
    /// scales.
    fn similarity(&self, row: u16, numbers: &Numbers) -> f32 {
        if self.row == row {
            return 1.0;
        }
        let product = dot(&self.numbers.wide, &numbers.wide);
        let lengths = ((self.numbers.square as f32) * (numbers.square as f32)).sqrt();
        if product > 0 && lengths > 0.0 { product as f32 / lengths } else { 0.0 }
    }
}

impl Numbers {
    fn of(row: u16) -> Self {
        let wide = rows().0[usize::from(row)].map(|byte| i16::from(byte as i8));
        Self { square: dot(&wide, &wide), wide }
    }

    fn length(&self) -> f32 {
        (self.square as f32).sqrt()
    }
}

fn dot(a: &[i16; DIMENSION], b: &[i16; DIMENSION]) -> i32 {
    a.iter().zip(b).map(|(a, b)| i32::from(*a) * i32::from(*b)).sum()
}

fn scale(row: u16) -> f32 {
    f32::from_le_bytes(rows().1[usize::from(row)])
}

#[cfg(test)]
mod tests {
    use isolate_types::InWorker;

    use super::*;

    fn likeness(question: &[(&str, f32)], text: &str) -> f32 {
        Model::embedded(InWorker::in_process()).likeness(question.iter().copied()).of(text)
    }

    #[test]
    fn present_words_count_fully_and_related_ones_partly() {
        let question = [("allergic", 1.0), ("peanuts", 1.0)];
        let full = likeness(&question, "She is allergic to peanuts, sadly.");
        let related = likeness(&question, "Nuts give him an allergy.");
        let unrelated = likeness(&question, "The build takes forty minutes.");
        assert!((full - 1.0).abs() < 1e-5, "{full}");
        assert!(related < full && related > unrelated + 0.1, "{related} {unrelated}");
        assert!((0.0..0.5).contains(&unrelated), "{unrelated}");
    }

    #[test]
    fn words_count_by_their_weight() {
        let text = "peanuts";
        let much = likeness(&[("peanuts", 9.0), ("deployment", 1.0)], text);
        let little = likeness(&[("peanuts", 1.0), ("deployment", 9.0)], text);
        assert!(much > 0.8 && little < 0.5, "{much} {little}");
        assert_eq!(likeness(&[("peanuts", 0.0)], text), 0.0);
    }

    #[test]
    fn similarity_of_pieces_is_the_cosine_of_their_vectors() {
        let model = Model::embedded(InWorker::in_process());
        for (query, text) in [("vault", "password"), ("cache", "memory"), ("dog", "sleep")] {
            let (a, b) = (model.embed(query).unwrap(), model.embed(text).unwrap());
            let cosine: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!((model.pieces(query).len(), model.pieces(text).len()), (1, 1));
            let alike = likeness(&[(query, 3.0)], text);
            assert!((alike - cosine.max(0.0)).abs() < 1e-5, "{query} {text}: {alike} {cosine}");
        }
    }

    #[test]
    fn empty_texts_have_no_similarity() {
        assert_eq!(likeness(&[], "text"), 0.0);
        assert_eq!(likeness(&[("", 1.0), (" ", 1.0)], "text"), 0.0);
        assert_eq!(likeness(&[("text", 1.0)], ""), 0.0);
        assert_eq!(likeness(&[("text", f32::NAN)], "text"), 0.0);
    }

    #[test]
    fn comparisons_are_independent() {
        let model = Model::embedded(InWorker::in_process());
        let mut one = model.likeness([("vault", 2.0), ("password", 1.0)]);
        let texts = ["the vault", "credentials rotate", "", "password", "the vault"];
        let together: Vec<f32> = texts.iter().map(|text| one.of(text)).collect();
        assert_eq!(together[0], together[4]);
        for (text, score) in texts.iter().zip(together) {
            assert_eq!(likeness(&[("vault", 2.0), ("password", 1.0)], text), score);
        }
    }
}
