//! The place where AI agents work: one execution environment in which every command is judged,
//! contained, bounded, recorded and reported truthfully.
//!
//! # Quick start
//!
//! Run a command in a sandbox, which has a workspace, the system's programs, and no network:
//!
//! ```no_run
//! # use {shieling::*, shieling::environment::*, shieling::policy::*, shieling::request::*, std::sync::Arc};
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let shell = Shell::find(None)?;
//! let sandbox = Sandbox::new(Restrictions::new("/work", shell.program()), shell);
//! let shieling = Shieling::builder(Arc::new(sandbox), Policy::open(), "/work").build()?;
//! let outcome = shieling.run(Command::new("make test", "/work")?, None).await;
//! println!("{:?}, exit code {:?}: {}", outcome.status, outcome.exit_code, outcome.stdout);
//! # Ok(())
//! # }
//! ```
//!
//! Hold a session, whose shell keeps its directory and variables from one command to the next:
//!
//! ```no_run
//! # use {shieling::*, shieling::request::*};
//! # async fn example(shieling: Shieling) -> Result<(), Box<dyn std::error::Error>> {
//! let session = shieling.session("main".parse()?);
//! session.run(Command::new("cd src && level=2", "/work")?).await;
//! let outcome = session.run(Command::new("echo $PWD $level", "/work")?).await;
//! assert_eq!(outcome.stdout, "/work/src 2\n");
//! # Ok(())
//! # }
//! ```
//!
//! Edit a file, unless it has changed since it was read:
//!
//! ```no_run
//! # use {shieling::*, shieling::files::*};
//! # async fn example(shieling: Shieling) -> Result<(), Box<dyn std::error::Error>> {
//! let read = shieling.read_file(ReadRequest::new("src/main.rs")).await?;
//! let mut edit = EditRequest::new("src/main.rs", "fn main() {}", "fn main() { run() }");
//! edit.expect = Some(read.hash);
//! println!("{}", shieling.edit_file(edit).await?.diff);
//! # Ok(())
//! # }
//! ```
//!
//! Supply an approver, which is asked before anything starts that the policy does not decide alone:
//!
//! ```no_run
//! # use {shieling::*, shieling::approval::*, shieling::environment::*, shieling::policy::*, std::sync::Arc};
//! # fn example(environment: Arc<dyn Environment>) -> Result<(), Box<dyn std::error::Error>> {
//! let approver = ApproverFn(|question: &Question| match question.text == "cargo publish" {
//!     true => Answer::Yes(Scope::Once),
//!     false => Answer::No("only publishing is approved here".to_owned()),
//! });
//! let shieling = Shieling::builder(environment, Policy::open(), "/work")
//!     .approver(Arc::new(approver))
//!     .build()?;
//! # Ok(())
//! # }
//! ```
//!
//! The directory `examples` has these as whole programs, and `environment.rs`, which implements an environment.
//!
//! # Reading the code
//!
//! The modules are declared in reading order, which is that of a request's journey:
//!
//! ```text
//! Request ─► Verdict ─► Approved<Request> ─► Environment ─► Process ─► Output ─► Outcome ─► Audit
//! ```
//!
//! The library reads no home directory, no environment variable and no ambient working directory: the caller passes
//! them in.

mod shieling;
mod path;
pub mod units;
pub mod request;
pub mod enforcement;
pub mod policy;
pub mod approval;
pub mod rate;
pub mod process;
#[cfg(feature = "gateway")]
pub mod network;
pub mod environment;
pub mod session;
pub mod files;
pub mod output;
pub mod outcome;
pub mod changes;
pub mod describe;
pub mod audit;

pub use shieling::{Builder, EnvironmentFacts, SessionHandle, Shieling, enforcement_of, hidden_of};
