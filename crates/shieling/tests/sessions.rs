//! Sessions under attack: scripts that end, block, close, redefine, forge and flood, each run in
//! `local` and in `sandbox`, and whether the session is afterwards what it was before.
//!
//! ```text
//! prepare ─► the steps of a case ─► probe: the same shell, directory, variable, function, alias,
//!                                          trap, mask and option, and no byte of what came before
//! ```
//!
//! Which test covers what was observed of CAMEL's terminal toolkit (C) and Microsoft's shell tool (M), as
//! far as it concerns sessions and jobs. A name that stands alone is one of a case in `tests/sessions/`;
//! `mcp_sessions` is in the CLI's tests, the rest in this crate.
//!
//! | Rows | Observed there | Here |
//! |---|---|---|
//! | C2 | a kill ends the `sh` alone | `session::tests::ends::a_kill_ends_all_of_it_at_once` |
//! | C3 | one name, two jobs | `session::tests::registry::a_name_stands_for_one_job` |
//! | C4, M2 | daemons survive | `calls::m2_c4_…`, `M2 a child in a session of its own` |
//! | C5, M4 | `exit`, `kill -9 $$`, errexit, nounset lose everything | `C5 …` and `M4 …`, `calls::m4_…`, `mcp_sessions` |
//! | C6, C7 | bytes that are no text | `C6 C7 …`, `session::tests::views::bytes_that_are_no_text_end_nothing` |
//! | C8, C9 | slow, and the newest dropped | `C8 C9 …`, `session::tests::flood::many_lines_take_no_time_…` |
//! | C10, M15 to M17 | output without a bound, or cut wrongly | `C10 M16 …`, `M15 …` to `M17 …`, `session::tests::flood`, `mcp_sessions` |
//! | C11 | a prompt without a line end is not seen | `session::tests::views::a_prompt_without_a_newline_is_seen_at_once` |
//! | C12, C13 | typing waits for too long, or answers the question before | `session::tests::input` |
//! | C14 | output that looks like the tool's words | `C14 …`, `session::tests::views::output_that_looks_like_our_words_…`, `mcp_sessions` |
//! | C16, C17 | files of others removed, names that are paths | `session::recording::tests::what_is_not_ours_is_never_removed`, `a_name_is_never_a_path` |
//! | C20, M8 | readers of the input | `C20 M8 …`, `mcp_sessions` |
//! | M1 | a child holds the pipe | `M1 …` |
//! | M3 | a timeout loses the state | `M3 …`, `mcp_sessions::what_is_out_of_time_…` |
//! | M5 to M7 | comments, broken and open syntax | `M5 …` to `M7 …` |
//! | M9 | `exec` with redirections | `M9 …`, `mcp_sessions` |
//! | M10 to M12 | redefined builtins, traps that forge, tracing | `M10 …` to `M12 …`, `mcp_sessions` |
//! | M13 | a cancelled call answers the next | `calls::m13_…`, `mcp_sessions::two_calls_at_once_…` |
//! | M14 | a background job prints into the next call | `M14 …`, `calls::m14_…`, `mcp_sessions::what_prints_later_…` |
//! | M18 | long texts | `M18 …` |
//! | M19 | a deleted directory | `M19 …`, `mcp_sessions::a_deleted_directory_and_a_nul_are_told` |
//! | M20 | an allow-list of patterns lets `ls; id` through | `mcp_sessions::an_allow_list_holds_in_a_session` |
//! | M21 | NUL dropped silently | `mcp_sessions::a_deleted_directory_and_a_nul_are_told` |
//! | M22 | signals ignored | `M22 …`, `mcp_sessions::what_is_out_of_time_…` |
//!
//! As root, every third case is done again as an ordinary user. `SHIELING_SESSIONS=text` runs only the
//! cases whose names hold that text.
#![allow(clippy::disallowed_methods, reason = "places are built and looked at from outside")]
#![allow(clippy::print_stderr, reason = "what took how long is told")]

mod sessions {
    mod blocking;
    mod calls;
    mod descriptors;
    mod endings;
    mod forging;
    mod given_up;
    mod long;
    mod names;
    mod options;
    mod output;
    mod places;
    mod syntax;
    mod support;
    mod table;
    mod traps;
}
