/// The name under which the server is registered. An entry of this name is ours.
pub const NAME: &str = "isolith";

/// How an agent starts the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The program, by its full path.
    pub command: String,
    /// What it is started with.
    pub args: Vec<String>,
}

/// One line of an entry.
pub(crate) struct Field {
    pub(crate) key: &'static str,
    pub(crate) value: Value,
}

#[derive(PartialEq)]
pub(crate) enum Value {
    Text(String),
    List(Vec<String>),
}

impl Entry {
    /// The lines of the entry, in the order in which they are written.
    pub(crate) fn fields(&self, typed: bool) -> Vec<Field> {
        let kind = Field { key: "type", value: Value::Text("stdio".to_owned()) };
        let command = Field { key: "command", value: Value::Text(self.command.clone()) };
        let args = Field { key: "args", value: Value::List(self.args.clone()) };
        typed.then_some(kind).into_iter().chain([command, args]).collect()
    }
}

impl Value {
    /// The value as JSON and TOML write it alike.
    pub(crate) fn render(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::List(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| quoted(text)).collect();
                format!("[{}]", texts.join(", "))
            }
        }
    }
}

/// JSON's escapes are TOML's too, but TOML wants one more character escaped.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}
