/// The name under which the server is registered. Any entry with this name is treated as ours.
pub(crate) const ENTRY_NAME: &str = "isolith";

/// The command line with which an agent starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServerEntry {
    /// The absolute path of the program.
    pub command: String,
    /// Its arguments.
    pub args: Vec<String>,
}

pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) value: FieldValue,
}

#[derive(PartialEq)]
pub(crate) enum FieldValue {
    String(String),
    List(Vec<String>),
}

impl ServerEntry {
    /// The fields in the order in which they are written.
    pub(crate) fn fields(&self, typed: bool) -> Vec<Field> {
        let transport = Field { key: "type", value: FieldValue::String("stdio".to_owned()) };
        let command = Field { key: "command", value: FieldValue::String(self.command.clone()) };
        let args = Field { key: "args", value: FieldValue::List(self.args.clone()) };
        typed.then_some(transport).into_iter().chain([command, args]).collect()
    }
}

impl FieldValue {
    /// The value in syntax that is valid in both JSON and TOML.
    pub(crate) fn render(&self) -> String {
        match self {
            Self::String(text) => quote(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(|item| quote(item)).collect();
                format!("[{}]", items.join(", "))
            }
        }
    }
}

/// Quotes a string. TOML accepts JSON's escapes, but requires U+007F to be escaped too.
fn quote(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
