//! `shieling doctor`: what this host and this version can enforce, without make-up.
//!
//! A layer that is not built is shown as missing, not left out.

use std::io;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::{Printable, files};
use crate::options::Doctor;
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
    let found = Report {
        version: env!("CARGO_PKG_VERSION"),
        layers: findings(find_bash().as_deref()),
    };
    if options.json {
        crate::print_json(&found)?;
    } else {
        crate::write_all(io::stdout().lock(), &page(&found))?;
    }
    let runs = found
        .layers
        .iter()
        .any(|finding| finding.layer == "bash" && finding.state == State::Ok);
    Ok(u8::from(!runs))
}

fn findings(bash: Option<&Path>) -> Vec<Finding> {
    let missing = |layer, detail: &str| Finding {
        layer,
        state: State::Missing,
        detail: detail.to_owned(),
    };
    let ok = |layer, detail: String| Finding {
        layer,
        state: State::Ok,
        detail,
    };
    vec![
        ok(
            "local",
            "commands run as ordinary processes of this host; nothing confines them".to_owned(),
        ),
        match bash {
            Some(path) => ok("bash", Printable(path).to_string()),
            None => missing(
                "bash",
                "no bash on PATH or in /bin; install it, or name one with --shell",
            ),
        },
        ok(
            "policy",
            "presets and files judge every command before it starts".to_owned(),
        ),
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
    fn what_is_not_built_is_shown_as_missing() {
        insta::assert_snapshot!(page(&Report { version: "VERSION", layers: findings(None) }), @r"
        shieling VERSION
        local      ok       commands run as ordinary processes of this host; nothing confines them
        bash       missing  no bash on PATH or in /bin; install it, or name one with --shell
        policy     ok       presets and files judge every command before it starts
        sandbox    missing  not in this version
        memory     missing  not in this version
        container  missing  not in this version
        ");
    }
}
