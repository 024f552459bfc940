//! Lays the layers over each other: defaults < user's file < workspace's file < command line.
//!
//! Lists add up, so that no layer loses what another one denied; `allow` and `include-tool` on the command
//! line replace, since "only these" would otherwise not hold. Single values are replaced by the layer
//! above. What the workspace's file may say is decided in [`tighten`].
//!
//! Files are looked at only where they are expected and only if they exist.

pub(crate) mod files;
mod tighten;

use std::ffi::OsString;
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use figment::providers::Serialized;
use figment::value::{Dict, Map};
use figment::{Figment, Metadata, Profile, Provider};
use shieling_remote::ssh::Destination;

use crate::defaults;
use crate::options::{Chosen, EnvironmentName, Isolation, PolicyName, Settings, Source};
use crate::words::Failure;
use files::Links;

/// The name of the file, in the workspace and in the user's configuration directory.
const NAME: &str = "shieling.toml";

/// The variables of the caller that configuration depends on, passed in so that tests need none.
#[derive(Debug, Clone, Default)]
pub(crate) struct Surroundings {
    /// `$XDG_CONFIG_HOME`
    pub(crate) config_home: Option<PathBuf>,
    /// `$HOME`
    pub(crate) home: Option<PathBuf>,
    /// `$SHIELING_SHELL`
    pub(crate) shell: Option<PathBuf>,
    /// `$PATH`
    pub(crate) path: Option<OsString>,
    /// The current directory.
    pub(crate) cwd: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub(crate) fn of_this_process() -> Result<Self, Failure> {
        let path = |name| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(PathBuf::from)
        };
        Ok(Self {
            config_home: path("XDG_CONFIG_HOME"),
            home: path("HOME"),
            shell: path("SHIELING_SHELL"),
            path: std::env::var_os("PATH"),
            cwd: std::env::current_dir()
                .map_err(|error| Failure::new(format!("the current directory cannot be found: {error}")))?,
        })
    }

    /// Where the user's file would be. A relative directory does not count, as the XDG
    /// specification says.
    fn user_file(&self) -> Option<PathBuf> {
        let absolute = |path: &PathBuf| path.is_absolute();
        let directory = match self.config_home.clone().filter(absolute) {
            Some(directory) => directory,
            None => self.home.clone().filter(absolute)?.join(".config"),
        };
        Some(directory.join("shieling").join(NAME))
    }
}

/// All layers in one.
#[derive(Debug)]
pub(crate) struct Loaded {
    /// What holds.
    pub(crate) settings: Settings,
    /// The workspace, absolute and without symbolic links.
    pub(crate) workspace: PathBuf,
    /// Whether somebody named it.
    pub(crate) workspace_named: bool,
    /// The files that were read, absolute.
    pub(crate) files: Vec<PathBuf>,
    layers: Figment,
}

impl Loaded {
    /// These settings and no file.
    pub(crate) fn only(settings: Settings, workspace: PathBuf) -> Self {
        Self {
            settings,
            workspace,
            workspace_named: false,
            files: Vec::new(),
            layers: Figment::new(),
        }
    }

    /// The file that set this key, or `None` for the command line.
    pub(crate) fn file_of(&self, key: &str) -> Option<&str> {
        let name = self.layers.find_metadata(key)?.name.as_ref();
        // Files go by their absolute paths.
        name.starts_with('/').then_some(name)
    }

    /// Which file set this key, as an addition to a message; nothing for the command line.
    pub(crate) fn set_in(&self, key: &str) -> String {
        self.file_of(key)
            .map_or_else(String::new, |file| format!(" (set in {})", crate::escape::line(file)))
    }
}

const COMMAND_LINE: &str = "the command line";

/// Reads what `source` and the files say.
///
/// `otherwise` is the environment where nobody names one.
pub(crate) fn load(
    source: &Source,
    surroundings: &Surroundings,
    otherwise: EnvironmentName,
) -> Result<Loaded, Failure> {
    let mut command_line = source.settings.clone();
    anchor(&mut command_line, &surroundings.cwd);
    let elsewhere = |chosen: &Option<Chosen>| matches!(chosen, Some(Chosen::Ssh(_)));
    let here = match elsewhere(&command_line.env) {
        true => None,
        false => Some(workspace(source, surroundings)?),
    };

    let mut layers = Figment::new();
    let mut read = Vec::new();
    let user = match surroundings.user_file().filter(|_| !source.no_config) {
        Some(path) => Layer::read(&path, Links::Follow)?,
        None => None,
    };
    // The agent can write wherever the workspace is, so a user's file in there is not the user's word.
    let is_inside = |path: &Path| here.as_deref().is_some_and(|here| files::leads_through(path, here));
    let user_is_inside = user.as_ref().is_some_and(|layer| is_inside(&layer.path));
    let base = match &user {
        Some(layer) if !user_is_inside || source.trust_workspace_config => layer.settings.clone(),
        Some(_) | None => Settings::default(),
    };
    let chosen = command_line.env.clone().or_else(|| base.env.clone());
    // On another machine no file here is the workspace's.
    let here = here.filter(|_| !elsewhere(&chosen));
    let workspace = match (here, &chosen) {
        (None, Some(Chosen::Ssh(destination))) => far_workspace(source, destination)?,
        (here, _) => here.unwrap_or_default(),
    };
    if !elsewhere(&chosen) {
        command_line.shell = command_line.shell.or_else(|| surroundings.shell.clone());
    }
    if !source.no_config {
        let at_root = match elsewhere(&chosen) {
            true => None,
            false => Layer::read(&workspace.join(NAME), Links::Refuse)?,
        };
        let env = chosen.as_ref().map_or(otherwise, Chosen::name);
        let isolation = command_line.isolation.or(base.isolation).unwrap_or(Isolation::Full);
        let measure = tighten::Base {
            settings: &base,
            approval: base.approval.unwrap_or_else(|| defaults::approval(env)),
            network: base.network.unwrap_or_else(|| defaults::network(env, isolation)),
            defaults: &defaults::settings(env, isolation),
        };
        for (layer, untrusted) in [(user, user_is_inside), (at_root, true)] {
            let Some(layer) = layer else { continue };
            read.push(layer.path.clone());
            if untrusted && !source.trust_workspace_config {
                tighten::check(&layer.settings, measure, &workspace)
                    .map_err(|found| layer.loosens(&found, surroundings))?;
            }
            layers = layers.admerge(layer);
        }
    }
    if !command_line.allow.is_empty() {
        layers = layers.merge(Serialized::default("allow", Vec::<String>::new()));
    }
    if !command_line.include_tool.is_empty() {
        layers = layers.merge(Serialized::default("include-tool", Vec::<String>::new()));
    }
    layers = layers.admerge(Named {
        name: COMMAND_LINE.to_owned(),
        settings: &command_line,
    });

    let mut settings: Settings = layers
        .extract()
        .map_err(|error| Failure::new(format!("the configuration's layers do not fit together: {error}")))?;
    if let Some(shell) = &settings.shell
        && !elsewhere(&chosen)
    {
        settings.shell = Some(program(shell, surroundings)?);
    }
    Ok(Loaded {
        settings,
        workspace,
        workspace_named: source.workspace.is_some(),
        files: read,
        layers,
    })
}

/// The directory of this machine that is worked in.
fn workspace(source: &Source, surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let given = source.workspace.clone().unwrap_or_default();
    files::directory(&surroundings.cwd.join(&given)).map_err(|error| {
        Failure::new(format!(
            "the workspace `{}` cannot be used: {}",
            Printable(&given),
            reason(&error)
        ))
        .with("instead", "give an existing directory with `--workspace DIR`")
    })
}

/// The directory of another machine that is worked in: absolute, or relative to the home there.
fn far_workspace(source: &Source, destination: &Destination) -> Result<PathBuf, Failure> {
    let paths = source.settings.read.iter().chain(&source.settings.write);
    if let Some(path) = paths.into_iter().find(|path| path.is_relative()) {
        return Err(
            Failure::new(format!("`{}` means nothing on another machine", Printable(path)))
                .with("instead", "give `--read` and `--write` absolute paths of that machine"),
        );
    }
    match (&source.workspace, destination.directory()) {
        (Some(given), Some(directory)) => Err(Failure::new(format!(
            "the workspace is given twice: `--workspace {}`, and `{directory}` in `{destination}`",
            Printable(given)
        ))
        .with("instead", "leave one of them out")),
        (Some(given), None) => Ok(given.clone()),
        (None, directory) => Ok(directory.unwrap_or_default().into()),
    }
}

/// The shell by its absolute path: a relative one would depend on who reads it.
fn program(shell: &Path, surroundings: &Surroundings) -> Result<PathBuf, Failure> {
    let bare = shell.components().count() == 1 && !shell.is_absolute() && !shell.starts_with(".");
    let found = match &surroundings.path {
        Some(path) if bare => files::on_path(shell, path),
        Some(_) | None => Some(shell.to_owned()).filter(|shell| shell.is_absolute() && files::is_executable(shell)),
    };
    found.ok_or_else(|| {
        let why = if bare {
            "is not on PATH"
        } else {
            "is not an absolute path of an executable file"
        };
        Failure::new(format!("the shell `{}` {why}", Printable(shell))).with(
            "instead",
            "give `--shell bash` or `--shell /bin/bash`, or leave it and SHIELING_SHELL out",
        )
    })
}

/// Makes relative paths absolute: they mean what they meant to whoever wrote them.
fn anchor(settings: &mut Settings, directory: &Path) {
    for name in &mut settings.policy {
        if let PolicyName::File(path) = name {
            *path = directory.join(&*path);
        }
    }
    for path in settings
        .read
        .iter_mut()
        .chain(&mut settings.write)
        .chain(&mut settings.audit)
        .chain(settings.volume.iter_mut().map(|volume| &mut volume.source))
    {
        *path = directory.join(&*path);
    }
}

/// One `shieling.toml`.
#[derive(Debug)]
struct Layer {
    path: PathBuf,
    text: String,
    settings: Settings,
}

impl Layer {
    fn read(path: &Path, links: Links) -> Result<Option<Self>, Failure> {
        let text = files::read(path, links).map_err(|error| {
            let failure = Failure::new(format!("{} cannot be read: {}", Printable(path), reason(&error)));
            match files::closed(path) {
                Some(closed) => failure
                    .with(
                        "because",
                        format!("{} does not let its files be reached", Printable(&closed)),
                    )
                    .with(
                        "instead",
                        format!("let its owner in: `chmod u+rwX {}`", Printable(&closed)),
                    ),
                None => failure,
            }
        })?;
        let Some(text) = text else { return Ok(None) };
        let mut settings = match toml::from_str::<Settings>(&text) {
            Ok(settings) => settings,
            Err(error) => return Err(wrong(path, &text, &error)),
        };
        anchor(&mut settings, path.parent().unwrap_or(Path::new("/")));
        Ok(Some(Self {
            path: path.to_owned(),
            text,
            settings,
        }))
    }

    fn loosens(&self, found: &tighten::Loosening, surroundings: &Surroundings) -> Failure {
        let line = keys(&self.text)
            .into_iter()
            .find(|(name, _)| name == found.key)
            .map_or(1, |(_, span)| place(&self.text, span.start).0);
        let mine = surroundings.user_file().filter(|path| *path != self.path);
        let elsewhere = match mine {
            Some(path) => format!("set it in {} or on the command line", Printable(&path)),
            None => "set it on the command line".to_owned(),
        };
        Failure::new(format!(
            "{}:{line}: `{}` may not be set here: {}",
            Printable(&self.path),
            found.key,
            found.because
        ))
        .with(
            "rule",
            "the workspace is untrusted, so a shieling.toml inside it may only tighten",
        )
        .with(
            "instead",
            format!("{elsewhere}, or give --trust-workspace-config if that file is yours"),
        )
    }
}

impl Provider for Layer {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.path.display().to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Serialized::defaults(&self.settings).data()
    }
}

/// Settings under a name, so that a refusal can say who set them.
struct Named<'a> {
    name: String,
    settings: &'a Settings,
}

impl Provider for Named<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.name.clone())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, figment::Error> {
        Serialized::defaults(self.settings).data()
    }
}

/// An error in a file, with its place. The line itself is not shown: it may hold a secret, and a
/// model may be reading.
fn wrong(path: &Path, text: &str, error: &toml::de::Error) -> Failure {
    let span = error.span().unwrap_or(0..0);
    let (line, column) = place(text, span.start);
    let key = keys(text)
        .into_iter()
        .find(|(_, key)| key.start <= span.start && span.start < key.end);
    let what = match &key {
        Some((name, _)) if name == "set-env" => "`set-env` is not a list of \"NAME=VALUE\"".to_owned(),
        Some((name, _)) if error.message().starts_with("unknown field") => {
            return Failure::new(format!("{}:{line}:{column}: there is no key `{name}`", Printable(path))).with(
                "instead",
                "the keys are the long options of `shieling exec --help`, without the dashes in front",
            );
        }
        Some((name, _)) => format!("`{name}`: {}", error.message()),
        None => error.message().to_owned(),
    };
    Failure::new(format!(
        "{}:{line}:{column}: {}",
        Printable(path),
        what.replace('\n', ", ")
    ))
}

/// The keys at the top of a TOML text and where they stand, value included.
fn keys(text: &str) -> Vec<(String, Range<usize>)> {
    let (table, _) = toml::de::DeTable::parse_recoverable(text);
    let keys = table.get_ref().iter();
    keys.map(|(key, value)| (key.get_ref().to_string(), key.span().start..value.span().end))
        .collect()
}

/// The line and column of a byte, both from 1.
fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (
        before.matches('\n').count() + 1,
        before[line_start..].chars().count() + 1,
    )
}

/// The message of an I/O error without its number.
pub(crate) fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::NotFound => "there is no such file or directory".to_owned(),
        std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string().to_lowercase(),
    }
}

/// A path, with everything escaped that could act on a terminal.
pub(crate) struct Printable<'a>(pub(crate) &'a Path);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&crate::escape::line(&self.0.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests;
