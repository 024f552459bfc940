//! The program, run as the kernel would, for what this kernel cannot show: calls that it does not have,
//! and every number at once.

use shieling_jail::plan::Limits;

use super::*;

fn plan(isolation: Isolation, network: Network) -> Plan {
    Plan {
        isolation,
        network,
        gateway: None,
        hostname: String::new(),
        view: Vec::new(),
        foreign: Vec::new(),
        executable: None,
        limits: Limits::default(),
        probes: Vec::new(),
        killed_first: false,
        once: false,
    }
}

/// What the program answers, and after how many instructions.
fn run(program: &[sock_filter], call: u32, arguments: [u64; 6]) -> (u32, usize) {
    let mut data = Vec::new();
    data.extend(call.to_ne_bytes());
    data.extend(OURS.to_ne_bytes());
    data.extend(0_u64.to_ne_bytes());
    for argument in arguments {
        data.extend(argument.to_ne_bytes());
    }
    let (mut at, mut loaded) = (0, 0_u32);
    for steps in 1..=program.len() {
        let one = program[at];
        at += 1;
        let jump = |holds: bool| usize::from(if holds { one.jt } else { one.jf });
        match one.code {
            LOAD => {
                let from = one.k as usize;
                loaded = u32::from_ne_bytes(data[from..from + 4].try_into().expect("four bytes"));
            }
            MASK => loaded &= one.k,
            EQUAL => at += jump(loaded == one.k),
            AT_LEAST => at += jump(loaded >= one.k),
            ANY_BIT => at += jump(loaded & one.k != 0),
            JUMP => at += one.k as usize,
            RETURN => return (one.k, steps),
            code => panic!("an instruction {code:#x} that no rule makes"),
        }
    }
    panic!("call {call} comes to no end");
}

fn every_plan() -> impl Iterator<Item = Plan> {
    [Isolation::Full, Isolation::Landlock]
        .into_iter()
        .flat_map(|isolation| {
            [Network::None, Network::Loopback, Network::Host]
                .into_iter()
                .map(move |network| plan(isolation, network))
        })
}

#[test]
fn every_number_has_an_answer_in_few_steps() {
    for plan in every_plan() {
        let program = program(&plan);
        // The kernel runs it for each number when a supervisor is made.
        assert!(program.len() < 700, "{} instructions", program.len());
        for call in 0..UNKNOWN {
            for argument in [0, 1, 2, u64::MAX] {
                let (answer, steps) = run(&program, call, [argument; 6]);
                let known = [libc::SECCOMP_RET_ALLOW, answer_of(libc::EPERM), answer_of(libc::ENOSYS)];
                assert!(known.contains(&answer), "{call}: {answer:#x}");
                assert!(steps <= 60, "{call}: {steps} steps");
            }
        }
    }
}

fn answer_of(errno: i32) -> u32 {
    answer(errno).k
}

#[test]
fn what_is_newer_than_the_table_is_not_there() {
    for plan in every_plan() {
        let program = program(&plan);
        let answer = |call| run(&program, call, [0; 6]).0;
        // `file_setattr`, the last that was looked at.
        assert_eq!(answer(469), libc::SECCOMP_RET_ALLOW);
        for call in [470, 471, 511, 512, 547, 1000, X32 - 1] {
            assert_eq!(answer(call), answer_of(libc::ENOSYS), "{call}");
        }
        for call in [X32, X32 + 1, X32 + 470, u32::MAX] {
            assert_eq!(answer(call), answer_of(libc::EPERM), "{call}");
        }
    }
}

#[test]
fn the_mode_counts_only_where_a_file_can_be_made() {
    let program = program(&plan(Isolation::Full, Network::None));
    let open = |flags: i32, mode: u64| {
        let flags = u64::from(flags.cast_unsigned());
        run(&program, number(libc::SYS_openat), [u64::MAX, 0, flags, mode, 0, 0]).0 == libc::SECCOMP_RET_ALLOW
    };
    let temporary = libc::O_TMPFILE & !libc::O_DIRECTORY;
    for making in [libc::O_CREAT, libc::O_TMPFILE, temporary, libc::O_CREAT | libc::O_EXCL] {
        assert!(open(making, 0o1777) && open(making, 0o644 | 1 << 32), "{making:o}");
        for mode in [0o4000, 0o2000, 0o6777, 0o104_755, 0o4755 | 1 << 32, u64::MAX] {
            assert!(!open(making | libc::O_WRONLY, mode), "{making:o} {mode:o}");
        }
    }
    for flags in [
        0,
        libc::O_RDWR,
        libc::O_DIRECTORY,
        libc::O_PATH,
        libc::O_TRUNC | libc::O_APPEND,
    ] {
        assert!(open(flags, u64::MAX), "{flags:o}");
    }
}

#[test]
fn the_reduced_tier_has_fewer_sockets_and_no_others_processes() {
    let allowed =
        |plan: &Plan, call, arguments| run(&program(plan), number(call), arguments).0 == libc::SECCOMP_RET_ALLOW;
    let socket = |isolation, network, family: u32| {
        allowed(
            &plan(isolation, network),
            libc::SYS_socket,
            [family.into(), 1 | 0o2_004_000, 0, 0, 0, 0],
        )
    };
    for network in [Network::None, Network::Loopback, Network::Host] {
        assert!(socket(Isolation::Full, network, UNIX) && socket(Isolation::Full, network, INET));
        assert!(!socket(Isolation::Landlock, network, UNIX));
        assert_eq!(socket(Isolation::Landlock, network, INET6), network == Network::Host);
    }
    for plan in every_plan() {
        let pair = [1, 5, 0, 0, 0, 0];
        assert!(allowed(&plan, libc::SYS_socketpair, pair));
        let full = plan.isolation == Isolation::Full;
        for (process, own) in [(0, true), (1, false), (299, false), (300, full), (1 << 22, full)] {
            for (call, _) in SCHEDULING {
                let arguments = match *call {
                    libc::SYS_setpriority => [0, process, 0, 0, 0, 0],
                    libc::SYS_ioprio_set => [1, process, 0, 0, 0, 0],
                    _ => [process, 0, 0, 0, 0, 0],
                };
                assert_eq!(allowed(&plan, *call, arguments), own, "{call} of {process}");
            }
        }
    }
}
