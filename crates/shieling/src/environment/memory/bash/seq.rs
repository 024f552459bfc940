//! `seq` and `yes`, which print for as long as somebody reads: bashkit's stop early.

mod decimal;
mod format;

use bashkit::{Command, CommandContext, CommandOutput, CommandStatus, async_trait};

use self::decimal::Decimal;
use self::format::Format;

/// How much is gathered before it is written.
const PIECE: usize = 16 * 1024;

/// `yes`.
pub(super) struct Yes;

#[async_trait]
impl Command for Yes {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        let words = match ctx.args {
            [first, rest @ ..] if first == "--" => rest,
            args => args,
        };
        if let Some(option) = ctx
            .args
            .first()
            .filter(|arg| arg.starts_with('-') && arg.len() > 1 && *arg != "--")
        {
            let why = match option.strip_prefix("--") {
                Some(_) => format!("unrecognized option '{option}'"),
                None => format!("invalid option -- '{}'", option.chars().nth(1).unwrap_or('-')),
            };
            return refuse(&ctx, &why).await;
        }
        let line = if words.is_empty() {
            "y\n".to_owned()
        } else {
            format!("{}\n", words.join(" "))
        };
        let piece = line.repeat((PIECE / line.len()).max(1));
        loop {
            ctx.stdout.write_all(piece.as_bytes()).await?;
            // Where it is thrown away, nobody has it wait.
            tokio::task::yield_now().await;
        }
    }
}

/// `seq`.
pub(super) struct Seq;

/// What is to be counted.
#[derive(Debug)]
struct Count {
    first: Decimal,
    step: Decimal,
    /// None where it never ends.
    last: Option<Decimal>,
    separator: String,
    format: Format,
}

#[async_trait]
impl Command for Seq {
    async fn execute(&self, ctx: CommandContext<'_>) -> bashkit::Result<CommandStatus> {
        match read(ctx.args) {
            Ok(count) => count.print(&ctx.stdout).await,
            Err(why) => refuse(&ctx, &why).await,
        }
    }
}

async fn refuse(ctx: &CommandContext<'_>, why: &str) -> bashkit::Result<CommandStatus> {
    let name = ctx.name;
    let said = format!("{name}: {why}\nTry '{name} --help' for more information.\n");
    ctx.stderr.write_all(said.as_bytes()).await?;
    Ok(CommandStatus::with_code(1))
}

impl Count {
    async fn print(&self, stdout: &CommandOutput) -> bashkit::Result<CommandStatus> {
        let mut piece = String::new();
        let mut next = Some(self.first);
        let mut any = false;
        while let Some(number) = next.filter(|number| !self.is_past(*number)) {
            if any {
                piece.push_str(&self.separator);
            }
            any = true;
            self.format.write(number, &mut piece);
            if piece.len() >= PIECE {
                stdout.write_all(piece.as_bytes()).await?;
                piece.clear();
                // Where it is thrown away, nobody has it wait.
                tokio::task::yield_now().await;
            }
            next = number.plus(self.step);
        }
        if any {
            piece.push('\n');
        }
        stdout.write_all(piece.as_bytes()).await?;
        Ok(CommandStatus::success())
    }

    fn is_past(&self, number: Decimal) -> bool {
        match self.last {
            None => false,
            Some(last) if self.step.is_negative() => number < last,
            Some(last) => number > last,
        }
    }
}

/// Reads the arguments. What looks like a negative number ends the options.
fn read(args: &[String]) -> Result<Count, String> {
    let (mut separator, mut wide, mut pattern) = ("\n".to_owned(), false, None);
    let mut rest = args.iter().peekable();
    while let Some(arg) = rest.next_if(|arg| is_option(arg)) {
        if arg == "--" {
            break;
        }
        let (name, attached) = match arg.strip_prefix("--") {
            Some(long) => match long.split_once('=') {
                Some((name, value)) => (long_name(name, arg)?, Some(value.to_owned())),
                None => (long_name(long, arg)?, None),
            },
            None => {
                let mut letters = arg[1..].chars();
                while letters.as_str().starts_with('w') {
                    wide = true;
                    letters.next();
                }
                match letters.next() {
                    None => continue,
                    Some('s') => ('s', Some(letters.as_str().to_owned()).filter(|value| !value.is_empty())),
                    Some('f') => ('f', Some(letters.as_str().to_owned()).filter(|value| !value.is_empty())),
                    Some(other) => return Err(format!("invalid option -- '{other}'")),
                }
            }
        };
        if name == 'w' {
            wide = true;
            continue;
        }
        let value = attached.or_else(|| rest.next().cloned());
        let value = value.ok_or_else(|| format!("option requires an argument -- '{name}'"))?;
        match name {
            's' => separator = value,
            _ => pattern = Some(value),
        }
    }
    let numbers: Vec<&String> = rest.collect();
    if let Some(extra) = numbers.get(3) {
        return Err(format!("extra operand '{extra}'"));
    }
    let parsed = |text: &&String| {
        let invalid = || format!("invalid floating point argument: '{text}'");
        Decimal::read(text).ok_or_else(invalid)
    };
    let finite =
        |text: &&String| parsed(text)?.ok_or_else(|| format!("memory counts from and by finite numbers: '{text}'"));
    let one = Decimal::ONE;
    let (first, step, last) = match &numbers[..] {
        [] => return Err("missing operand".to_owned()),
        [last] => (one, one, parsed(last)?),
        [first, last] => (finite(first)?, one, parsed(last)?),
        [first, step, last, ..] => (finite(first)?, finite(step)?, parsed(last)?),
    };
    if step.is_zero() {
        return Err(format!("invalid Zero increment value: '{}'", numbers[1]));
    }
    let endless_down = numbers.last().is_some_and(|text| text.trim_start().starts_with('-'));
    // Counting up to minus infinity, or down to infinity, is over before it begins.
    let never = last.is_none() && endless_down != step.is_negative();
    let last = if never { Some(first.before(step)) } else { last };
    let places = first.places().max(step.places());
    let all = [Some(first), Some(step), last];
    if !all.iter().flatten().all(|number| number.fits(places)) {
        return Err("memory counts with 38 digits at most".to_owned());
    }
    if pattern.is_some() && !all.iter().flatten().all(|number| number.is_exact_float()) {
        return Err("memory writes numbers by a format up to 2^53 only".to_owned());
    }
    if wide && pattern.is_some() {
        return Err("format string may not be specified when printing equal width strings".to_owned());
    }
    let format = match pattern {
        Some(pattern) => Format::read(&pattern)?,
        None => Format::plain(first, step, last.filter(|_| wide), wide),
    };
    Ok(Count {
        first,
        step,
        last,
        separator,
        format,
    })
}

fn is_option(arg: &str) -> bool {
    let mut letters = arg.chars();
    letters.next() == Some('-')
        && letters
            .next()
            .is_some_and(|next| !next.is_ascii_digit() && !matches!(next, '.' | 'i' | 'I'))
}

fn long_name(name: &str, arg: &str) -> Result<char, String> {
    let known = [("equal-width", 'w'), ("format", 'f'), ("separator", 's')];
    let found = known
        .iter()
        .find(|(full, _)| !name.is_empty() && full.starts_with(name));
    found
        .map(|(_, letter)| *letter)
        .ok_or_else(|| format!("unrecognized option '{arg}'"))
}

#[cfg(test)]
mod tests {
    use super::read;

    fn printed(text: &str) -> String {
        let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
        let count = match read(&args) {
            Ok(count) => count,
            Err(why) => return why,
        };
        let (mut all, mut next) = (Vec::new(), Some(count.first));
        while let Some(number) = next.filter(|number| !count.is_past(*number) && all.len() < 9) {
            let mut line = String::new();
            count.format.write(number, &mut line);
            all.push(line);
            next = number.plus(count.step);
        }
        all.join(&count.separator.replace('\n', " "))
    }

    #[test]
    fn seq_counts_as_gnu_does() {
        let cases = [
            ("3", "1 2 3"),
            ("2 5", "2 3 4 5"),
            ("5 -2 1", "5 3 1"),
            ("-s, 3", "1,2,3"),
            ("-w 8 11", "08 09 10 11"),
            ("-w -1 1", "-1 00 01"),
            ("-w 1 .5 2", "1.0 1.5 2.0"),
            ("-ws: 9 10", "09:10"),
            ("0.5 0.5 2", "0.5 1.0 1.5 2.0"),
            (".1 .1 .5", "0.1 0.2 0.3 0.4 0.5"),
            ("1 .5 2.25", "1.0 1.5 2.0"),
            ("0 0.1 0.3", "0.0 0.1 0.2 0.3"),
            ("1 0", ""),
            ("1 -1", ""),
            ("-5 -3", "-5 -4 -3"),
            ("1e3 1e3 3e3", "1000 2000 3000"),
            ("1.5e1 16", "15 16"),
            ("0xa", "1 2 3 4 5 6 7 8 9"),
            ("9999999 10000001", "9999999 10000000 10000001"),
            (
                "99999999999999999999 100000000000000000001",
                "99999999999999999999 100000000000000000000 100000000000000000001",
            ),
            ("1 inf", "1 2 3 4 5 6 7 8 9"),
            ("1 -inf", ""),
            ("1 -1 -inf", "1 0 -1 -2 -3 -4 -5 -6 -7"),
            ("-f %03g 3", "001 002 003"),
            ("-f %g%% 2", "1% 2%"),
            ("-f a%.2fb 2", "a1.00b a2.00b"),
            ("-f %e 1", "1.000000e+00"),
            ("-f %5.1f 2", "  1.0   2.0"),
            ("-f %-5gx 1", "1    x"),
            ("-f %g 1000000 1000001", "1e+06 1e+06"),
            ("-f %d 2", "format '%d' has unknown %d directive"),
            ("-f x 2", "format 'x' has no % directive"),
            ("-f %g%g 2", "format '%g%g' has too many % directives"),
            (
                "-w -f %g 2",
                "format string may not be specified when printing equal width strings",
            ),
            ("1e30 1e-10 2e30", "memory counts with 38 digits at most"),
            (
                "-f %.0f 9007199254740993 9007199254740994",
                "memory writes numbers by a format up to 2^53 only",
            ),
            ("x", "invalid floating point argument: 'x'"),
            ("1 0 5", "invalid Zero increment value: '0'"),
            ("--zzz 3", "unrecognized option '--zzz'"),
            ("-y 3", "invalid option -- 'y'"),
            ("1 2 3 4", "extra operand '4'"),
        ];
        for (given, expected) in cases {
            assert_eq!(printed(given), expected, "{given}");
        }
    }
}
