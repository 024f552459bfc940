//! Bytes that are not UTF-8.

use super::support::{failing, memory, printed};

/// "café" in Latin-1, and a mark.
const BYTES: &[u8] = b"caf\xe9\n\xff\xfe\n";

#[tokio::test]
async fn bytes_that_a_command_would_change_are_refused_by_name() {
    let memory = memory();
    memory.write("r", BYTES).expect("written");
    memory.write("s", b"a\n").expect("written");
    let readers = "awk 1;column;comm - s;cut -b1-4;cut -d: -f1;expand;fold;join - s;nl;paste;rev;sed -n p;shuf;sort;tac;tee x;\
        tsort;unexpand;uniq;xargs -0 printf %s;envsubst;rg .;split -b 2;split -b 2 -";
    for reader in readers.split(';') {
        let name = reader.trim().split(' ').next().unwrap_or_default();
        for text in [
            format!("cat r | {reader}"),
            format!("{reader} < r"),
            format!("printf '\\377' | {reader}"),
            format!("base64 r | base64 -d | {reader}"),
            format!("f() {{ {reader}; }}; f < r"),
            format!("cat r | env {reader}"),
        ] {
            let ran = failing(&memory, &text).await;
            let said = ran.stderr.text();
            assert!(said.contains(name) && said.contains("is not UTF-8"), "{text}: {said}");
            assert_eq!(ran.stdout.text(), "", "{text}");
        }
    }
    for text in [
        "sort r",
        "sort ./r",
        "cp r .hidden; sort .hidden",
        "mkdir -p e; sort e/../r",
        "mkdir -p d; cp r d; cd d; sort r",
        "awk 1 s r",
        "sed -n p r > x",
        "diff s r",
        "comm s r",
        "xargs -a r echo",
        "x=$(cat r); echo \"$x\"",
        "read x < r; printf %s \"$x\"",
        "cat r | while read -r x; do echo \"$x\"; done",
        "mapfile -t a < r; printf '%s\\n' \"${a[@]}\"",
        "echo 636166e9 | xxd -r -p",
        "tar cf t r; tar xOf t",
        "echo $'\\xff'",
        "echo $'\\377'",
        "echo x | sed 's/\\xc3\\xa9/e/'",
    ] {
        let ran = failing(&memory, text).await;
        let said = ran.stderr.text();
        let why = ["not UTF-8", "write the character itself", "`tar -O`"];
        assert!(why.iter().any(|why| said.contains(why)), "{text}: {said}");
    }
    assert_eq!(memory.read("r").expect("there"), BYTES);
}

#[tokio::test]
async fn bytes_are_kept_where_a_command_keeps_them_and_text_is_text() {
    let memory = memory();
    memory.write("r", BYTES).expect("written");
    for text in [
        "cat r > x",
        "cat < r | cat > x",
        "cp r x",
        "gzip -c r | gunzip > x",
        "base64 r | base64 -d > x",
        "tar cf t r; mkdir -p d; tar xf t -C d; mv d/r x",
        "dd if=r of=x 2> /dev/null",
        "head -c 5 r > x; tail -c 3 r >> x",
        "ls | sort > /dev/null; cat r > x",
        "sort /dev/null; cat < r > x",
        "printf 'caf\\351\\n\\377\\376\\n' > x",
        "printf 'caf\\xe9\\n\\xff\\xfe\\n' > x",
    ] {
        assert_eq!(printed(&memory, text).await, "", "{text}");
        assert_eq!(memory.read("x").expect("there"), BYTES, "{text}");
    }
    let text = [
        ("cat r | gzip > x; printf 'b\\na\\n' | sort | sed s/a/c/", "c\nb\n"),
        ("md5sum r > x; cut -c1-4 x | tr a-z A-Z | sort", "6EA3\n"),
        (
            "cat r > x; sort() { command sort \"$@\" | tac; }; printf 'a\\nb\\n' | sort",
            "b\na\n",
        ),
        ("cat r > x; type -t sort; echo é | sed 's/é/e/'", "file\ne\n"),
        (
            "cat r > x; set -e; printf 'a\\n' | cut -c1; echo a | awk '{ exit 3 }' || echo $?",
            "a\n3\n",
        ),
        ("cat r | wc -c; echo $'\\u00e9\\x41\\101'", "8\néAA\n"),
    ];
    for (text, out) in text {
        assert_eq!(printed(&memory, text).await, out, "{text}");
    }
}

#[tokio::test]
async fn what_a_text_says_of_hooks_is_its_own() {
    let memory = memory();
    let phrase = "cancelled by before_tool hook";
    for text in [
        format!("echo '{phrase}'"),
        format!("echo '{phrase}' > f; cat f"),
        format!("echo 'x: {phrase} once' > f; cat f"),
    ] {
        let said = printed(&memory, &text).await;
        assert!(said.contains(phrase), "{text}: {said}");
    }
}
