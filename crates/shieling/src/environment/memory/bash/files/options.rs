//! Options of a program as GNU's `getopt` reads them: clusters, values that follow or are attached,
//! long names that may be cut short, and operands in between.

/// What one option does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    Nothing,
    Value,
    /// A value behind `=` only, for a long name.
    Maybe,
}

/// One option: what it is called here, its letters, its long name (or nothing) and what it takes.
pub(super) type Known = (&'static str, &'static str, &'static str, Takes);

/// What was asked for.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    /// The options in their order, by what they are called here, with their values.
    pub(super) options: Vec<(&'static str, Option<String>)>,
    pub(super) operands: Vec<String>,
}

impl Asked {
    pub(super) fn has(&self, name: &str) -> bool {
        self.options.iter().any(|(given, _)| *given == name)
    }

    /// The value of the last one of this name.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        let given = self.options.iter().rev().find(|(given, _)| *given == name)?;
        given.1.as_deref()
    }

    /// The last one given of these.
    pub(super) fn last(&self, names: &[&str]) -> Option<&'static str> {
        let given = self.options.iter().rev().map(|(given, _)| *given);
        given.into_iter().find(|given| names.contains(given))
    }
}

/// Reads arguments.
///
/// # Errors
/// What `getopt` says, without the name of the program.
pub(super) fn read(args: &[String], known: &[Known]) -> Result<Asked, String> {
    let mut asked = Asked::default();
    let mut rest = args.iter();
    while let Some(arg) = rest.next() {
        if arg == "--" {
            asked.operands.extend(rest.cloned());
            break;
        }
        if let Some(long) = arg.strip_prefix("--") {
            let (name, attached) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let &(called, _, full, takes) = by_name(name, known, arg)?;
            let value = match (takes, attached) {
                (Takes::Nothing, Some(_)) => return Err(format!("option '--{full}' doesn't allow an argument")),
                (Takes::Nothing | Takes::Maybe, None) => None,
                (Takes::Value, None) => {
                    let next = rest.next().cloned();
                    Some(next.ok_or_else(|| format!("option '--{full}' requires an argument"))?)
                }
                (Takes::Value | Takes::Maybe, attached) => attached,
            };
            asked.options.push((called, value));
            continue;
        }
        let Some(letters) = arg.strip_prefix('-').filter(|letters| !letters.is_empty()) else {
            asked.operands.push(arg.clone());
            continue;
        };
        for (at, letter) in letters.char_indices() {
            let found = known.iter().find(|(_, known, _, _)| known.contains(letter));
            let &(called, _, _, takes) = found.ok_or_else(|| format!("invalid option -- '{letter}'"))?;
            if takes != Takes::Value {
                asked.options.push((called, None));
                continue;
            }
            let attached = &letters[at + letter.len_utf8()..];
            let value = match attached {
                "" => rest.next().cloned(),
                attached => Some(attached.to_owned()),
            };
            let value = value.ok_or_else(|| format!("option requires an argument -- '{letter}'"))?;
            asked.options.push((called, Some(value)));
            break;
        }
    }
    Ok(asked)
}

fn by_name<'a>(name: &str, known: &'a [Known], arg: &str) -> Result<&'a Known, String> {
    let full = |(_, _, full, _): &&Known| !full.is_empty();
    if let Some(exact) = known.iter().filter(full).find(|(_, _, full, _)| *full == name) {
        return Ok(exact);
    }
    let mut begun = known
        .iter()
        .filter(full)
        .filter(|(_, _, full, _)| full.starts_with(name));
    match (begun.next(), begun.next()) {
        (Some(only), None) => Ok(only),
        (Some(_), Some(_)) => Err(format!("option '{arg}' is ambiguous")),
        (None, _) => Err(format!("unrecognized option '{arg}'")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Known, Takes, read};

    const KNOWN: &[Known] = &[
        ("all", "a", "all", Takes::Nothing),
        ("also", "", "also", Takes::Nothing),
        ("mode", "m", "mode", Takes::Value),
        ("color", "", "color", Takes::Maybe),
    ];

    fn told(text: &str) -> String {
        let args: Vec<String> = text.split(' ').map(str::to_owned).collect();
        match read(&args, KNOWN) {
            Ok(asked) => {
                let options = asked.options.iter().map(|(name, value)| match value {
                    Some(value) => format!("{name}={value}"),
                    None => (*name).to_owned(),
                });
                format!(
                    "{} | {}",
                    options.collect::<Vec<_>>().join(" "),
                    asked.operands.join(" ")
                )
            }
            Err(why) => why,
        }
    }

    #[test]
    fn options_are_read_as_getopt_reads_them() {
        let cases = [
            ("x -a y", "all | x y"),
            ("-am 5 -", "all mode=5 | -"),
            ("-m7 -- -a", "mode=7 | -a"),
            ("--mode 1 --mod=2", "mode=1 mode=2 | "),
            ("--color --color=x", "color color=x | "),
            ("--al", "option '--al' is ambiguous"),
            ("--all=1", "option '--all' doesn't allow an argument"),
            ("--mode", "option '--mode' requires an argument"),
            ("-m", "option requires an argument -- 'm'"),
            ("-ax", "invalid option -- 'x'"),
            ("--zzz", "unrecognized option '--zzz'"),
        ];
        for (given, expected) in cases {
            assert_eq!(told(given), expected, "{given}");
        }
    }
}
