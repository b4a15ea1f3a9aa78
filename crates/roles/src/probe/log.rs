//! Whether the truth has come as far as was acknowledged.

use isolate::InWorker;
use isolith_protocol::StoreError;
use isolith_store::{LogState, LostPart, MarkState, MissingCommits, Progress, StoreFolder, Truth};

use super::finding::{Cure, Finding, Health};

/// Ids that are named of each kind.
const NAMED: usize = 5;

/// Compares the mark of what was acknowledged with the truth and its log. Must run before
/// this process has opened the truth.
pub(super) fn check(folder: &StoreFolder, token: InWorker) -> Result<Finding, StoreError> {
    Ok(finding(&Truth::examine_log(folder, token)?))
}

fn finding(state: &LogState) -> Finding {
    let LogState { mark, frames, reached, missing } = state;
    if let Some(missing) = missing {
        return Finding::new(Health::Corrupt, describe(missing)).with(Cure::RecoverLog);
    }
    let Some(reached) = reached else {
        let detail = "not checked: the store's own row cannot be read";
        return Finding::new(Health::Failed, detail);
    };
    let commits = reached.commits;
    match mark {
        MarkState::Sound => Finding::ok(format!(
            "all acknowledged commits are there ({commits}); {frames} pages in the log"
        )),
        MarkState::None => Finding::ok("nothing was acknowledged yet"),
        MarkState::Damaged => Finding::new(
            Health::Warn,
            "the file `acknowledged` is damaged, so that nobody can tell whether commits are \
             missing; the next write creates it again",
        ),
    }
}

/// What is missing, for people.
pub(super) fn describe(missing: &MissingCommits) -> String {
    let MissingCommits { from, to, stops_at, beyond, recoverable_to, parts } = missing;
    let mut text = format!("{} missing", range("commit", from.commits, to.commits));
    if to.change >= from.change {
        text.push_str(&format!(" (with {})", range("change", from.change, to.change)));
    }
    match stops_at {
        Some(frame) => text.push_str(&format!(
            ": the log is damaged at frame {frame}; {beyond} commits were found beyond it"
        )),
        None => text.push_str(": the log ends too early, is gone, or is an older one"),
    }
    let named = parts.iter().map(name).collect::<Vec<_>>();
    if !named.is_empty() {
        text.push_str(&format!(", with {}", named.join(", ")));
    }
    text.push_str(&format!("; {}", prospect(*recoverable_to, *from, *to, *beyond)));
    text
}

fn prospect(recoverable: Progress, from: Progress, to: Progress, beyond: u64) -> String {
    if recoverable.commits >= to.commits {
        "a repair brings all of it back".to_owned()
    } else if recoverable.commits + 1 > from.commits {
        let last = recoverable.commits;
        format!(
            "a repair brings back what was written up to commit {last}, and later rows if it can"
        )
    } else if beyond > 0 {
        "a repair saves the rows that can be read".to_owned()
    } else {
        "a repair cannot bring it back".to_owned()
    }
}

fn range(what: &str, first: u64, last: u64) -> String {
    match last.saturating_sub(first) {
        0 => format!("{what} {first}"),
        _ => format!("{what}s {first} to {last}"),
    }
}

fn name(part: &LostPart) -> String {
    let LostPart { kind, count, ids } = part;
    let mut names = ids.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>();
    if *count > names.len() as u64 {
        names.push("…");
    }
    format!("{count} {kind} ({})", names.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(commits: u64, change: u64) -> Progress {
        Progress { commits, change }
    }

    #[test]
    fn what_is_missing_is_told_in_a_sentence() {
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
             3 commits were found beyond it, with 3 records (a, b, …); a repair brings all of it \
             back"
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
            "commit 7 missing: the log ends too early, is gone, or is an older one; a repair \
             cannot bring it back"
        );
    }
}
