//! Reports data that earlier salvages lost, as long as the damaged databases are kept.

use isolith_store::{Extent, SavedReport, StoreFolder};

use super::finding::{Finding, Health};

/// Maximum number of ids listed for each loss.
const LISTED_IDS: usize = 3;

pub(super) fn check(folder: &StoreFolder) -> Finding {
    let mut problems = Vec::new();
    for (path, report) in SavedReport::all(folder) {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let Some(report) = report else {
            problems.push(format!("cannot read {name}, the report of a salvage's losses"));
            continue;
        };
        // Derived data is restored by indexing.
        let losses = report.lost.iter().filter(|loss| loss.extent != Extent::Derived);
        let losses: Vec<String> = losses.map(|loss| loss.in_words(LISTED_IDS)).collect();
        if !losses.is_empty() {
            let advice = "delete it and the damaged file to end this warning";
            problems.push(format!("see {name} ({advice})"));
            problems.extend(losses);
        }
    }
    match problems.is_empty() {
        true => Finding::ok("no report of lost data"),
        false => Finding::of_problems(Health::Warn, &problems),
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
    fn reports_losses_while_the_damaged_database_is_kept() {
        let temp = tempfile::tempdir().unwrap();
        let folder = StoreFolder::new(temp.path());
        assert_eq!(check(&folder).status, Health::Ok);
        let damaged = temp.path().join("truth.sqlite.damaged-1");
        let report_file = temp.path().join("truth.sqlite.damaged-1.report.json");
        let write = |extent| {
            std::fs::write(&report_file, serde_json::to_vec(&report(extent)).unwrap()).unwrap();
        };
        std::fs::write(&damaged, "").unwrap();
        write(Extent::Partial);
        let found = check(&folder);
        assert_eq!(found.status, Health::Warn);
        let expected = "saved in part: 80 entities (their types are lost): \"name 0\", \"name 1\"";
        assert!(found.detail.contains(expected), "{}", found.detail);
        write(Extent::Derived);
        assert_eq!(check(&folder).status, Health::Ok);
        std::fs::write(&report_file, "{").unwrap();
        assert_eq!(check(&folder).status, Health::Warn);
        std::fs::remove_file(&damaged).unwrap();
        assert_eq!(check(&folder).status, Health::Ok);
    }
}
