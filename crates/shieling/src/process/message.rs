//! What a supervisor and its host tell each other: fixed-size messages over a sequenced packet
//! socket, encoded without allocation.

use super::sys::Usage;

/// The size of every message.
pub(super) const SIZE: usize = 48;

/// What failed in a supervisor before the program ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Preparing the supervisor itself.
    Setup,
    /// Entering the working directory.
    Directory,
    /// Setting a resource limit.
    Limit,
    /// Starting the program.
    Program,
}

/// From the supervisor to its host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Report {
    /// The program runs.
    Started { pid: i32 },
    /// It does not, and nothing is left.
    Failed { stage: Stage, errno: i32 },
    /// The main process ended; `gone` if nothing else of the job was there either.
    MainEnded { status: i32, usage: Usage, gone: bool },
    /// No process of the job is left, except for `survivors`, which could not be ended.
    Gone { ended: u32, survivors: u32 },
}

/// From the host to its supervisor. An end of file means: end everything at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// End the job: SIGTERM, this many milliseconds, SIGKILL.
    Stop { grace_ms: u64 },
}

impl Report {
    pub(super) fn encode(self) -> [u8; SIZE] {
        match self {
            Self::Started { pid } => pack([1, number(pid), 0, 0, 0, 0]),
            Self::Failed { stage, errno } => pack([2, stage as u64, number(errno), 0, 0, 0]),
            Self::MainEnded { status, usage, gone } => pack([
                3,
                number(status),
                usage.user_us,
                usage.system_us,
                usage.peak_kib,
                u64::from(gone),
            ]),
            Self::Gone { ended, survivors } => pack([4, ended.into(), survivors.into(), 0, 0, 0]),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let [kind, a, b, c, d, e] = unpack(bytes)?;
        Some(match kind {
            1 => Self::Started { pid: a as i32 },
            2 => {
                let stage = [Stage::Setup, Stage::Directory, Stage::Limit, Stage::Program];
                Self::Failed {
                    stage: *stage.get(usize::try_from(a).ok()?)?,
                    errno: b as i32,
                }
            }
            3 => Self::MainEnded {
                status: a as i32,
                usage: Usage {
                    user_us: b,
                    system_us: c,
                    peak_kib: d,
                },
                gone: e != 0,
            },
            4 => Self::Gone {
                ended: a as u32,
                survivors: b as u32,
            },
            _ => return None,
        })
    }
}

impl Order {
    pub(super) fn encode(self) -> [u8; SIZE] {
        match self {
            Self::Stop { grace_ms } => pack([1, grace_ms, 0, 0, 0, 0]),
        }
    }

    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        match unpack(bytes)? {
            [1, grace_ms, ..] => Some(Self::Stop { grace_ms }),
            _ => None,
        }
    }
}

fn number(value: i32) -> u64 {
    u64::from(value.cast_unsigned())
}

fn pack(fields: [u64; 6]) -> [u8; SIZE] {
    let mut bytes = [0; SIZE];
    for (to, field) in bytes.chunks_exact_mut(8).zip(fields) {
        to.copy_from_slice(&field.to_le_bytes());
    }
    bytes
}

fn unpack(bytes: &[u8]) -> Option<[u64; 6]> {
    let bytes: &[u8; SIZE] = bytes.try_into().ok()?;
    let mut fields = [0; 6];
    for (field, from) in fields.iter_mut().zip(bytes.chunks_exact(8)) {
        *field = u64::from_le_bytes(from.try_into().ok()?);
    }
    Some(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_survives_the_wire() {
        let usage = Usage {
            user_us: 1,
            system_us: u64::MAX,
            peak_kib: 3,
        };
        for report in [
            Report::Started { pid: 4_194_303 },
            Report::Failed {
                stage: Stage::Program,
                errno: 2,
            },
            Report::MainEnded {
                status: -1,
                usage,
                gone: true,
            },
            Report::Gone {
                ended: 7,
                survivors: u32::MAX,
            },
        ] {
            assert_eq!(Report::decode(&report.encode()), Some(report));
        }
        assert_eq!(
            Order::decode(&Order::Stop { grace_ms: 500 }.encode()),
            Some(Order::Stop { grace_ms: 500 })
        );
        assert_eq!(Report::decode(b"short"), None);
    }
}
