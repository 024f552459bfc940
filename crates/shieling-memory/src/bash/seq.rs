//! `seq` over whole numbers without a limit: bashkit's stops after 100,000 lines.

use bashkit::{Command, CommandContext, CommandStatus, async_trait};

/// The number of bytes that are collected before a write.
const PIECE: usize = 16 * 1024;

/// `seq`.
pub(super) struct Seq;

/// The numbers to print.
struct Count {
    first: i128,
    step: i128,
    /// `None` if it never ends.
    last: Option<i128>,
    separator: String,
    width: usize,
}

#[async_trait]
impl Command for Seq {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let count = match read(ctx.args) {
            Ok(count) => count,
            Err(why) => {
                let said = format!("seq: {why}\nTry 'seq --help' for more information.\n");
                ctx.stderr.write_all(said.as_bytes()).await?;
                return Ok(CommandStatus::with_code(1));
            }
        };
        let (mut piece, mut next, mut any) = (String::new(), Some(count.first), false);
        let is_past = |number: i128| {
            count
                .last
                .is_some_and(|last| if count.step < 0 { number < last } else { number > last })
        };
        while let Some(number) = next.filter(|number| !is_past(*number)) {
            if any {
                piece.push_str(&count.separator);
            }
            any = true;
            piece.push_str(&format!("{number:0width$}", width = count.width));
            if piece.len() >= PIECE {
                ctx.stdout.write_all(piece.as_bytes()).await?;
                piece.clear();
                // A discarded output never blocks, so check for an interruption here.
                tokio::task::yield_now().await;
            }
            next = number.checked_add(count.step);
        }
        if any {
            piece.push('\n');
        }
        ctx.stdout.write_all(piece.as_bytes()).await?;
        Ok(CommandStatus::success())
    }
}

/// Parses the arguments. A negative number ends the options.
fn read(args: &[String]) -> Result<Count, String> {
    let (mut separator, mut wide) = ("\n".to_owned(), false);
    let mut rest = args.iter().peekable();
    let is_option = |arg: &str| {
        arg.len() > 1 && arg.starts_with('-') && !arg[1..].starts_with(|c: char| c.is_ascii_digit() || c == '.')
    };
    while let Some(arg) = rest.next_if(|arg| is_option(arg)) {
        match arg.as_str() {
            "--" => break,
            "-w" | "--equal-width" => wide = true,
            "-s" | "--separator" => separator = rest.next().cloned().ok_or("option requires an argument -- 's'")?,
            other => match other.strip_prefix("-s").or_else(|| other.strip_prefix("--separator=")) {
                Some(value) => separator = value.to_owned(),
                None => {
                    return Err(format!(
                        "unrecognized option '{other}', or one that memory does not have"
                    ));
                }
            },
        }
    }
    let numbers: Vec<&String> = rest.collect();
    let number = |text: &String| match text.as_str() {
        "inf" | "infinity" => Ok(None),
        other => other
            .parse()
            .map(Some)
            .map_err(|_| format!("memory counts whole numbers only, and not '{other}'")),
    };
    let (first, step, last) = match *numbers {
        [] => return Err("missing operand".to_owned()),
        [last] => (Some(1), Some(1), number(last)?),
        [first, last] => (number(first)?, Some(1), number(last)?),
        [first, step, last] => (number(first)?, number(step)?, number(last)?),
        [_, _, _, extra, ..] => return Err(format!("extra operand '{extra}'")),
    };
    let (Some(first), Some(step)) = (first, step) else {
        return Err("memory counts from a whole number, by a whole number".to_owned());
    };
    if step == 0 {
        return Err("invalid Zero increment value: '0'".to_owned());
    }
    let length = |number: i128| number.to_string().len();
    let width = if wide {
        length(first).max(last.map_or(0, length))
    } else {
        0
    };
    Ok(Count {
        first,
        step,
        last,
        separator,
        width,
    })
}
