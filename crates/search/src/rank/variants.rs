//! Keeps variants of one file for different platforms from filling the list of hits.

use std::collections::HashMap;

use super::{Penalty, Ranking, sanitized};
use crate::Explanation;
use crate::paths::{FileRole, PlatformVariant, platform_variant};

impl Ranking<'_> {
    /// Lowers all but the best variant of each file. A variant for a platform that the query
    /// names stays, and so does a file that it names.
    pub(super) fn lower_variants(&self, paths: &[&str], files: &mut [Explanation]) {
        let factor = sanitized(self.weights.variant);
        if factor == 1.0 {
            return;
        }
        let mut families: HashMap<String, Vec<(usize, Vec<&str>)>> = HashMap::new();
        for (file, path) in paths.iter().enumerate() {
            if let Some(PlatformVariant { family, platforms }) = platform_variant(path) {
                families.entry(family).or_default().push((file, platforms));
            }
        }
        families.retain(|_, variants| variants.len() > 1);
        if families.is_empty() {
            return;
        }
        let exact = self.exact_by_file();
        for variants in families.into_values() {
            let score = |file: usize| files[file].score() + exact[file];
            let better = |a: &usize, b: &usize| {
                score(*a).total_cmp(&score(*b)).then_with(|| paths[*b].cmp(paths[*a]))
            };
            let Some(best) = variants.iter().map(|(file, _)| *file).max_by(better) else {
                continue;
            };
            for (file, platforms) in variants {
                // The same path may be a candidate in several roots.
                let is_named =
                    self.names_platform(&platforms) || self.query.mentions_file(paths[file]);
                if paths[file] != paths[best] && !is_named {
                    let penalty = Penalty { role: FileRole::Variant, factor };
                    files[file].penalties.push(penalty);
                }
            }
        }
    }

    fn exact_by_file(&self) -> Vec<f32> {
        let mut exact = vec![0.0_f32; self.files.len()];
        for (candidate, boost) in self.candidates.iter().zip(&self.exact) {
            if let Some(exact) = exact.get_mut(candidate.file as usize) {
                *exact = exact.max(*boost);
            }
        }
        exact
    }

    /// Whether the query names a platform, in lower case, with a capital or as in the path.
    fn names_platform(&self, platforms: &[&str]) -> bool {
        platforms.iter().any(|platform| {
            let lower = platform.to_ascii_lowercase();
            let (first, rest) = lower.split_at(1);
            let capital = first.to_ascii_uppercase() + rest;
            [platform, lower.as_str(), capital.as_str()]
                .iter()
                .any(|name| self.query.mentions_name(name))
        })
    }
}
