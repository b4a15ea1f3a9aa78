use serde::{Deserialize, Serialize};

/// The constants of memory ranking. A weight of 0 turns a signal off.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MemoryWeights {
    /// Score of a drawer that contains all terms of the query.
    pub keywords: f32,
    /// Weight of vector similarity.
    pub vector: f32,
    /// Weight of word similarity.
    pub likeness: f32,
    /// Weights of the neighbors one, two, three and four positions away.
    pub beside: [f32; 4],
    /// A neighbor counts by how much it exceeds this share of the best score.
    pub stand_out: f32,
    /// The coherence from which neighbors count fully; see [`rank_drawers`](super::rank_drawers).
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
