//! Examples at the end of every command's `--help`. A test parses all of them.

pub(super) const TOP: &str = "\
Examples:
  isolith index                                      Index the working folder
  isolith search \"where are retries handled\"         Search it
  isolith memory add \"Ann prefers tabs\" --wing ann   Remember something
  isolith setup                                      Register the MCP server with your agents

Exit codes:
  0    Success, including a search without results
  1    Failure
  2    Wrong usage
  3    Invalid input or data, or an invalid configuration file
  4    Not found
  70   A worker crashed and retrying did not help
  74   Corrupt data
  75   Not possible right now (timeout, lock held, newer store): see the message
  130  Interrupted (143: terminated); the same command continues

Configuration files set defaults: see `isolith config --help`.";

pub(super) const INDEX: &str = "\
Examples:
  isolith index
  isolith index ~/code/shop --max-file-size 2M

Exit codes: 0 even if some files could not be indexed (they are listed), 75 with --no-wait if
another process is indexing the folder.";

pub(super) const SEARCH: &str = "\
Examples:
  isolith search \"where are retries handled\"
  isolith search RetryPolicy --lang rust --path 'src/**' -n 5
  isolith search \"parse header\" --no-tests --json
  isolith search --mode exact 'self.lock()' -n 50
  isolith search --mode regex 'fn \\w+_lock\\(' -C 2
  isolith search --mode regex -i 'todo|fixme' --files-only

Exit codes: 0 even if nothing was found, 4 if nothing is indexed.";

pub(super) const SIMILAR: &str = "\
Examples:
  isolith similar src/retry.rs:42
  isolith similar src/retry.rs:42 --files-only

Exit codes: 0 even if nothing was found, 4 if the file does not exist or nothing is indexed.";

pub(super) const WATCH: &str = "\
Examples:
  isolith watch
  isolith watch ~/code/shop

Exit codes: 130 and 143 when stopped by Ctrl-C or SIGTERM.";

pub(super) const MEMORY: &str = "\
Examples:
  isolith memory add \"Ann prefers tabs\" --wing ann --room style
  isolith memory search \"what does Ann prefer\"

Exit codes: 3 for an invalid text, date or filter, 4 if there is no such drawer or no store.";

pub(super) const MEMORY_ADD: &str = "\
Examples:
  isolith memory add \"Ann prefers tabs\" --wing ann --room style
  isolith memory add --file notes.md --wing shop --tag decision";

pub(super) const MEMORY_SEARCH: &str = "\
Examples:
  isolith memory search \"what does Ann prefer\"
  isolith memory search deadline --wing shop --since 2026-01-01 -n 5";

pub(super) const MEMORY_GET: &str = "\
Example:
  isolith memory get 572770faa99aecd2e02182df";

pub(super) const MEMORY_LIST: &str = "\
Examples:
  isolith memory list --wing shop -n 50
  isolith memory list --jsonl --all > drawers.jsonl";

pub(super) const MEMORY_UPDATE: &str = "\
Examples:
  isolith memory update 572770faa99aecd2e02182df \"Ann prefers spaces now\"
  isolith memory update 572770faa99aecd2e02182df --room style --tag \"\"";

pub(super) const MEMORY_DELETE: &str = "\
Examples:
  isolith memory delete 572770faa99aecd2e02182df
  isolith memory delete --source notes.md";

pub(super) const MEMORY_TAXONOMY: &str = "\
Example:
  isolith memory taxonomy";

pub(super) const MEMORY_WAKE_UP: &str = "\
Examples:
  isolith memory wake-up
  isolith memory wake-up --wing shop --budget 300";

pub(super) const MEMORY_CHECKPOINT: &str = "\
Examples:
  isolith memory checkpoint session.json
  isolith memory checkpoint --key session-42 -";

pub(super) const HOOK: &str = "\
Examples:
  isolith hook session-start
  isolith hook stop --client codex";

pub(super) const DIARY: &str = "\
Examples:
  isolith memory diary write --agent reviewer \"Looked at the retry code\"
  isolith memory diary read --agent reviewer";

pub(super) const DIARY_WRITE: &str = "\
Example:
  isolith memory diary write --agent reviewer \"Looked at the retry code\" --topic retries";

pub(super) const DIARY_READ: &str = "\
Example:
  isolith memory diary read --agent reviewer --last 5";

pub(super) const MEMORY_IMPORT: &str = "\
Examples:
  isolith memory import conversations.json --author user=Ann
  isolith memory import ~/.claude/projects --dry-run

Exit codes: 3 if nothing in a file can be used.";

pub(super) const FACT: &str = "\
Examples:
  isolith fact add Max lives_in Berlin --from 2024-05-01
  isolith fact query Max

Exit codes: 3 for an invalid or overlapping fact, 4 if there is no such fact or no store.";

pub(super) const FACT_ADD: &str = "\
Examples:
  isolith fact add Max lives_in Berlin --from 2024-05-01
  isolith fact add Max works_at Acme --from 2020-01-01 --to 2024-01-01 --confidence 0.8";

pub(super) const FACT_QUERY: &str = "\
Examples:
  isolith fact query Max
  isolith fact query Max --as-of 2025-01-31 --direction out";

pub(super) const FACT_INVALIDATE: &str = "\
Examples:
  isolith fact invalidate f12
  isolith fact invalidate Max lives_in Berlin --at 2026-03-01";

pub(super) const FACT_RETRACT: &str = "\
Examples:
  isolith fact retract f12
  isolith fact retract Max lives_in Berlin";

pub(super) const FACT_LIST: &str = "\
Examples:
  isolith fact list --predicate works_at
  isolith fact list --state retracted";

pub(super) const FACT_SEARCH: &str = "\
Examples:
  isolith fact search \"deploys ada\"
  isolith fact search berlin --as-of 2025-01-31";

pub(super) const FACT_IMPORT: &str = "\
Examples:
  isolith fact import facts.jsonl
  echo '{\"subject\": \"Max\", \"predicate\": \"lives_in\", \"object\": \"Berlin\"}' | isolith fact import -

Exit codes: 3 if a row is not imported.";

pub(super) const FACT_PREDICATES: &str = "\
Example:
  isolith fact predicates";

pub(super) const FACT_PREDICATE: &str = "\
Examples:
  isolith fact predicate works_at --single
  isolith fact predicate knows --multiple

Exit codes: 3 if facts contradict --single.";

pub(super) const FACT_SUPERSEDE: &str = "\
Examples:
  isolith fact supersede f12 Hamburg
  isolith fact supersede Max lives_in Berlin Hamburg --at 2026-03-01";

pub(super) const FACT_TIMELINE: &str = "\
Example:
  isolith fact timeline Max";

pub(super) const FACT_STATS: &str = "\
Example:
  isolith fact stats";

pub(super) const FACT_ENTITIES: &str = "\
Example:
  isolith fact entities --type person";

pub(super) const FACT_ENTITY: &str = "\
Examples:
  isolith fact entity Max
  isolith fact entity Max --type person --alias Maximilian";

pub(super) const GRAPH: &str = "\
Examples:
  isolith graph callers RetryPolicy.run
  isolith graph query 'MATCH (f:File) RETURN f.path LIMIT 5'

Exit codes: 3 for an invalid query or an ambiguous name, 4 if there is no such symbol or no index,
75 if a query takes too long.";

pub(super) const GRAPH_QUERY: &str = "\
Examples:
  isolith graph query 'MATCH (n) RETURN count(n)'
  isolith graph query 'MATCH (n:Person {name: $name}) RETURN n' --param-str name=Ann --json";

pub(super) const GRAPH_IMPORT: &str = "\
Examples:
  isolith graph import nodes people.csv --label Person --id id
  isolith graph import edges knows.csv --type KNOWS --from Person.id --to Person.id
  isolith graph import --from-kuzu ./graph.kuzu

Exit codes: 3 if a row is invalid.";

pub(super) const GRAPH_NODES: &str = "\
Example, for a file that begins with id:int,name,height:float,active:bool
  isolith graph import nodes people.csv --label Person --id id";

pub(super) const GRAPH_EDGES: &str = "\
Example, for a file that begins with from:int,to:int,since:int
  isolith graph import edges knows.csv --type KNOWS --from Person.id --to Person.id";

pub(super) const GRAPH_CALLERS: &str = "\
Examples:
  isolith graph callers RetryPolicy.run
  isolith graph callers src/retry.rs:42 --depth 3";

pub(super) const GRAPH_CALLEES: &str = "\
Example:
  isolith graph callees RetryPolicy.run";

pub(super) const GRAPH_PATH: &str = "\
Example:
  isolith graph path main RetryPolicy.backoff";

pub(super) const GRAPH_IMPACT: &str = "\
Examples:
  isolith graph impact src/retry.rs
  isolith graph impact RetryPolicy.run --depth 2";

pub(super) const GRAPH_CYCLES: &str = "\
Example:
  isolith graph cycles -n 10";

pub(super) const GRAPH_UNUSED: &str = "\
Example:
  isolith graph unused --exported";

pub(super) const GRAPH_HOTSPOTS: &str = "\
Example:
  isolith graph hotspots --by links -n 10";

pub(super) const GRAPH_STATS: &str = "\
Example:
  isolith graph stats";

pub(super) const COLLECTION: &str = "\
Examples:
  isolith collection list
  isolith collection query docs --keywords \"backup schedule\"

Exit codes: 3 for invalid input, 4 if there is no such collection or no store.";

pub(super) const COLLECTION_LIST: &str = "\
Examples:
  isolith collection list
  isolith collection list --user
  isolith collection list --database team/articles";

pub(super) const COLLECTION_CREATE: &str = "\
Examples:
  isolith collection create docs --dimension 384 --metric cosine
  isolith collection create notes --model built-in";

pub(super) const COLLECTION_DELETE: &str = "\
Examples:
  isolith collection delete docs
  isolith collection delete docs --where '{\"year\": {\"$lt\": 2020}}'

Exit codes: 2 if it cannot ask and --yes is missing, 4 if there is no such collection.";

pub(super) const COLLECTION_UPDATE: &str = "\
Examples:
  isolith collection update docs --id intro --metadata '{\"year\": 2026, \"draft\": null}'
  isolith collection update docs --id intro --document \"How to begin\"

Exit codes: 4 if there is no such collection, or no record with any of the ids.";

pub(super) const COLLECTION_RENAME: &str = "\
Example:
  isolith collection rename docs archive";

pub(super) const COLLECTION_COUNT: &str = "\
Example:
  isolith collection count docs";

pub(super) const COLLECTION_GET: &str = "\
Examples:
  isolith collection get docs --id r1 --id r2
  isolith collection get docs --where '{\"lang\": \"en\"}' --limit 20
  isolith collection get docs --sort year --descending";

pub(super) const COLLECTION_VALUES: &str = "\
Examples:
  isolith collection values docs lang
  isolith collection values docs author --where '{\"year\": 2024}' --limit 50";

pub(super) const COLLECTION_QUERY: &str = "\
Examples:
  isolith collection query docs --vector question.json --limit 5
  isolith collection query docs --vector '[0.1, 0.9, 0.2]' --where '{\"lang\": \"en\"}'
  isolith collection query docs --keywords \"backup schedule\"
  isolith collection query docs --text \"when are backups made?\" --keywords backup";

pub(super) const INGEST: &str = "\
Examples:
  isolith ingest records.jsonl --collection docs
  isolith ingest part1.json part2.json --collection docs --on-error skip

Exit codes: 3 if a row is invalid, 70 if a worker kept crashing. The same command continues.";

pub(super) const EXPORT: &str = "\
Examples:
  isolith export docs --out docs.jsonl
  isolith export --out backup/";

pub(super) const IMPORT: &str = "\
Examples:
  isolith import backup/
  isolith import docs.jsonl --collection docs2";

pub(super) const DOCTOR: &str = "\
Examples:
  isolith doctor
  isolith doctor --full --repair
  isolith doctor --quarantine list

Exit codes: 74 if something is damaged or could not be saved, 1 if something could not be checked,
75 if a repair has to wait for other processes.";

pub(super) const ADOPT: &str = "\
Example:
  isolith adopt --store project/.isolith

Exit codes: 2 if it cannot ask and --yes is missing, 74 if the store is damaged.";

pub(super) const STATUS: &str = "\
Examples:
  isolith status
  isolith status --user --json
  0 * * * *  isolith status --user --check    # in a crontab: cron mails what it prints

Exit codes of --check: 74 if the store is damaged, 75 if something is wrong that may pass (a process
does not answer, a breaker is open, a lock is held), 1 for anything else.";

pub(super) const MCP: &str = "\
Examples:
  isolith mcp
  isolith mcp --allow ~/code/shared --timeout 60

Exit codes: 0 when its input ends, 130 and 143 when stopped by SIGINT or SIGTERM.";

pub(super) const SETUP: &str = "\
Examples:
  isolith setup --dry-run
  isolith setup --agent claude-code --yes
  isolith setup --hooks --prompts

Exit codes: 2 if it cannot ask and --yes is missing, 3 if a file cannot be edited.";

pub(super) const SERVE: &str = "\
Examples:
  isolith serve
  isolith serve --listen unix:$XDG_RUNTIME_DIR/isolith.sock
  isolith serve --listen 0.0.0.0:7411 --host box.lan --token-file ~/isolith-token
  curl http://127.0.0.1:7411/health";

pub(super) const UI: &str = "\
Examples:
  isolith ui
  isolith ui --no-browser
  isolith ui --store ~/projects/tokio/.isolith --listen 127.0.0.1:7500";

pub(super) const CONFIG: &str = "\
Files, both optional:
  $XDG_CONFIG_HOME/isolith/config.toml   Your settings
  .isolith.toml in a project             Result limits, ignored paths and languages only

Flags win over environment variables (limits.results is ISOLITH_LIMITS_RESULTS), these over the
project's file, and that over yours. docs/configuration.md describes all settings.

Examples:
  isolith config show
  isolith config path";

pub(super) const CONFIG_SHOW: &str = "\
Examples:
  isolith config show
  isolith config show --json";

pub(super) const CONFIG_PATH: &str = "\
Example:
  isolith config path";

pub(super) const DRILL: &str = "\
Examples:
  isolith drill
  isolith drill --count 28 --seed 7

Exit codes: 1 if a failure was misclassified, or a job was lost or repeated, or a process left
behind.";

pub(super) const COMPLETIONS: &str = "\
Examples:
  source <(isolith completions bash)
  isolith completions zsh > ~/.zfunc/_isolith
  isolith completions fish > ~/.config/fish/completions/isolith.fish";

pub(super) const MAN: &str = "\
Example:
  isolith man ~/.local/share/man/man1";
