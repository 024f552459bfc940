//! The system calls that a command is refused: a table, and the small program that it becomes.
//!
//! Everything else passes. Namespaces, mounts and Landlock are the walls; this takes away what would
//! reach around them or into parts of the kernel that no command needs. A refused call answers
//! `EPERM`, so that a program sees a refusal and can go on; only `clone3` answers `ENOSYS`, since its
//! flags lie in memory that a filter cannot read, and C libraries then fall back to `clone`.
//!
//! We assemble it ourselves: `seccompiler` (0.5) kills on a foreign architecture, where a refusal is
//! wanted, and lets x32 calls of x86-64 pass, whose numbers match none of its rules.

use libc::sock_filter;
use shieling_jail::plan::{Isolation, Network, Plan};

/// When a call is refused.
enum When {
    /// Always.
    Always,
    /// If the argument at this place, as 32 bits, has one of these bits.
    Bits(u32, u32),
    /// If the argument at this place, as 32 bits, is one of these.
    Is(u32, &'static [u32]),
    /// Unless the argument at this place, as 32 bits, is one of these.
    Unless(u32, &'static [u32]),
    /// If it is netlink's, for anything but routes; then as `Unless` for the first argument.
    Socket(&'static [u32]),
}

struct Rule {
    call: libc::c_long,
    when: When,
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
const SYS_STATMOUNT: libc::c_long = 457;
const SYS_LISTMOUNT: libc::c_long = 458;
const SYS_LSM_SET_SELF_ATTR: libc::c_long = 460;
const SYS_OPEN_TREE_ATTR: libc::c_long = 467;

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

/// The address families that a socket can have: unix, IPv4, IPv6 and netlink. Not among them: vsock,
/// which leads to the hypervisor whatever the network namespace, alg, packet, bluetooth and the rest.
const FAMILIES: &[u32] = &[1, 2, 10, 16];
/// Netlink's routes, which `getifaddrs` asks for. Others reach audit, netfilter, crypto.
const NETLINK: u32 = 16;
const NETLINK_ROUTE: u32 = 0;
const UNIX: &[u32] = &[1];
/// Oneself, in calls that name a process.
const SELF: &[u32] = &[0];

/// Typing into a terminal, and TIOCLINUX, which can do so as well.
const TERMINAL: &[u32] = &[0x5412, 0x541c];

/// Without namespaces nothing but this filter keeps a command from the network and from the sockets
/// of the host's services, which lie in the file system: no socket at all, but pairs.
const NO_FAMILY: &[u32] = &[];

fn rules(plan: &Plan) -> Vec<Rule> {
    let always = |call: &libc::c_long| Rule {
        call: *call,
        when: When::Always,
        errno: libc::EPERM,
    };
    let mut rules: Vec<Rule> = REFUSED.iter().chain(REFUSED_HERE).map(always).collect();
    let rule = |call, when, errno| Rule { call, when, errno };
    let families = match (plan.isolation, plan.network) {
        (Isolation::Landlock, Network::None | Network::Loopback) => NO_FAMILY,
        _ => FAMILIES,
    };
    rules.extend([
        rule(libc::SYS_clone, When::Bits(0, NAMESPACES), libc::EPERM),
        rule(libc::SYS_clone3, When::Always, libc::ENOSYS),
        rule(libc::SYS_unshare, When::Bits(0, NAMESPACES), libc::EPERM),
        rule(libc::SYS_ioctl, When::Is(1, TERMINAL), libc::EPERM),
        rule(libc::SYS_socket, When::Socket(families), libc::EPERM),
        rule(libc::SYS_socketpair, When::Unless(0, UNIX), libc::EPERM),
        // Any process of the user may set the limits of any other, and Landlock does not ask: a command's
        // supervisor could then no longer open `/proc` to end it, and pid 1 would start no other.
        rule(libc::SYS_prlimit64, When::Unless(0, SELF), libc::EPERM),
    ]);
    if plan.executable.is_some() {
        // A file in memory could be executed, and no rule on files sees it.
        rules.push(rule(libc::SYS_memfd_create, When::Always, libc::EPERM));
    }
    rules
}

const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const AT_LEAST: u16 = (libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K) as u16;
const ANY_BIT: u16 = (libc::BPF_JMP | libc::BPF_JSET | libc::BPF_K) as u16;
const JUMP: u16 = (libc::BPF_JMP | libc::BPF_JA) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

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

fn instruction(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
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
        instruction(AT_LEAST, X32, 0, 1),
        answer(libc::EPERM),
    ];
    let mut rules = rules(plan);
    rules.sort_by_key(|rule| rule.call);
    program.extend(search(&rules));
    program
}

/// Finds a call's rule by halving. The kernel runs a new filter once for every number, to remember
/// which calls always pass: with a plain list, each command's start took half a millisecond longer.
fn search(rules: &[Rule]) -> Vec<sock_filter> {
    let allow = instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    match rules {
        [] => vec![allow],
        [rule] => {
            let body = body(rule);
            let mut code = vec![instruction(EQUAL, number(rule.call), 0, length(body.len()))];
            code.extend(body);
            code.push(allow);
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
    let allow = instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0);
    let mut body = Vec::new();
    match rule.when {
        When::Always => {}
        When::Bits(place, bits) => body.extend([argument(place), instruction(ANY_BIT, bits, 1, 0), allow]),
        When::Is(place, values) => {
            body.push(argument(place));
            // Each jumps over what is left of this list, and over the answer for no match.
            for (at, value) in values.iter().enumerate() {
                body.push(instruction(EQUAL, *value, length(values.len() - at), 0));
            }
            body.push(allow);
        }
        When::Unless(place, values) => body.extend(unless(place, values)),
        When::Socket(families) => {
            body.extend([argument(0), instruction(EQUAL, NETLINK, 0, 4), argument(2)]);
            body.extend([instruction(EQUAL, NETLINK_ROUTE, 1, 0), answer(rule.errno), argument(0)]);
            body.extend(unless(0, families));
        }
    }
    body.push(answer(rule.errno));
    body
}

fn unless(place: u32, values: &[u32]) -> Vec<sock_filter> {
    let allowed = values.iter().flat_map(|value| {
        [
            instruction(EQUAL, *value, 0, 1),
            instruction(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        ]
    });
    [argument(place)].into_iter().chain(allowed).collect()
}

fn number(call: libc::c_long) -> u32 {
    u32::try_from(call).expect("system calls have small numbers")
}

fn length(instructions: usize) -> u8 {
    u8::try_from(instructions).expect("a rule is a few instructions long")
}
