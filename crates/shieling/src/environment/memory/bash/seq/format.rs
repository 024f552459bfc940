//! How `seq` writes a number: with the places that its operands have, or by a pattern of `printf`.

use super::decimal::Decimal;

/// The widest that a number is written.
const WIDEST: usize = 10_000;

/// A way to write numbers.
#[derive(Debug)]
pub(super) enum Format {
    /// So many places, and so wide with zeros.
    Plain {
        places: u32,
        width: usize,
    },
    Pattern(Box<Pattern>),
}

/// `a%-8.3fb`.
#[derive(Debug)]
pub(super) struct Pattern {
    before: String,
    behind: String,
    minus: bool,
    plus: bool,
    space: bool,
    zero: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
    directive: char,
}

impl Format {
    /// With the places of what is counted from and by. Where all are to be of the same width, `last`
    /// counts too.
    pub(super) fn plain(first: Decimal, step: Decimal, last: Option<Decimal>, wide: bool) -> Self {
        let places = first.places().max(step.places());
        let before = first.width().max(last.map_or(0, Decimal::width));
        let behind = if places > 0 {
            usize::try_from(places).unwrap_or(0) + 1
        } else {
            0
        };
        Self::Plain {
            places,
            width: if wide { before + behind } else { 0 },
        }
    }

    /// Reads a pattern, which has one directive of `e`, `f` or `g`.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let (before, rest) = literal(text);
        let Some(rest) = rest.strip_prefix('%') else {
            return Err(format!("format '{text}' has no % directive"));
        };
        let flags = rest.find(|flag| !"-+ #0'".contains(flag)).unwrap_or(rest.len());
        let (flags, rest) = rest.split_at(flags);
        let number = |text: &str| {
            let end = text.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(text.len());
            (text[..end].parse::<usize>().ok(), end)
        };
        let (width, end) = number(rest);
        let mut rest = &rest[end..];
        let mut precision = None;
        if let Some(behind) = rest.strip_prefix('.') {
            let (digits, end) = number(behind);
            precision = Some(digits.unwrap_or(0));
            rest = &behind[end..];
        }
        if width.unwrap_or(0).max(precision.unwrap_or(0)) > WIDEST {
            return Err(format!(
                "format '{text}' is wider than {WIDEST} characters, which memory does not write"
            ));
        }
        let rest = rest.strip_prefix('L').unwrap_or(rest);
        let directive = rest
            .chars()
            .next()
            .ok_or_else(|| format!("format '{text}' ends in %"))?;
        if !"eEfFgG".contains(directive) {
            return Err(format!("format '{text}' has unknown %{directive} directive"));
        }
        let (behind, left) = literal(&rest[1..]);
        if !left.is_empty() {
            return Err(format!("format '{text}' has too many % directives"));
        }
        Ok(Self::Pattern(Box::new(Pattern {
            before,
            behind,
            minus: flags.contains('-'),
            plus: flags.contains('+'),
            space: flags.contains(' '),
            zero: flags.contains('0'),
            alternate: flags.contains('#'),
            width: width.unwrap_or(0),
            precision,
            directive,
        })))
    }

    pub(super) fn write(&self, number: Decimal, into: &mut String) {
        match self {
            Self::Plain { places, width } => number.write(*places, *width, into),
            Self::Pattern(pattern) => pattern.write(number.float(), into),
        }
    }
}

/// What is written as it stands, and the rest from a directive on.
fn literal(text: &str) -> (String, &str) {
    let (mut literal, mut rest) = (String::new(), text);
    while let Some(at) = rest.find('%') {
        literal.push_str(&rest[..at]);
        match rest[at..].strip_prefix("%%") {
            Some(behind) => {
                literal.push('%');
                rest = behind;
            }
            None => return (literal, &rest[at..]),
        }
    }
    literal.push_str(rest);
    (literal, "")
}

impl Pattern {
    fn write(&self, number: f64, into: &mut String) {
        let sign = match (number.is_sign_negative(), self.plus, self.space) {
            (true, _, _) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            (false, false, false) => "",
        };
        let digits = self.digits(number.abs());
        let missing = self.width.saturating_sub(sign.len() + digits.len());
        let fill = |letter: char, into: &mut String| into.extend(std::iter::repeat_n(letter, missing));
        into.push_str(&self.before);
        if !self.minus && !self.zero {
            fill(' ', into);
        }
        into.push_str(sign);
        if self.zero && !self.minus {
            fill('0', into);
        }
        into.push_str(&digits);
        if self.minus {
            fill(' ', into);
        }
        into.push_str(&self.behind);
    }

    fn digits(&self, number: f64) -> String {
        let precision = self.precision.unwrap_or(6);
        let text = match self.directive.to_ascii_lowercase() {
            'f' => fixed(number, precision, self.alternate),
            'e' => scientific(number, precision, self.alternate),
            _ => self.shorter(number, precision.max(1)),
        };
        if self.directive.is_ascii_uppercase() {
            text.to_uppercase()
        } else {
            text
        }
    }

    /// `%g`: with so many digits, in the way that is shorter.
    fn shorter(&self, number: f64, precision: usize) -> String {
        let rounded = format!("{number:.*e}", precision - 1);
        let exponent = rounded
            .split_once('e')
            .and_then(|(_, exponent)| exponent.parse::<i64>().ok());
        let exponent = exponent.unwrap_or(0);
        let most = i64::try_from(precision).unwrap_or(i64::MAX);
        let text = if exponent < -4 || exponent >= most {
            scientific(number, precision - 1, self.alternate)
        } else {
            fixed(
                number,
                usize::try_from(most - 1 - exponent).unwrap_or(0),
                self.alternate,
            )
        };
        if self.alternate {
            return text;
        }
        let (digits, exponent) = match text.find('e') {
            Some(at) => text.split_at(at),
            None => (&*text, ""),
        };
        let digits = match digits.contains('.') {
            true => digits.trim_end_matches('0').trim_end_matches('.'),
            false => digits,
        };
        format!("{digits}{exponent}")
    }
}

fn fixed(number: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{number:.precision$}");
    if alternate && precision == 0 {
        format!("{text}.")
    } else {
        text
    }
}

fn scientific(number: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{number:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i64 = exponent.parse().unwrap_or(0);
    let sign = if exponent < 0 { '-' } else { '+' };
    let point = if alternate && precision == 0 { "." } else { "" };
    format!("{digits}{point}e{sign}{:02}", exponent.unsigned_abs())
}
