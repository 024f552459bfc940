//! What the host asks of the jail, and how both talk: plan, requests, messages, and their encoding.
//!
//! The program `shieling-jail` (feature `program`) applies a [`Plan`](plan::Plan), reports what holds,
//! and then starts one command after another, as pid 1 of its sandbox. It knows nothing of policies:
//! the host has turned *readonly*, *hidden* and *allowed programs* into a view of files before.
//!
//! ```text
//! orders socket:   JAIL + control, updates, Plan ──► zygote         for each jail
//! control socket:  Ready | Refused ──► host                         once
//!                  SOCKETS ──► host                                  before Ready, for a plan with a gateway
//!                  START + job socket, Request, streams ──► jail    for each command; LAST for the last
//! updates socket:  Update ──► jail ── Updated ──► host               where files appeared to be hidden
//!                  LISTEN ──► jail ── Updated, sockets ──► host      where names need more listeners
//!                  GONE ──► host                                     once, of a jail with namespaces
//! job socket:      Started | Failed, MainEnded, Gone ──► host;  Stop ──► jail
//! ```
//!
//! Plans, requests and updates travel as files in memory; all sockets are of kind `SOCK_SEQPACKET`.

// The modules of the program name what is above by the crate's name, as its tests do.
#[cfg(feature = "program")]
extern crate self as shieling_jail;

mod bytes;
pub mod message;
pub mod plan;
#[cfg(feature = "program")]
pub mod program;
#[cfg(feature = "program")]
mod zygote;
#[cfg(feature = "program")]
mod monitor;
#[cfg(feature = "program")]
mod order;
#[cfg(feature = "program")]
mod inside;
#[cfg(feature = "program")]
mod own;
#[cfg(feature = "program")]
mod view;
#[cfg(feature = "program")]
mod numbers;
#[cfg(feature = "program")]
mod bounds;
#[cfg(feature = "program")]
mod temporary;
#[cfg(feature = "program")]
mod rules;
#[cfg(feature = "program")]
mod filter;
#[cfg(feature = "program")]
mod confine;
#[cfg(feature = "program")]
mod probe;
#[cfg(feature = "program")]
mod limits;
#[cfg(feature = "program")]
mod gateway;
#[cfg(feature = "program")]
mod init;
#[cfg(feature = "program")]
mod supervisor;
#[cfg(feature = "program")]
mod subtrees;
#[cfg(feature = "program")]
mod launch;
#[cfg(feature = "program")]
mod tree;
#[cfg(feature = "program")]
mod socket;
#[cfg(feature = "program")]
mod refusal;
#[cfg(feature = "program")]
mod sys;

/// The descriptor under which the program finds its orders socket.
pub const ORDERS: i32 = 3;
/// The descriptor under which a program finds the script of its [`plan::Request`], if it has one.
pub const SCRIPT: i32 = 3;
