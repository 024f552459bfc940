//! Files through the façade, over this host and over the sandbox: what each policy means for them, who is
//! asked, what is recorded, what links and races lead to.
#![expect(clippy::disallowed_methods, reason = "a test looks at its own workspace")]

mod place;
mod meanings;
mod approvals;
mod records;
mod links;
mod hidden;
mod hostile;
mod protected;
mod together;
mod turns;
mod races;
mod properties;
