//! Advice for agents. The engine's hints name commands of the terminal; an agent has tools
//! instead, and can ask the user for the rest.

use isolith_types::Failure;

/// Commands and what an agent does in their place, the more specific ones first.
const TOOLS: [(&str, &str); 10] = [
    ("isolith index", "call index_project"),
    ("isolith doctor", "call repair"),
    ("isolith memory list", "memory_list and memory_search show existing drawers"),
    ("isolith memory", "use the memory tools"),
    ("isolith collection list", "collection_list shows the collections"),
    ("isolith fact invalidate", "if it has ended, call fact_invalidate"),
    ("isolith fact query", "fact_query shows the facts about an entity"),
    ("isolith fact entities", "fact_query shows the facts about an entity"),
    ("isolith fact", "use the fact tools; your own nodes and edges can point to it"),
    ("isolith ingest", "call ingest_file"),
];

/// Options of commands that no tool has.
const ONLY_FOR_PEOPLE: [&str; 6] =
    ["--fresh", "--remove", "--reembed", "--quarantine", "--allow", "isolith adopt"];

/// The failure with a hint that an agent can follow.
pub(crate) fn for_agents(failure: Failure) -> Failure {
    let hint = match tool_for(&failure.hint) {
        Some(hint) => hint.to_owned(),
        None if names_command(&failure.hint) => format!("ask the user: {}", failure.hint),
        None => return failure,
    };
    failure.with_hint(hint)
}

/// Why an answer is incomplete, with a tool in the place of a command.
pub(crate) fn reason(degraded: String) -> String {
    match (tool_for(&degraded), degraded.split_once(": `")) {
        (Some(tool), Some((what, _))) => format!("{what}: {tool}"),
        _ => degraded,
    }
}

fn tool_for(text: &str) -> Option<&'static str> {
    if ONLY_FOR_PEOPLE.iter().any(|option| text.contains(option)) {
        return None;
    }
    TOOLS.iter().find(|(command, _)| text.contains(command)).map(|(_, tool)| *tool)
}

fn names_command(text: &str) -> bool {
    let for_user = text.contains("ask the user") || text.contains("the user can");
    !for_user && (text.contains("isolith ") || text.contains("--"))
}

#[cfg(test)]
mod tests {
    use isolith_types::Code;

    use super::*;

    #[test]
    fn hints_name_tools_where_there_are_any() {
        let table = [
            ("`isolith index` indexes the working folder", "call index_project"),
            ("run `isolith doctor --repair`", "call repair"),
            (
                "`isolith memory list` shows what there is",
                "memory_list and memory_search show existing drawers",
            ),
            (
                "`isolith index --remove DIR` drops its index",
                "ask the user: `isolith index --remove DIR` drops its index",
            ),
            ("name a folder with --store", "ask the user: name a folder with --store"),
            (
                "ask the user to start it with --allow DIR",
                "ask the user to start it with --allow DIR",
            ),
            ("free some space", "free some space"),
            ("", ""),
        ];
        for (hint, expected) in table {
            let failure = Failure::new(Code::Failed, "it failed").with_hint(hint);
            assert_eq!(for_agents(failure).hint, expected, "{hint}");
        }
    }

    #[test]
    fn reasons_name_tools_where_there_are_any() {
        let table = [
            (
                "indexing of /a was not finished: `isolith index /a` resumes it",
                "indexing of /a was not finished: call index_project",
            ),
            (
                "another model: `isolith index --reembed` rebuilds it",
                "another model: `isolith index --reembed` rebuilds it",
            ),
            (
                "a segment cannot be used: exact scan used",
                "a segment cannot be used: exact scan used",
            ),
        ];
        for (degraded, expected) in table {
            assert_eq!(reason(degraded.to_owned()), expected);
        }
    }
}
