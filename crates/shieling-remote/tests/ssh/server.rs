//! The transport to a server of the testkit's.

use shieling_remote::agent::{Program, Setup};
use shieling_remote::ssh::Ssh;
use shieling_testkit::prerequisite;
use shieling_testkit::ssh::{Login, Server};

/// Whether there is what a server takes, and an agent program to send.
#[track_caller]
pub(crate) fn is_there() -> bool {
    if let Err(error) = Program::carried() {
        prerequisite::skip(error);
        return false;
    }
    shieling_testkit::ssh::is_there()
}

/// A transport with these options of the client besides its settings.
pub(crate) fn over_ssh(server: &Server, login: Login, setup: Setup, options: &[&str]) -> Ssh {
    let destination = format!("ssh://{}@far", login.name()).parse().expect("a destination");
    let mut all = vec!["-F".to_owned(), server.client_settings().display().to_string()];
    all.extend(options.iter().map(|&option| option.to_owned()));
    Ssh::new(destination, setup)
        .expect("looked for before")
        .with_options(all)
}
