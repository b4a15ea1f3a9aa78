use std::path::PathBuf;

/// An MCP client that the server can be registered with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Agent {
    /// Claude Code, user scope.
    ClaudeCode,
    /// Claude Desktop.
    ClaudeDesktop,
    /// Cursor: the editor and its command line.
    Cursor,
    /// Codex: command line, editor extensions and desktop app.
    Codex,
    /// Windsurf, before it became Devin Desktop.
    Windsurf,
    /// Devin Desktop, formerly Windsurf.
    Devin,
    /// Gemini CLI.
    Gemini,
    /// Visual Studio Code, default profile.
    VsCode,
}

/// The folders below which agents keep their configuration. `None` stands for an unset variable.
#[derive(Debug, Clone, Default)]
pub struct BaseFolders {
    /// The user's home folder.
    pub home: PathBuf,
    /// `XDG_CONFIG_HOME`; ignored if it is not absolute.
    pub config_home: Option<PathBuf>,
    /// `CLAUDE_CONFIG_DIR`.
    pub claude_config_dir: Option<PathBuf>,
    /// `CODEX_HOME`.
    pub codex_home: Option<PathBuf>,
    /// `GEMINI_CLI_HOME`, which replaces the home folder.
    pub gemini_cli_home: Option<PathBuf>,
}

/// The file that lists an agent's MCP servers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentConfig {
    /// The file; it may not exist yet.
    pub path: PathBuf,
    /// The agent's configuration folder. If it or the file exists, the agent is installed.
    pub folder: PathBuf,
    /// The syntax of the file.
    pub format: ConfigFormat,
}

/// The syntax of a configuration file, and where in it the servers are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConfigFormat {
    /// JSON; comments and trailing commas are allowed.
    Json {
        /// The key of the object that contains the servers.
        servers: &'static str,
        /// Whether an entry needs `"type": "stdio"`.
        typed: bool,
    },
    /// TOML.
    Toml {
        /// The key of the table that contains the servers.
        servers: &'static str,
    },
}

const JSON: ConfigFormat = ConfigFormat::Json { servers: "mcpServers", typed: false };

impl Agent {
    /// All agents, in display order.
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

    /// The name in flags and JSON.
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

    /// The display name.
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

    /// Locates the agent's configuration file, whether or not it exists.
    pub fn config(self, folders: &BaseFolders) -> AgentConfig {
        let home = &folders.home;
        let config_home = folders.config_home.clone().filter(|path| path.is_absolute());
        let config_home = config_home.unwrap_or_else(|| home.join(".config"));
        let folder_or =
            |folder: &Option<PathBuf>, default| folder.clone().unwrap_or(home.join(default));
        let (folder, file, format) = match self {
            Self::ClaudeCode => {
                let folder = folder_or(&folders.claude_config_dir, ".claude");
                // Without the variable the file is next to the folder, not in it.
                let parent = folders.claude_config_dir.as_ref().unwrap_or(home);
                let path = parent.join(".claude.json");
                return AgentConfig { path, folder, format: JSON };
            }
            Self::ClaudeDesktop => (config_home.join("Claude"), "claude_desktop_config.json", JSON),
            Self::Cursor => (home.join(".cursor"), "mcp.json", JSON),
            Self::Codex => {
                let format = ConfigFormat::Toml { servers: "mcp_servers" };
                (folder_or(&folders.codex_home, ".codex"), "config.toml", format)
            }
            Self::Windsurf => (home.join(".codeium/windsurf"), "mcp_config.json", JSON),
            Self::Devin => (config_home.join("devin"), "mcp_config.json", JSON),
            Self::Gemini => {
                let home = folders.gemini_cli_home.as_ref().unwrap_or(home);
                (home.join(".gemini"), "settings.json", JSON)
            }
            Self::VsCode => {
                let format = ConfigFormat::Json { servers: "servers", typed: true };
                (config_home.join("Code/User"), "mcp.json", format)
            }
        };
        AgentConfig { path: folder.join(file), folder, format }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn config_paths_match_each_agent() {
        let home = PathBuf::from("/home/me");
        let plain = BaseFolders { home: home.clone(), ..BaseFolders::default() };
        let moved = BaseFolders {
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
        for (agent, default, custom) in table {
            assert_eq!(agent.config(&plain).path, PathBuf::from(default));
            assert_eq!(agent.config(&moved).path, PathBuf::from(custom));
        }
        let relative = BaseFolders { config_home: Some("conf".into()), ..plain.clone() };
        assert_eq!(Agent::VsCode.config(&relative), Agent::VsCode.config(&plain));
    }
}
