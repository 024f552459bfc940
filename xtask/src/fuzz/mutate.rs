//! Makes new lines from known ones: splices them along the grammar, then adds noise.

use shieling_testkit::random::Random;
use shieling_testkit::scripts::script;

/// The longest line that is made, in bytes.
const LONGEST: usize = 4_096;

/// Lines that once were hard for somebody's reader of shell text.
const HARD: &[&str] = &[
    "echo \"${x:-$(rm z)}\" `ls` $((a[$(rm z)]))",
    "cat <<A <<'B' | sort\n$(rm z)\nA\n$(rm z)\nB\n",
    "case x in (a|b) ls;; *) rm z;& esac",
    "x=(a [3]=b \"$(rm z)\"); echo ${x[@]:1:2} ${!x} ${x^^} ${x@P} ${x/a/$(rm z)}",
    "[[ $x =~ ^(a|b)$ && -f y || ! -d z ]]; (( x = y ? 1 : 2 ))",
    "select x in a b; do break; done; until false; do break; done",
    "r\\\nm z; $'\\x72m' z; r''m z; {r,}m z; \\rm z",
    "coproc N { ls; }; exec {fd}>&1; ls 2>&1 |& cat >&- 3<<<w",
    "time -p ! ls; function f() { ls; }; f; ! ! ls; { ls; } > x",
    "for ((i=0;;i++)); do ls; done; for x; do ls; done",
    "echo {1..3} {a,b{c,d}} ~+ ~user $\"x\" $- $$ $! !! !$ *.[a-z] ?(x) @(a|b)",
    "cat <(ls) >(cat) | tee >(wc) # comment; rm z",
    "A=1 B=$(ls) env -S 'rm z' C=2 D=\"x y\" nohup timeout -k 1 2 nice -n 3 xargs -0I{} sh -c '{}'",
    "find . -name '*.rs' \\( -exec rm {} \\; -o -print0 \\) | xargs -0 sed -i s/a/b/w\\ z",
    "git -c alias.x='!rm z' --git-dir=. x --outp=y -- :/a HEAD@{1}^{tree}",
    "awk 'BEGIN { while ((\"ls\" | getline l) > 0) print l > \"/dev/stderr\" }' sed -ne '1,5{/a/e ls' -e '}'",
    "printf '%s\\n' \"\u{202e}\" é 漢 \u{200b} \u{1b}[31m; ls\r\nrm z\r",
    "eval \"$(printf %s rm)\" z; . ./x; source <(ls); trap 'rm z' 0; alias l=rm",
];

/// Pieces of the grammar that change what is around them.
const PIECES: &[&str] = &[
    "$(",
    ")",
    "`",
    "${",
    "}",
    "$((",
    "))",
    "((",
    "[[",
    "]]",
    "{ ",
    "; }",
    "(",
    "<(",
    ">(",
    "<<E\n",
    "\nE\n",
    "<<-'E'\n",
    "<<<",
    ">",
    ">>",
    "<",
    ">&",
    "2>&1",
    "&>",
    ">|",
    "<>",
    "|",
    "|&",
    "||",
    "&&",
    ";",
    ";;",
    ";&",
    "&",
    "\n",
    " ",
    "\t",
    "\\",
    "\\\n",
    "'",
    "\"",
    "$'",
    "$\"",
    "#",
    " # ",
    "!",
    "*",
    "?",
    "[",
    "]",
    "~",
    "{a,b}",
    "{1..9}",
    "=",
    "+=",
    "A=",
    "a[",
    "$x",
    "${x:-",
    "${x/",
    "${!",
    "${#",
    "${x@P}",
    "--",
    "-",
    "-o",
    "if ",
    "; then ",
    "; fi",
    "for x in ",
    "; do ",
    "; done",
    "while ",
    "case x in x) ",
    ";; esac",
    "function f ",
    "f() ",
    "coproc ",
    "time ",
    "exec ",
    "eval ",
    "env ",
    "xargs ",
    "\0",
    "\r",
    "\u{202e}",
    "\u{200b}",
    "\u{1b}",
    "\u{a0}",
    "\u{feff}",
    "é",
    "漢",
    "\u{10ffff}",
];

/// One line, from `base` as text: known lines, or scripts from the grammar.
pub(crate) fn line(random: &mut Random) -> String {
    let mut text = base(random);
    for _ in 0..random.below(5) {
        text = mutated(random, &text);
    }
    text.truncate(boundary(&text, LONGEST));
    text
}

fn base(random: &mut Random) -> String {
    if random.once_in(3) {
        return random.pick(HARD).to_owned();
    }
    let wildness = random.below(100);
    script(random, wildness)
}

/// `text` with one change.
fn mutated(random: &mut Random, text: &str) -> String {
    let at = boundary(text, random.below(text.len() + 1));
    let other = boundary(text, random.below(text.len() + 1));
    let (start, end) = (at.min(other), at.max(other));
    match random.below(9) {
        0 => format!("{}{}{}", &text[..at], random.pick(PIECES), &text[at..]),
        1 => format!("{}{}", &text[..start], &text[end..]),
        2 => format!("{}{}{}", &text[..end], &text[start..end], &text[end..]),
        3 => {
            // The head of one line and the tail of another, cut between words.
            let tail = base(random);
            let cut = |text: &str, near: usize| {
                text[near..]
                    .find([' ', ';', '|', '\n'])
                    .map_or(text.len(), |found| near + found)
            };
            let tail_at = cut(&tail, boundary(&tail, random.below(tail.len() + 1)));
            format!("{}{}", &text[..cut(text, at)], &tail[tail_at..])
        }
        4 => format!("{}$({}){}", &text[..at], base(random), &text[at..]),
        5 => {
            let (open, close) = random.pick(&[
                ("( ", " )"),
                ("{ ", "; }"),
                ("if true; then ", "; fi"),
                ("\"$(", ")\""),
                ("eval '", "'"),
                ("sh -c \"", "\""),
            ]);
            format!("{open}{text}{close}")
        }
        6 => {
            // Noise: any byte, read as UTF-8 with what is not replaced.
            let mut bytes = text.as_bytes().to_vec();
            for _ in 0..=random.below(3) {
                if !bytes.is_empty() {
                    let target = random.below(bytes.len());
                    bytes[target] = u8::try_from(random.below(256)).unwrap_or_default();
                }
            }
            String::from_utf8_lossy(&bytes).into_owned()
        }
        7 => format!("{}{}", &text[..at], random.pick(PIECES).repeat(random.below(40))),
        _ => format!(
            "{}{}{}{}",
            &text[..at],
            random.pick(PIECES),
            &text[start..end],
            random.pick(PIECES)
        ),
    }
}

/// The last character boundary up to `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at))
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn lines_vary_are_bounded_and_can_be_made_again() {
        let lines = |seed| {
            let mut random = Random::new(seed);
            (0..3_000).map(|_| line(&mut random)).collect::<Vec<_>>()
        };
        let made = lines(3);
        assert_eq!(made, lines(3));
        assert!(made.iter().all(|line| line.len() <= LONGEST));
        assert!(made.iter().collect::<BTreeSet<_>>().len() > 2_500);
    }
}
