//! What clients expect on a hook's standard output.

use isolith_setup::Agent;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Event;

/// A client that has hooks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Client {
    ClaudeCode,
    Codex,
    Gemini,
    Cursor,
}

impl Client {
    const ALL: [Self; 4] = [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::Cursor];

    fn agent(self) -> Agent {
        match self {
            Self::ClaudeCode => Agent::ClaudeCode,
            Self::Codex => Agent::Codex,
            Self::Gemini => Agent::Gemini,
            Self::Cursor => Agent::Cursor,
        }
    }

    /// Its name in flags.
    pub(crate) fn id(self) -> &'static str {
        self.agent().id()
    }

    /// The client with this name.
    pub(crate) fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|client| client.id() == name)
    }
}

/// The reply to an event; `context` is what the model should know.
pub(super) fn reply(client: Client, event: Event, context: Option<&str>) -> String {
    let name = match (client, event) {
        (Client::Gemini, Event::Prompt) => "BeforeAgent",
        (_, Event::Prompt) => "UserPromptSubmit",
        _ => "SessionStart",
    };
    let document = match (client, context) {
        (Client::Cursor, Some(context)) => json!({ "additional_context": context }),
        (_, Some(context)) => json!({
            "hookSpecificOutput": { "hookEventName": name, "additionalContext": context },
        }),
        // These two read standard output as JSON, whatever the event.
        (Client::Gemini | Client::Cursor, None) => json!({}),
        (Client::ClaudeCode | Client::Codex, None) => return String::new(),
    };
    format!("{document}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_have_the_documented_form() {
        let context = Some("know \"this\"\n");
        let hook = |name: &str| {
            format!(
                "{{\"hookSpecificOutput\":{{\"additionalContext\":\"know \\\"this\\\"\\n\",\
                 \"hookEventName\":\"{name}\"}}}}\n"
            )
        };
        for (client, event, expected) in [
            (Client::ClaudeCode, Event::SessionStart, hook("SessionStart")),
            (Client::ClaudeCode, Event::Prompt, hook("UserPromptSubmit")),
            (Client::Codex, Event::SessionStart, hook("SessionStart")),
            (Client::Gemini, Event::Prompt, hook("BeforeAgent")),
            (
                Client::Cursor,
                Event::SessionStart,
                "{\"additional_context\":\"know \\\"this\\\"\\n\"}\n".to_owned(),
            ),
        ] {
            let found: serde_json::Value =
                serde_json::from_str(&reply(client, event, context)).unwrap();
            let expected: serde_json::Value = serde_json::from_str(&expected).unwrap();
            assert_eq!(found, expected, "{client:?} {event:?}");
        }
        assert_eq!(reply(Client::ClaudeCode, Event::Stop, None), "");
        assert_eq!(reply(Client::Gemini, Event::Stop, None), "{}\n");
    }
}
