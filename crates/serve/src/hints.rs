//! Advice for agents: names tools where the advice for people names commands, and asks the user
//! where no tool applies.

use isolith_types::Hint;

pub(crate) fn for_agents(hint: &Hint) -> String {
    let words = match hint {
        Hint::Text(text) => text,
        Hint::IndexProject | Hint::ResumeIndexing { .. } => "call index_project",
        Hint::WaitForIndexing => "another process is indexing it; try again later",
        Hint::ListIndexes => "index_status shows the indexed folders",
        Hint::IndexRepository { folder } => {
            return format!("call index_project with the path {folder}");
        }
        Hint::RemoveIndex => {
            "what is in the index stays there; the user can drop it with `isolith index --remove DIR`"
        }
        Hint::AllowFolder => "ask the user to start the server with --allow DIR to add a folder",
        Hint::AllowIndexedFolder => {
            "index_status shows the indexed folders; the user can start the server with \
             --allow DIR to add one, or drop its index with `isolith index --remove DIR`"
        }
        Hint::CreateStore => {
            "index_project creates one for code, memory_add for memory, collection_add for \
             collections"
        }
        Hint::CheckStore | Hint::RepairStore => "call repair",
        Hint::RepairIdleStore => {
            "ask the user to stop the other processes that use the store, then call repair; keep \
             truth.sqlite-wal, which may hold what is missing"
        }
        Hint::InspectQuarantine => {
            "this input is skipped until it or the program changes; the user can see it with \
             `isolith doctor --quarantine list`"
        }
        Hint::ListCollections => "collection_list shows the collections",
        Hint::PassVectorOrKeywords => "pass keywords, or a vector made by the collection's model",
        Hint::LeaveOutMetric => "choose another collection",
        Hint::ContinueLoading => "repeat the call to continue where it stopped",
        Hint::SkipBadRecords => "correct the file, or set skip_bad to true",
        Hint::IngestFile => "call ingest_file",
        Hint::ListDrawers => "memory_list and memory_search show existing drawers",
        Hint::QueryFacts | Hint::ListEntities => "fact_query shows the facts about an entity",
        Hint::InvalidateFact { id } => {
            return format!("if it has ended, call fact_invalidate with the id {id}");
        }
        Hint::UseFacts => "use the fact tools; your own nodes and edges can point to it",
        // No tool does these.
        Hint::ReembedIndex
        | Hint::MergeStore { .. }
        | Hint::RemoveInnerIndex { .. }
        | Hint::RemoveEmptyIndex { .. }
        | Hint::NameStore { .. }
        | Hint::AdoptStore { .. }
        | Hint::RestoreSecret
        | Hint::NameSecretFile { .. }
        | Hint::ListQuarantine
        | Hint::SkipBadRows
        | Hint::ImportExport
        | Hint::NameFormat
        | Hint::DetectFormat => return format!("ask the user: {}", hint.for_terminal()),
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use isolith_types::Degraded;

    use super::*;

    #[test]
    fn hints_name_tools_where_there_are_any() {
        let folder = "/a".to_owned();
        let table = [
            (Hint::RepairStore, "call repair"),
            (
                Hint::RemoveEmptyIndex { folder },
                "ask the user: check that it is mounted and not ignored; `isolith index --remove \
                 /a` drops its index",
            ),
            ("free some space".into(), "free some space"),
        ];
        for (hint, expected) in table {
            assert_eq!(for_agents(&hint), expected);
        }
    }

    #[test]
    fn reasons_name_tools_where_there_are_any() {
        let why = "indexing of /a was not finished".to_owned();
        let hint = Some(Hint::ResumeIndexing { folder: "/a".to_owned() });
        let degraded = Degraded { why, hint };
        let for_people = "indexing of /a was not finished; `isolith index /a` resumes it";
        assert_eq!(degraded.worded(Hint::for_terminal), for_people);
        let for_agent = "indexing of /a was not finished; call index_project";
        assert_eq!(degraded.worded(for_agents), for_agent);
    }
}
