//! Advice for agents names tools where the advice for people names commands, and asks the user where
//! no tool applies. Advice for programs names endpoints.

use isolith_types::Hint;

pub(crate) fn for_agents(hint: &Hint) -> String {
    let words = match hint {
        Hint::Text(text) => text,
        Hint::IndexProject | Hint::ResumeIndexing { .. } => "call index_project",
        Hint::SearchExact => {
            "mode \"exact\" searches for the text as it is; in a regex, escape ( [ { . * + ? | ^ $"
        }
        Hint::WaitForIndexing => "another process is indexing it; try again later",
        Hint::ListIndexes => "index_status shows the indexed folders",
        Hint::IndexRepository { folder } => {
            return format!("call index_project with the path {folder}");
        }
        Hint::UseAllowedFolder { folders } if !folders.is_empty() => {
            return format!(
                "allowed: {folders}; the user can add folders by starting the server with --allow DIR"
            );
        }
        Hint::UseAllowedFolder { .. } | Hint::StartInProject => {
            "ask the user to start the server in a project's folder, or with --allow DIR"
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
        Hint::ListCollections => {
            "collection_list shows the collections; collection_add creates one"
        }
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
        Hint::SupersedeFact { id } => {
            return format!(
                "fact_supersede with the id {id} replaces it; if it was never true, fact_retract \
                 says so"
            );
        }
        Hint::AddFact => "fact_add records one",
        Hint::UseFacts => "use the fact tools; your own nodes and edges can point to it",
        Hint::CreateGraph => {
            "call index_project for the code graph, or CREATE nodes with graph_query"
        }
        Hint::NameFormat => "pass the file's format to memory_import",
        Hint::DetectFormat => "leave out format to have it detected",
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
        | Hint::ImportExport => return format!("ask the user: {}", hint.for_terminal()),
    };
    words.to_owned()
}

pub(crate) fn for_programs(hint: &Hint) -> String {
    let words = match hint {
        Hint::Text(text) => text,
        Hint::IndexProject => "POST /v1/code/index indexes the project",
        Hint::ResumeIndexing { folder } => {
            return format!("POST /v1/code/index with the path {folder} resumes it");
        }
        Hint::IndexRepository { folder } => {
            return format!("POST /v1/code/index with the path {folder} indexes it");
        }
        Hint::SearchExact => {
            "mode \"exact\" searches for the text as it is; in a regex, escape ( [ { . * + ? | ^ $"
        }
        Hint::WaitForIndexing => "another process is indexing it; try again later",
        Hint::ListIndexes => "GET /v1/code/index lists the indexed folders",
        Hint::AllowIndexedFolder => {
            "GET /v1/code/index lists the indexed folders; start the server with --allow DIR to add one"
        }
        Hint::CreateStore => {
            "POST /v1/code/index creates one for code, POST /v1/memory/drawers for memory, POST \
             /v1/collections for collections"
        }
        Hint::CheckStore => "POST /v1/doctor checks the store",
        Hint::RepairStore => "POST /v1/doctor with \"repair\": true repairs the store",
        Hint::RepairIdleStore => {
            "stop the other processes that use the store, then POST /v1/doctor with \"repair\": \
             true; keep truth.sqlite-wal, which may hold what is missing"
        }
        Hint::ListCollections => {
            "GET /v1/collections lists the collections; POST /v1/collections creates one"
        }
        Hint::PassVectorOrKeywords => "pass keywords, or a vector made by the collection's model",
        Hint::LeaveOutMetric => "choose another collection",
        Hint::ContinueLoading => "repeat the request to continue where it stopped",
        Hint::SkipBadRecords => "correct the file, or set skip_bad to true",
        Hint::SkipBadRows => "correct the row, or set skip_bad to true",
        Hint::IngestFile => "POST /v1/collections/{collection}/ingest loads a file",
        Hint::ListDrawers => "GET /v1/memory/drawers lists the drawers",
        Hint::QueryFacts => "GET /v1/facts shows the facts about an entity",
        Hint::ListEntities => "GET /v1/facts/entities lists the entities",
        Hint::InvalidateFact { id } => {
            return format!("if it has ended, POST /v1/facts/invalidate with the id {id} says so");
        }
        Hint::SupersedeFact { id } => {
            return format!(
                "POST /v1/facts/supersede with the id {id} replaces it; if it was never true, \
                 POST /v1/facts/retract says so"
            );
        }
        Hint::AddFact => "POST /v1/facts records one",
        Hint::UseFacts => "use /v1/facts; your own nodes and edges can point to it",
        Hint::CreateGraph => {
            "POST /v1/code/index creates the code graph; POST /v1/graph/query can CREATE nodes of \
             your own"
        }
        Hint::AllowFolder | Hint::UseAllowedFolder { .. } | Hint::StartInProject => {
            return hint.for_terminal();
        }
        Hint::NameFormat => "pass the file's format",
        Hint::DetectFormat => "leave out format to have it detected",
        // No endpoint does these.
        Hint::RemoveIndex
        | Hint::InspectQuarantine
        | Hint::ReembedIndex
        | Hint::MergeStore { .. }
        | Hint::RemoveInnerIndex { .. }
        | Hint::RemoveEmptyIndex { .. }
        | Hint::NameStore { .. }
        | Hint::AdoptStore { .. }
        | Hint::RestoreSecret
        | Hint::NameSecretFile { .. }
        | Hint::ListQuarantine
        | Hint::ImportExport => {
            return format!("on the server's machine: {}", hint.for_terminal());
        }
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
