//! What a policy means in memory.

use std::path::Path;

use shieling::environment::{Enforcement, Environment as _, Expect, FileError, Links};
use shieling::policy::Policy;
use shieling::process::End;
use shieling_memory::Memory;

use super::support::{WORKSPACE, printed, programs, run, secrets};

fn with_secrets() -> Memory {
    Memory::builder(WORKSPACE)
        .enforcing(secrets())
        .seed([
            (".env", "TOKEN"),
            (".ENV.local", "TOKEN"),
            ("secrets/key", "TOKEN"),
            ("sub/.env", "TOKEN"),
            ("sub/open", "fine\n"),
        ])
        .build()
        .expect("a memory")
}

#[tokio::test]
async fn what_is_hidden_does_not_exist_for_any_command() {
    let memory = with_secrets();
    let looks = [
        "cat .e* .E*",
        "cat .env",
        "cat < .env",
        "find . -type f | xargs cat",
        "grep -r TOKEN . ..",
        "grep -r TOKEN /",
        "ls -aR / | grep -i env\\\\.",
        "cat sub/../.env",
        "ln -s .env l; cat l",
        "ln -s /work/secrets s; cat s/key",
        "cd secrets; cat key",
        "cd sub; cat .env",
        "cp -r . /tmp/copy; cat /tmp/copy/.env /tmp/copy/secrets/key",
        "tar cf /tmp/t.tar . ; strings /tmp/t.tar | grep TOKEN",
        "mv sub/.env x; cat x",
        "for f in .* * */* */.*; do cat \"$f\"; done",
        "cat /work/././/.env",
        "cat .env/../.env",
        "rg --hidden TOKEN",
        "awk '{ print }' .env",
        "while read l; do echo $l; done < .env",
        ". ./.env; sed -n p sub/.env",
        "mapfile a < .env; echo $a",
        "du -a; head -c 9 .env",
        "cat /dev/../work/.env",
        "cd /; cat work/.env",
        "python3 -c 'print(open(\".env\").read())'",
        "cat ~+/.env",
        "cat .\\e\\nv",
        "cat $(echo .env)",
    ];
    for text in looks {
        let ran = run(&memory, text).await;
        assert!(!ran.stdout.text().contains("TOKEN"), "{text}: {}", ran.stdout.text());
        assert!(!ran.stderr.text().contains("TOKEN"), "{text}: {}", ran.stderr.text());
    }
    assert_eq!(
        printed(&memory, "ls -A; ls -A sub; cat sub/open; [ -e .env ] || echo none").await,
        "l\ns\nsub\nopen\nfine\nnone\n"
    );
}

#[tokio::test]
async fn a_directory_of_which_everything_is_hidden_does_not_exist() {
    let policy = Policy::open()
        .with_ignore(&["secrets/**", "kept/*", "!kept/open"])
        .expect("patterns");
    let asked = shieling::enforcement_of(&policy, WORKSPACE.as_ref());
    let memory = Memory::builder(WORKSPACE)
        .enforcing(asked)
        .seed([("secrets/key", "TOKEN"), ("kept/open", "fine\n"), ("kept/key", "TOKEN")])
        .build()
        .expect("a memory");
    for text in [
        "ls secrets",
        "ls -R",
        "find .",
        "echo */*",
        "cd secrets && ls",
        "mv secrets x; ls x",
    ] {
        let ran = run(&memory, text).await;
        let said = format!("{}{}", ran.stdout.text(), ran.stderr.text());
        assert!(!said.contains("key"), "{text}: {said}");
    }
    assert_eq!(printed(&memory, "ls; cat kept/*").await, "kept\nfine\n");
}

#[tokio::test]
async fn what_is_hidden_can_be_neither_made_nor_moved_nor_removed() {
    let memory = with_secrets();
    for text in [
        "echo x > .env",
        "mkdir secrets",
        "mkdir -p new/secrets/x",
        "echo x > a; mv a .env2",
        "cp sub/open .env3",
        "ln -s x .env4",
        "mv sub other",
        "rm -r sub",
        "rm -rf sub",
        "touch .env5",
    ] {
        assert_ne!(run(&memory, text).await.end, End::Exited(0), "{text}");
    }
    let everything = Memory::builder(WORKSPACE).build().expect("a memory");
    everything.restore(&memory.snapshot());
    assert_eq!(
        printed(&everything, "cat .env .ENV.local secrets/key sub/.env sub/open").await,
        "TOKENTOKENTOKENTOKENfine\n"
    );
}

#[tokio::test]
async fn tools_do_not_find_what_is_hidden_either() {
    let memory = with_secrets();
    let files = memory.files().await.expect("it has files");
    for path in ["/work/.env", "/work/secrets/key", "/work/sub/.env"] {
        assert!(
            matches!(files.node(Path::new(path), Links::Follow), Err(FileError::NotFound(_))),
            "{path}"
        );
        let write_target = files
            .write_target(Path::new(path), Links::Follow)
            .expect("a write target");
        assert!(write_target.current().expect("looked").is_none(), "{path}");
        assert!(
            matches!(
                write_target.replace(b"x", false, Expect::Any),
                Err(FileError::Permission(_))
            ),
            "{path}"
        );
        assert!(
            matches!(write_target.remove(true), Err(FileError::NotFound(_))),
            "{path}"
        );
    }
    let exported = memory.export_tar().expect("an archive");
    assert!(!exported.windows(5).any(|bytes| bytes == b"TOKEN"));
}

#[tokio::test]
async fn readonly_refuses_every_change() {
    let memory = Memory::builder(WORKSPACE)
        .enforcing(Enforcement {
            readonly: true,
            ..Enforcement::default()
        })
        .seed([("f", "kept\n"), ("d/x", "x")])
        .build()
        .expect("a memory");
    let changes = [
        "echo x > f",
        "echo x >> f",
        ": > new",
        "touch f",
        "touch new",
        "mkdir n",
        "rm f",
        "rm -r d",
        "rmdir d",
        "mv f g",
        "cp f g",
        "ln -s f l",
        "chmod 777 f",
        "sed -i s/k/K/ f",
        "tee f < /dev/null",
        "truncate -s 0 f",
        "dd if=/dev/null of=f",
        "sort -o f f",
        "split f",
        "tar cf t.tar d",
        "gzip f",
        "echo x > /tmp/x",
        "mktemp",
        "echo x > ~/x",
        "rm -rf d",
        "rm -f f",
        "install f g",
        "printf x | tee -a f",
        "exec 3> new",
        "unlink f",
        "awk 'BEGIN { print > \"new\" }'",
        "find . -name f -delete",
    ];
    for text in changes {
        assert_ne!(run(&memory, text).await.end, End::Exited(0), "{text}");
    }
    assert_eq!(
        printed(
            &memory,
            "cat f; ls -A . ~ /tmp; stat -c %a f; echo x > /dev/null; cat <<< here"
        )
        .await,
        "kept\n.:\nd\nf\n\n/home/user:\n\n/tmp:\n644\nhere\n"
    );
    assert!(matches!(memory.write("f", b""), Err(FileError::ReadOnly(_))));
    let said = run(&memory, "rm -rf d nothing f").await;
    assert_eq!(
        (said.end, said.stderr.text().as_str()),
        (
            End::Exited(1),
            "rm: cannot remove 'd': Read-only file system\nrm: cannot remove 'f': Read-only file system\n"
        )
    );
}

#[tokio::test]
async fn only_allowed_programs_are_there() {
    let allow = |names: &[&str]| {
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        let seeded = Memory::builder(WORKSPACE)
            .enforcing(programs(names))
            .seed([("x.sh", "cat f"), ("f", "TOKEN\n")]);
        seeded.build().expect("a memory")
    };
    let memory = allow(&["ls", "xargs", "find", "env", "timeout", "nice"]);
    assert_eq!(
        printed(&memory, "ls; cd /tmp && echo builtins stay").await,
        "f\nx.sh\nbuiltins stay\n"
    );
    for text in [
        "cat f",
        "/bin/cat f",
        "/usr/bin/cat f",
        "\\cat f",
        "command cat f",
        "env cat f",
        "nice cat f",
        "timeout 5 cat f",
        "echo f | xargs cat",
        "find . -name f -exec cat {} +",
        "exec cat f",
        "bash -c 'cat f'",
        "sh x.sh",
        "bash x.sh",
        ". ./x.sh",
        "source x.sh",
        "./x.sh",
        "eval 'cat f'",
        "alias ls=cat; shopt -s expand_aliases\nls f",
        "tac f",
        "sed p f",
        "enable -f /usr/bin/cat cat; cat f",
        "hash -p /usr/bin/cat q; q f",
        "busybox cat f",
        "PATH=/work; x.sh",
        "builtin cat f",
        "coproc cat f; cat <&${COPROC[0]}",
        "bash <<< 'cat f'",
        "echo 'cat f' | sh",
        "ls() { cat f; }; ls",
    ] {
        let ran = run(&memory, text).await;
        assert!(!ran.stdout.text().contains("TOKEN"), "{text}: {}", ran.stdout.text());
    }
    assert_eq!(
        run(&allow(&["bash", "cat"]), "bash x.sh").await.stdout.text(),
        "TOKEN\n"
    );
}

#[tokio::test]
async fn capabilities_and_confinement_say_what_holds() {
    let memory = with_secrets();
    assert_eq!(
        memory.confinement().enforced,
        ["memory.files", "memory.bash", "memory.hidden"]
    );
}

#[tokio::test]
async fn a_directory_in_which_something_is_hidden_is_neither_moved_nor_removed_by_tools() {
    let memory = Memory::builder(WORKSPACE)
        .enforcing(secrets())
        .seed([
            ("sub/.env", "TOKEN"),
            ("sub/open", "fine\n"),
            ("far/a/b/.env", "TOKEN"),
            ("plain/x", "x"),
        ])
        .build()
        .expect("a memory");
    let files = memory.files().await.expect("it has files");
    let write_target = |path: &str| {
        files
            .write_target(Path::new(path), Links::Keep)
            .expect("a write target")
    };
    for path in ["/work/sub", "/work/far", "/work/far/a", "/work/far/a/b"] {
        for done in [
            write_target(path).remove(true),
            write_target(path).rename(&*write_target("/work/open"), false),
        ] {
            assert!(
                matches!(&done, Err(FileError::Fixed(fixed)) if fixed == Path::new(path)),
                "{path}: {done:?}"
            );
        }
    }
    assert_eq!(printed(&memory, "cat sub/open; ls").await, "fine\nfar\nplain\nsub\n");
    write_target("/work/plain")
        .rename(&*write_target("/work/moved"), false)
        .expect("hides nothing");
    write_target("/work/moved").remove(true).expect("hides nothing");
}

#[tokio::test]
async fn another_name_of_a_hidden_file_of_the_folder_beneath_does_not_exist_either() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at(".env"), "TOKEN").expect("room");
    std::fs::hard_link(at(".env"), at("copy")).expect("a second name");
    std::fs::write(at("open"), "fine\n").expect("room");
    let over = || Memory::builder(WORKSPACE).overlay(folder.path());
    assert_eq!(printed(&over().build().expect("a memory"), "cat copy").await, "TOKEN");
    let hiding = over()
        .enforcing(secrets())
        .seed([("seeded", "s")])
        .build()
        .expect("a memory");
    assert_eq!(printed(&hiding, "ls -A; cat open").await, "open\nseeded\nfine\n");
    // One that is linked once it is known is no longer read.
    std::fs::hard_link(at("open"), at(".env2")).expect("a second name");
    assert_ne!(run(&hiding, "cat open").await.end, End::Exited(0));
}
