//! How the common MCP clients are told of this server: what to put where. Prints, and changes no file
//! of theirs.

use std::ffi::OsString;

use crate::words::Failure;
use shieling::policy::quoted;

/// The option that asks for this.
const ASKS: &str = "--print-config";

/// A client, the command or file that tells it, and what to write there.
pub(crate) struct Client {
    name: &'static str,
    /// A sentence for a person.
    pub(crate) place: &'static str,
    form: Form,
    /// The options that suit it, each with its value, where nobody gave them.
    suits: &'static [(&'static str, &'static str)],
}

/// What a client reads.
enum Form {
    /// A command line for a shell.
    Command,
    /// JSON with the servers under this name, and perhaps more in each.
    Json(&'static str, &'static str),
    Toml,
}

const CLIENTS: &[Client] = &[
    Client {
        name: "claude-code",
        place: "run this once in your project; `--dialect claude` has the names that its model knows",
        form: Form::Command,
        suits: &[("--dialect", "claude")],
    },
    Client {
        name: "claude-desktop",
        place: "claude_desktop_config.json (Settings, Developer, Edit Config)",
        form: Form::Json("mcpServers", ""),
        suits: &[("--workspace", "/path/to/project")],
    },
    Client {
        name: "cursor",
        place: ".cursor/mcp.json in your project, or ~/.cursor/mcp.json",
        form: Form::Json("mcpServers", ""),
        suits: &[("--workspace", "${workspaceFolder}")],
    },
    Client {
        name: "vscode",
        place: ".vscode/mcp.json in your project",
        form: Form::Json("servers", "\"type\": \"stdio\", "),
        suits: &[("--workspace", "${workspaceFolder}")],
    },
    Client {
        name: "codex",
        place: "~/.codex/config.toml",
        form: Form::Toml,
        suits: &[("--dialect", "codex")],
    },
    Client {
        name: "gemini",
        place: ".gemini/settings.json in your project, or ~/.gemini/settings.json",
        form: Form::Json("mcpServers", ""),
        suits: &[],
    },
];

impl Client {
    /// Nothing but what goes there, so that it can be piped into it; with the options that this was
    /// started with. A configuration that dropped one would serve with less protection than was asked for.
    pub(crate) fn config(&self, given: &[String]) -> String {
        let mut words = vec!["mcp".to_owned()];
        for (option, value) in self.suits {
            let is_given = |word: &String| {
                word.strip_prefix(option)
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('='))
            };
            if !given.iter().any(is_given) {
                words.extend([(*option).to_owned(), (*value).to_owned()]);
            }
        }
        words.extend_from_slice(given);
        let strings = || words.iter().map(|word| string(word)).collect::<Vec<_>>().join(", ");
        match self.form {
            Form::Command => {
                let words: Vec<_> = words.iter().map(|word| quoted(word)).collect();
                format!("claude mcp add shieling -- shieling {}\n", words.join(" "))
            }
            Form::Json(servers, more) => format!(
                "{{\n  \"{servers}\": {{\n    \"shieling\": {{ {more}\"command\": \"shieling\", \"args\": [{}] }}\n  }}\n}}\n",
                strings()
            ),
            Form::Toml => format!(
                "[mcp_servers.shieling]\ncommand = \"shieling\"\nargs = [{}]\n",
                strings()
            ),
        }
    }
}

/// A text as JSON has it, and TOML, which wants one character more escaped.
fn string(text: &str) -> String {
    serde_json::Value::from(text).to_string().replace('\u{7f}', "\\u007f")
}

/// The options of this invocation but the one that asks for a configuration.
///
/// # Errors
/// One is no UTF-8, which none of the formats can hold.
pub(crate) fn given(words: impl Iterator<Item = OsString>) -> Result<Vec<String>, Failure> {
    let mut given = Vec::new();
    // After the program's name and the subcommand's.
    let mut words = words.skip(2);
    while let Some(word) = words.next() {
        let word = word.into_string().map_err(|word| {
            Failure::new(format!("`{}` is no UTF-8", word.to_string_lossy().escape_debug()))
                .with("because", "no client's configuration can hold such an option")
        })?;
        if word == ASKS {
            words.next();
        } else if !word.starts_with("--print-config=") {
            given.push(word);
        }
    }
    Ok(given)
}

/// Their names.
pub(crate) fn names() -> Vec<&'static str> {
    CLIENTS.iter().map(|client| client.name).collect()
}

/// How to tell a client.
pub(crate) fn named(name: &str) -> Result<&'static Client, Failure> {
    CLIENTS.iter().find(|client| client.name == name).ok_or_else(|| {
        Failure::new(format!("no client is called `{name}` here"))
            .with("instead", format!("there are {}", names().join(", ")))
    })
}
