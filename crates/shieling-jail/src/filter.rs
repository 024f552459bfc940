//! The system calls that a command is refused: a table, and the small program that it becomes.
//!
//! Everything else passes, up to the newest call of the table's making. Namespaces, mounts and Landlock
//! are the walls; this takes away what would reach around them or into parts of the kernel that no
//! command needs. A refused call answers `EPERM`, so that a program sees a refusal and can go on. Three
//! answer `ENOSYS`, as on a kernel that does not have them, and programs then use an older call: `clone3`
//! and `openat2`, whose flags and modes lie in memory that a filter cannot read, and every call that is
//! newer than this table.
//!
//! We assemble it ourselves: `seccompiler` (0.5) kills on a foreign architecture, where a refusal is
//! wanted, and lets x32 calls of x86-64 pass, whose numbers match none of its rules.

use libc::sock_filter;
use shieling_jail::plan::{Isolation, Network, Plan};

use crate::numbers::RESERVED;

/// What becomes of a call.
#[derive(Clone, Copy)]
enum Verdict {
    Pass,
    Refuse,
}

/// What is asked of one argument, of which the kernel takes the lower 32 bits.
#[derive(Clone, Copy)]
enum Test {
    /// It has one of these bits.
    Bits(u32, u32),
    /// It is one of these.
    Is(u32, &'static [u32]),
    /// Its bits under this mask are one of these.
    Masked(u32, u32, &'static [u32]),
    /// It is at least the first and below the second.
    Between(u32, u32, u32),
}

/// The tests of which all hold where this verdict is given.
type Case = (Verdict, &'static [Test]);

/// A call: the first case that holds decides, and otherwise the last verdict.
struct Rule {
    call: libc::c_long,
    cases: &'static [Case],
    otherwise: Verdict,
    errno: i32,
}

/// Every flag of `clone` and `unshare` that makes a namespace (`CLONE_NEW*`, that of time too).
const NAMESPACES: u32 = 0x7e02_0080;

/// Refused always: reasons by group.
const REFUSED: &[libc::c_long] = &[
    // Around the filter: work that the kernel does on somebody's behalf.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Large, often broken parts of the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_fanotify_init,
    // Keys belong to the user, not to a namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Another view of files, also in a user namespace that was made before the filter.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    SYS_STATMOUNT,
    SYS_LISTMOUNT,
    SYS_OPEN_TREE_ATTR,
    libc::SYS_name_to_handle_at,
    libc::SYS_open_by_handle_at,
    libc::SYS_setns,
    // The machine: its modules, kernel, clock, name, swap, log, accounting.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    SYS_KEXEC_FILE_LOAD,
    libc::SYS_reboot,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_syslog,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_quotactl_fd,
    libc::SYS_vhangup,
    SYS_LSM_SET_SELF_ATTR,
];

// Newer than the C library's list of them; the numbers are the same on every architecture.
const SYS_FCHMODAT2: libc::c_long = 452;
const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;
const SYS_LSM_SET_SELF_ATTR: libc::c_long = 460;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;
/// `listns` (Linux 6.19), the first call that was not looked at for this table.
const UNKNOWN: u32 = 470;

#[cfg(target_arch = "x86_64")]
const SYS_KEXEC_FILE_LOAD: libc::c_long = libc::SYS_kexec_file_load;
#[cfg(not(target_arch = "x86_64"))]
const SYS_KEXEC_FILE_LOAD: libc::c_long = 294;

/// Of x86 alone.
#[cfg(target_arch = "x86_64")]
const REFUSED_HERE: &[libc::c_long] = &[
    // Segments and ports of the processor.
    libc::SYS_modify_ldt,
    libc::SYS_iopl,
    libc::SYS_ioperm,
    // Remains of older kernels.
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_nfsservctl,
    // create_module, get_kernel_syms, query_module
    174,
    177,
    178,
];
#[cfg(not(target_arch = "x86_64"))]
const REFUSED_HERE: &[libc::c_long] = &[];

const NEW_NAMESPACES: &[Case] = &[(Verdict::Refuse, &[Test::Bits(0, NAMESPACES)])];

/// Set-user-ID and set-group-ID. The mount says that they mean nothing inside; outside, whoever executes
/// such a file is the user of the sandbox, and root where that is root. On a directory the second is
/// harmless and is refused with it: from a number, a filter cannot tell a directory from a file.
const SET_ID: u32 = libc::S_ISUID | libc::S_ISGID;
/// The flags with which opening makes a file. Without them the mode is not looked at, and may be anything.
const MAKING: u32 = (libc::O_CREAT | libc::O_TMPFILE & !libc::O_DIRECTORY).cast_unsigned();

/// By the place of the mode. `mkdir` needs no rule: the kernel itself takes these bits from its mode.
const MODES: &[(libc::c_long, &[Case])] = &[
    (libc::SYS_fchmod, MODE_1),
    (libc::SYS_fchmodat, MODE_2),
    (SYS_FCHMODAT2, MODE_2),
    (libc::SYS_mknodat, MODE_2),
    (
        libc::SYS_openat,
        &[(Verdict::Refuse, &[Test::Bits(2, MAKING), Test::Bits(3, SET_ID)])],
    ),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, MODE_1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, MODE_1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, MODE_1),
    #[cfg(target_arch = "x86_64")]
    (
        libc::SYS_open,
        &[(Verdict::Refuse, &[Test::Bits(1, MAKING), Test::Bits(2, SET_ID)])],
    ),
];
const MODE_1: &[Case] = &[(Verdict::Refuse, &[Test::Bits(1, SET_ID)])];
const MODE_2: &[Case] = &[(Verdict::Refuse, &[Test::Bits(2, SET_ID)])];

const UNIX: u32 = 1;
const INET: u32 = 2;
const INET6: u32 = 10;
const NETLINK: u32 = 16;
/// The bits of a socket's type without `SOCK_NONBLOCK` and `SOCK_CLOEXEC`, as the kernel takes it.
const TYPE: u32 = 0xf;
const STREAM: u32 = 1;
const DATAGRAM: u32 = 2;
const RAW: u32 = 3;
const PACKETS: u32 = 5;
const TCP: u32 = 6;
const UDP: u32 = 17;

// Sockets that a command may have. Not among the families: vsock, which leads to the hypervisor whatever
// the network namespace, alg, packet, bluetooth and the rest. Not among the protocols: SCTP, MPTCP, DCCP,
// UDP-Lite, ICMP and the rest, which are much code of the kernel for few programs.
const STREAMS: Case = (
    Verdict::Pass,
    &[
        Test::Is(0, &[INET, INET6]),
        Test::Masked(1, TYPE, &[STREAM]),
        Test::Is(2, &[0, TCP]),
    ],
);
const DATAGRAMS: Case = (
    Verdict::Pass,
    &[
        Test::Is(0, &[INET, INET6]),
        Test::Masked(1, TYPE, &[DATAGRAM]),
        Test::Is(2, &[0, UDP]),
    ],
);
/// Netlink's routes, which `getifaddrs` asks for. Others reach audit, netfilter, crypto.
const ROUTES: Case = (
    Verdict::Pass,
    &[
        Test::Is(0, &[NETLINK]),
        Test::Masked(1, TYPE, &[DATAGRAM, RAW]),
        Test::Is(2, &[0]),
    ],
);
const LOCAL: Case = (
    Verdict::Pass,
    &[
        Test::Is(0, &[UNIX]),
        Test::Masked(1, TYPE, &[STREAM, DATAGRAM, PACKETS]),
        Test::Is(2, &[0, UNIX]),
    ],
);

const ALL_SOCKETS: &[Case] = &[LOCAL, STREAMS, DATAGRAMS, ROUTES];
/// Without a view of its own, the sockets of the host's services would be in reach by their paths.
const NETWORK_SOCKETS: &[Case] = &[STREAMS, DATAGRAMS, ROUTES];
/// Without a network namespace of its own, nothing but this filter keeps a command from the network.
const NO_SOCKETS: &[Case] = &[];

/// `ioctl`: most belong to what was opened, and that is decided by who may open it. Not so these.
const CONTROLS: &[Case] = &[
    // Copies that share their blocks, of btrfs's kind and for every file system.
    (Verdict::Pass, &[Test::Is(1, &[0x4004_9409, 0x4020_940d, 0xc018_9436])]),
    // The rest of btrfs's and of bcachefs's: subvolumes and snapshots, which any user may make, and in
    // which what is hidden and protected would stand once more. They can also not be removed as files.
    (Verdict::Refuse, &[Test::Masked(1, 0xff00, &[0x9400, 0xbc00])]),
    (
        Verdict::Refuse,
        &[Test::Is(
            1,
            &[
                // Typing into a terminal: TIOCSTI, and TIOCLINUX, which can do so as well.
                0x5412,
                0x541c,
                // TIOCSETD: loads a line discipline, each a driver that parses what is written.
                0x5423,
                // Keys of a file system, which are the user's, and files that nobody can change any
                // more: FS_IOC_SET_ENCRYPTION_POLICY, _ADD_ and _REMOVE_ENCRYPTION_KEY, ENABLE_VERITY.
                0x800c_6613,
                0xc050_6617,
                0xc040_6618,
                0x4080_6685,
            ],
        )],
    ),
];

/// Any process of the user may set how and where another one runs, and Landlock does not ask. Of its own
/// a command may, by their numbers too, as threads do; the jail's have numbers of their own ([`RESERVED`]).
const SCHEDULING: &[(libc::c_long, &[Case])] = &[
    (libc::SYS_sched_setaffinity, NOT_OURS),
    (libc::SYS_sched_setattr, NOT_OURS),
    (libc::SYS_sched_setparam, NOT_OURS),
    (libc::SYS_sched_setscheduler, NOT_OURS),
    // Of a process, of a group, or of everything that the user has, the jail included.
    (
        libc::SYS_setpriority,
        &[(Verdict::Refuse, &[Test::Is(0, &[2])]), NOT_OURS_1],
    ),
    (
        libc::SYS_ioprio_set,
        &[(Verdict::Refuse, &[Test::Is(0, &[3])]), NOT_OURS_1],
    ),
];
const NOT_OURS: &[Case] = &[(Verdict::Refuse, &[Test::Between(0, RESERVED.start, RESERVED.end)])];
const NOT_OURS_1: Case = (Verdict::Refuse, &[Test::Between(1, RESERVED.start, RESERVED.end)]);

/// The same where the user's processes of the host can be named: only of the caller itself.
const OWN_SCHEDULING: &[(libc::c_long, &[Case])] = &[
    (libc::SYS_sched_setaffinity, SELF),
    (libc::SYS_sched_setattr, SELF),
    (libc::SYS_sched_setparam, SELF),
    (libc::SYS_sched_setscheduler, SELF),
    (
        libc::SYS_setpriority,
        &[(Verdict::Pass, &[Test::Is(0, &[0, 1]), Test::Is(1, &[0])])],
    ),
    (
        libc::SYS_ioprio_set,
        &[(Verdict::Pass, &[Test::Is(0, &[1, 2]), Test::Is(1, &[0])])],
    ),
];
/// Oneself, in calls that name a process.
const SELF: &[Case] = &[(Verdict::Pass, &[Test::Is(0, &[0])])];

/// Memory and queues that have no path which Landlock could judge: without namespaces, the host's.
const IPC: &[libc::c_long] = &[
    libc::SYS_mq_open,
    libc::SYS_mq_unlink,
    libc::SYS_msgctl,
    libc::SYS_msgget,
    libc::SYS_msgrcv,
    libc::SYS_msgsnd,
    libc::SYS_semctl,
    libc::SYS_semget,
    libc::SYS_semop,
    libc::SYS_semtimedop,
    libc::SYS_shmat,
    libc::SYS_shmctl,
    libc::SYS_shmget,
];

fn rules(plan: &Plan) -> Vec<Rule> {
    let rule = |call, cases, otherwise, errno| Rule {
        call,
        cases,
        otherwise,
        errno,
    };
    let always = |call: &libc::c_long| rule(*call, &[], Verdict::Refuse, libc::EPERM);
    let refused_if = |(call, cases): &(_, _)| rule(*call, *cases, Verdict::Pass, libc::EPERM);
    let allowed_if = |call, cases| rule(call, cases, Verdict::Refuse, libc::EPERM);

    let mut rules: Vec<Rule> = REFUSED.iter().chain(REFUSED_HERE).map(always).collect();
    rules.extend(MODES.iter().map(refused_if));
    let reduced = plan.isolation == Isolation::Landlock;
    let sockets = match (reduced, plan.network) {
        (false, _) => ALL_SOCKETS,
        (true, Network::Host) => NETWORK_SOCKETS,
        (true, Network::None | Network::Loopback) => NO_SOCKETS,
    };
    rules.extend([
        rule(libc::SYS_clone, NEW_NAMESPACES, Verdict::Pass, libc::EPERM),
        rule(libc::SYS_unshare, NEW_NAMESPACES, Verdict::Pass, libc::EPERM),
        rule(libc::SYS_clone3, &[], Verdict::Refuse, libc::ENOSYS),
        rule(libc::SYS_openat2, &[], Verdict::Refuse, libc::ENOSYS),
        rule(libc::SYS_ioctl, CONTROLS, Verdict::Pass, libc::EPERM),
        allowed_if(libc::SYS_socket, sockets),
        allowed_if(libc::SYS_socketpair, &[LOCAL]),
        // Any process of the user may set the limits of any other, and Landlock does not ask: a command's
        // supervisor could then no longer open `/proc` to end it, and pid 1 would start no other.
        allowed_if(libc::SYS_prlimit64, SELF),
    ]);
    if reduced {
        rules.extend(OWN_SCHEDULING.iter().map(|(call, cases)| allowed_if(*call, *cases)));
        rules.extend(IPC.iter().map(always));
    } else {
        rules.extend(SCHEDULING.iter().map(refused_if));
    }
    if plan.executable.is_some() {
        // A file in memory could be executed, and no rule on files sees it.
        rules.push(always(&libc::SYS_memfd_create));
    }
    rules
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const MASK: u16 = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;
const PASS: sock_filter = instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);

// Places in `struct seccomp_data`.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;
const ARGUMENTS: u32 = 16;

#[cfg(target_arch = "x86_64")]
const OURS: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const OURS: u32 = 0xc000_00b7;
#[cfg(target_arch = "riscv64")]
const OURS: u32 = 0xc000_00f3;

/// From this number on, calls of x86-64 are those of x32.
const X32: u32 = 0x4000_0000;

const fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

fn answer(errno: i32) -> sock_filter {
    instruction(RETURN, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(), 0, 0)
}

/// The low 32 bits of an argument. The kernel takes all that we look at as 32 bits.
fn argument(place: u32) -> sock_filter {
    let low = if cfg!(target_endian = "big") { 4 } else { 0 };
    instruction(LOAD, ARGUMENTS + 8 * place + low, 0, 0)
}

/// The filter of a jail.
pub(crate) fn program(plan: &Plan) -> Vec<sock_filter> {
    let mut program = vec![
        instruction(LOAD, ARCHITECTURE, 0, 0),
        instruction(EQUAL, OURS, 1, 0),
        answer(libc::EPERM),
        instruction(LOAD, NUMBER, 0, 0),
        instruction(AT_LEAST, UNKNOWN, 0, 3),
        instruction(AT_LEAST, X32, 0, 1),
        answer(libc::EPERM),
        answer(libc::ENOSYS),
    ];
    let mut rules = rules(plan);
    rules.sort_by_key(|rule| rule.call);
    program.extend(search(&rules));
    program
}

/// Finds a call's rule by halving. The kernel runs a new filter once for every number, to remember
/// which calls always pass: with a plain list, each command's start took half a millisecond longer.
fn search(rules: &[Rule]) -> Vec<sock_filter> {
    match rules {
        [] => vec![PASS],
        [rule] => {
            let body = body(rule);
            let mut code = vec![instruction(EQUAL, number(rule.call), 0, length(body.len()))];
            code.extend(body);
            code.push(PASS);
            code
        }
        _ => {
            let (left, right) = rules.split_at(rules.len() / 2);
            let first = right.first().map_or(0, |rule| number(rule.call));
            let left = search(left);
            let over = u32::try_from(left.len()).expect("some hundred instructions");
            let mut code = vec![instruction(AT_LEAST, first, 0, 1), instruction(JUMP, over, 0, 0)];
            code.extend(left);
            code.extend(search(right));
            code
        }
    }
}

/// What happens once a call's number is found.
fn body(rule: &Rule) -> Vec<sock_filter> {
    let end = |verdict| match verdict {
        Verdict::Pass => PASS,
        Verdict::Refuse => answer(rule.errno),
    };
    let cases = rule.cases.iter().flat_map(|(verdict, tests)| all(tests, end(*verdict)));
    cases.chain([end(rule.otherwise)]).collect()
}

/// Comes to `end` if all tests hold, and otherwise to what follows.
fn all(tests: &[Test], end: sock_filter) -> Vec<sock_filter> {
    tests.iter().rev().fold(vec![end], |after, test| {
        let over = length(after.len());
        let mut code = match *test {
            Test::Bits(place, bits) => vec![argument(place), instruction(ANY_BIT, bits, 0, over)],
            Test::Is(place, values) => [vec![argument(place)], one_of(values, over)].concat(),
            Test::Masked(place, mask, values) => [
                vec![argument(place), instruction(MASK, mask, 0, 0)],
                one_of(values, over),
            ]
            .concat(),
            Test::Between(place, first, below) => vec![
                argument(place),
                instruction(AT_LEAST, first, 0, length(after.len() + 1)),
                instruction(AT_LEAST, below, over, 0),
            ],
        };
        code.extend(after);
        code
    })
}

/// Goes on after itself if what is loaded is one of these, and otherwise `over` instructions further.
fn one_of(values: &[u32], over: u8) -> Vec<sock_filter> {
    let jump = |(at, value): (usize, &u32)| match values.len() - 1 - at {
        0 => instruction(EQUAL, *value, 0, over),
        left => instruction(EQUAL, *value, length(left), 0),
    };
    values.iter().enumerate().map(jump).collect()
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("system calls have small numbers")
}

fn length(instructions: usize) -> u8 {
    u8::try_from(instructions).expect("a rule is a few instructions long")
}

#[cfg(test)]
mod tests;
