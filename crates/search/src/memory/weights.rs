use serde::{Deserialize, Serialize};

/// Every constant of the ranking of drawers. 0 switches a signal off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryWeights {
    /// What the question's words are worth, if all of them are there.
    pub keywords: f32,
    /// What nearness of vectors is worth.
    pub vector: f32,
    /// What likeness word by word is worth.
    pub likeness: f32,
    /// What neighbours add: those one, two, three and four places away.
    pub beside: [f32; 4],
    /// What share of the best score a neighbour has to exceed to add anything.
    pub stand_out: f32,
    /// So much more alike than others have neighbours to be before they count fully.
    pub coherent: f32,
}

impl Default for MemoryWeights {
    fn default() -> Self {
        Self {
            keywords: 1.0,
            vector: 1.0,
            likeness: 1.0,
            beside: [0.5, 0.35, 0.25, 0.15],
            stand_out: 0.3,
            coherent: 0.04,
        }
    }
}
