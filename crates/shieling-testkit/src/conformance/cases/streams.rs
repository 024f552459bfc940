//! The two output streams are complete and separate.

use shieling::output::{Stream, Tee};

use crate::conformance::case::{Case, case, check, run};
use crate::conformance::expect::{holds, same};

/// Records the output.
#[derive(Default)]
struct Heard {
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

impl Tee for Heard {
    fn bytes(&mut self, stream: Stream, bytes: &[u8]) {
        match stream {
            Stream::Stdout => self.stdout.extend_from_slice(bytes),
            Stream::Stderr => self.stderr.extend_from_slice(bytes),
        }
    }
}

pub(crate) fn cases() -> Vec<Case> {
    vec![
        case(
            "standard output and standard error are apart",
            [run("printf out; printf err >&2; exit 7").out("out").err("err").code(7)],
        ),
        case(
            "what is written to standard error alone is there",
            [run("echo err >&2").err("err\n")],
        ),
        case(
            "each stream keeps its order",
            [run("for i in 1 2 3 4 5; do echo $i; echo e$i >&2; done")
                .out("1\n2\n3\n4\n5\n")
                .err("e1\ne2\ne3\ne4\ne5\n")],
        ),
        case(
            "streams that the text joins are one, in order",
            [run("{ echo 1; echo 2 >&2; echo 3; } 2>&1").out("1\n2\n3\n")],
        ),
        case(
            "streams can be swapped",
            [run("{ echo o; echo e >&2; } 3>&1 1>&2 2>&3").out("e\n").err("o\n")],
        ),
        case(
            "what is thrown away is not there",
            [run("{ echo o; echo e >&2; } 2>/dev/null >/dev/null")],
        ),
        case(
            "no newline is added, and none is taken",
            [
                run("printf a").out("a"),
                run("printf 'a\\n\\n\\n'").out("a\n\n\n"),
                run("printf '\\n'").out("\n"),
            ],
        ),
        case(
            "all bytes of both streams are counted",
            [run("printf abc; printf de >&2").out("abc").err("de").bytes(3, 2)],
        ),
        case(
            "a stream that the command closes ends nothing",
            [run("echo a; exec 1>&-; echo b >&2; exit 3")
                .out("a\n")
                .err("b\n")
                .code(3)],
        ),
        check("whoever listens hears both streams, byte for byte", |context| {
            Box::pin(async move {
                let mut heard = Heard::default();
                let command = context.command("printf 'a\\0\\377'; printf 'b\\376' >&2");
                let outcome = context.shieling.run(command, Some(&mut heard)).await;
                same("the end", outcome.exit_code, Some(0))?;
                same("stdout", heard.stdout, b"a\0\xff".to_vec())?;
                same("stderr", heard.stderr, b"b\xfe".to_vec())
            })
        }),
        check("a refusal of the shell is on standard error", |context| {
            Box::pin(async move {
                let outcome = context.run("cd /conformance/missing").await;
                same("stdout", outcome.stdout.as_str(), "")?;
                holds("something on stderr", !outcome.stderr.is_empty(), &outcome.stderr)
            })
        }),
    ]
}
