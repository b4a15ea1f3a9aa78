//! Flags of `isolith setup`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use isolith_setup::{Agent, BaseFolders, HookProgram, ServerEntry};
use isolith_types::{Code, Failure, quoted};

use super::settings::variable;
use crate::setup::{SetupKind, SetupPlan};

#[derive(Args)]
pub(super) struct TypedSetup {
    /// Only this agent, even if it is not found; may be repeated
    #[arg(long = "agent", value_name = "AGENT")]
    agents: Vec<TypedAgent>,
    /// Show what would change without writing
    #[arg(long)]
    dry_run: bool,
    /// Remove the entry
    #[arg(long)]
    undo: bool,
    /// Do not ask for confirmation
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Register hooks instead of the server: sessions then begin with what is worth knowing, and are
    /// saved in your memory
    ///
    /// For Claude Code, Codex, Gemini CLI and Cursor.
    #[arg(long)]
    hooks: bool,
    /// Also recall what fits each prompt; not for Cursor
    #[arg(long, requires = "hooks", conflicts_with = "undo")]
    prompts: bool,
    /// Start the server with --allow DIR; may be repeated
    #[arg(long = "allow", value_name = "DIR", conflicts_with_all = ["undo", "hooks"])]
    allowed: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum TypedAgent {
    ClaudeCode,
    ClaudeDesktop,
    Cursor,
    Codex,
    Windsurf,
    Devin,
    #[value(alias = "gemini-cli")]
    Gemini,
    #[value(name = "vscode", alias = "vs-code")]
    VsCode,
}

impl TypedSetup {
    /// Resolves the flags; `store` is the value of `--store`.
    pub(super) fn plan(self, store: Option<&Path>) -> Result<SetupPlan, Failure> {
        let entry = entry(store, &self.allowed)?;
        let agents: Vec<Agent> = self.agents.into_iter().map(Agent::from).collect();
        let folders = base_folders()?;
        let without = agents.iter().find(|agent| agent.hooks_config(&folders).is_none());
        if let (true, Some(agent)) = (self.hooks, without) {
            let message = format!("{} has no hooks that can be registered", agent.name());
            return Err(Failure::new(Code::Usage, message)
                .with_hint("claude-code, codex, gemini and cursor have some"));
        }
        let what = match self.hooks {
            false => SetupKind::Server(entry),
            true => SetupKind::Hooks(HookProgram {
                command: quoted(&entry.command),
                options: entry.args[1..].iter().map(|word| format!(" {}", quoted(word))).collect(),
                prompts: self.prompts,
            }),
        };
        Ok(SetupPlan {
            agents,
            folders,
            what,
            undo: self.undo,
            dry_run: self.dry_run,
            yes: self.yes,
        })
    }
}

fn base_folders() -> Result<BaseFolders, Failure> {
    let folder = |name| variable(name).map(|value| absolute(Path::new(&value))).transpose();
    let home = folder("HOME")?.ok_or_else(|| {
        Failure::new(Code::Failed, "cannot look for agents: there is no home folder")
            .with_hint("set HOME")
    })?;
    Ok(BaseFolders {
        home,
        // A relative path is ignored, as the specification says.
        config_home: variable("XDG_CONFIG_HOME").map(PathBuf::from),
        claude_config_dir: folder("CLAUDE_CONFIG_DIR")?,
        codex_home: folder("CODEX_HOME")?,
        gemini_cli_home: folder("GEMINI_CLI_HOME")?,
    })
}

/// The command by which agents start this program. They run it in any folder, so paths are
/// absolute.
fn entry(store: Option<&Path>, allowed: &[PathBuf]) -> Result<ServerEntry, Failure> {
    let program = std::env::current_exe().and_then(std::fs::canonicalize).map_err(|error| {
        Failure::new(Code::Failed, format!("cannot find this program's own file: {error}"))
    })?;
    let mut args = vec!["mcp".to_owned()];
    if let Some(folder) = store {
        args.extend(["--store".to_owned(), text(&absolute(folder)?)?]);
    }
    for folder in allowed {
        // The server would not start without it.
        let folder = std::fs::canonicalize(folder).map_err(|error| {
            Failure::new(Code::NotFound, format!("--allow {}: {error}", folder.display()))
        })?;
        args.extend(["--allow".to_owned(), text(&folder)?]);
    }
    Ok(ServerEntry { command: text(&program)?, args })
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    std::path::absolute(path).map_err(|error| {
        Failure::new(Code::Failed, format!("cannot resolve {}: {error}", path.display()))
    })
}

fn text(path: &Path) -> Result<String, Failure> {
    path.to_str().map(str::to_owned).ok_or_else(|| {
        let message = format!("cannot register {}: the path is not valid UTF-8", path.display());
        Failure::new(Code::BadInput, message)
    })
}

impl From<TypedAgent> for Agent {
    fn from(typed: TypedAgent) -> Self {
        match typed {
            TypedAgent::ClaudeCode => Self::ClaudeCode,
            TypedAgent::ClaudeDesktop => Self::ClaudeDesktop,
            TypedAgent::Cursor => Self::Cursor,
            TypedAgent::Codex => Self::Codex,
            TypedAgent::Windsurf => Self::Windsurf,
            TypedAgent::Devin => Self::Devin,
            TypedAgent::Gemini => Self::Gemini,
            TypedAgent::VsCode => Self::VsCode,
        }
    }
}
