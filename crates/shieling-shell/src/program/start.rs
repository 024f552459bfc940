//! Programs that start others.

use crate::reader::{Launch, Reader, Run};
use crate::screen::Unreadable;
use crate::word::Word;

type Result = std::result::Result<(), Unreadable>;

/// Launches operands as a command.
pub(super) fn launch(argv: &[Word], run: &Run, reader: &mut Reader<'_>) -> Result {
    let Some(first) = argv.first() else { return Ok(()) };
    let span = argv.iter().fold(first.span, |all, word| all.to(word.span));
    reader.launch_deeper(Launch {
        argv: argv.to_vec(),
        span,
        functions: false,
        more: run.more,
    })
}

/// A string that names a program with its arguments, split at blanks.
pub(super) fn launch_text(word: &Word, run: &Run, reader: &mut Reader<'_>) -> Result {
    match word.known() {
        Some(text) if !text.contains(['\'', '"', '\\', '$', '`']) => {
            // Compilers split what they start at commas.
            let argv: Vec<Word> = text
                .split(|c: char| c.is_whitespace() || c == ',')
                .filter(|part| !part.is_empty())
                .map(|part| Word::text(part, word.span))
                .collect();
            // Whoever starts it gives it further arguments.
            launch(
                &argv,
                &Run {
                    more: true,
                    ..run.clone()
                },
                reader,
            )
        }
        Some(_) | None => {
            reader.unknown_launch(word, run);
            Ok(())
        }
    }
}
