//! How `ls` prints what it lists.

use std::time::{Duration, SystemTime};

use super::super::Call;
use super::super::mode::letters;
use super::super::moment::Moment;
use super::super::options::Asked;
use super::Item;
use crate::environment::Kind;
use crate::environment::memory::bash::USER;

/// What is younger shows its time of day, and what is older its year.
const RECENT: Duration = Duration::from_secs(31_556_952 / 2);

const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// How names are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quoting {
    Literal,
    Escape,
    Quotes,
    /// Control characters become `?`.
    Question,
}

/// How times are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Times {
    Usual,
    Iso,
    LongIso,
    FullIso,
}

/// What stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Marks {
    None,
    Slash,
    FileType,
    Classify,
}

/// What is shown of each.
pub(super) struct Shown {
    /// Whether `.` and `..` are.
    pub(super) dots: bool,
    long: bool,
    owner: bool,
    group: bool,
    human: bool,
    blocks: bool,
    number: bool,
    times: Times,
    marks: Marks,
    quoting: Quoting,
    end: char,
}

impl Shown {
    pub(super) fn of(asked: &Asked, dots: bool) -> Result<Self, String> {
        let invalid = |option: &str| {
            format!(
                "invalid argument '{}' for '--{option}'",
                asked.value(option).unwrap_or("")
            )
        };
        let times = match asked.last(&["full-time", "time-style"]) {
            None => Times::Usual,
            Some("full-time") => Times::FullIso,
            Some(_) => match asked.value("time-style") {
                Some("locale") => Times::Usual,
                Some("iso") => Times::Iso,
                Some("long-iso") => Times::LongIso,
                Some("full-iso") => Times::FullIso,
                _ => return Err(invalid("time-style")),
            },
        };
        let when = match asked.value("classify-when") {
            None | Some("always" | "yes" | "force") => Marks::Classify,
            Some("auto" | "never" | "no" | "none" | "tty") => Marks::None,
            Some(other) => return Err(format!("invalid argument '{other}' for '--classify'")),
        };
        let marks = match asked.last(&["classify", "classify-when", "file-type", "slash", "indicator"]) {
            None => Marks::None,
            Some("classify") => Marks::Classify,
            Some("classify-when") => when,
            Some("file-type") => Marks::FileType,
            Some("slash") => Marks::Slash,
            Some(_) => match asked.value("indicator") {
                Some("none") => Marks::None,
                Some("slash") => Marks::Slash,
                Some("file-type") => Marks::FileType,
                Some("classify") => Marks::Classify,
                _ => return Err(invalid("indicator")),
            },
        };
        let quoting = match asked.last(&["literal", "escape", "quote", "question"]) {
            Some("escape") => Quoting::Escape,
            Some("quote") => Quoting::Quotes,
            Some("question") => Quoting::Question,
            Some(_) | None => Quoting::Literal,
        };
        let short = asked.has("no-owner") || asked.has("no-group");
        let one_after = asked.last(&["one", "long", "no-owner", "no-group", "full-time"]) == Some("one");
        Ok(Self {
            dots,
            long: asked.has("long") || short || asked.has("full-time") || one_after && asked.has("long"),
            owner: !asked.has("no-owner"),
            group: !asked.has("no-group") && !asked.has("bare-group"),
            human: asked.has("human"),
            blocks: asked.has("blocks"),
            number: asked.has("number"),
            times,
            marks,
            quoting,
            end: if asked.has("zero") { '\0' } else { '\n' },
        })
    }

    /// Whether lines are long.
    pub(super) fn long(&self) -> bool {
        self.long
    }

    /// A name as it is written.
    pub(super) fn quoted(&self, name: &str) -> String {
        let mut text = String::new();
        for letter in name.chars() {
            match (self.quoting, letter) {
                (Quoting::Literal, letter) => text.push(letter),
                (Quoting::Question, letter) => text.push(if letter.is_control() { '?' } else { letter }),
                (_, '\n') => text.push_str("\\n"),
                (_, '\t') => text.push_str("\\t"),
                (_, '\r') => text.push_str("\\r"),
                (_, '\\') => text.push_str("\\\\"),
                (Quoting::Escape, ' ') => text.push_str("\\ "),
                (Quoting::Quotes, '"') => text.push_str("\\\""),
                (_, letter) if letter.is_control() => {
                    let mut bytes = [0; 4];
                    for byte in letter.encode_utf8(&mut bytes).bytes() {
                        text.push_str(&format!("\\{byte:03o}"));
                    }
                }
                (_, letter) => text.push(letter),
            }
        }
        match self.quoting {
            Quoting::Quotes => format!("\"{text}\""),
            Quoting::Literal | Quoting::Escape | Quoting::Question => text,
        }
    }

    /// Prints what is in one directory, or what was named.
    pub(super) fn print(&self, call: &mut Call<'_>, items: &[Item], total: bool) {
        if total && (self.long || self.blocks) {
            let sum = items.iter().map(blocks).sum::<u64>();
            let sum = if self.human { human(sum * 1024) } else { sum.to_string() };
            call.out.push_str(&format!("total {sum}{}", self.end));
        }
        let now = call.inside.now();
        let columns: Vec<Vec<String>> = items.iter().map(|item| self.columns(item, now)).collect();
        let width = |at: usize| columns.iter().map(|row| row[at].len()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns.first().map_or(0, Vec::len)).map(width).collect();
        for (item, row) in items.iter().zip(&columns) {
            for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
                // Names of people stand on the left.
                let text = match at {
                    4 | 5 => format!("{cell:<width$}"),
                    _ => format!("{cell:>width$}"),
                };
                if *width > 0 {
                    call.out.push_str(&text);
                    call.out.push(' ');
                }
            }
            call.out.push_str(&self.quoted(&item.name));
            match &item.target {
                Some(target) if self.long => call.out.push_str(&format!(" -> {}", self.quoted(target))),
                Some(_) | None => call.out.push_str(self.mark(item)),
            }
            call.out.push(self.end);
        }
    }

    /// What stands before a name: number, blocks, mode, links, owner, group, size, time. What is not
    /// shown is empty.
    fn columns(&self, item: &Item, now: SystemTime) -> Vec<String> {
        let shown = |shown: bool, text: String| if shown { text } else { String::new() };
        let kind = match item.about.kind {
            Kind::Directory => 'd',
            Kind::Link => 'l',
            Kind::File | Kind::Fifo | Kind::Socket | Kind::Device => '-',
        };
        let size = |bytes: u64| if self.human { human(bytes) } else { bytes.to_string() };
        let room = if self.human {
            human(blocks(item) * 1024)
        } else {
            blocks(item).to_string()
        };
        vec![
            shown(self.number, item.id.to_string()),
            shown(self.blocks, room),
            shown(self.long, format!("{kind}{}", letters(item.about.mode))),
            shown(self.long, item.links.to_string()),
            shown(self.long && self.owner, USER.to_owned()),
            shown(self.long && self.group, USER.to_owned()),
            shown(self.long, size(item.about.size)),
            shown(self.long, self.time(item.about.modified, now)),
        ]
    }

    fn mark(&self, item: &Item) -> &'static str {
        match (self.marks, item.about.kind) {
            (Marks::None, _) => "",
            (_, Kind::Directory) => "/",
            (Marks::Slash, _) => "",
            (Marks::FileType | Marks::Classify, Kind::Link) => "@",
            (Marks::Classify, Kind::File) if item.about.mode & 0o111 != 0 => "*",
            (Marks::FileType | Marks::Classify, Kind::File | Kind::Fifo | Kind::Socket | Kind::Device) => "",
        }
    }

    /// When something was changed, in UTC.
    fn time(&self, time: SystemTime, now: SystemTime) -> String {
        let moment = Moment::of(time);
        let Moment {
            year,
            month,
            day,
            hour,
            minute,
            ..
        } = moment;
        let name = MONTHS[usize::try_from(month - 1).unwrap_or(0)];
        let recent = now.duration_since(time).is_ok_and(|age| age < RECENT);
        match self.times {
            Times::Usual if recent => format!("{name} {day:>2} {hour:02}:{minute:02}"),
            Times::Usual => format!("{name} {day:>2}  {year}"),
            Times::Iso if recent => format!("{month:02}-{day:02} {hour:02}:{minute:02}"),
            Times::Iso => format!("{year}-{month:02}-{day:02} "),
            Times::LongIso => format!("{year}-{month:02}-{day:02} {hour:02}:{minute:02}"),
            Times::FullIso => moment.to_string(),
        }
    }
}

/// What something takes on a usual disk, in KiB.
fn blocks(item: &Item) -> u64 {
    item.about.blocks() / 2
}

/// A size as people read it, rounded up: `1.1K`, `12M`.
fn human(bytes: u64) -> String {
    let (mut unit, mut divisor) = (0, 1_u64);
    while bytes.div_ceil(divisor) >= 1024 && unit < 6 {
        unit += 1;
        divisor <<= 10;
    }
    if unit == 0 {
        return bytes.to_string();
    }
    let tenths = (u128::from(bytes) * 10).div_ceil(u128::from(divisor));
    let letter = ["", "K", "M", "G", "T", "P", "E"][unit];
    if tenths < 100 {
        format!("{}.{}{letter}", tenths / 10, tenths % 10)
    } else {
        format!("{}{letter}", tenths.div_ceil(10))
    }
}

#[cfg(test)]
mod tests {
    use super::human;

    #[test]
    fn sizes_are_rounded_up_as_people_read_them() {
        let cases = [
            (0, "0"),
            (1023, "1023"),
            (1024, "1.0K"),
            (1025, "1.1K"),
            (10_240, "10K"),
            (10_241, "11K"),
            (1_048_575, "1.0M"),
            (1_048_576, "1.0M"),
            (u64::MAX, "16E"),
        ];
        for (bytes, expected) in cases {
            assert_eq!(human(bytes), expected, "{bytes}");
        }
    }
}
