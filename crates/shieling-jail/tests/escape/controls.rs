//! What people and agents do all day works inside: languages, version control, shells, files, terminals.
//! Each row is a sentence, the programs it needs, and a text that must end with 0.

mod rows;

use super::outside::Background;
use super::support::{Case, Checked, Field, Place, case, check, heavy, line, skip};

use rows::{COMPILED, DEVICES, FILES, GIT, MACHINE, PYTHON, RUNTIMES, SHELL, TOOLS};

pub(crate) const CASES: &[Case] = &[
    case("C and C++ are compiled and run", |field| table(field, COMPILED)),
    heavy("a crate is built and tested offline", rust),
    case("Python does what it does elsewhere", |field| table(field, PYTHON)),
    case("Node and Java run", |field| table(field, RUNTIMES)),
    case(
        "git commits, compares, stashes, branches, rebases and makes worktrees",
        |field| table(field, GIT),
    ),
    case("shells do what they do elsewhere", |field| table(field, SHELL)),
    case("files of every kind can be made, moved, linked and mapped", |field| {
        table(field, FILES)
    }),
    case("text tools work", |field| table(field, TOOLS)),
    case("devices and terminals work", |field| table(field, DEVICES)),
    case("the machine and the user can be asked for", |field| {
        table(field, MACHINE)
    }),
    heavy("twenty commands run at once in one sandbox", twenty_commands),
    heavy("twenty sandboxes run at once", twenty_sandboxes),
    case(
        "two hundred commands, one after another, leave nothing behind in one sandbox",
        many_in_a_row,
    ),
];

/// A name, what it needs, and a text.
type Row = (&'static str, &'static [&'static str], &'static str);

fn table(field: &Field<'_>, rows: &[Row]) -> Checked {
    let place = field.place().start()?;
    let mut missing = Vec::new();
    for (name, needs, text) in rows {
        if let Some(need) = needs.iter().find(|need| field.needs(need).is_err()) {
            missing.push(*need);
            continue;
        }
        let directory = name.replace([' ', ',', '\''], "_");
        let text = format!("mkdir '{directory}' && cd '{directory}' && set -e\n{text}");
        let outcome = place.run(&text)?;
        check(outcome.exit_code == Some(0) && outcome.survivors == 0, || {
            format!("{name}: {}", line(&outcome))
        })?;
        field.worked();
    }
    if missing.len() == rows.len() {
        return skip(format!("nothing of this is installed: {missing:?}"));
    }
    Ok(())
}

fn rust(field: &Field<'_>) -> Checked {
    let Some((path, home)) = cargo(field) else {
        // A toolchain in root's home is root's alone: what it needs has been shown in the first run.
        if !field.is_root() && rustix::process::geteuid().as_raw() == super::support::suite::USER {
            println!("       no `cargo` that this user can reach: as root only");
            return Ok(());
        }
        return skip("`cargo` is nowhere that this user can reach");
    };
    let elsewhere: Option<(String, std::path::PathBuf)> =
        std::env::var_os("RUSTUP_HOME").map(|root| ("RUSTUP_HOME".to_owned(), root.into()));
    let place = field
        .place()
        .with(|asked| {
            asked.path = format!("{path}:{}", asked.path);
            asked.home = home.clone().or(asked.home.take());
            // Where the caller has them elsewhere, such as in an image.
            asked.roots.extend(elsewhere.clone());
        })
        .start()?;
    let home = home.map_or_else(|| "$HOME".to_owned(), |home| home.display().to_string());
    let set = elsewhere.map(|(name, path)| format!(" {name}={}", path.display()));
    let with = format!("export PATH={path}:$PATH HOME={home}{}\n", set.unwrap_or_default());
    place.works(&format!(
        "{with}mkdir -p src && printf '[package]\\nname = \"tiny\"\\nversion = \"0.1.0\"\\nedition = \"2021\"\\n' > Cargo.toml && \
         printf 'fn main() {{ println!(\"{{}}\", two()); }}\\nfn two() -> u8 {{ 2 }}\\n#[test]\\nfn works() {{ assert_eq!(two(), 2); }}\\n' > src/main.rs && \
         rustc --version && cargo build --offline && [ $(target/debug/tiny) = 2 ]"
    ))?;
    place.works(&format!("{with}cargo test --offline 2>&1 | grep -q '1 passed'"))?;
    place
        .works(&format!("{with}printf 'fn main() {{}}' > m.rs && rustc -O m.rs && ./m"))
        .map(drop)
}

/// A directory with a cargo that this user can run, and the home that it belongs to.
fn cargo(field: &Field<'_>) -> Option<(String, Option<std::path::PathBuf>)> {
    if field.needs("cargo").is_ok() {
        return Some(("/usr/bin".to_owned(), None));
    }
    // The caller's own, by its `PATH`, as the command line would have it. Its toolchains are in the home that
    // it is in, which need not be the caller's.
    let path = std::env::var("PATH").ok()?;
    let found = path.split(':').find(|directory| {
        let cargo = std::path::Path::new(directory).join("cargo");
        rustix::fs::access(&cargo, rustix::fs::Access::EXEC_OK).is_ok() && directory.ends_with(".cargo/bin")
    })?;
    let home = std::path::Path::new(found).ancestors().nth(2)?;
    Some((found.to_owned(), Some(home.to_path_buf())))
}

fn twenty_commands(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let running: Vec<_> = (0..20)
        .map(|number| {
            Background::start(
                field,
                &place,
                &format!(
                    "for i in 1 2 3 4 5; do sleep 0.01; done; seq 2000 | tail -1; echo out-{number}; exit {number}"
                ),
            )
        })
        .collect::<Checked<_>>()?;
    for (number, running) in running.into_iter().enumerate() {
        let outcome = running.end()?;
        let right =
            outcome.exit_code == i32::try_from(number).ok() && outcome.stdout == format!("2000\nout-{number}\n");
        check(right, || format!("{number}: {}", line(&outcome)))?;
        field.worked();
    }
    Ok(())
}

fn twenty_sandboxes(field: &Field<'_>) -> Checked {
    let places: Vec<Place<'_>> = (0..20).map(|_| field.place().start()).collect::<Checked<_>>()?;
    let running: Vec<_> = places
        .iter()
        .map(|place| Background::start(field, place, "for d in /tmp /dev/shm ~; do echo $WORK > $d/own; done; sleep 0.05; for d in /tmp /dev/shm ~; do [ $(cat $d/own) = $WORK ] && [ $(ls $d | wc -l) = 1 ] || exit 1; done; pwd"))
        .collect::<Checked<_>>()?;
    for (place, running) in places.iter().zip(running) {
        let outcome = running.end()?;
        check(outcome.stdout.trim() == place.work().display().to_string(), || {
            line(&outcome)
        })?;
        field.worked();
    }
    Ok(())
}

fn many_in_a_row(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let resident = || -> Checked<u64> {
        let text = place.run("grep VmRSS /proc/1/status")?.stdout;
        Ok(text
            .split_whitespace()
            .nth(1)
            .and_then(|kib| kib.parse().ok())
            .unwrap_or(0))
    };
    place.works("true")?;
    let before = resident()?;
    for number in 0..200 {
        let outcome = place.run(&format!("exit {number}"))?;
        check(outcome.exit_code == Some(number), || {
            format!("{number}: {}", line(&outcome))
        })?;
    }
    field.worked();
    let after = resident()?;
    check(after <= before + 512, || {
        format!("pid 1 grew from {before} to {after} KiB")
    })
}
