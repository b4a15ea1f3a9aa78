//! What earlier salvages could not save, for as long as the damaged truths are kept.

use isolith_store::{Extent, SavedReport, StoreFolder};

use super::finding::{Finding, Health};

/// Ids that are told of each loss.
const NAMED_IDS: usize = 3;

/// Tells what was lost, and which file has all of it.
pub(super) fn check(folder: &StoreFolder) -> Finding {
    let mut told = Vec::new();
    for (path, report) in SavedReport::all(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(report) = report else {
            told.push(format!("{name} cannot be read: what a salvage lost is unknown"));
            continue;
        };
        // What indexing makes again is not a loss any more.
        let losses = report.lost.iter().filter(|loss| loss.extent != Extent::Derived);
        let losses: Vec<String> = losses.map(|loss| loss.in_words(NAMED_IDS)).collect();
        if !losses.is_empty() {
            told.push(format!("see {name} (delete it with the damaged file to end this warning)"));
            told.extend(losses);
        }
    }
    match told.is_empty() {
        true => Finding::ok("no salvage has lost anything, as far as reports are kept"),
        false => Finding::of_problems(Health::Warn, &told),
    }
}

#[cfg(test)]
mod tests {
    use isolith_store::Loss;

    use super::*;

    fn report(extent: Extent) -> SavedReport {
        let lost = vec![Loss {
            table: "entity".to_owned(),
            extent,
            rows: 80,
            ids: (0..80).map(|number| format!("name {number}")).collect(),
            reason: "their types are lost".to_owned(),
        }];
        SavedReport { at: 1, collections: 1, records: 2, facts: 3, lost }
    }

    #[test]
    fn losses_are_told_while_the_damaged_truth_is_kept() {
        let place = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(place.path());
        assert_eq!(check(&folder).status, Health::Ok);
        let damaged = place.path().join("truth.sqlite.damaged-1");
        let beside = place.path().join("truth.sqlite.damaged-1.report.json");
        let write = |extent| {
            std::fs::write(&beside, serde_json::to_vec(&report(extent)).unwrap()).unwrap();
        };
        std::fs::write(&damaged, "").unwrap();
        write(Extent::Partial);
        let found = check(&folder);
        assert_eq!(found.status, Health::Warn);
        let says = "saved in part: 80 entities (their types are lost): \"name 0\", \"name 1\"";
        assert!(found.detail.contains(says), "{}", found.detail);
        write(Extent::Derived);
        assert_eq!(check(&folder).status, Health::Ok);
        std::fs::write(&beside, "{").unwrap();
        assert_eq!(check(&folder).status, Health::Warn);
        std::fs::remove_file(&damaged).unwrap();
        assert_eq!(check(&folder).status, Health::Ok);
    }
}
