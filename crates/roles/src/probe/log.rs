//! Checks that all acknowledged commits are in the database or its write-ahead log.

use isolate::InWorker;
use isolith_protocol::StoreError;
use isolith_store::{LogState, LostPart, MarkState, MissingCommits, Progress, StoreFolder, Truth};

use isolith_types::counted;

use super::finding::{Finding, Health, Repair};

/// Maximum number of ids listed for each kind.
const LISTED_IDS: usize = 5;

/// Compares the mark of acknowledged commits with the database and its log. Must run before this
/// process opens the database.
pub(super) fn check(folder: &StoreFolder, token: InWorker) -> Result<Finding, StoreError> {
    Ok(finding(&Truth::examine_log(folder, token)?))
}

fn finding(state: &LogState) -> Finding {
    let LogState { mark, frames, reached, missing } = state;
    if let Some(missing) = missing {
        return Finding::new(Health::Corrupt, describe(missing)).with(Repair::RecoverLog);
    }
    let Some(reached) = reached else {
        let detail = "not checked: cannot read the row of the store";
        return Finding::new(Health::Failed, detail);
    };
    let commits = reached.commits;
    match mark {
        MarkState::Sound => Finding::ok(format!(
            "no acknowledged commits are missing ({commits} in total); {} in the log",
            counted(*frames, "page")
        )),
        MarkState::None => Finding::ok("no commits have been acknowledged yet"),
        MarkState::Damaged => Finding::new(
            Health::Warn,
            "the file `acknowledged` is damaged, so missing commits cannot be detected; the next \
             write creates it again",
        ),
    }
}

pub(super) fn describe(missing: &MissingCommits) -> String {
    let MissingCommits { from, to, stops_at, beyond, recoverable_to, parts } = missing;
    let mut text = format!("{} missing", range("commit", from.commits, to.commits));
    if to.change >= from.change {
        text.push_str(&format!(" (with {})", range("change", from.change, to.change)));
    }
    match stops_at {
        Some(frame) => text.push_str(&format!(
            ": the log is damaged at frame {frame}; {} found after it",
            counted(*beyond, "commit")
        )),
        None => text.push_str(": the log is truncated, missing or outdated"),
    }
    let listed = parts.iter().map(describe_part).collect::<Vec<_>>();
    if !listed.is_empty() {
        text.push_str(&format!(", with {}", listed.join(", ")));
    }
    text.push_str(&format!("; {}", recoverability(*recoverable_to, *from, *to, *beyond)));
    text
}

fn recoverability(recoverable: Progress, from: Progress, to: Progress, beyond: u64) -> String {
    if recoverable.commits >= to.commits {
        "a repair can recover all of it".to_owned()
    } else if recoverable.commits + 1 > from.commits {
        format!(
            "a repair can recover everything up to commit {}, and later rows if they are readable",
            recoverable.commits
        )
    } else if beyond > 0 {
        "a repair can recover the rows that are readable".to_owned()
    } else {
        "a repair cannot recover it".to_owned()
    }
}

fn range(what: &str, first: u64, last: u64) -> String {
    match last.saturating_sub(first) {
        0 => format!("{what} {first}"),
        _ => format!("{what}s {first} to {last}"),
    }
}

fn describe_part(part: &LostPart) -> String {
    let LostPart { kind, count, ids } = part;
    let mut listed = ids.iter().take(LISTED_IDS).map(String::as_str).collect::<Vec<_>>();
    if *count > listed.len() as u64 {
        listed.push("…");
    }
    format!("{count} {kind} ({})", listed.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commits: u64, change: u64) -> Progress {
        Progress { commits, change }
    }

    #[test]
    fn describes_missing_commits() {
        let ids = vec!["a".to_owned(), "b".to_owned()];
        let part = LostPart { kind: "records".to_owned(), count: 3, ids };
        let found = MissingCommits {
            from: at(7, 20),
            to: at(9, 22),
            stops_at: Some(4),
            beyond: 3,
            recoverable_to: at(9, 22),
            parts: vec![part],
        };
        assert_eq!(
            describe(&found),
            "commits 7 to 9 missing (with changes 20 to 22): the log is damaged at frame 4; \
             3 commits found after it, with 3 records (a, b, …); a repair can recover all of it"
        );
        let gone = MissingCommits {
            from: at(7, 20),
            to: at(7, 19),
            stops_at: None,
            beyond: 0,
            recoverable_to: at(6, 19),
            parts: vec![],
        };
        assert_eq!(
            describe(&gone),
            "commit 7 missing: the log is truncated, missing or outdated; a repair cannot recover \
             it"
        );
    }
}
