//! `ls`, one name per line. Bashkit's omits `.` and `..`, and lists directories in the order of the arguments.

use std::cmp::Reverse;
use std::time::{Duration, SystemTime};

use shieling::environment::Kind;
use shieling::units::civil;

use super::invocation::{Invocation, names, said, within};
use crate::bash::user::USER;
use crate::tree::{Follow, Id, NodeInfo};

/// The age after which the year is shown instead of the time: half of a mean year.
const RECENT: Duration = Duration::from_secs(31_556_952 / 2);
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];

/// An entry, with the name that is shown.
struct Entry {
    name: String,
    id: Id,
    about: NodeInfo,
}

pub(super) fn run(call: &mut Invocation<'_>) -> Result<(), String> {
    let mut operands = std::mem::take(&mut call.operands);
    if operands.is_empty() {
        operands.push(".".to_owned());
    }
    let headed = operands.len() > 1 || call.has("R");
    let (mut files, mut directories) = (Vec::new(), Vec::new());
    for name in operands {
        // With details, a link is shown itself.
        let links = if call.has("dlF") { Follow::Parents } else { Follow::All };
        let found = call.look(&name, links).or_else(|_| call.look(&name, Follow::Parents));
        match found {
            Ok((id, about)) if about.kind == Kind::Directory && !call.has("d") => {
                directories.push(Entry { name, id, about });
            }
            Ok((id, about)) => files.push(Entry { name, id, about }),
            Err(fault) => call.failures.push(format!("cannot access '{name}': {}", said(fault))),
        }
    }
    let files = sorted(call, files);
    show(call, "", &files);
    for directory in sorted(call, directories) {
        list(call, &directory.name, directory.id, headed);
    }
    Ok(())
}

fn list(call: &mut Invocation<'_>, name: &str, id: Id, headed: bool) {
    if !call.out.is_empty() {
        call.out.push('\n');
    }
    if headed {
        call.out.push_str(&format!("{name}:\n"));
    }
    let listed = match names(call, name, id) {
        Ok(listed) => listed,
        Err(why) => return call.failures.push(why),
    };
    let mut entries = Vec::new();
    let own = [".", ".."]
        .into_iter()
        .filter(|_| call.last("aA") == Some('a'))
        .map(str::to_owned);
    let shown = |name: &str| call.has("aA") || !name.starts_with('.');
    let listed = listed
        .into_iter()
        .map(|(name, _)| name.to_string())
        .filter(|name| shown(name));
    for below in own.chain(listed).collect::<Vec<_>>() {
        match call.look(&within(name, &below), Follow::Parents) {
            Ok((id, about)) => entries.push(Entry { name: below, id, about }),
            Err(fault) => call.failures.push(format!("cannot access '{below}': {}", said(fault))),
        }
    }
    let entries = sorted(call, entries);
    if call.has("l") {
        let total = entries.iter().map(|entry| room(&entry.about)).sum::<u64>();
        let total = if call.has("h") {
            human(total)
        } else {
            (total / 1024).to_string()
        };
        call.out.push_str(&format!("total {total}\n"));
    }
    show(call, name, &entries);
    if !call.has("R") {
        return;
    }
    for entry in entries.iter().filter(|entry| entry.about.kind == Kind::Directory) {
        if !matches!(entry.name.as_str(), "." | "..") {
            list(call, &within(name, &entry.name), entry.id, true);
        }
    }
}

fn sorted(call: &Invocation<'_>, mut entries: Vec<Entry>) -> Vec<Entry> {
    entries.sort_by(|one, other| one.name.cmp(&other.name));
    match call.last("tSU") {
        Some('t') => entries.sort_by_key(|entry| Reverse(entry.about.modified)),
        Some('S') => entries.sort_by_key(|entry| Reverse(entry.about.size)),
        _ => {}
    }
    if call.has("r") {
        entries.reverse();
    }
    entries
}

/// Formats entries, with the directory's name if there are several.
fn show(call: &mut Invocation<'_>, directory: &str, entries: &[Entry]) {
    let mut rows = Vec::new();
    for Entry { name, id, about } in entries {
        let mut shown = name.clone();
        let executable = about.mode & 0o111 != 0;
        match about.kind {
            Kind::Directory if call.has("Fp") => shown.push('/'),
            Kind::Link if call.has("F") && !call.has("l") => shown.push('@'),
            Kind::File if call.has("F") && executable => shown.push('*'),
            _ => {}
        }
        if !call.has("l") {
            call.out.push_str(&shown);
            call.out.push('\n');
            continue;
        }
        if let (Kind::Link, Ok(target)) = (about.kind, call.inside.target(*id)) {
            shown.push_str(&format!(" -> {target}"));
        }
        let mut links = 1;
        if about.kind == Kind::Directory {
            let path = if directory.is_empty() {
                name.clone()
            } else {
                within(directory, name)
            };
            let below = names(call, &path, *id).unwrap_or_default();
            let is_directory = |(_, id): &&(_, Id)| call.inside.kind(*id) == Some(Kind::Directory);
            links = 2 + below.iter().filter(is_directory).count();
        }
        let size = if call.has("h") {
            human(about.size)
        } else {
            about.size.to_string()
        };
        let date = date(about.modified, call.inside.now());
        rows.push((permissions(about), links.to_string(), size, date, shown));
    }
    let width = |of: fn(&(String, String, String, String, String)) -> usize| rows.iter().map(of).max().unwrap_or(0);
    let (links_width, size_width) = (width(|row| row.1.len()), width(|row| row.2.len()));
    for (permissions, links, size, date, shown) in &rows {
        let line = format!("{permissions} {links:>links_width$} {USER} {USER} {size:>size_width$} {date} {shown}\n");
        call.out.push_str(&line);
    }
}

/// Returns the size that the entry would take on a common disk.
fn room(about: &NodeInfo) -> u64 {
    match about.kind {
        Kind::Link => 0,
        Kind::Directory => 4096,
        _ => about.size.div_ceil(4096) * 4096,
    }
}

/// Formats a size with a unit, rounded up.
fn human(size: u64) -> String {
    let (mut unit, mut units) = (1_u64, " KMGTPE".chars());
    let mut letter = units.next();
    while size.div_ceil(unit) >= 1024 {
        unit *= 1024;
        letter = units.next();
    }
    match letter {
        Some(' ') | None => size.to_string(),
        Some(letter) if size.saturating_mul(10).div_ceil(unit) < 100 => {
            let tenths = size.saturating_mul(10).div_ceil(unit);
            format!("{}.{}{letter}", tenths / 10, tenths % 10)
        }
        Some(letter) => format!("{}{letter}", size.div_ceil(unit)),
    }
}

fn permissions(about: &NodeInfo) -> String {
    let mut text = String::from(match about.kind {
        Kind::Directory => "d",
        Kind::Link => "l",
        _ => "-",
    });
    let special = [(0o4000, 's', 'S'), (0o2000, 's', 'S'), (0o1000, 't', 'T')];
    for (at, (bit, with, without)) in special.into_iter().enumerate() {
        let part = about.mode >> (6 - 3 * at) & 7;
        text.push(if part & 4 != 0 { 'r' } else { '-' });
        text.push(if part & 2 != 0 { 'w' } else { '-' });
        text.push(match (about.mode & bit != 0, part & 1 != 0) {
            (true, true) => with,
            (true, false) => without,
            (false, true) => 'x',
            (false, false) => '-',
        });
    }
    text
}

fn date(time: SystemTime, now: SystemTime) -> String {
    let seconds = match time.duration_since(SystemTime::UNIX_EPOCH) {
        Ok(after) => i64::try_from(after.as_secs()).unwrap_or(0),
        Err(before) => -i64::try_from(before.duration().as_secs_f64().ceil() as u64).unwrap_or(0),
    };
    let (year, month, day) = civil(seconds.div_euclid(86_400));
    let month = usize::try_from(month - 1)
        .ok()
        .and_then(|month| MONTHS.get(month))
        .unwrap_or(&"");
    let recent = now.duration_since(time).is_ok_and(|age| age < RECENT);
    let of_day = seconds.rem_euclid(86_400);
    if recent {
        format!("{month} {day:>2} {:02}:{:02}", of_day / 3_600, of_day / 60 % 60)
    } else {
        format!("{month} {day:>2}  {year}")
    }
}
