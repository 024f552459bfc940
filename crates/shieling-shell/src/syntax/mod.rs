//! The grammar of bash: text to a tree.
//!
//! Our own, and not a parser library's, for one reason above all: it reads every text in time that
//! grows with its length. The grammar of the library that we used before backtracks, and takes twice as
//! long for each level of `case`, parentheses or `${a[…]}`, so that a line of 60 bytes could stop a
//! judgement for minutes. Here nothing is read twice at the same level, and nesting has a limit.
//!
//! What is not understood is an error, never a guess: the caller asks about it.

mod command;
mod condition;
mod error;
mod lexer;
mod pieces;
pub(crate) mod tree;

pub(crate) use command::is_name;
pub(crate) use error::Result;
pub(crate) use pieces::{heredoc_pieces, pieces};

use tree::Program;

/// Parses a whole text as bash parses what it is given with `-c`.
pub(crate) fn parse(text: &str) -> Result<Program> {
    let mut parser = lexer::Parser::new(text);
    let list = parser.list(false)?;
    if parser.at < text.len() {
        return parser.error();
    }
    parser.finish_documents()?;
    Ok(Program {
        list,
        documents: parser.documents,
        only_bash: parser.only_bash,
    })
}

/// How a text inside braces splits into what may be a list or a sequence; see [`pieces::braces`].
pub(crate) use pieces::braces;
