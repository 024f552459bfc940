//! Files and a bash in memory: what commands find there, that rules hold, and that nothing else is
//! there.
#![allow(
    clippy::disallowed_methods,
    reason = "tests compare with a real bash and with folders of this host"
)]

mod memory {
    mod alone;
    mod bytes;
    mod commands;
    mod files;
    mod hostile;
    mod like;
    mod modes;
    mod place;
    mod rules;
    mod same;
    mod shared;
    mod shells;
    pub(crate) mod support;
    mod input;
}
