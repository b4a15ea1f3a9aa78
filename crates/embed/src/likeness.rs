//! How alike texts are to a question, word by word.

use crate::Model;
use crate::model::{DIMENSION, rows};
use crate::pieces::{Budget, each_piece};

/// Pieces of a question that are compared; a longer one is as well described by its
/// first ones.
const MOST_PIECES: usize = 64;

/// Compares texts with a question piece by piece: each piece of the question looks for
/// the one in the text that is most like it. A word that stands in the text counts fully,
/// one that means much the same counts much. Unlike a text's one vector, this does not
/// blur with the text's length.
#[derive(Debug, Clone)]
pub struct Likeness {
    asked: Vec<Asked>,
    /// Where a row's similarities are in `known`, from 1; by row.
    places: Vec<u32>,
    /// For each row that was met, its similarity with each piece of the question.
    known: Vec<f32>,
    best: Vec<f32>,
}

#[derive(Debug, Clone)]
struct Asked {
    row: u16,
    numbers: Numbers,
    /// The share of the whole.
    share: f32,
}

/// The numbers of a row, wide enough to be multiplied, and the sum of their squares.
#[derive(Debug, Clone)]
struct Numbers {
    wide: [i16; DIMENSION],
    square: i32,
}

impl Model {
    /// Compares with a question, given as words with what each is worth. Words without
    /// pieces or worth are left out.
    pub fn likeness<'t>(&self, question: impl IntoIterator<Item = (&'t str, f32)>) -> Likeness {
        let mut asked: Vec<Asked> = Vec::new();
        for (word, worth) in question {
            let mut pieces = Vec::new();
            each_piece(word, &mut Budget::default(), |row| pieces.push(row));
            let share = worth.max(0.0) / pieces.len().max(1) as f32;
            // The length of a piece's vector says how much it tells in general.
            asked.extend(pieces.into_iter().map(|row| {
                let numbers = Numbers::of(row);
                let share = share * (numbers.length() * scale(row));
                Asked { row, numbers, share }
            }));
        }
        asked.retain(|piece| piece.share > 0.0);
        asked.truncate(MOST_PIECES);
        let total: f32 = asked.iter().map(|piece| piece.share).sum();
        asked.iter_mut().for_each(|piece| piece.share /= total);
        let best = vec![0.0; asked.len()];
        Likeness { asked, places: vec![0; rows().0.len()], known: Vec::new(), best }
    }
}

impl Likeness {
    /// How alike a text is, from 0 to 1: 1 if it has all pieces of the question.
    pub fn of(&mut self, text: &str) -> f32 {
        let Self { asked, places, known, best } = self;
        best.fill(0.0);
        each_piece(text, &mut Budget::default(), |row| {
            let place = &mut places[usize::from(row)];
            if *place == 0 {
                let numbers = Numbers::of(row);
                known.extend(asked.iter().map(|piece| piece.similarity(row, &numbers)));
                *place = (known.len() / asked.len().max(1)) as u32;
            }
            let end = *place as usize * asked.len();
            let similarities = &known[end.saturating_sub(asked.len())..end];
            for (best, similarity) in best.iter_mut().zip(similarities) {
                *best = best.max(*similarity);
            }
        });
        best.iter().zip(asked).map(|(best, piece)| best * piece.share).sum()
    }
}

impl Asked {
    /// The cosine with another row, or 0 if they point apart. The scales of rows do not
    /// matter.
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
    fn words_that_are_there_count_fully_and_related_ones_in_part() {
        let question = [("allergic", 1.0), ("peanuts", 1.0)];
        let full = likeness(&question, "She is allergic to peanuts, sadly.");
        let related = likeness(&question, "Nuts give him an allergy.");
        let unrelated = likeness(&question, "The build takes forty minutes.");
        assert!((full - 1.0).abs() < 1e-5, "{full}");
        assert!(related < full && related > unrelated + 0.1, "{related} {unrelated}");
        assert!((0.0..0.5).contains(&unrelated), "{unrelated}");
    }

    #[test]
    fn words_count_as_much_as_they_are_worth() {
        let text = "peanuts";
        let much = likeness(&[("peanuts", 9.0), ("deployment", 1.0)], text);
        let little = likeness(&[("peanuts", 1.0), ("deployment", 9.0)], text);
        assert!(much > 0.8 && little < 0.5, "{much} {little}");
        assert_eq!(likeness(&[("peanuts", 0.0)], text), 0.0);
    }

    #[test]
    fn a_piece_is_as_like_another_as_their_vectors_are() {
        let model = Model::embedded(InWorker::in_process());
        for (asked, text) in [("vault", "password"), ("cache", "memory"), ("dog", "sleep")] {
            let (a, b) = (model.embed(asked).unwrap(), model.embed(text).unwrap());
            let cosine: f32 = a.iter().zip(&b).map(|(a, b)| a * b).sum();
            assert_eq!((model.pieces(asked).len(), model.pieces(text).len()), (1, 1));
            let alike = likeness(&[(asked, 3.0)], text);
            assert!((alike - cosine.max(0.0)).abs() < 1e-5, "{asked} {text}: {alike} {cosine}");
        }
    }

    #[test]
    fn nothing_is_like_nothing() {
        assert_eq!(likeness(&[], "text"), 0.0);
        assert_eq!(likeness(&[("", 1.0), (" ", 1.0)], "text"), 0.0);
        assert_eq!(likeness(&[("text", 1.0)], ""), 0.0);
        assert_eq!(likeness(&[("text", f32::NAN)], "text"), 0.0);
    }

    #[test]
    fn texts_do_not_disturb_each_other() {
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
