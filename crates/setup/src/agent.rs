use std::path::PathBuf;

/// A program that servers can be registered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code, in the scope of the user.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor, the editor and its command line.
    Cursor,
    /// Codex: the command line, the extensions of editors, the desktop app.
    Codex,
    /// Windsurf, until it was renamed.
    Windsurf,
    /// Devin Desktop, which Windsurf has become.
    Devin,
    /// Gemini CLI.
    Gemini,
    /// Visual Studio Code, in its default profile.
    VsCode,
}

/// Where agents look for their configuration. Variables that are not set are `None`.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The user's home folder.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`; one that is not absolute is ignored.
    pub config_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
    /// `GEMINI_CLI_HOME`, which stands for the home folder.
    pub gemini_cli_home: Option<PathBuf>,
}

/// The file in which an agent keeps its servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The file, which need not exist.
    pub path: PathBuf,
    /// Its folder: if it or the file exists, the agent is there.
    pub folder: PathBuf,
    /// How the file is written.
    pub format: Format,
}

/// How servers are written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON, with comments and trailing commas where people put them.
    Json {
        /// The key of the object that has the servers.
        servers: &'static str,
        /// Whether an entry says that it is one of the kind `stdio`.
        typed: bool,
    },
    /// TOML.
    Toml {
        /// The key of the table that has the servers.
        servers: &'static str,
    },
}

const JSON: Format = Format::Json { servers: "mcpServers", typed: false };

impl Agent {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 8] = [
        Self::ClaudeCode,
        Self::ClaudeDesktop,
        Self::Cursor,
        Self::Codex,
        Self::Windsurf,
        Self::Devin,
        Self::Gemini,
        Self::VsCode,
    ];

    /// What scripts call it.
    pub fn id(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::ClaudeDesktop => "claude-desktop",
            Self::Cursor => "cursor",
            Self::Codex => "codex",
            Self::Windsurf => "windsurf",
            Self::Devin => "devin",
            Self::Gemini => "gemini",
            Self::VsCode => "vscode",
        }
    }

    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::ClaudeDesktop => "Claude Desktop",
            Self::Cursor => "Cursor",
            Self::Codex => "Codex",
            Self::Windsurf => "Windsurf",
            Self::Devin => "Devin Desktop",
            Self::Gemini => "Gemini CLI",
            Self::VsCode => "VS Code",
        }
    }

    /// Where it keeps its servers.
    pub fn config(self, places: &Places) -> Config {
        let home = &places.home;
        let config_home = places.config_home.clone().filter(|path| path.is_absolute());
        let config_home = config_home.unwrap_or_else(|| home.join(".config"));
        let given = |place: &Option<PathBuf>, default| place.clone().unwrap_or(home.join(default));
        let (folder, file, format) = match self {
            Self::ClaudeCode => {
                let folder = given(&places.claude_config_dir, ".claude");
                // Without the variable the file is beside its folder, not in it.
                let beside = places.claude_config_dir.as_ref().unwrap_or(home);
                let path = beside.join(".claude.json");
                return Config { path, folder, format: JSON };
            }
            Self::ClaudeDesktop => (config_home.join("Claude"), "claude_desktop_config.json", JSON),
            Self::Cursor => (home.join(".cursor"), "mcp.json", JSON),
            Self::Codex => {
                let format = Format::Toml { servers: "mcp_servers" };
                (given(&places.codex_home, ".codex"), "config.toml", format)
            }
            Self::Windsurf => (home.join(".codeium/windsurf"), "mcp_config.json", JSON),
            Self::Devin => (config_home.join("devin"), "mcp_config.json", JSON),
            Self::Gemini => {
                let home = places.gemini_cli_home.as_ref().unwrap_or(home);
                (home.join(".gemini"), "settings.json", JSON)
            }
            Self::VsCode => {
                let format = Format::Json { servers: "servers", typed: true };
                (config_home.join("Code/User"), "mcp.json", format)
            }
        };
        Config { path: folder.join(file), folder, format }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_paths_match_each_agent() {
        let home = PathBuf::from("/home/me");
        let plain = Places { home: home.clone(), ..Places::default() };
        let moved = Places {
            home,
            config_home: Some("/conf".into()),
            claude_config_dir: Some("/claude".into()),
            codex_home: Some("/codex".into()),
            gemini_cli_home: Some("/gemini".into()),
        };
        let table = [
            (Agent::ClaudeCode, "/home/me/.claude.json", "/claude/.claude.json"),
            (
                Agent::ClaudeDesktop,
                "/home/me/.config/Claude/claude_desktop_config.json",
                "/conf/Claude/claude_desktop_config.json",
            ),
            (Agent::Cursor, "/home/me/.cursor/mcp.json", "/home/me/.cursor/mcp.json"),
            (Agent::Codex, "/home/me/.codex/config.toml", "/codex/config.toml"),
            (
                Agent::Windsurf,
                "/home/me/.codeium/windsurf/mcp_config.json",
                "/home/me/.codeium/windsurf/mcp_config.json",
            ),
            (Agent::Devin, "/home/me/.config/devin/mcp_config.json", "/conf/devin/mcp_config.json"),
            (Agent::Gemini, "/home/me/.gemini/settings.json", "/gemini/.gemini/settings.json"),
            (Agent::VsCode, "/home/me/.config/Code/User/mcp.json", "/conf/Code/User/mcp.json"),
        ];
        assert_eq!(table.map(|(agent, ..)| agent), Agent::ALL);
        for (agent, usual, elsewhere) in table {
            assert_eq!(agent.config(&plain).path, PathBuf::from(usual));
            assert_eq!(agent.config(&moved).path, PathBuf::from(elsewhere));
        }
        let relative = Places { config_home: Some("conf".into()), ..plain.clone() };
        assert_eq!(Agent::VsCode.config(&relative), Agent::VsCode.config(&plain));
    }
}
