//! `shieling doctor`: what this host and this version can enforce, without make-up.
//!
//! What can be tried is tried; a layer that is not built is shown as missing, not left out.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{Printable, files};
use crate::options::Doctor;
use crate::run;
use crate::words::Failure;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum State {
    Ok,
    Missing,
}

#[derive(Debug, Serialize)]
struct Report {
    version: &'static str,
    layers: Vec<Finding>,
}

#[derive(Debug, Serialize)]
struct Finding {
    layer: &'static str,
    state: State,
    detail: String,
}

/// Prints the findings. Exits 0 if commands can run at all, and 1 otherwise.
pub(crate) fn doctor(options: &Doctor) -> Result<u8, Failure> {
    let (policy, local) = run::probe();
    let runs = local.is_ok();
    let found = Report {
        version: env!("CARGO_PKG_VERSION"),
        layers: findings(policy, local, find_bash().as_deref()),
    };
    if options.json {
        crate::print_json(&found)?;
    } else {
        crate::write_all(io::stdout().lock(), &page(&found))?;
    }
    Ok(u8::from(!runs))
}

fn findings(policy: Result<(), Failure>, local: Result<(), Failure>, bash: Option<&Path>) -> Vec<Finding> {
    let missing = |layer, detail: &str| Finding {
        layer,
        state: State::Missing,
        detail: detail.to_owned(),
    };
    let probed = |layer, result: Result<(), Failure>, detail: &str| match result {
        Ok(()) => Finding {
            layer,
            state: State::Ok,
            detail: detail.to_owned(),
        },
        Err(failure) => missing(layer, &failure.what()),
    };
    let no_bash = || Failure::new("no bash in /bin, /usr/bin or on PATH; install it, or name one with --shell");
    let bash_at = bash.map_or_else(String::new, |path| Printable(path).to_string());
    vec![
        probed("policy", policy, "commands are judged before they start"),
        probed("bash", bash.map(drop).ok_or_else(no_bash), &bash_at),
        probed("local", local, "commands start and end; nothing confines them"),
        missing("sandbox", "not in this version"),
        missing("memory", "not in this version"),
        missing("container", "not in this version"),
    ]
}

fn find_bash() -> Option<PathBuf> {
    let usual = ["/bin/bash", "/usr/bin/bash"].map(PathBuf::from);
    let usual = usual.into_iter().find(|bash| files::is_executable(bash));
    usual.or_else(|| files::on_path(Path::new("bash"), &std::env::var_os("PATH")?))
}

fn page(report: &Report) -> String {
    let mut page = format!("shieling {}\n", report.version);
    for finding in &report.layers {
        let state = match finding.state {
            State::Ok => "ok",
            State::Missing => "missing",
        };
        page.push_str(&format!("{:<10} {state:<8} {}\n", finding.layer, finding.detail));
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_work_or_is_not_built_is_shown_as_missing() {
        let nothing = || Err(Failure::new("no shell\u{1b} at all").with("instead", "install one"));
        let pages = [
            findings(Ok(()), Ok(()), Some(Path::new("/bin/bash"))),
            findings(nothing(), nothing(), None),
        ]
        .map(|layers| {
            page(&Report {
                version: "VERSION",
                layers,
            })
        });
        insta::assert_snapshot!(pages.join("\n"), @r"
        shieling VERSION
        policy     ok       commands are judged before they start
        bash       ok       /bin/bash
        local      ok       commands start and end; nothing confines them
        sandbox    missing  not in this version
        memory     missing  not in this version
        container  missing  not in this version

        shieling VERSION
        policy     missing  no shell\x1b at all
        bash       missing  no bash in /bin, /usr/bin or on PATH; install it, or name one with --shell
        local      missing  no shell\x1b at all
        sandbox    missing  not in this version
        memory     missing  not in this version
        container  missing  not in this version
        ");
    }
}
