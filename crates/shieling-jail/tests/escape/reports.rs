//! What a command is told, or finds, of the sandbox's bounds: limits that were reached, a network that is not
//! there, a terminal's name, another user's workspace. As root and as an ordinary user, since what holds each of
//! them differs.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown};
use std::path::Path;
use std::time::Duration;

use shieling::environment::{Network, Restrictions};
use shieling::outcome::{HintKind, LimitHit, LimitedResource, Outcome};
use shieling_jail::plan::Limits;

use super::support::{Case, Checked, Field, Place, case, check, heavy, line, within};

pub(crate) const CASES: &[Case] = &[
    heavy(
        "whoever was killed for memory is named, however the command ends",
        memory,
    ),
    heavy(
        "processes that were refused are told, however the command ends",
        processes,
    ),
    case("a full directory in memory is told with its size", full),
    case("a failure for want of a network says so, and no other does", no_network),
    case(
        "without saying more, a server and its client work and nothing outside is found",
        loopback,
    ),
    case("a terminal has a name inside", terminal),
    case(
        "root works in another user's directory, and what it makes is that user's",
        another_user,
    ),
    case("what root unpacks is its own", unpacked),
];

const MIB: u64 = 1 << 20;

/// The one limit that this outcome tells of.
fn only<'a>(outcome: &'a Outcome, text: &str) -> Checked<&'a LimitHit> {
    match outcome.limits_hit.as_slice() {
        [hit] => Ok(hit),
        other => Err(super::support::Fail::Wrong(format!(
            "`{text}`: {other:?}, {}",
            line(outcome)
        ))),
    }
}

fn nothing_hit(outcome: &Outcome, text: &str) -> Checked {
    check(outcome.limits_hit.is_empty(), || {
        format!("`{text}` met nothing: {:?}", outcome.limits_hit)
    })
}

fn memory(field: &Field<'_>) -> Checked {
    let limits = Limits {
        memory: Some(64 * MIB),
        ..Limits::default()
    };
    let place = field.place().with(|asked| asked.limits = limits).start()?;
    let eat = r#""$TOOLS/eat" memory 400"#;
    for text in [
        format!("{eat} | cat"),
        format!("{eat}; true"),
        format!("{eat}; exit 1"),
        format!("{eat} & wait; echo on"),
        format!("exec {eat}"),
        format!("(setsid {eat}) 2> /dev/null; exit 137"),
    ] {
        let outcome = place.attempt(&text)?;
        let hit = only(&outcome, &text)?;
        check(hit.limit == LimitedResource::Memory && hit.bound == 64 * MIB, || {
            format!("{hit:?}")
        })?;
        check(hit.times == Some(1) && hit.instead == "--memory 128MiB", || {
            format!("{hit:?}")
        })?;
        check(hit.peak.is_some_and(|peak| peak >= 32 * MIB), || format!("{hit:?}"))?;
        let named: Vec<_> = hit.killed.iter().map(|one| (one.name.as_str(), one.pid > 0)).collect();
        check(named == [("eat", true)], || format!("`{text}`: {hit:?}"))?;
        // Of what happened before nothing is told again.
        for quiet in ["true", "kill -KILL $$", r#""$TOOLS/eat" memory 20"#] {
            nothing_hit(&place.attempt(quiet)?, quiet)?;
        }
    }
    // One after another in one command, in a session, and in one that stays.
    let twice = format!("{eat}; {eat}; true");
    let outcome = place.attempt(&twice)?;
    let hit = only(&outcome, &twice)?;
    // Each is counted. One that grew and died while the machine had no time for a look at it has no name.
    let eaten = !hit.killed.is_empty() && hit.killed.iter().all(|one| one.name == "eat");
    check(hit.times == Some(2) && eaten, || format!("{hit:?}"))?;
    let first = place.in_session(&format!("{eat}; true"))?;
    check(only(&first, "in a session")?.killed.len() == 1, || line(&first))?;
    nothing_hit(&place.in_session("true")?, "the next of a session")?;
    place.works("true").map(drop)
}

fn processes(field: &Field<'_>) -> Checked {
    let limits = Limits {
        pids: Some(24),
        ..Limits::default()
    };
    let place = field.place().with(|asked| asked.limits = limits).start()?;
    let many = "for i in $(seq 40); do sleep 1 & done; wait; true";
    let outcome = place.attempt(many)?;
    let hit = only(&outcome, many)?;
    check(hit.limit == LimitedResource::Pids && hit.bound == 24, || {
        format!("{hit:?}")
    })?;
    check(hit.instead == "--pids 48", || format!("{hit:?}"))?;
    for quiet in ["true", "for i in 1 2 3 4; do sleep 0.1 & done; wait"] {
        nothing_hit(&place.run(quiet)?, quiet)?;
    }
    place.works("true").map(drop)
}

fn full(field: &Field<'_>) -> Checked {
    let place = field.place().with(|asked| asked.sizes.tmp = MIB).start()?;
    let told = |outcome: &Outcome| outcome.hints.iter().any(|hint| hint.kind == HintKind::NoSpace);
    for text in [
        "head -c 2MB /dev/zero > /tmp/x",
        "dd if=/dev/zero of=/tmp/x bs=1M count=2",
        "dd if=/dev/zero of=/tmp/x bs=1M count=2 2>&1",
    ] {
        let outcome = place.refused(text)?;
        let hint = outcome.hints.iter().find(|hint| hint.kind == HintKind::NoSpace);
        check(
            hint.is_some_and(|hint| hint.because.contains("`/tmp` holds 1 MiB")),
            || format!("`{text}`: {:?}, {}", outcome.hints, line(&outcome)),
        )?;
    }
    for text in ["rm /tmp/x", "head -c 900KB /dev/zero > /tmp/x"] {
        check(!told(&place.run(text)?), || format!("`{text}` filled nothing"))?;
    }
    Ok(())
}

fn no_network(field: &Field<'_>) -> Checked {
    let told = |outcome: &Outcome| outcome.hints.iter().any(|hint| hint.kind == HintKind::Network);
    for network in [Network::None, Network::Loopback] {
        let place = field.place().with(|asked| asked.network = network).start()?;
        if field.needs("python3").is_ok() {
            let outcome = place.refused("python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'")?;
            check(told(&outcome), || line(&outcome))?;
            let text = "python3 -c 'import socket; socket.create_connection((\"192.0.2.1\", 80), 20)'";
            let outcome = place.refused(text)?;
            // Without even a loopback it is Landlock that answers, in a word that says nothing of networks.
            check(told(&outcome) || network == Network::None, || line(&outcome))?;
        }
        for (text, expected) in [
            ("echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6", true),
            (
                "echo 'curl: (6) Could not resolve host: example.org' >&2; seq 19 >&2",
                false,
            ),
            (
                "(echo 'curl: (6) Could not resolve host: example.org' >&2; exit 6) 2>&1 | tail -n 3",
                true,
            ),
            ("echo 'connect ECONNREFUSED 127.0.0.1:5432' >&2; exit 1", false),
            ("exit 1", false),
        ] {
            let outcome = place.run(text)?;
            check(told(&outcome) == expected, || format!("`{text}`: {:?}", outcome.hints))?;
        }
        // Nothing is tried again, unless the caller says otherwise.
        place.works("[ \"$NPM_CONFIG_FETCH_RETRIES\" = 0 ] && [ \"$CARGO_NET_RETRY\" = 0 ]")?;
    }
    let place = field.place().with(|asked| asked.network = Network::Host).start()?;
    place.works("[ -z \"${CARGO_NET_RETRY+set}\" ]").map(drop)
}

fn loopback(field: &Field<'_>) -> Checked {
    check(Restrictions::new("/w", "/bin/sh").network == Network::Loopback, || {
        "the default is another".to_owned()
    })?;
    field.needs("python3")?;
    let place = field.place().start()?;
    for (family, address) in [("AF_INET", "127.0.0.1"), ("AF_INET6", "::1"), ("AF_INET", "localhost")] {
        place.works(&format!(
            "python3 -c 'import socket as s; l = s.socket(s.{family}); l.bind((\"{address}\", 0)); l.listen(); \
             s.create_connection(l.getsockname()[:2], 5)'"
        ))?;
    }
    // At once: no second is waited.
    within(Duration::from_secs(10), || {
        place.refused("getent hosts example.org; exec 3<> /dev/tcp/192.0.2.1/80")
    })
    .map(drop)
}

fn terminal(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let text = "name=$(tty) && [ -c \"$name\" ] && : > \"$name\" && : > /dev/tty && printf '%s' \"$name\" > name";
    let outcome = place.on_terminal(text)?;
    check(outcome.exit_code == Some(0), || line(&outcome))?;
    let name = fs::read_to_string(place.work().join("name"))?;
    check(name.starts_with("/dev/pts/"), || format!("it is called `{name}`"))?;
    // Another's is not there: each sandbox has its own.
    let other = Place::beside(&place)?;
    other.refused(&format!("[ -e {name} ]"))?;
    field.worked();
    Ok(())
}

fn another_user(field: &Field<'_>) -> Checked {
    const OWNER: u32 = 4_242;
    if !field.is_root() {
        // Who has one user has no others to show.
        return Ok(());
    }
    let making = field.place().file("there/file", "old\n");
    let work = making.work();
    let give = |path: &Path, mode| -> Checked {
        chown(path, Some(OWNER), Some(OWNER))?;
        Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
    };
    give(&work, 0o750)?;
    give(&work.join("there"), 0o700)?;
    give(&work.join("there/file"), 0o600)?;
    let canary = field.base.join("another-user");
    fs::create_dir_all(&canary)?;
    give(&canary, 0o700)?;
    let place = making.with(|asked| asked.read.push(canary.clone())).start()?;
    place.works("cat there/file && echo new >> there/file && mkdir made && touch made/it && rm there/file")?;
    place.works("git init -q r && cd r && git commit -q --allow-empty -m x && git log --oneline")?;
    place.write("by-a-tool", "text")?;
    for name in ["made", "made/it", "r/.git/HEAD", "by-a-tool"] {
        let found = fs::metadata(work.join(name))?;
        check((found.uid(), found.gid()) == (OWNER, OWNER), || {
            format!("`{name}` belongs to {}:{}", found.uid(), found.gid())
        })?;
    }
    // That user's other files, and becoming that user, are out of reach.
    place.refused(&format!("ls {}", canary.display()))?;
    place.refused("touch z && chown 4242 z")?;
    place.refused("touch y && chmod u+s y")?;
    Ok(())
}

fn unpacked(field: &Field<'_>) -> Checked {
    field.needs("tar")?;
    let place = field.place().start()?;
    place.works("mkdir d && echo x > d/f && tar czf d.tgz --owner=1234 --group=1234 d && rm -r d")?;
    place.works("tar xzf d.tgz && cat d/f && tar -C /tmp -xzf d.tgz && cp -a d e && cat /tmp/d/f e/f")?;
    place.works("install -m 600 d/f g && cat g").map(drop)
}
