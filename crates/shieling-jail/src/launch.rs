//! One command: a process of its supervisor's that binds itself and becomes the program.

use std::ffi::{CStr, CString};
use std::os::fd::{AsFd as _, OwnedFd};

use rustix::io::Errno;
use rustix::process::{Resource, Rlimit};
use shieling_jail::SCRIPT;
use shieling_jail::message::Stage;
use shieling_jail::plan::Request;

use crate::confine::Binding;
use crate::sys;

/// What a command is started with, besides its request.
pub(crate) struct Descriptors {
    /// Standard input, output and error.
    pub(crate) standard: [OwnedFd; 3],
    /// What it finds as [`SCRIPT`].
    pub(crate) script: Option<OwnedFd>,
}

/// Starts it. Returns once its program runs, or with what kept it from that.
pub(crate) fn launch(request: &Request, descriptors: Descriptors, binding: Binding<'_>) -> Result<i32, (Stage, Errno)> {
    // Before there is a process that borrows our memory: it shall find everything ready.
    let strings = |list: &[Vec<u8>]| -> Result<Vec<CString>, (Stage, Errno)> {
        let string = |bytes: &Vec<u8>| CString::new(bytes.clone()).map_err(|_| (Stage::Setup, Errno::INVAL));
        list.iter().map(string).collect()
    };
    let single = |bytes: &Vec<u8>| CString::new(bytes.clone()).map_err(|_| (Stage::Setup, Errno::INVAL));
    let (program, directory) = (single(&request.program)?, single(&request.directory)?);
    let (argv, variables) = (strings(&request.argv)?, strings(&request.variables)?);
    let argv: Vec<&CStr> = argv.iter().map(|a| a.as_c_str()).collect();
    let variables: Vec<&CStr> = variables.iter().map(|v| v.as_c_str()).collect();

    let mut failed = None;
    let pid = sys::borrow(&mut || {
        let failure = match prepare(request, &directory, &descriptors, binding) {
            Ok(()) => (Stage::Program, sys::execute(&program, &argv, &variables)),
            Err(failure) => failure,
        };
        // Seen by the supervisor, whose memory this is.
        failed = Some(failure);
    })
    .map_err(|errno| (Stage::Setup, errno))?;
    match failed {
        None => Ok(pid),
        Some(failure) => Err(failure),
    }
}

/// In the new process, which borrows its supervisor's memory: everything up to the exec.
fn prepare(
    request: &Request,
    directory: &CStr,
    descriptors: &Descriptors,
    binding: Binding<'_>,
) -> Result<(), (Stage, Errno)> {
    let setup = |errno| (Stage::Setup, errno);
    // Away from the terminal of whoever started the jail.
    rustix::process::setsid().map_err(setup)?;
    // Ours are all above, so that none of these is overwritten before it is copied.
    for (number, fd) in (0..).zip(&descriptors.standard) {
        sys::put(fd.as_fd(), number).map_err(setup)?;
    }
    let first_closed = match &descriptors.script {
        Some(script) => {
            sys::put(script.as_fd(), SCRIPT).map_err(setup)?;
            SCRIPT + 1
        }
        None => SCRIPT,
    };
    if request.terminal {
        sys::take_terminal().map_err(setup)?;
    }
    rustix::process::chdir(directory).map_err(|errno| (Stage::Directory, errno))?;
    let limit = |resource, value| {
        let both = Rlimit {
            current: Some(value),
            maximum: Some(value),
        };
        rustix::process::setrlimit(resource, both).map_err(|errno| (Stage::Limit, errno))
    };
    // With 0, the kernel would still hand a core dump to a program on the host that collects them
    // (`core_pattern`); 1 is its word for none at all, and no file is that small.
    limit(Resource::Core, 1)?;
    if let Some(bytes) = request.file_size {
        limit(Resource::Fsize, bytes)?;
    }
    let [terminal, ..] = &descriptors.standard;
    let terminal = request.terminal.then(|| terminal.as_fd());
    binding
        .bind_command(terminal)
        .map_err(|errno| (Stage::Confine, errno))?;
    sys::default_signals();
    // Each of ours has that flag anyway; this does not rest on it.
    sys::close_on_exec_from(first_closed).map_err(setup)
}
