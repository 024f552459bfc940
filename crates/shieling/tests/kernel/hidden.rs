//! Places with hidden files: for each policy two, which differ in nothing but what stands in them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use shieling::policy::Policy;

use crate::cases::{Case, policy_of};
use crate::place::{HISTORY, Template, write};

/// What stands in the hidden files of the first place and of the second. Of different lengths, so that
/// counting them would tell too.
pub(crate) const TOKENS: [&str; 2] = ["wQ7vX2tokenOfTheFirst9k", "mZ4pL8tokenOfTheOtherPlace3r"];
/// What was committed in their place, which is the same in both.
pub(crate) const COMMITTED: &str = "cK5nB1committedToken6h";

/// Every name that a text of the corpus gives to a hidden file, under some policy, and its neighbours.
const NAMES: [&str; 62] = [
    ".env",
    ".ENV",
    ".Env",
    "src/.env",
    "SRC/.eNV",
    "a/b/c/.env",
    "a/b/.env",
    "x/.env",
    ".env.example",
    ".env.local",
    ".ENV.Local",
    ".env.production",
    ".envrc",
    "README.md",
    "a.txt",
    "b.txt",
    "src/a.rs",
    "src/main.py",
    "docs/index.md",
    "tests/t.rs",
    "x/file",
    "a.key",
    "other.key",
    "keep.key",
    "keep2.key",
    "src/b.KEY",
    ".key",
    ".env.key",
    "secrets/k",
    "secrets/sub/k",
    "src/secrets/k",
    "SECRETS/k",
    "config/dev.yml",
    "config/prod.yml",
    "config/prod.json",
    "CONFIG/PROD.yml",
    "private/x",
    "private/a/b",
    "Private/x",
    "server.pem",
    "ca.pem",
    "certs/server.PEM",
    "certs/a.pem",
    "src/x.pem",
    "build/out.txt",
    "build/a/b/c",
    "log-1.txt",
    "LOG-a.txt",
    "log-10.txt",
    "data1.csv",
    "data2.csv",
    "data3.csv",
    "data10.csv",
    "credentials.json",
    "src/credentials.json",
    "node_modules/x/package.json",
    "node_modules/x/index.js",
    "package.json",
    "src/x.ts",
    "src/.env.ts",
    "docs/notes.md",
    "new-name",
];

/// The two places of one policy.
pub(crate) struct Pair {
    pub(crate) templates: [Template; 2],
    /// Everything that holds a token, under every name of it.
    pub(crate) hidden: BTreeSet<PathBuf>,
}

/// The places of all policies.
pub(crate) struct HiddenPlaces(BTreeMap<Vec<String>, Pair>);

impl HiddenPlaces {
    /// For these cases.
    pub(crate) fn new(cases: &[Case]) -> Self {
        let policies: BTreeSet<&Vec<String>> = cases.iter().map(|case| &case.policy).collect();
        let pair = |options: &Vec<String>| (options.clone(), pair(&policy_of(options)));
        Self(policies.into_iter().map(pair).collect())
    }

    pub(crate) fn of(&self, policy: &[String]) -> &Pair {
        &self.0[policy]
    }

    /// Any of the templates.
    pub(crate) fn any(&self) -> &Template {
        &self.0.values().next().expect("there are cases").templates[0]
    }
}

fn is_hidden(policy: &Policy, path: &str) -> bool {
    let path = Path::new(path);
    let above = path.ancestors().skip(1).filter(|above| !above.as_os_str().is_empty());
    policy.hides_entry(path, false) || above.into_iter().any(|above| policy.hides_entry(above, true))
}

fn content(name: &str, token: &str) -> String {
    match Path::new(name).extension().and_then(|extension| extension.to_str()) {
        Some("json") => format!("{{\"dependencies\":{{\"secret\":\"{token}\"}}}}\n"),
        Some("yml") => format!("secret: {token}\n"),
        _ => format!("SECRET={token}\n"),
    }
}

fn pair(policy: &Policy) -> Pair {
    let (hidden, shown): (Vec<&str>, Vec<&str>) = NAMES.iter().partition(|name| is_hidden(policy, name));
    let first = *hidden.first().expect("each policy hides something");
    let linking = ["linked/.env", "linked/x.key", "linked/x.pem"];
    // One that hides a directory alone hides none of them.
    let linking = linking.iter().find(|name| is_hidden(policy, name));

    let mut files: BTreeMap<String, String> = BTreeMap::new();
    files.extend(shown.iter().map(|name| ((*name).to_owned(), content(name, "plain"))));
    files.extend(hidden.iter().map(|name| ((*name).to_owned(), content(name, COMMITTED))));
    files.insert("list.txt".to_owned(), hidden.join("\n") + "\n");
    files.insert("list".to_owned(), hidden.join("\0"));
    let names = hidden.join("\n") + "\n";
    // Each commit has other content in the hidden files, and so has the stash.
    let change =
        format!("while read -r name; do echo \"MORE={COMMITTED}-$n\" >> \"$name\"; done <<'END'\n{names}END\n");
    let history = HISTORY.replace(
        "echo $n >> history.txt; git add history.txt;",
        &format!("{change}git add -f -A .;"),
    );
    // The index without the times of the files, which would differ.
    let history = format!(
        "{history}\nn=stash; {change}\ngit stash -q\n\
         rm .git/index; git read-tree HEAD\n"
    );

    let make = |token: &str| {
        Template::new(&files, &history, |workspace| {
            for name in &hidden {
                fs::write(workspace.join(name), content(name, token)).expect("our own file");
            }
            fs::hard_link(workspace.join(first), workspace.join("second-name")).expect("one file system");
            symlink(first, workspace.join("visible")).expect("a new link");
            if let Some(linking) = linking {
                write(&workspace.join("settings.txt"), &content("", token), false);
                fs::create_dir_all(workspace.join("linked")).expect("a writable place");
                symlink("../settings.txt", workspace.join(linking)).expect("a new link");
            }
        })
    };
    let behind_link = linking.into_iter().flat_map(|linking| ["settings.txt", *linking]);
    let others: Vec<&str> = ["second-name"].into_iter().chain(behind_link).collect();
    Pair {
        templates: TOKENS.map(make),
        hidden: hidden.iter().chain(&others).map(PathBuf::from).collect(),
    }
}
