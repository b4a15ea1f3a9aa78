//! Reasons.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::paths::Role;

/// Why a hit is where it is. Its score is the sum of what adds to it, times all penalties; an
/// exact match counts in full, whatever the penalties.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Why {
    /// What keywords add.
    pub keywords: f32,
    /// What vectors add.
    pub vectors: f32,
    /// What the file's name adds.
    pub stem: f32,
    /// What the query's words add if they stand there in the same order.
    pub exact: f32,
    /// What definitions of names in the question add.
    pub definitions: Vec<Defined>,
    /// What takes away.
    pub penalties: Vec<Penalty>,
}

/// A name of the question that the file defines.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Defined {
    /// As the question has it.
    pub name: String,
    /// What that adds.
    pub boost: f32,
}

/// A role of the file that the question did not ask for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// What the file is.
    pub role: Role,
    /// What its score is multiplied by.
    pub factor: f32,
}

impl Why {
    /// The score that follows.
    pub fn score(&self) -> f32 {
        let boosts: f32 = self.definitions.iter().map(|defined| defined.boost).sum();
        let factor: f32 = self.penalties.iter().map(|penalty| penalty.factor).product();
        (self.keywords + self.vectors + self.stem + boosts) * factor + self.exact
    }

    /// The reasons in words, each short.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        for (name, share) in [("keywords", self.keywords), ("meaning", self.vectors)] {
            if share > 0.0 {
                words.push(format!("{name} {share:.2}"));
            }
        }
        if self.stem > 0.0 {
            words.push("file name matches".to_owned());
        }
        if self.exact > 0.0 {
            words.push("exact words".to_owned());
        }
        words.extend(self.definitions.iter().map(|defined| format!("defines {}", defined.name)));
        let penalty = |penalty: &Penalty| format!("{} \u{d7}{}", penalty.role, penalty.factor);
        words.extend(self.penalties.iter().map(penalty));
        words
    }
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_words() {
        let why = Why {
            keywords: 0.421,
            vectors: 0.38,
            stem: 0.2,
            exact: 0.0,
            definitions: vec![Defined { name: "RetryPolicy".to_owned(), boost: 0.5 }],
            penalties: vec![
                Penalty { role: Role::Test, factor: 0.3 },
                Penalty { role: Role::Vendored, factor: 0.5 },
            ],
        };
        insta::assert_snapshot!(why, @"keywords 0.42, meaning 0.38, file name matches, defines RetryPolicy, test file ×0.3, vendored ×0.5");
        assert!((why.score() - 1.501 * 0.15).abs() < 1e-6);
        assert_eq!(Why::default().to_string(), "");
        let bytes = postcard::to_stdvec(&why).unwrap();
        assert_eq!(postcard::from_bytes::<Why>(&bytes).unwrap(), why);
    }
}
