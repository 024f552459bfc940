//! Files by which other tools than git run code when a folder is entered or opened: a table by name, with what of their
//! content passes, and examples that the tests judge.
//!
//! Rows are tried in order, and the first whose name fits decides. What somebody starts by name is not in here: makefiles,
//! package scripts, launch configurations, sources.

use crate::contents::Check;

/// Where a name means something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// In every directory.
    Anywhere,
    /// In every directory but those into which package managers unpack: nobody opens those as a folder of their own.
    Project,
    /// In the user's home, relative to it; and at the root, if it was there before: a link in the home may lead to it.
    StartUp,
    /// In the user's home, relative to it.
    Home,
}

/// How it is judged.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Judge {
    /// It passes.
    Pass,
    /// It is held back, whatever it says.
    Hold,
    /// It is held back if something was there before.
    HoldIfThere,
    /// By what it says.
    Content(Check),
}

/// One row.
pub(crate) struct Row {
    /// The last names of a path, with `*` in a name for any characters; `**` at the end for all that lies below.
    pub(crate) names: &'static [&'static str],
    pub(crate) scope: Scope,
    pub(crate) judge: Judge,
    /// What reads it, and what it does.
    pub(crate) does: &'static str,
    /// Contents that pass, and that do not.
    #[cfg_attr(not(test), expect(dead_code, reason = "for the tests"))]
    pub(crate) examples: (&'static [&'static str], &'static [&'static str]),
}

const NONE: (&[&str], &[&str]) = (&[], &[]);

const fn pass(names: &'static [&'static str]) -> Row {
    Row {
        names,
        scope: Scope::Anywhere,
        judge: Judge::Pass,
        does: "",
        examples: NONE,
    }
}

const fn hold(names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope: Scope::Anywhere,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

/// As [`hold`], but not in packages.
const fn project(names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope: Scope::Project,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

const fn content(
    names: &'static [&'static str],
    check: Check,
    does: &'static str,
    passes: &'static [&'static str],
    holds: &'static [&'static str],
) -> Row {
    Row {
        names,
        scope: Scope::Project,
        judge: Judge::Content(check),
        does,
        examples: (passes, holds),
    }
}

const fn home(scope: Scope, names: &'static [&'static str], does: &'static str) -> Row {
    Row {
        names,
        scope,
        judge: Judge::Hold,
        does,
        examples: NONE,
    }
}

const EDITOR: &str = "an editor runs code by it when the folder is opened";
const AGENT: &str = "an agent of the user runs commands, or is let run them, by it";
const SHELL: &str = "a shell runs code by it when the folder is entered";
const RUNTIME: &str = "a debugger or an interpreter runs it when it is started in that folder";
const PACKAGES: &str = "a package manager runs programs by it";
const HOOKS: &str = "a manager of hooks runs commands by it when the user commits";
const CONTROL: &str = "a version control system runs programs by it";
const OF_HOME: &str = "it runs by itself in the user's home, or speaks for the user";

pub(crate) const TABLE: &[Row] = &[
    // Shieling's own. A new one can only make the policy stricter.
    Row {
        names: &["shieling.toml", ".shieling/**"],
        scope: Scope::Anywhere,
        judge: Judge::HoldIfThere,
        does: "it decides what commands may do",
        examples: NONE,
    },
    // Editors.
    content(
        &[".vscode/settings.json"],
        Check::Json(&[
            "editor.*", "files.*", "search.*", "explorer.*", "breadcrumbs.*", "diffEditor.*", "telemetry.*",
            "workbench.colorCustomizations/**", "workbench.colorTheme", "workbench.iconTheme", "workbench.editor.*",
            "workbench.tree.*", "[*]/editor.*", "[*]/editor.*/**", "[*]/files.*", "editor.*/**", "files.*/**",
            "search.*/**", "explorer.*/**", "cSpell.words", "cSpell.ignorePaths", "cSpell.language", "cSpell.enabled",
            "python.analysis.*", "python.analysis.*/**", "python.testing.pytestEnabled", "python.testing.unittestEnabled",
            "python.testing.pytestArgs", "typescript.preferences.*", "javascript.preferences.*", "typescript.format.*",
            "javascript.format.*", "typescript.suggest.*", "javascript.suggest.*", "typescript.inlayHints.*",
            "eslint.enable", "eslint.format.enable", "eslint.validate", "prettier.enable", "prettier.printWidth",
            "prettier.semi", "prettier.singleQuote", "prettier.tabWidth", "prettier.trailingComma", "html.format.*",
            "css.lint.*", "css.validate", "scss.validate", "json.format.*", "emmet.includeLanguages/*",
            "extensions.ignoreRecommendations", "git.autofetch", "git.ignoreLimitWarning", "rust-analyzer.checkOnSave",
            "rust-analyzer.cargo.features", "rust-analyzer.cargo.allFeatures", "rust-analyzer.inlayHints.*",
            "terminal.integrated.fontSize", "java.configuration.updateBuildConfiguration", "git.enabled",
        ]),
        EDITOR,
        &[
            "{\"editor.tabSize\": 2, // two\n \"[python]\": {\"editor.defaultFormatter\": \"x\"},}",
            "{\"files.exclude\": {\"**/x\": true}}",
            "{}",
        ],
        &[
            "{\"python.defaultInterpreterPath\": \"./x\"}",
            "{\"terminal.integrated.env.linux\": {\"PATH\": \"x\"}}",
            "{\"git.path\": \"x\"}",
            "{\"[python]\": {\"python.linting.pylintPath\": \"x\"}}",
            "{\"editor.tabSize\": 2, \"unheard.of\": 1}",
            "not json",
        ],
    ),
    content(
        &[".vscode/tasks.json"],
        Check::Tasks,
        EDITOR,
        &["{\"tasks\": [{\"label\": \"b\", \"command\": \"make\"}]}"],
        &[
            "{\"tasks\": [{\"command\": \"x\", \"runOptions\": {\"runOn\": \"folderOpen\"}}]}",
            "{\"tasks\": [{\"command\": \"x\", \"runOptions\": {\"run\\u004fn\": \"folderOpen\"}}]}",
            "{\"tasks\": [",
        ],
    ),
    pass(&[
        ".vscode/launch.json", ".vscode/extensions.json", ".vscode/*.code-snippets", ".vscode/cspell.json",
        ".vscode/*.md", ".vscode/.gitignore",
    ]),
    project(&[".vscode/**", ".vscode-server/**"], EDITOR),
    content(
        &["*.code-workspace"],
        Check::Json(&["folders/*", "extensions/**", "settings/editor.*", "settings/files.*", "settings/files.*/**"]),
        EDITOR,
        &["{\"folders\": [{\"path\": \".\"}]}"],
        &["{\"folders\": [{\"path\": \".\"}], \"settings\": {\"git.path\": \"x\"}}", "{\"tasks\": {\"tasks\": [1]}}"],
    ),
    pass(&[
        ".idea/.gitignore", ".idea/modules.xml", ".idea/vcs.xml", ".idea/encodings.xml", ".idea/*.iml", ".idea/.name",
        ".idea/codeStyles/*.xml", ".idea/inspectionProfiles/*.xml", ".idea/dictionaries/*.xml",
    ]),
    project(
        &[
            ".idea/**", ".zed/**", ".helix/**", ".lapce/**", ".nova/**", ".fleet/**", ".vs/**", ".theia/**",
            ".kateproject", ".kateproject.build", ".ycm_extra_conf.py", ".externalToolBuilders/**",
        ],
        EDITOR,
    ),
    project(
        &[
            ".nvim.lua", ".nvimrc", ".exrc", "_exrc", "_vimrc", "_gvimrc", ".gvimrc", ".lvimrc", "_lvimrc",
            ".local_vimrc.vim", ".vimrc.local", ".lazy.lua", ".neoconf.json", ".vim/**", ".nvim/**", ".vimrc",
            ".dir-locals.el", ".dir-locals-2.el",
        ],
        EDITOR,
    ),
    content(
        &["*.sublime-project"],
        Check::Json(&["folders/*", "settings/tab_size", "settings/translate_tabs_to_spaces", "settings/rulers"]),
        EDITOR,
        &["{\"folders\": [{\"path\": \".\"}]}"],
        &["{\"settings\": {\"LSP\": {\"x\": {\"command\": [\"x\"]}}}}", "{\"build_systems\": [{\"cmd\": \"x\"}]}"],
    ),
    content(
        &[".project"],
        Check::Lacks(&["ExternalToolBuilder", "<arguments>"]),
        EDITOR,
        &["<projectDescription><buildCommand><name>org.eclipse.jdt.core.javabuilder</name></buildCommand>"],
        &["<name>org.eclipse.ui.externaltools.ExternalToolBuilder</name>"],
    ),
    content(
        &[".devcontainer.json", ".devcontainer/devcontainer.json", ".devcontainer/*/devcontainer.json"],
        Check::Json(&[
            "name", "image=word", "forwardPorts", "portsAttributes/**", "remoteUser", "containerUser", "$schema",
            "customizations/vscode/extensions",
        ]),
        "an editor runs its `initializeCommand` on this machine",
        &["{\"name\": \"x\", \"image\": \"debian\", \"forwardPorts\": [80]}"],
        &["{\"initializeCommand\": \"x\"}", "{\"mounts\": [\"source=/,target=/h\"]}"],
    ),
    project(&[".devcontainer/**"], EDITOR),
    // Agents.
    content(
        &[".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json", ".roo/mcp.json"],
        Check::Json(&["mcpServers={}", "servers={}", "inputs=[]"]),
        "an agent of the user starts the servers that it names",
        &["{\"mcpServers\": {}}"],
        &["{\"mcpServers\": {\"a\": {\"command\": \"x\"}}}", "{\"mcpServers\": {\"a\": {\"url\": \"https://x\"}}}"],
    ),
    content(
        &[".claude/settings.json", ".claude/settings.local.json"],
        Check::Json(&["$schema", "model=word", "cleanupPeriodDays", "includeCoAuthoredBy", "language", "permissions/deny"]),
        AGENT,
        &["{\"cleanupPeriodDays\": 7}", "{\"permissions\": {\"deny\": [\"Bash(rm:*)\"]}}"],
        &[
            "{\"hooks\": {\"SessionStart\": [{\"hooks\": [{\"type\": \"command\", \"command\": \"x\"}]}]}}",
            "{\"permissions\": {\"allow\": [\"Bash\"]}}",
            "{\"env\": {\"PATH\": \"x\"}}",
            "{\"apiKeyHelper\": \"x\"}",
        ],
    ),
    project(
        &[
            ".claude/commands/**", ".claude/agents/**", ".claude/skills/**", ".claude/hooks/**", ".cursor/commands/**",
            ".cursor/hooks/**", ".gemini/commands/**", ".gemini/extensions/**", ".codex/prompts/**", ".codex/hooks/**",
            ".opencode/command/**", ".opencode/plugin/**", ".kiro/hooks/**", ".windsurf/workflows/**",
        ],
        AGENT,
    ),
    // What is told to a model, and runs nothing.
    pass(&[
        ".claude/*.md", ".claude/rules/*.md", ".cursor/rules/*.mdc", ".cursor/rules/*.md", ".windsurf/rules/*.md",
        ".roo/rules*/*.md", ".kiro/steering/*.md", ".gemini/*.md", ".codex/*.md", ".continue/rules/*.md",
        ".clinerules/*.md", ".amazonq/rules/*.md", ".junie/*.md", ".trae/rules/*.md", ".augment/rules/*.md",
    ]),
    project(
        &[
            ".claude/**", ".claude.json", ".cursor/**", ".gemini/**", ".codex/**", ".windsurf/**", ".continue/**",
            ".roo/**", ".kiro/**", ".amazonq/**", ".qwen/**", ".opencode/**", "opencode.json", "opencode.jsonc",
            "crush.json", ".crush.json", ".crush/**", ".goose/**", ".junie/**", ".augment/**", ".factory/**", ".trae/**",
            ".cline/**", ".kilocode/**", ".amp/**", ".aider.conf.yml", ".aider.model.settings.yml", ".rovodev/**",
        ],
        AGENT,
    ),
    // Shells and version managers.
    project(&[".envrc", ".autoenv", ".autoenv.zsh", ".autoenv_leave.zsh", ".env.zsh"], SHELL),
    content(
        &[
            "mise.toml", ".mise.toml", "mise.*.toml", ".mise.*.toml", "mise/config.toml", ".mise/config.toml",
            "mise/config.*.toml", ".mise/config.*.toml", ".config/mise.toml", ".config/mise/*.toml",
            ".config/mise/conf.d/*.toml", ".rtx.toml",
        ],
        Check::Toml(&["tools/*=version", "min_version=version", "tasks/**", "tools/*/version=version"]),
        SHELL,
        &["[tools]\nnode = \"22\"\npython = [\"3.12\", \"3.13\"]\n[tasks.test]\nrun = \"make\"\n"],
        &[
            "[env]\nLD_PRELOAD = \"x\"\n",
            "[env]\n_.source = \"x.sh\"\n",
            "[hooks]\nenter = \"x\"\n",
            "[tools]\nnode = \"path:./x\"\n",
            "[plugins]\nx = \"https://x\"\n",
            "[tools]\n\"ubi:a/b\" = \"1\"\n",
        ],
    ),
    content(
        &[".tool-versions"],
        Check::ToolVersions,
        SHELL,
        &["nodejs 22.1.0\npython 3.12.1 3.11.2 # both\n"],
        &["python path:./x\n", "python ../../x\n", "python ref:x\n"],
    ),
    content(
        &[
            ".python-version", ".ruby-version", ".node-version", ".nvmrc", ".go-version", ".java-version",
            ".terraform-version", ".php-version", ".perl-version", ".sdkmanrc", ".jvmrc", ".bun-version", ".deno-version",
        ],
        Check::Versions,
        SHELL,
        &["3.12.1\n", "lts/*\n", "java=21.0.2-tem\n", "# x\n3.12\n"],
        &["../../x\n", "/tmp/x\n", "path:x\n", "$(x)\n"],
    ),
    content(
        &["rust-toolchain.toml", "rust-toolchain"],
        Check::Toolchain,
        "rustup runs the compiler that it names",
        &["[toolchain]\nchannel = \"1.90\"\ncomponents = [\"rustfmt\"]\n", "stable\n", "nightly-2026-01-01"],
        &["[toolchain]\npath = \"x\"\n", "/tmp/x\n", "[toolchain]\nchannel = \"../x\"\n"],
    ),
    // Debuggers and interpreters.
    project(
        &[
            ".gdbinit", ".gdbearlyinit", ".lldbinit", "*-gdb.py", "*-gdb.gdb", "*-gdb.scm", ".pdbrc", ".pdbrc.py",
            ".perldb", ".irbrc", ".pryrc", ".byebugrc", ".rdbgrc", ".rdbgrc.rb", ".ghci", ".ocamlinit", ".iex.exs",
            ".Rprofile", ".Renviron", ".RData", ".octaverc", ".erlang", ".radare2rc", "ipython_config.py",
            "profile_default/**", "jupyter_*_config.py", "jupyter_*_config.json", "jupyter_config.py", ".ackrc",
        ],
        RUNTIME,
    ),
    // Package managers.
    content(
        &[".npmrc"],
        Check::Lines(
            '=',
            &[
                "save-exact", "save-prefix=version", "package-lock", "package-lock-only", "engine-strict",
                "legacy-peer-deps", "strict-peer-deps", "fund", "audit", "audit-level", "loglevel", "progress", "color",
                "auto-install-peers", "strict-peer-dependencies", "shamefully-hoist", "hoist", "hoist-pattern[]",
                "public-hoist-pattern[]", "public-hoist-pattern", "node-linker", "prefer-offline", "offline",
                "ignore-scripts", "update-notifier", "tag-version-prefix", "link-workspace-packages",
                "prefer-workspace-packages", "shared-workspace-lockfile", "save-workspace-protocol", "resolution-mode",
                "dedupe-peer-dependents", "registry=address", "@*:registry=address", "fetch-retries", "fetch-timeout",
                "lockfile", "include", "omit", "install-strategy", "install-links", "side-effects-cache", "use-node-version=version",
            ],
        ),
        PACKAGES,
        &["save-exact=true\nregistry=https://host/\n@a:registry=https://b\n# x\nlegacy-peer-deps = true\n"],
        &["script-shell=./x\n", "node-options=--require ./x\n", "git=./x\n", "editor = x\n", "registry=x y\n", "unheard-of=1\n"],
    ),
    content(
        &[".yarnrc.yml"],
        Check::Lines(
            ':',
            &[
                "nodeLinker=word", "enableGlobalCache", "compressionLevel", "enableTelemetry", "nmMode=word",
                "nmHoistingLimits=word", "enableImmutableInstalls", "npmRegistryServer=address", "defaultSemverRangePrefix",
                "enableScripts", "pnpMode=word", "checksumBehavior=word",
            ],
        ),
        PACKAGES,
        &["nodeLinker: node-modules\n\nenableGlobalCache: true\n"],
        &["yarnPath: x.cjs\n", "plugins:\n  - ./x.cjs\n", "npmRegistryServer: ext::x\n"],
    ),
    project(&[".yarnrc", ".pnpmfile.cjs", ".pnpmfile.mjs"], PACKAGES),
    content(
        &["bunfig.toml"],
        Check::Toml(&["install/**", "telemetry", "logLevel", "test/coverage", "test/root"]),
        PACKAGES,
        &["[install]\nexact = true\n"],
        &["preload = [\"./x.ts\"]\n", "[run]\nshell = \"x\"\n", "[test]\npreload = [\"x\"]\n"],
    ),
    content(
        &[".bundle/config"],
        Check::Lines(
            ':',
            &[
                "BUNDLE_PATH", "BUNDLE_WITHOUT", "BUNDLE_WITH", "BUNDLE_JOBS", "BUNDLE_DEPLOYMENT", "BUNDLE_FROZEN",
                "BUNDLE_RETRY", "BUNDLE_CLEAN", "BUNDLE_BIN=word",
            ],
        ),
        PACKAGES,
        &["---\nBUNDLE_PATH: \"vendor/bundle\"\n"],
        &["BUNDLE_GEMFILE: x\n", "BUNDLE_BUILD__X: \"--with=x\"\n"],
    ),
    content(
        &[".cargo/config.toml", ".cargo/config"],
        Check::Toml(&[
            "build/jobs", "build/target=word", "build/incremental", "build/target-dir=inside", "build/build-dir=inside",
            "build/rustflags=flags", "build/rustdocflags=flags", "target/*/rustflags=flags", "alias/*", "net/retry",
            "net/offline", "net/git-fetch-with-cli", "term/**", "profile/**", "registry/default=word",
            "registries/*/index=address", "source/*/replace-with=word", "source/*/registry=address",
            "source/*/directory=inside", "source/*/git=address", "source/*/branch", "source/*/tag", "source/*/rev",
            "http/multiplexing", "http/timeout", "http/check-revoke", "http/debug", "cargo-new/*", "resolver/*",
            "future-incompat-report/*", "cache/*", "install/root=inside", "env/RUST_LOG", "env/RUST_BACKTRACE",
            "env/RUST_MIN_STACK", "env/RUST_TEST_THREADS", "env/*_URL", "env/*_DIR", "env/*_DIR/*", "profile/*/rustflags=flags",
            "paths=inside", "lints/**", "patch/**",
        ]),
        "cargo runs the programs that it names, also when an editor asks it about the project",
        &[
            "[build]\njobs = 4\n",
            "[build]\nrustflags = [\"-C\", \"target-cpu=native\", \"-Dwarnings\"]\ntarget-dir = \"out\"\n",
            "[alias]\nxtask = \"run --package xtask --\"\n",
            "[source.crates-io]\nreplace-with = \"vendored-sources\"\n[source.vendored-sources]\ndirectory = \"vendor\"\n",
            "[target.x86_64-unknown-linux-gnu]\nrustflags = \"-C link-arg=-fuse-ld=mold\"\n",
            "[profile.dev]\ndebug = 1\n",
        ],
        &[
            "[build]\nrustc-wrapper = \"./x\"\n",
            "[build]\nrustc = \"./x\"\n",
            "[target.x86_64-unknown-linux-gnu]\nrunner = \"./x\"\n",
            "[target.'cfg(unix)']\nlinker = \"./x\"\n",
            "[build]\nrustflags = [\"-Clinker=./x\"]\n",
            "[build]\nrustflags = [\"-C\", \"linker=./x\"]\n",
            "[env]\nRUSTC_WRAPPER = \"x\"\n",
            "[env]\nPATH = \"x\"\n",
            "[registry]\nglobal-credential-providers = [\"x\"]\n",
            "[build]\ntarget-dir = \"/home/u/x\"\n",
            "[doc]\nbrowser = \"x\"\n",
            "include = \"x\"\n",
            "[unstable]\nx = true\n",
            "not toml",
        ],
    ),
    // Hooks that a manager has installed already read these.
    project(
        &[
            ".husky/**", ".huskyrc", ".huskyrc.*", "husky.config.js", "lefthook.yml", "lefthook.yaml", "lefthook.toml",
            "lefthook.json", ".lefthook.*", "lefthook-local.*", ".lefthook-local.*", ".lefthook/**", ".lefthook-local/**",
            ".pre-commit-config.yaml", ".pre-commit-config.yml", ".simple-git-hooks.*", "simple-git-hooks.*", ".githooks/**",
            ".overcommit.yml", ".git-hooks/**", ".lintstagedrc", ".lintstagedrc.*", "lint-staged.config.*", "captainhook.json",
            "prek.toml", ".config/lefthook.*",
        ],
        HOOKS,
    ),
    // Other version control systems.
    content(
        &[".hg/hgrc", ".hg/hgrc-not-shared", ".sl/config"],
        Check::Lines('=', &["default=address", "paths/*=address", "ui/username"]),
        CONTROL,
        &["# x\n[paths]\ndefault = https://host/x\n[ui]\nusername = A B <a@b>\n"],
        &[
            "[hooks]\nupdate = ./x\n",
            "[extensions]\nx = ./x.py\n",
            "[alias]\nst = !x\n",
            "[ui]\nssh = x\n",
            "[ui]\neditor = x\n",
            "%include x\n",
            "[paths]\ndefault = ext::x\n",
        ],
    ),
    hold(&[".hg/sharedpath", ".hg/shared"], CONTROL),
    content(
        &[".jj/repo/config.toml", ".jj/workspace-config.toml"],
        Check::Toml(&["user/name", "user/email"]),
        CONTROL,
        &["[user]\nname = \"a\"\n"],
        &["[ui]\npager = \"x\"\n", "[fix.tools.x]\ncommand = [\"x\"]\n", "[aliases]\nx = [\"util\", \"exec\", \"x\"]\n"],
    ),
    content(
        &[".jj/repo/store/git_target"],
        Check::Pointer,
        CONTROL,
        &["../../../.git", "git"],
        &["/home/u/x/.git", "../../../../../../x"],
    ),
    hold(
        &[
            ".bzr/branch/branch.conf", ".bzr/branch-format/**", "_darcs/prefs/defaults", "_darcs/prefs/prefs",
            ".pijul/config",
        ],
        CONTROL,
    ),
    // Homes.
    home(
        Scope::StartUp,
        &[
            ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv",
            ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".config/fish/**", ".config/git/**", ".gitconfig", ".ssh/**",
            ".inputrc", ".tmux.conf", ".screenrc", ".xprofile", ".xinitrc", ".xsession", ".vimrc", ".emacs",
        ],
        OF_HOME,
    ),
    home(
        Scope::Home,
        &[
            ".xsessionrc", ".pam_environment", ".config/autostart/**", ".config/systemd/**", ".config/shieling/**",
            ".config/environment.d/**", ".vim/**", ".config/nvim/**", ".npmrc", ".cargo/config.toml", ".cargo/bin/**",
            ".cargo/env", ".local/bin/**", ".local/lib/**", ".local/share/applications/**", ".local/share/dbus-1/**",
            ".local/share/systemd/**", ".local/share/mise/**", ".local/share/nvim/**", "bin/**", "sbin/**", "go/bin/**",
            "anaconda3/**", "mambaforge/**", "miniconda3/**", "miniforge3/**", "perl5/**", "node_modules/**", ".cshrc",
            ".tcshrc", ".login", ".emacs.d/**", ".config/emacs/**", ".gdbinit", ".oh-my-zsh/**", ".p10k.zsh", ".antigenrc",
            ".fzf.bash", ".fzf.zsh", ".nvm/**", ".pyenv/**", ".rbenv/**", ".asdf/**", ".sdkman/**", ".volta/**",
            ".deno/bin/**", ".bun/bin/**", ".opam/**", ".ghcup/**", ".nix-profile", ".ipython/**", ".jupyter/**",
            ".curlrc", ".wgetrc", ".gemrc", ".condarc", ".forward", ".procmailrc", ".rhosts", ".shosts", ".k5login",
            ".aws/**", ".azure/**", ".config/gcloud/**", ".config/gh/**", ".config/pip/**", ".docker/**",
            ".git-credentials", ".gnupg/**", ".kube/**", ".netrc", ".pgpass", ".pypirc", ".yarnrc", ".yarnrc.yml",
            ".terraformrc", ".sqliterc", ".psqlrc", ".config/mise/**", ".config/direnv/**", ".config/Code/**",
        ],
        OF_HOME,
    ),
];
