//! What Shieling's tests share.

pub mod random;
pub mod scripts;
