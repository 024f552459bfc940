//! System calls that reach around the walls: each answers the filter's own errno inside, and another
//! one outside, for the same user. Their neighbours work.

mod table;

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use shieling::environment::Network;
use shieling_jail::plan::Isolation;

use super::support::{Case, Checked, Field, Place, case, check, wrong};

#[cfg(target_arch = "x86_64")]
use table::PROCESSOR;
use table::{FILES, KERNEL, TERMINAL, namespaces, scheduling, set, set_id, sockets};

pub(crate) const CASES: &[Case] = &[
    case(
        "no namespace can be made or entered, by any call and any flag",
        |field| group(field, "namespaces", &namespaces()),
    ),
    case("nothing can be mounted, by the old calls and the new ones", |field| {
        group(field, "files", &set(FILES))
    }),
    case("parts of the kernel that no command needs are out of reach", |field| {
        group(field, "kernel", &set(KERNEL))
    }),
    #[cfg(target_arch = "x86_64")]
    case("the doors of other architectures are shut", |field| {
        group(field, "processor", &set(PROCESSOR))
    }),
    case(
        "nothing can be typed into a terminal, whatever stands in the upper half",
        |field| group(field, "terminal", &set(TERMINAL)),
    ),
    case("sockets of odd families cannot be made", |field| {
        group(field, "sockets", &sockets())
    }),
    case(
        "the same sockets cannot be made with the host's network",
        sockets_with_network,
    ),
    case("no file gets a set-user-ID or set-group-ID bit, by any call", |field| {
        group(field, "set_id", &set_id())
    }),
    case(
        "no set-ID bit comes to be outside by ordinary programs",
        set_id_by_programs,
    ),
    case(
        "the sandbox's own processes cannot be scheduled, by any call",
        |field| group(field, "scheduling", &scheduling()),
    ),
    case("a command schedules its own threads and children", |field| {
        let place = field.place().start()?;
        Answers::inside(&place, "own_namespaces")?.all_work(field)
    }),
    case("no more of the user's watches can be taken than half", watches),
    case("neighbours of what is refused work", neighbours),
    case(
        "the reduced isolation refuses the same calls, and every socket",
        reduced,
    ),
    case(
        "the filter, no new privileges and no capability hold, and say so",
        status,
    ),
    case(
        "a program with capabilities or another owner gains nothing",
        set_user_id,
    ),
    case(
        "there are no devices but the harmless ones, and none can be made",
        devices,
    ),
];

/// What calls answered, by name; of those that must be refused, and of those that must work.
#[derive(Default)]
struct Answers {
    refused: BTreeMap<String, String>,
    works: BTreeMap<String, String>,
}

impl Answers {
    fn read(text: &str) -> Checked<Self> {
        let mut answers = Self::default();
        for line in text.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let [kind, name, answer, _] = words.as_slice() else {
                return wrong(format!("`calls` printed `{line}`"));
            };
            let list = match *kind {
                "refused" => &mut answers.refused,
                _ => &mut answers.works,
            };
            list.insert((*name).to_owned(), (*answer).to_owned());
        }
        Ok(answers)
    }

    fn inside(place: &Place<'_>, group: &str) -> Checked<Self> {
        Self::read(&place.works(&format!(r#""$TOOLS/calls" {group}"#))?)
    }

    /// The same calls by the same user, without a sandbox, in a directory of the place's own, since
    /// some of them make files.
    fn outside(field: &Field<'_>, place: &Place<'_>, group: &str) -> Checked<Self> {
        let directory = place.root.join("without-a-sandbox");
        std::fs::create_dir(&directory)?;
        let program = field.tools.directory.join("calls");
        let done = Command::new(program)
            .args([group, "outside"])
            .current_dir(directory)
            .output()?;
        check(done.status.success(), || {
            format!("outside, `calls {group}` ended with {}", done.status)
        })?;
        Self::read(&String::from_utf8_lossy(&done.stdout))
    }

    /// Exactly these were tried; each answered the filter's errno.
    fn are_refused(&self, field: &Field<'_>, expected: &BTreeSet<String>) -> Checked {
        let tried: BTreeSet<String> = self.refused.keys().cloned().collect();
        check(tried == *expected, || {
            let differ: Vec<_> = tried.symmetric_difference(expected).collect();
            format!("not the calls that should be tried: {differ:?}")
        })?;
        let mut passed = Vec::new();
        for (name, answer) in &self.refused {
            field.attempted();
            let hidden = name.starts_with("clone3") || name.starts_with("openat2");
            let filter = if hidden { "ENOSYS" } else { "EPERM" };
            if answer != filter {
                passed.push(format!("{name} answered {answer}"));
            }
        }
        check(passed.is_empty(), || {
            format!("ESCAPED the filter: {}", passed.join(", "))
        })
    }

    fn all_work(&self, field: &Field<'_>) -> Checked {
        for (name, answer) in &self.works {
            check(answer == "OK", || format!("{name} should work, and answered {answer}"))?;
            field.worked();
        }
        Ok(())
    }
}

fn group(field: &Field<'_>, name: &str, expected: &BTreeSet<String>) -> Checked {
    let place = field.place().start()?;
    let inside = Answers::inside(&place, name)?;
    inside.are_refused(field, expected)?;
    inside.all_work(field)?;
    // By the filter, and not by chance: without it, the kernel says something else.
    let outside = Answers::outside(field, &place, name)?;
    for (name, answer) in &outside.refused {
        check(inside.refused.get(name) != Some(answer), || {
            format!("{name} answers {answer} outside as well, which shows nothing")
        })?;
    }
    // Root's answer can be told for most; an ordinary user's for those without a capability before.
    let told = outside.refused.len() * 3 >= expected.len();
    check(told, || {
        format!("only {} of {} can be told", outside.refused.len(), expected.len())
    })
}

fn sockets_with_network(field: &Field<'_>) -> Checked {
    for network in [Network::Loopback, Network::Host] {
        let place = field.place().with(|asked| asked.network = network).start()?;
        let inside = Answers::inside(&place, "sockets")?;
        inside.are_refused(field, &sockets())?;
        inside.all_work(field)?;
    }
    Ok(())
}

fn neighbours(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let inside = Answers::inside(&place, "neighbours")?;
    check(inside.works.len() >= 40, || {
        format!("only {} neighbours", inside.works.len())
    })?;
    inside.all_work(field)
}

fn reduced(field: &Field<'_>) -> Checked {
    let place = field
        .place()
        .with(|asked| {
            asked.isolation = Isolation::Landlock;
            asked.network = Network::None;
        })
        .start()?;
    for (name, expected) in [
        ("namespaces", namespaces()),
        ("files", set(FILES)),
        ("kernel", set(KERNEL)),
        ("set_id", set_id()),
        ("scheduling", scheduling()),
    ] {
        Answers::inside(&place, name)?.are_refused(field, &expected)?;
    }
    let inside = Answers::inside(&place, "sockets")?;
    inside.are_refused(field, &sockets())?;
    for (name, answer) in &inside.works {
        field.attempted();
        let expected = if name.starts_with("socketpair") { "OK" } else { "EPERM" };
        check(answer == expected, || format!("{name} answered {answer}"))?;
    }
    Answers::inside(&place, "neighbours")?.all_work(field)
}

fn status(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    let status = place.works("cat /proc/self/status")?;
    let value = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.map(str::trim).unwrap_or_default().to_owned()
    };
    for (name, expected) in [
        ("NoNewPrivs", "1"),
        ("Seccomp", "2"),
        ("CapInh", "0000000000000000"),
        ("CapPrm", "0000000000000000"),
        ("CapEff", "0000000000000000"),
        ("CapBnd", "0000000000000000"),
        ("CapAmb", "0000000000000000"),
    ] {
        field.attempted();
        check(value(name) == expected, || format!("{name} is {}", value(name)))?;
    }
    let confinement = field.runtime.block_on(place.sandbox.start())?;
    check(confinement.missing.is_empty(), || format!("{confinement:?}"))?;
    for layer in [
        "user",
        "mount",
        "pid",
        "network",
        "ipc",
        "uts",
        "cgroup",
        "capabilities",
        "landlock",
        "seccomp",
    ] {
        check(confinement.enforced.iter().any(|name| name == layer), || {
            format!("{layer}: {confinement:?}")
        })?;
    }
    // What a command says of its sandbox is what the kernel says of the command.
    place
        .works("[ $(uname -n) = shieling ] && [ $(id -u) = $(stat -Lc %u /proc/self) ]")
        .map(drop)
}

/// A copy with the bit set, made inside, and those of the system.
fn set_user_id(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    // The user's own bits may be set: they give nothing.
    let place = Place::beside(&{
        place.host("cp /usr/bin/id . && chmod 6755 id")?;
        place
    })?;
    let ids = place.works("./id -u && ./id -ru && id -u")?;
    let mut ids: Vec<&str> = ids.lines().collect();
    ids.dedup();
    field.attempted();
    check(ids.len() == 1, || format!("another user: {ids:?}"))?;
    place.refused("cp /usr/bin/id own && chown 12345 own")?;
    if field.needs("su").is_ok() {
        place.refused("su -c id nobody < /dev/null")?;
    }
    if field.needs("python3").is_ok() {
        place.refused_with(
            "python3 -c 'import os; os.setuid(os.getuid() + 1)'",
            &["Operation not permitted", "Invalid argument"],
        )?;
        place.refused_with("python3 -c 'import os; os.setgroups([])'", &["Operation not permitted"])?;
        place.works("python3 -c 'import os; os.setuid(os.getuid()); os.setgid(os.getgid())'")?;
    }
    Ok(())
}

fn set_id_by_programs(field: &Field<'_>) -> Checked {
    let making = field.place().host(
        "cp /usr/bin/id had && chmod 6755 had && mkdir shared && chmod 2775 shared && mkdir tree && cp -p had tree/had && \
         tar cpf tree.tar tree && rm -r tree",
    )?;
    let place = making.start()?;
    for text in [
        "cp /usr/bin/id mine; chmod 4755 mine",
        "cp /usr/bin/id mine; chmod u+s mine",
        "cp /usr/bin/id mine; chmod g+s mine",
        "install -m 4755 /usr/bin/id installed",
        "install -m 6755 /usr/bin/id installed",
        "cp -p had copied",
        "cp -a had copied",
        "tar xpf tree.tar",
        "umask 0; mkdir -m 2777 made",
    ] {
        place.refused_with(text, &["Operation not permitted"])?;
    }
    if field.needs("python3").is_ok() {
        place.refused_with(
            "python3 -c 'import os; os.chmod(\"mine\", 0o4755)'",
            &["Operation not permitted"],
        )?;
    }
    // What had one and is written to has none any more.
    place.works("cat /usr/bin/id >> had && cp /usr/bin/true had && [ ! -u had ] && [ ! -g had ]")?;
    // In a directory that is shared by a group, what is made belongs to the group, as ever.
    place.works("mkdir -p shared/inner/deep && touch shared/inner/file && [ -g shared/inner/deep ]")?;
    place.works("install -m 755 /usr/bin/id ok && cp -a ok ok2 && chmod 1777 shared/.. && tar xf tree.tar --no-same-permissions")?;
    field.attempted();
    let found = place.host("find . ! -type d -perm /6000")?;
    check(found.trim().is_empty(), || {
        format!("ESCAPED: set-ID bits outside: {found}")
    })
}

/// Of what the kernel counts for the user on the whole host.
fn watches(field: &Field<'_>) -> Checked {
    field.needs("python3")?;
    let place = field.place().start()?;
    let text = r#"python3 - <<'END'
import ctypes, os, resource
libc = ctypes.CDLL(None, use_errno=True)
host = int(open("/proc/sys/fs/inotify/max_user_instances").read())
made = 0
while made < host and libc.inotify_init() >= 0: made += 1
assert made <= host // 2, f"{made} of {host}"
assert made >= min(host // 2, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 10) - 1, f"{made} of {host}"
print("held")
END"#;
    field.attempted();
    let said = place.works(text)?;
    check(said.trim() == "held", || said)?;
    for name in ["user", "mnt", "pid", "net", "ipc", "uts", "cgroup", "time"] {
        let most = match name {
            // Pid 1 makes mounts that count as a namespace until they are in their place.
            "mnt" => 8,
            // Pid 1 has made it, and there is room for no other.
            "cgroup" => 1,
            _ => 0,
        };
        place.works(&format!("[ $(cat /proc/sys/user/max_{name}_namespaces) = {most} ]"))?;
        place.refused(&format!("echo 9 > /proc/sys/user/max_{name}_namespaces"))?;
    }
    place.refused("echo 1 > /proc/sys/kernel/ns_last_pid").map(drop)
}

fn devices(field: &Field<'_>) -> Checked {
    let place = field.place().start()?;
    for name in [
        "mem",
        "kmem",
        "port",
        "kmsg",
        "console",
        "tty0",
        "tty1",
        "kvm",
        "fuse",
        "userfaultfd",
        "net/tun",
        "loop-control",
        "loop0",
        "sda",
        "vda",
        "vsock",
        "vhost-net",
        "vhost-vsock",
        "uinput",
        "input",
        "snd",
        "hpet",
        "rtc0",
        "nvram",
        "mqueue",
        "hugepages",
        "mapper/control",
        "btrfs-control",
        "cuse",
        "vfio/vfio",
        "dri",
        "autofs",
        "log",
    ] {
        place.refused_with(&format!("ls -d /dev/{name}"), &["No such file"])?;
    }
    for kind in ["c 1 1", "b 8 0", "b 7 0"] {
        for directory in [".", "/tmp", "/dev/shm"] {
            place.refused_with(
                &format!("mknod {directory}/made {kind}"),
                &["Permission denied", "Operation not permitted"],
            )?;
        }
    }
    place.refused_with("touch /dev/own", &["Read-only", "Permission denied"])?;
    place.refused_with(
        "rm /dev/null",
        &["Read-only", "Permission denied", "Device or resource busy"],
    )?;
    place.works("mknod fifo p && rm fifo")?;
    place
        .works("echo x > /dev/null && [ $(head -c 5 /dev/zero | wc -c) = 5 ] && head -c 5 /dev/urandom > /dev/null")?;
    place.refused_with("echo x > /dev/full", &["No space left"])?;
    // Nobody's terminal: there is none.
    place
        .refused_with("echo x > /dev/tty", &["No such device or address"])
        .map(drop)
}
