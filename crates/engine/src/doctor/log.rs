//! Recovers acknowledged commits from a damaged log.

use isolith_roles::RecoverLog;
use isolith_store::{LogRecovery, MissingCommits};
use isolith_types::{Code, Failure, counted};

use super::Doctor;

/// What remains to be done after the log was recovered.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum AfterLog {
    Nothing,
    /// Some commits can be recovered only by a salvage.
    Salvage,
    /// The database is older than the segments built from it.
    Rebuild,
}

impl Doctor {
    /// Rebuilds the database from the old one and its log, and reports what is lost.
    pub(super) async fn recover_log(&self, done: &mut Vec<String>) -> Result<AfterLog, Failure> {
        let recovery = match self.probe(RecoverLog, self.salvage_deadline()).await {
            Ok(recovery) => recovery,
            // The database file itself may also be damaged.
            Err(failure) if failure.code == Code::Corrupt => return Ok(AfterLog::Salvage),
            Err(failure) => return Err(failure),
        };
        let Some(recovery) = recovery else { return Ok(AfterLog::Nothing) };
        done.extend(describe(&recovery));
        Ok(match recovery {
            LogRecovery { kept_as: None, .. } => AfterLog::Salvage,
            recovery if recovery.lost_commits() > 0 => AfterLog::Rebuild,
            _ => AfterLog::Nothing,
        })
    }
}

fn describe(recovery: &LogRecovery) -> Vec<String> {
    let MissingCommits { from, to, recoverable_to, .. } = &recovery.missing;
    let commits = |count: u64| counted(count, "acknowledged commit");
    let Some(kept_as) = &recovery.kept_as else {
        return vec![format!(
            "{} (numbers {} to {}) cannot be had back as a whole, because pages of the log are \
             damaged; their rows are saved as far as they can be read",
            commits(to.commits + 1 - from.commits),
            from.commits,
            to.commits,
        )];
    };
    let mut messages = Vec::new();
    let saved = (recoverable_to.commits + 1).saturating_sub(from.commits);
    let kept = format!("the damaged files are {}", kept_as.display());
    messages.push(match saved.min(to.commits + 1 - from.commits) {
        0 => format!("rebuilt the database from the rest of the damaged log; {kept}"),
        saved => format!("recovered {} from the damaged log; {kept}", commits(saved)),
    });
    if recovery.lost_commits() > 0 {
        let first = recoverable_to.commits.max(from.commits - 1) + 1;
        let mut text = format!(
            "lost {} (numbers {first} to {})",
            commits(recovery.lost_commits()),
            to.commits
        );
        if to.change > recoverable_to.change {
            let (first, last) = (recoverable_to.change + 1, to.change);
            text.push_str(&format!(", with changes {first} to {last} of records"));
        }
        messages.push(text);
    }
    messages
}

#[cfg(test)]
mod tests {
    use isolith_store::Progress;

    use super::*;

    fn messages(recoverable: (u64, u64), kept: bool) -> String {
        let at = |(commits, change)| Progress { commits, change };
        let missing = MissingCommits {
            from: at((5, 11)),
            to: at((7, 20)),
            stops_at: None,
            beyond: 0,
            recoverable_to: at(recoverable),
            parts: Vec::new(),
        };
        let kept_as = kept.then(|| "truth.sqlite.damaged-1".into());
        describe(&LogRecovery { missing, kept_as }).join("\n")
    }

    #[test]
    fn losses_are_reported() {
        let kept = "the damaged files are truth.sqlite.damaged-1";
        let all = format!("recovered 3 acknowledged commits from the damaged log; {kept}");
        assert_eq!(messages((7, 20), true), all);
        let some = format!(
            "recovered 1 acknowledged commit from the damaged log; {kept}\nlost 2 acknowledged \
             commits (numbers 6 to 7), with changes 13 to 20 of records"
        );
        assert_eq!(messages((5, 12), true), some);
        let none = format!(
            "rebuilt the database from the rest of the damaged log; {kept}\nlost 3 acknowledged commits \
             (numbers 5 to 7), with changes 11 to 20 of records"
        );
        assert_eq!(messages((4, 10), true), none);
        assert!(
            messages((5, 12), false).starts_with("3 acknowledged commits (numbers 5 to 7) cannot")
        );
    }
}
