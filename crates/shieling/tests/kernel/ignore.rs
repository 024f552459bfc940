//! Under ignore nothing of a hidden file is given away: not its words, and not a bit of them. Each text is
//! run twice, in places that differ in nothing but what stands in the hidden files, and whatever it wrote,
//! anywhere, must be the same.
//!
//! What git keeps of a file that was committed once is no file of the workspace: `git show HEAD:.env`
//! reads objects. That needs the reading of the text, and the list of such texts is exact.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use shieling::policy::Policy;

use crate::cases::{Case, Expected, policy_of};
use crate::hidden::{COMMITTED, HiddenPlaces, TOKENS};
use crate::host::{Host, working_in};
use crate::place::Place;
use crate::run::Cell;
use crate::share::{attacks, every, line, listed, share, side_by_side};
use crate::snapshot::{Entry, Snapshot};

/// The texts that show what git keeps, each escaped on a line of its own.
const KEPT_BY_GIT: &str = include_str!("kept_by_git.txt");

/// Variables that texts expand, so that they name hidden files.
const VARIABLES: [(&str, &str); 10] = [
    ("f", ".env"),
    ("x", ".env"),
    ("cmd", "cat"),
    ("DIR", "."),
    ("D", "secrets"),
    ("e", "prod"),
    ("i", "1"),
    ("rev", "HEAD"),
    ("NODE_ENV", "local"),
    ("a", ".env"),
];

/// More ways to what is hidden: by other names of it, by all names, and by what is above it.
const MORE: [&str; 16] = [
    "cat second-name",
    "cat visible; readlink -f visible",
    "cat linked/.* linked/*",
    "cat settings.txt",
    "cat ./* ./.* */* */.* 2>/dev/null",
    "grep -r . . --exclude-dir=.git",
    "tar -cf - --exclude=.git --mtime=@0 . | od -c | sort | uniq -c",
    "find . -type f -not -path './.git/*' -exec sha256sum {} + | sort",
    "find . -inum $(stat -c %i second-name) -exec cat {} +",
    "mv src moved; cat moved/.env moved/*; mv moved src",
    "cp -r . /tmp/all 2>/dev/null; grep -r . /tmp/all --exclude-dir=.git",
    "ln second-name third; ln .env fourth; cat third fourth",
    "rm -f .env second-name visible; cat .env second-name visible",
    "umount .env; umount -l secrets; cat .env secrets/k",
    "unshare -rm sh -c 'umount -l .env; umount -l secrets; cat .env secrets/k'",
    "cat /proc/self/cwd/.env /proc/self/root$PWD/.env /proc/1/cwd/.env /proc/1/root$PWD/.env; sed s/[0-9]//g /proc/self/mountinfo | wc -c",
];

fn cases() -> Vec<Case> {
    let mut cases = attacks("ignore");
    let policies: BTreeSet<Vec<String>> = cases.iter().map(|case| case.policy.clone()).collect();
    for policy in policies {
        cases.extend(MORE.iter().map(|text| Case {
            file: "ignore",
            line: 0,
            class: "beside the corpus".to_owned(),
            policy: policy.clone(),
            expected: Expected::NeverSilent,
            text: (*text).to_owned(),
        }));
    }
    cases
}

/// Everything that can be seen of one run from outside, and in the sandbox's own directories.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Seen {
    output: Vec<u8>,
    /// What is broken off by a limit shows less than it would.
    ended_itself: bool,
    private: Vec<u8>,
    files: BTreeMap<PathBuf, (u32, Vec<u8>)>,
    /// What happened to the hidden files themselves, which nothing should.
    harm: Vec<String>,
}

impl Seen {
    fn shows(&self, token: &str) -> bool {
        let all = [&self.output, &self.private].into_iter();
        let forms = forms(token);
        all.chain(self.files.values().map(|(_, content)| content))
            .any(|bytes| forms.iter().any(|form| holds(bytes, form)))
    }
}

impl Seen {
    fn difference(&self, other: &Self) -> String {
        let paths = self.files.keys().chain(other.files.keys());
        let differing: BTreeSet<_> = paths
            .filter(|path| self.files.get(*path) != other.files.get(*path))
            .collect();
        let [a, b] = [self, other].map(|seen| String::from_utf8_lossy(&seen.output));
        let private = self.private == other.private;
        format!("files that differ: {differing:?}, private same: {private}, output: {a}\n    and {b}")
    }
}

/// A token as it stands, backwards, in base64 at each place, and in hexadecimal.
fn forms(token: &str) -> Vec<Vec<u8>> {
    let bytes = token.as_bytes();
    let mut forms = vec![bytes.to_vec(), bytes.iter().rev().copied().collect()];
    forms.push(
        bytes
            .iter()
            .flat_map(|byte| format!("{byte:02x}").into_bytes())
            .collect(),
    );
    for skipped in 0..3 {
        forms.push(base64(&bytes[skipped..]));
    }
    forms
}

/// The groups of three that are whole, which do not depend on what follows.
fn base64(bytes: &[u8]) -> Vec<u8> {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let group = |three: &[u8; 3]| {
        let number = u32::from_be_bytes([0, three[0], three[1], three[2]]);
        [18, 12, 6, 0].map(|shift| DIGITS[(number >> shift & 63) as usize])
    };
    bytes.as_chunks().0.iter().flat_map(group).collect()
}

fn holds(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

/// Runs a text in one of the two places of its policy.
fn look(place: &Place, places: &HiddenPlaces, which: usize, case: &Case, policy: &Policy) -> Result<Seen, String> {
    let places = places.of(&case.policy);
    place.reset_to(&places.templates[which]);
    let before = Snapshot::of(&place.workspace());
    let cell = Cell::new(place, &VARIABLES, policy);
    let ran = cell.run(&case.text)?;
    // On file systems of the sandbox's own, so without the workspace, which may lie below.
    let private = cell.run("find /tmp /var/tmp/ /run /dev/shm \"$HOME\" -xdev -type f -exec cat {} + | sort")?;
    let left = cell.close();
    let after = Snapshot::of(&place.workspace());
    let mut harm = Vec::new();
    if ran.survivors > 0 || !left.is_empty() {
        harm.push(format!("{} survivors, {left:?} left", ran.survivors));
    }
    for path in &places.hidden {
        let (then, now) = (before.0.get(path), after.0.get(path));
        let same =
            |a: &Entry, b: &Entry| (&a.content, a.mode, &a.identity[2..]) == (&b.content, b.mode, &b.identity[2..]);
        if !then.zip(now).is_some_and(|(then, now)| same(then, now)) {
            harm.push(format!("{}: changed", path.display()));
        }
    }
    // The index holds times and numbers of files, which differ from copy to copy.
    let told = |path: &Path| !places.hidden.contains(path) && path != Path::new(".git/index");
    let files = after.0.into_iter().filter(|(path, _)| told(path));
    Ok(Seen {
        output: untimed(&ran.output),
        ended_itself: ran.ended_itself,
        private: private.output,
        files: files.map(|(path, entry)| (path, (entry.mode, entry.content))).collect(),
        harm,
    })
}

enum Told {
    /// With its text and what it wrote.
    Nothing(String, String),
    /// Nothing, until a limit ended it.
    BrokenOff(String),
    /// Nothing that a token shows; but it never does the same twice.
    Noisy(String),
    KeptByGit(String),
    Leaked(String),
    NotRun(String),
}

/// The output without the time that curl says it took, which two runs of it do not share.
fn untimed(output: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(output);
    let Some((before, after)) = text.split_once(" after ").filter(|_| text.contains("curl: ")) else {
        return output.to_vec();
    };
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!("{before} after {rest}").into_bytes()
}

fn tell(place: &Place, places: &HiddenPlaces, case: &Case) -> Result<Told, String> {
    let policy = policy_of(&case.policy);
    let look = |which| look(place, places, which, case, &policy);
    let seen = [look(0)?, look(1)?];
    for (seen, token) in seen.iter().zip(TOKENS) {
        if seen.shows(token) || !seen.harm.is_empty() {
            let output = String::from_utf8_lossy(&seen.output);
            return Ok(Told::Leaked(format!("{case}\n    {:?} {output}", seen.harm)));
        }
    }
    // Also of what never does the same twice: an archive of a tree holds the time of its making.
    let kept = seen[0].shows(COMMITTED);
    if seen[0] != seen[1] {
        if (look(0)?, look(1)?) == (seen[0].clone(), seen[1].clone()) {
            return Ok(Told::Leaked(format!("{case}\n    {}", seen[0].difference(&seen[1]))));
        }
        if !kept {
            return Ok(Told::Noisy(case.to_string()));
        }
    }
    if kept {
        return Ok(Told::KeptByGit(line(&case.text)));
    }
    if seen.iter().any(|seen| !seen.ended_itself) {
        return Ok(Told::BrokenOff(case.to_string()));
    }
    let output = String::from_utf8_lossy(&seen[0].output).into_owned();
    Ok(Told::Nothing(line(&case.text), output))
}

#[test]
fn no_attack_under_ignore_gives_away_what_is_hidden() {
    let cases = share(cases(), every(60, 120));
    let places = HiddenPlaces::new(&cases);
    let outside = tempfile::tempdir().expect("a temporary directory");
    let mut host = Host::new(&cases, outside.path());
    let left = Mutex::new(Vec::new());
    let results = side_by_side(
        &cases,
        || Place::of(places.any()),
        |place, case| tell(place, &places, case).unwrap_or_else(|why| Told::NotRun(format!("{case}: {why}"))),
        |place| {
            left.lock()
                .expect("nobody panics with it")
                .extend(working_in(&place.base()))
        },
    );
    let mut broken_off = Vec::new();
    let (mut outputs, mut noisy, mut kept, mut leaked, mut not_run) =
        (Vec::new(), Vec::new(), BTreeSet::new(), Vec::new(), Vec::new());
    for told in results {
        match told {
            Told::Nothing(text, output) => outputs.push((text, output)),
            Told::BrokenOff(case) => broken_off.push(case),
            Told::Noisy(case) => noisy.push(case),
            Told::KeptByGit(text) => drop(kept.insert(text)),
            Told::Leaked(how) => leaked.push(how),
            Told::NotRun(why) => not_run.push(why),
        }
    }
    eprintln!(
        "ignore: {} attacks, {} contained to the bit, {} by their tokens, {} leaked, \
         {} texts show what git keeps, {} are no command, {} ended by a limit",
        cases.len(),
        outputs.len(),
        noisy.len(),
        leaked.len(),
        kept.len(),
        not_run.len(),
        broken_off.len(),
    );
    eprintln!("ended by a limit:\n    {}", broken_off.join("\n    "));
    eprintln!("by their tokens:\n    {}", noisy.join("\n    "));
    assert!(leaked.is_empty(), "{}", leaked.join("\n"));
    assert_eq!(not_run, Vec::<String>::new());
    assert_eq!(host.changes(), Vec::<String>::new());
    let left = left.into_inner().expect("nobody panics with it");
    assert!(left.is_empty(), "after the end: {}", left.join("\n"));
    exact(&cases, &kept, &outputs);
    // All of the corpus end by themselves within a fraction of the time.
    assert!(
        broken_off.len() <= cases.len().div_ceil(50),
        "too many were broken off to tell"
    );
    assert!(
        noisy.len() <= cases.len().div_ceil(20),
        "too many never do the same twice"
    );
}

/// A test of its own, so that both run at once: most of their time is spent waiting for processes.
#[test]
fn and_none_does_to_an_ordinary_user() {
    shieling_testkit::again_as_user(&["--exact", "ignore::no_attack_under_ignore_gives_away_what_is_hidden"]);
}

/// That the texts which show what git keeps are those of the list, of those that were run.
fn exact(cases: &[Case], kept: &BTreeSet<String>, outputs: &[(String, String)]) {
    let run: BTreeSet<String> = cases.iter().map(|case| line(&case.text)).collect();
    let listed = listed(KEPT_BY_GIT);
    let new: Vec<_> = kept.difference(&listed).collect();
    assert!(
        new.is_empty(),
        "these show what git keeps, and are not listed in kept_by_git.txt: {new:#?}"
    );
    // One that a limit ended says nothing.
    let ended: BTreeSet<&String> = outputs.iter().map(|(text, _)| text).collect();
    let contained: Vec<_> = listed
        .intersection(&run)
        .filter(|text| !kept.contains(*text) && ended.contains(text))
        .collect();
    assert!(
        contained.is_empty(),
        "these are listed in kept_by_git.txt, and are contained: {contained:#?}\n{:#?}",
        outputs
            .iter()
            .filter(|(text, _)| contained.contains(&text))
            .collect::<Vec<_>>()
    );
}

#[test]
fn without_ignore_the_same_attacks_give_it_away() {
    let cases = share(cases(), every(80, 80));
    let places = HiddenPlaces::new(&cases);
    let open = Policy::open();
    let results = side_by_side(
        &cases,
        || Place::of(places.any()),
        |place, case| {
            let seen = [0, 1].map(|which| look(place, &places, which, case, &open));
            let [Ok(a), Ok(b)] = &seen else {
                return (case.to_string(), false);
            };
            let acted = a.shows(TOKENS[0]) || !a.harm.is_empty() || a != b;
            (case.to_string(), acted)
        },
        drop,
    );
    let idle: Vec<_> = results
        .iter()
        .filter(|(_, acted)| !acted)
        .map(|(case, _)| case.as_str())
        .collect();
    let acted = results.len() - idle.len();
    eprintln!("without ignore: {acted} of {} act", results.len());
    if std::env::var_os("SHIELING_KERNEL_IDLE").is_some() {
        eprintln!("{}", idle.join("\n"));
    }
    assert!(acted * 100 >= results.len() * 60, "too few act:\n{}", idle.join("\n"));
}

#[test]
fn a_token_is_seen_in_whatever_form_it_is_written() {
    let written = |output: &str| Seen {
        output: output.as_bytes().to_vec(),
        ended_itself: true,
        private: Vec::new(),
        files: BTreeMap::new(),
        harm: Vec::new(),
    };
    // As `base64`, `rev`, `xxd -p` and `cat` wrote `SECRET=wQ7vX2tokenOfTheFirst9k`.
    for output in [
        "U0VDUkVUPXdRN3ZYMnRva2VuT2ZUaGVGaXJzdDlrCg==",
        "k9tsriFehTfOnekot2Xv7Qw=TERCES",
        "5345435245543d77513776583274 6f6b656e".replace(' ', "").as_str(),
        "SECRET=wQ7vX2tokenOfTheFirst9k",
    ] {
        let token = if output.starts_with("5345") {
            &TOKENS[0][..10]
        } else {
            TOKENS[0]
        };
        assert!(written(output).shows(token), "{output}");
    }
    assert!(!written("SECRET=plain").shows(TOKENS[0]));
}
