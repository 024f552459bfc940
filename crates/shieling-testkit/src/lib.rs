//! What Shieling's tests share.
