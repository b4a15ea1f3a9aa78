//! Explains the score of a hit.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::paths::FileRole;

/// The parts of a hit's score: the sum of the boosts times all penalty factors, plus the boost
/// for an exact match, which penalties do not reduce.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Explanation {
    /// Score of the keyword search.
    pub keywords: f32,
    /// Score of the vector search.
    pub vectors: f32,
    /// Boost for a file name that matches words of the query.
    pub stem: f32,
    /// Boost for a path that the query mentions.
    pub path: f32,
    /// Boost for an exact match of the query as a phrase or as a symbol name.
    pub exact: f32,
    /// Boosts for defining identifiers of the query.
    pub definitions: Vec<DefinitionBoost>,
    /// Penalties for the roles of the file.
    pub penalties: Vec<Penalty>,
    /// Whether it contains the quoted parts of the query, as all hits do.
    pub quoted: bool,
}

/// The boost for a file that defines an identifier of the query.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct DefinitionBoost {
    /// The identifier, as written in the query unless it is `similar`.
    pub name: String,
    /// Added to the score.
    pub boost: f32,
    /// Whether the query has a similar identifier that is not defined.
    pub similar: bool,
}

/// The penalty for a file role that the query did not ask for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Penalty {
    /// The penalized role.
    pub role: FileRole,
    /// The score is multiplied by this.
    pub factor: f32,
}

impl Explanation {
    /// The total score.
    pub fn score(&self) -> f32 {
        let boosts: f32 = self.definitions.iter().map(|definition| definition.boost).sum();
        let factor: f32 = self.penalties.iter().map(|penalty| penalty.factor).product();
        (self.keywords + self.vectors + self.stem + self.path + boosts) * factor + self.exact
    }

    /// Multiplies all parts, and so the total score.
    pub(crate) fn scale(&mut self, factor: f32) {
        let Self { keywords, vectors, stem, path, exact, definitions, penalties: _, quoted: _ } =
            self;
        for part in [keywords, vectors, stem, path, exact] {
            *part *= factor;
        }
        definitions.iter_mut().for_each(|definition| definition.boost *= factor);
    }

    /// The parts as short phrases, for display.
    pub fn reasons(&self) -> Vec<String> {
        let mut reasons = Vec::new();
        for (name, share) in [("keywords", self.keywords), ("meaning", self.vectors)] {
            if share > 0.0 {
                reasons.push(format!("{name} {share:.2}"));
            }
        }
        if self.stem > 0.0 {
            reasons.push("file name matches".to_owned());
        }
        if self.path > 0.0 {
            reasons.push("path mentioned".to_owned());
        }
        if self.exact > 0.0 {
            reasons.push("exact match".to_owned());
        }
        if self.quoted {
            reasons.push("has the quoted text".to_owned());
        }
        let definition = |DefinitionBoost { name, similar, .. }: &DefinitionBoost| match similar {
            true => format!("like {name}"),
            false => format!("defines {name}"),
        };
        reasons.extend(self.definitions.iter().map(definition));
        let penalty = |penalty: &Penalty| format!("{} \u{d7}{}", penalty.role, penalty.factor);
        reasons.extend(self.penalties.iter().map(penalty));
        reasons
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reasons().join(", "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_displayed_and_summed() {
        let explanation = Explanation {
            keywords: 0.421,
            vectors: 0.38,
            stem: 0.2,
            path: 0.1,
            exact: 0.0,
            definitions: vec![
                DefinitionBoost { name: "RetryPolicy".to_owned(), boost: 0.4, similar: false },
                DefinitionBoost { name: "retry_all".to_owned(), boost: 0.1, similar: true },
            ],
            penalties: vec![
                Penalty { role: FileRole::Test, factor: 0.3 },
                Penalty { role: FileRole::Vendored, factor: 0.5 },
            ],
            quoted: true,
        };
        insta::assert_snapshot!(explanation, @"keywords 0.42, meaning 0.38, file name matches, path mentioned, has the quoted text, defines RetryPolicy, like retry_all, test file ×0.3, vendored ×0.5");
        assert!((explanation.score() - 1.601 * 0.15).abs() < 1e-6);
        assert_eq!(Explanation::default().to_string(), "");
        let bytes = postcard::to_stdvec(&explanation).unwrap();
        assert_eq!(postcard::from_bytes::<Explanation>(&bytes).unwrap(), explanation);
    }
}
