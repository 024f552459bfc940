//! Random scripts with the same output in every bash. They use variables, arithmetic, arrays, loops, functions, pipes
//! of common programs with simple options, redirections, here-documents, patterns, substitutions, subshells, and the
//! options that end scripts.
//!
//! They print their results, write only below their working directory, need no existing files, do not depend on time
//! or random numbers, and do not print the path of their directory.

use std::fmt::Write as _;

use crate::random::Random;

const WORDS: &[&str] = &[
    "pear",
    "apple",
    "fig",
    "Kiwi",
    "a b",
    "x-y",
    "10",
    "007",
    "foo.tar.gz",
    "path/to/file",
    "",
    "é",
    "*star",
    "UPPER",
    "end.",
];
const PLAIN: &[&str] = &["pear", "apple", "fig", "plum", "kiwi", "date", "lime", "nut"];

/// Generates a script. It depends on the generator only.
pub fn script(random: &mut Random) -> String {
    let mut text = String::new();
    if random.once_in(5) {
        text.push_str(random.pick(&["set -e\n", "set -u\n", "set -o pipefail\n", "set -eu -o pipefail\n"]));
    }
    for step in 0..2 + random.below(6) {
        piece(&mut text, random, step, 0);
    }
    if random.once_in(4) {
        let _ = writeln!(text, "exit {}", random.below(256));
    }
    text
}

/// Generates complete commands, each on its own lines, with names that end in `n`.
fn piece(text: &mut String, random: &mut Random, n: usize, depth: usize) {
    let (word, other) = (random.pick(WORDS), random.pick(WORDS));
    let (a, b) = (random.below(40), 1 + random.below(9));
    let (plain, second) = (random.pick(PLAIN), random.pick(PLAIN));
    let file = format!("f{n}");
    // Writing to a String cannot fail.
    let _ = match random.below(if depth < 2 { 24 } else { 19 }) {
        0 => writeln!(
            text,
            "v{n}='{word}'; echo \"${{v{n}}}\" \"${{#v{n}}}\" \"${{v{n}^^}}\" \"${{v{n},,}}\""
        ),
        1 => writeln!(
            text,
            "v{n}='{word}'; echo \"${{v{n}%.*}}|${{v{n}%%.*}}|${{v{n}#*/}}|${{v{n}##*/}}|${{v{n}/a/A}}|${{v{n}//e/E}}\""
        ),
        2 => writeln!(
            text,
            "v{n}='{word}'; echo \"${{v{n}:{}:{}}}|${{v{n}:-none}}|${{v{n}:+some}}\"",
            random.below(3),
            b
        ),
        3 => writeln!(
            text,
            "echo $(( {a} {} {b} )) $(( ({a} + {b}) * 3 - {b} ** 2 )) $(( {a} > {b} ? {a} : {b} ))",
            random.pick(&["+", "-", "*", "/", "%", "<<", "&", "|", "^"])
        ),
        4 => writeln!(
            text,
            "a{n}=('{word}' '{other}' {plain} {second}); echo \"${{#a{n}[@]}}\" \"${{a{n}[1]}}\" \"${{a{n}[@]:1:2}}\" \"${{!a{n}[*]}}\""
        ),
        5 => writeln!(
            text,
            "a{n}=({plain} {second}); a{n}+=('{word}'); unset 'a{n}[0]'; for x in \"${{a{n}[@]}}\"; do printf '<%s>' \"$x\"; done; echo"
        ),
        6 => writeln!(
            text,
            "declare -A m{n}=([{plain}]={a} [k{b}]='{other}'); m{n}[z]=1; for k in $(printf '%s\\n' \"${{!m{n}[@]}}\" | sort); do echo \"$k=${{m{n}[$k]}}\"; done"
        ),
        7 => writeln!(
            text,
            "for ((i = 0; i < {b}; i++)); do [ $i -eq 3 ] && {}; printf '%d ' $((i * {a})); done; echo",
            random.pick(&["continue", "break"])
        ),
        8 => writeln!(
            text,
            "printf '%s\\n' {plain} {second} {} {plain} | sort {}| uniq {}| head -n {b}",
            random.pick(PLAIN),
            random.pick(&["", "-r "]),
            random.pick(&["", "-c ", "-d "])
        ),
        9 => writeln!(
            text,
            "seq {a} {} | {}",
            a + b,
            random.pick(&[
                "paste -sd+ -",
                "tail -n 2",
                "awk '{ s += $1 } END { print s, NR }'",
                "sed -n '2p;$p'",
                "tac",
                "wc -l",
                "grep -c 1",
                "tr '\\n' ' '; echo",
                "sort -n -r | head -n 1",
                "sed 's/1/one/g'",
                "awk 'NR % 2 { print $1 * 2 }'",
                "cut -c1",
            ])
        ),
        10 => writeln!(
            text,
            "printf '%s:%s\\n' {plain} {a} {second} {b} > {file}; {} {file}",
            random.pick(&[
                "cut -d: -f2",
                "awk -F: '{ print $2, $1 }'",
                "sed 's/:/ = /'",
                "grep -n p",
                "sort -t: -k2 -n",
                "wc -l <",
                "tail -n 1",
                "grep -v fig",
                "tr : , <",
                "sed '/pear/d'",
                "awk -F: '$2 > 5 { n++ } END { print n + 0 }'",
                "grep -o '[a-z]*' ",
                "cat -n",
            ])
        ),
        11 => writeln!(
            text,
            "echo '{word}' >> {file}; echo {plain} >> {file}; cat {file}; [ -s {file} ] && echo full; wc -c < {file}"
        ),
        12 => writeln!(
            text,
            "cat <<EOF | tr a-z A-Z\n{plain} $(({a} + {b})) ${{v{n}:-unset}}\nEOF"
        ),
        13 => writeln!(
            text,
            "while IFS=: read -r x y; do echo \"$y-$x\"; done <<'EOF'\n{plain}:{a}\n{second}:$b\nEOF"
        ),
        14 => writeln!(
            text,
            "case '{word}' in {plain}|fig) echo fruit;; *.gz) echo zip;; [0-9]*) echo number;; '') echo empty;; *' '*) echo words;; *) echo other;; esac"
        ),
        15 => writeln!(
            text,
            "[[ '{word}' == *[[:digit:]]* ]]; echo $?; [[ '{word}' =~ ^([a-z]+)(.*)$ ]] && echo \"${{BASH_REMATCH[1]}}|${{BASH_REMATCH[2]}}\"; [[ -n '{word}' && {a} -gt {b} ]] && echo both"
        ),
        16 => writeln!(
            text,
            "mkdir -p d{n}/e; echo {plain} > d{n}/{plain}.txt; echo {second} > d{n}/e/x.txt; find d{n} -type f | sort; ls d{n}; cat d{n}/*.txt; rm -r d{n}; ls d{n} 2>/dev/null || echo gone"
        ),
        17 => writeln!(
            text,
            "echo {{{plain},{second}}}-{{1..{b}}} | tr ' ' '\\n' | tail -n 2; printf '%05d|%-6s|%x\\n' {a} {plain} {a}"
        ),
        18 => writeln!(
            text,
            "x{n}=$({} | grep {plain}); echo \"$? [$x{n}]\"; echo {plain} | xargs -n 1 echo got",
            random.pick(&["echo pear apple", "printf 'fig\\nplum\\n'", "false"])
        ),
        19 => {
            let _ = write!(text, "f{n}() {{\nlocal x=$1\necho \"in $x $#\"\n");
            piece(text, random, n + 10, depth + 1);
            writeln!(
                text,
                "return {b}\n}}\nif f{n} {plain} {a}; then echo yes; else echo \"no $?\"; fi"
            )
        }
        20 => {
            text.push_str("(\n");
            piece(text, random, n + 10, depth + 1);
            writeln!(
                text,
                "v{n}=inner; exit {b}\n) || echo \"left $?\"\necho \"${{v{n}:-outer}}\""
            )
        }
        21 => {
            let _ = writeln!(text, "if [ {a} -lt {} ]; then", b * 4);
            piece(text, random, n + 10, depth + 1);
            text.push_str("else\n");
            piece(text, random, n + 20, depth + 1);
            writeln!(text, "fi")
        }
        22 => {
            let _ = writeln!(text, "for w in {plain} '{word}'; do\necho \"- $w\"");
            piece(text, random, n + 10, depth + 1);
            writeln!(text, "done | sed 's/^/> /'")
        }
        _ => {
            text.push_str("{\n");
            piece(text, random, n + 10, depth + 1);
            writeln!(
                text,
                "echo err >&2\n}} > {file} 2>&1; cat {file}; {} || echo \"failed $?\"",
                random.pick(&["true", "false", "(exit 7)", "false | true"])
            )
        }
    };
}
