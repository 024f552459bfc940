//! What programs of bashkit's would answer wrongly without a word: an option that they pass over, or a
//! value that they take for another. They do not run then, and it is said why.

/// Why a program may not be run with these arguments, if it would be wrong.
pub(super) fn refusal(program: &str, args: &[String]) -> Option<String> {
    let options = || args.iter().take_while(|arg| *arg != "--");
    // Letters in a cluster whose other letters take no value, and long options, cut short or not.
    let letter = |letters: &str| {
        let clusters = options().filter(|arg| arg.starts_with('-') && !arg.starts_with("--"));
        let mut all = clusters.flat_map(|cluster| cluster[1..].chars());
        all.find(|found| letters.contains(*found))
            .map(|found| format!("-{found}"))
    };
    let long = |names: &[&str]| {
        let given = options().filter_map(|arg| arg.strip_prefix("--"));
        let mut given = given.map(|arg| arg.split('=').next().unwrap_or(arg));
        given.find_map(|arg| {
            let name = names.iter().find(|name| arg.len() > 1 && name.starts_with(arg))?;
            Some(format!("--{name}"))
        })
    };
    let cannot = |what: Option<String>| what.map(|what| format!("{program} cannot do `{what}` in memory"));
    match program {
        "sha1sum" | "sha224sum" | "sha256sum" | "sha384sum" | "sha512sum" | "md5sum" | "b2sum" => {
            cannot(letter("b").or_else(|| long(&["binary", "tag"])))
        }
        "grep" | "egrep" | "fgrep" => {
            let colored = options().any(|arg| matches!(arg.as_str(), "--color=always" | "--colour=always"));
            cannot(colored.then(|| "--color=always".to_owned()))
        }
        "cut" => cannot(cut(args)),
        "tr" => {
            let repeated = args.iter().find(|arg| repeats(arg));
            cannot(repeated.cloned())
        }
        "ln" => {
            // It would make a copy, or another kind of link.
            let symbolic = letter("s").or_else(|| long(&["symbolic"])).is_some();
            let asked = args.iter().any(|arg| !arg.starts_with('-'));
            (asked && !symbolic).then(|| "memory has no hard links: use `ln -s` or `cp`".to_owned())
        }
        "timeout" => {
            let signal = |arg: &&String| ["-s", "-k", "--s", "--k"].iter().any(|begun| arg.starts_with(begun));
            let mut own = options().take_while(|arg| arg.starts_with('-'));
            cannot(own.find(signal).cloned())
        }
        "tail" => {
            let old = args.first().filter(|first| first.starts_with('+') && first.len() > 1);
            cannot(old.cloned())
        }
        _ => None,
    }
}

/// Fields and characters are counted from 1, and a delimiter is one character.
fn cut(args: &[String]) -> Option<String> {
    let value = |letter: char, name: &str| {
        let mut rest = args.iter();
        while let Some(arg) = rest.next() {
            if let Some(value) = arg.strip_prefix(&format!("--{name}=")) {
                return Some(value.to_owned());
            }
            let Some(cluster) = arg.strip_prefix('-').filter(|cluster| !cluster.starts_with('-')) else {
                continue;
            };
            if let Some(value) = cluster.strip_prefix(letter) {
                return match value {
                    "" => rest.next().cloned(),
                    value => Some(value.to_owned()),
                };
            }
        }
        None
    };
    let lists = [('f', "fields"), ('c', "characters"), ('b', "bytes")];
    let zero = lists.iter().find_map(|(letter, name)| {
        let list = value(*letter, name)?;
        let zero = |bound: &str| !bound.is_empty() && bound.bytes().all(|digit| digit == b'0');
        let bad = list.split(',').flat_map(|range| range.split('-')).any(zero);
        bad.then(|| format!("-{letter} {list}"))
    });
    let delimiter = value('d', "delimiter").filter(|delimiter| delimiter.chars().count() > 1);
    zero.or(delimiter.map(|delimiter| format!("-d {delimiter}")))
}

/// Whether a set of `tr` holds `[x*n]`.
fn repeats(set: &str) -> bool {
    set.match_indices('[').any(|(at, _)| {
        let mut inner = set[at + 1..].chars();
        let starred = inner.next().is_some() && inner.next() == Some('*');
        starred
            && inner
                .as_str()
                .trim_start_matches(|digit: char| digit.is_ascii_digit())
                .starts_with(']')
    })
}

#[cfg(test)]
mod tests {
    use super::refusal;

    #[test]
    fn what_would_be_wrong_is_refused_and_its_neighbours_are_not() {
        let cases = [
            ("sha256sum -b f", true),
            ("sha256sum --tag f", true),
            ("sha256sum -c f", false),
            ("sha256sum -- -b", false),
            ("grep --color=always x", true),
            ("grep --color=auto x", false),
            ("cut -f0 f", true),
            ("cut -f 1,0-3 f", true),
            ("cut -f10 -d0 f", false),
            ("cut -d ab -f1 f", true),
            ("cut -d, -f1-3,20 f", false),
            ("cut -c 1-0 f", true),
            ("tr [a*3] xyz", true),
            ("tr [a*] xyz", true),
            ("tr [:lower:] [A-Z]", false),
            ("timeout -s KILL 1 x", true),
            ("timeout --signal=KILL 1 x", true),
            ("timeout 1 sort -k 1 --signal=x", false),
            ("ln a b", true),
            ("ln -f a b", true),
            ("ln -sf a b", false),
            ("ln --symbolic a b", false),
            ("ln --help", false),
            ("tail +10 f", true),
            ("tail -n +10 f", false),
        ];
        for (text, refused) in cases {
            let mut words = text.split(' ').map(str::to_owned);
            let program = words.next().unwrap_or_default();
            let args: Vec<String> = words.collect();
            assert_eq!(refusal(&program, &args).is_some(), refused, "{text}");
        }
    }
}
