//! Files of the workspace that do not exist for a command. Their names may be listed where the
//! directory is writable; nothing else of them is there.

use std::fs;
use std::os::unix::fs::MetadataExt as _;

use shieling::files::{DeleteRequest, FileRequest, MoveRequest};

use super::support::{Case, Checked, Field, Place, case, check, wrong};

pub(crate) const CASES: &[Case] = &[
    case("a hidden file cannot be opened, whatever opens it", file),
    case(
        "a hidden directory is empty, and nothing in it is there by its path",
        directory,
    ),
    case(
        "a directory of which everything is hidden lists no name",
        all_in_a_directory,
    ),
    case(
        "hidden files in nested directories and by patterns are not there",
        patterns,
    ),
    case(
        "a hidden file that the user makes later is gone from the next command on",
        later,
    ),
    case(
        "a hidden file that an editor replaces is hidden again from the next command on",
        replaced,
    ),
    case(
        "a hidden name that a command makes itself is gone from the next command on",
        made_inside,
    ),
    case(
        "a hidden file stays hidden when the directory around it is renamed",
        parent_renamed,
    ),
    case(
        "a hidden file stays hidden when the directory around it is renamed and made anew",
        parent_made_anew,
    ),
    case(
        "a directory that a pattern names on the way to what it hides keeps its name, for the next sandbox too",
        named_above,
    ),
    case(
        "what patterns for a place hide is hidden in the next sandbox, whatever a command moved",
        moved_before_the_next,
    ),
    case(
        "an exception from a pattern cannot be brought about by renaming",
        exceptions,
    ),
    case(
        "a directory that comes to be needed while a sandbox runs keeps its name from the next command on",
        needed_later,
    ),
    case(
        "a directory that the user puts in the place of a held one is held",
        held_anew,
    ),
    case(
        "what leads to the target of a hidden link stays as it is, for the next sandbox too",
        way_of_a_link,
    ),
    case(
        "a sandbox that is killed has held the names, and the next one hides what it did",
        held_until_killed,
    ),
    case(
        "file tools do not move what a pattern names on the way to what it hides",
        file_tools_move,
    ),
    case(
        "in a home that is the workspace, directories that a pattern names keep their names",
        held_in_a_home,
    ),
    case("a held directory is worked in as any other", work_in_held),
    case("directories that no pattern needs are renamed", free_to_rename),
    case("a refused rename of a held directory says why", hint_of_a_held_name),
    case("other names of a hidden file are hidden with it", hard_links),
    case("no link leads to a hidden file", links),
    case(
        "a hidden name that is a link hides what it leads to in the workspace",
        hidden_link,
    ),
    case("a hidden link to outside leads nowhere", hidden_link_outside),
    case(
        "a hidden file in a file system that is mounted in the workspace is not there",
        mounted,
    ),
    case("what is mounted in the workspace later does not appear", mounted_later),
    case("no other path of a process leads to a hidden file", other_paths),
    case("a hidden file cannot be opened by its handle", handle),
    case(
        "the cover of a hidden file cannot be taken off, moved or written to",
        covers,
    ),
    case(
        "the cover of a hidden directory cannot be taken off, moved or written to",
        directory_covers,
    ),
    case("the whole workspace is copied without what is hidden", whole_copies),
    case("git tells nothing of a hidden file that it has not recorded", git),
    case(
        "what git has recorded of a hidden file is history and can be read",
        history,
    ),
    case("a hidden name is hidden in letters of another case too", letters),
    case("odd names hide as well as plain ones", odd_names),
    case(
        "a hidden file is not there by another path that shows the workspace",
        shown_again,
    ),
    case(
        "a hidden file is not there by a link on the PATH that leads into the workspace",
        path_alias,
    ),
    case("a readonly workspace hides as well as a writable one", readonly),
    case(
        "a directory that cannot be read does not hide a hidden file from being hidden",
        unreadable,
    ),
    case(
        "a hidden file is not written to, and the user's file stays as it was",
        not_written,
    ),
];

fn unchanged(place: &Place, name: &str) -> Checked {
    let text = fs::read_to_string(place.work().join(name))?;
    check(text == place.secret(), || {
        format!("ESCAPED: the user's {name} is now `{text}`")
    })
}

fn file(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .file("other", "x")
        .ignore(&[".env"])
        .start()?;
    for text in [
        "cat .env",
        "cat ./.env",
        "cat \"$WORK/.env\"",
        "cat \"$WORK//../work/.env\"",
        "head -c 1 .env",
        "cp .env /tmp/copy && cat /tmp/copy",
        "dd if=.env status=none",
        "grep SECRET .env",
        "python3 -c 'print(open(\".env\").read())'",
        "tar cf /tmp/x.tar .env && grep -a SECRET /tmp/x.tar",
        "base64 .env",
        "xxd .env || od -c .env",
        ". ./.env",
        "read -r line < .env",
        "test -e .env",
        "wc -c .env",
        "diff .env other",
        "cat < .env",
        "\"$TOOLS/files\" proc .env",
    ] {
        place.refused(text)?;
    }
    place.refused_with("\"$TOOLS/files\" read .env", &["ENOENT"])?;
    place.refused_with("\"$TOOLS/files\" stat .env", &["ENOENT"])?;
    place.works("cat other")?;
    // Documented: a real, writable directory lists the name.
    place.works("ls -A >/dev/null")?;
    unchanged(&place, ".env")
}

fn directory(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("secrets/key")
        .secret_file("secrets/deep/key")
        .file("open/key", "x")
        .ignore(&["secrets/"])
        .start()?;
    for text in [
        "cat secrets/key",
        "cat secrets/deep/key",
        "ls -A secrets | grep .",
        "cd secrets && cat key",
        "cd secrets/deep",
        "find secrets -type f | grep .",
        "cp -r secrets /tmp/c && find /tmp/c -type f | grep .",
        "touch secrets/new",
        "\"$TOOLS/files\" stat secrets/key",
    ] {
        place.refused(text)?;
    }
    place.works("cat open/key && ls")?;
    unchanged(&place, "secrets/key")
}

fn all_in_a_directory(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("secrets/key-name")
        .secret_file("secrets/deep/key-name")
        .secret_file("all/key-name")
        .secret_file("a/b/private/key-name")
        .secret_file("kept/key-name")
        .file("kept/open", "x")
        .file("some/open", "x")
        .secret_file("some/x.pem")
        .ignore(&[
            "secrets/**",
            "/all/*",
            "**/private/**",
            "kept/*",
            "!kept/open",
            "some/*.pem",
        ])
        .start()?;
    for directory in ["secrets", "all", "a/b/private"] {
        for text in [
            "ls -A DIR | grep .",
            "find DIR -mindepth 1 | grep .",
            "echo DIR/* | grep key-name",
            "python3 -c 'import os, sys; sys.exit(not os.listdir(\"DIR\"))'",
            "mv DIR moved && ls moved | grep .",
            "mv $(dirname DIR/x) moved && ls moved | grep .",
            "ln -s DIR /tmp/link && ls -A /tmp/link/ | grep .",
            "CDPATH=$(dirname DIR) cd -P $(basename DIR) && ls -A | grep .",
            "ls -A /proc/self/cwd/DIR /proc/self/root/$WORK/DIR | grep key",
            "touch DIR/new",
            "rmdir DIR",
            "\"$TOOLS/files\" stat DIR/key-name",
        ] {
            place.refused(&text.replace("DIR", directory))?;
        }
    }
    // One that another pattern takes something out of again, and one of which only a part is hidden.
    place.works("[ \"$(ls kept)\" != '' ] && cat kept/open some/open && touch some/new")?;
    place.refused("cat kept/key-name || cat some/x.pem")?;
    unchanged(&place, "secrets/key-name")
}

fn patterns(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a/b/c/key.pem")
        .secret_file("key.pem")
        .secret_file("a/.env.local")
        .secret_file("a/.env")
        .secret_file("conf/prod/db.yml")
        .file("conf/dev/db.yml", "x")
        .file("a/b/c/cert.crt", "x")
        .ignore(&["*.pem", ".env*", "conf/prod/"])
        .start()?;
    for path in ["a/b/c/key.pem", "key.pem", "a/.env.local", "a/.env", "conf/prod/db.yml"] {
        place.refused_with(&format!("\"$TOOLS/files\" read {path}"), &["ENOENT"])?;
    }
    place.refused("cat $(find . -name '*.pem' -o -name '.env*')")?;
    place.works("cat conf/dev/db.yml a/b/c/cert.crt").map(drop)
}

fn later(field: &Field) -> Checked {
    let place = field.place().file("d/own", "x").ignore(&[".env"]).start()?;
    place.works("cat d/own")?;
    fs::write(place.work().join(".env"), place.secret())?;
    fs::write(place.work().join("d/.env"), place.secret())?;
    place.refused("cat .env")?;
    place.refused("cat d/.env")?;
    fs::create_dir(place.work().join("new"))?;
    fs::write(place.work().join("new/.env"), place.secret())?;
    place.refused("cat new/.env")?;
    place.works("cat d/own").map(drop)
}

fn replaced(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .secret_file("d/.env")
        .ignore(&[".env"])
        .start()?;
    place.refused("cat .env")?;
    for _ in 0..5 {
        for name in [".env", "d/.env"] {
            let new = place.work().join(format!("{name}.new"));
            fs::write(&new, place.secret())?;
            fs::rename(&new, place.work().join(name))?;
        }
        place.refused("cat .env")?;
        place.refused("cat d/.env")?;
    }
    place.works("echo fine").map(drop)
}

fn made_inside(field: &Field) -> Checked {
    let place = field.place().ignore(&[".env", "secrets/"]).start()?;
    place.works("echo own > .env; mkdir secrets; echo own > secrets/x")?;
    place.refused("cat .env")?;
    place.refused("cat secrets/x")?;
    place.works("echo own > plain && cat plain").map(drop)
}

fn parent_renamed(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a/b/.env")
        .file("a/b/own", "x")
        .ignore(&[".env"])
        .start()?;
    place.refused("mv a c; cat c/b/.env")?;
    place.refused("cat c/b/.env")?;
    place.refused("mv c/b d; cat d/.env")?;
    place.refused("cat d/.env")?;
    place.works("cat d/own").map(drop)
}

fn parent_made_anew(field: &Field) -> Checked {
    let place = field.place().secret_file("a/.env").ignore(&["a/.env"]).start()?;
    place.attempt("mv a b; mkdir a; echo decoy > a/.env; cat b/.env")?;
    place.attempt("cat a/.env b/.env")?;
    place.attempt("mv a c; mv b a; cat a/.env")?;
    place.attempt("ln -s a l; cat l/.env; mv a b; cat l/.env b/.env")?;
    place.refused("cat b/.env")?;
    place.works("mkdir d && echo own > d/.env && cat d/.env").map(drop)
}

/// Each way to give `FROM` another name, or another place.
const MOVES: &[&str] = &[
    "mv FROM moved",
    "mv FROM other/",
    "python3 -c 'import os; os.rename(\"FROM\", \"moved\")'",
    "python3 -c 'import os; os.rename(os.path.abspath(\"FROM\"), \"other/moved\")'",
    "python3 -c 'import os; os.rename(\"FROM\", \"empty\")'",
    "\"$TOOLS/files\" exchange FROM other",
    "\"$TOOLS/files\" exchange other FROM",
    "\"$TOOLS/files\" noreplace FROM moved",
    "cd $(dirname FROM) && mv $(basename FROM) moved-beside",
    "mv /proc/self/cwd/FROM moved",
    "mv FROM FROM-x",
    "git init -q /tmp/g && git --git-dir=/tmp/g/.git --work-tree=. add -A && git --git-dir=/tmp/g/.git --work-tree=. mv FROM moved",
];

fn named_above(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("config/keys/k.pem")
        .file("config/app.toml", "x")
        .secret_file("a/b/prod.env")
        .file("a/b/dev.env", "x")
        .secret_file("p/q/x/y")
        .file("p/q/x/own", "x")
        .file("other/own", "x")
        .file("empty/.keep", "")
        .host("rm empty/.keep")?
        .ignore(&["config/keys/**", "a/b/prod.env", "**/x/y"])
        .start()?;
    for from in ["config", "a", "a/b", "p/q/x"] {
        for text in MOVES {
            place.refused(&text.replace("FROM", from))?;
        }
        place.attempt(&format!("rm -rf {from}"))?;
    }
    place.close();
    let next = Place::beside(&place)?;
    for path in ["config/keys/k.pem", "a/b/prod.env", "p/q/x/y"] {
        next.refused(&format!("cat {path}"))?;
        unchanged(&next, path)?;
    }
    next.attempt("grep -r SECRET- .").map(drop)
}

fn moved_before_the_next(field: &Field) -> Checked {
    for (file, pattern, moving) in [
        ("config/keys/k.pem", "config/keys/**", "os.rename('config', 'c2')"),
        ("a/b/prod.env", "a/b/prod.env", "os.rename('a/b', 'a/b2')"),
        ("a/b/prod.env", "/a/b/prod.env", "os.rename('a', 'a2')"),
        ("A/b/prod.env", "a/B/*.env", "os.rename('A/b', 'A/b2')"),
        ("a/prod.env", "*/prod.env", "os.rename('a', 'd/a')"),
        ("a/b/prod.env", "*/*/prod.env", "os.rename('a/b', 'b')"),
        ("a/prod.env", "[!z]/prod.env", "os.rename('a', 'z')"),
        ("p/x/y", "**/x/y", "os.rename('p/x', 'p/z')"),
        ("p/x/deep/er/y", "**/x/**/y", "os.rename('p/x/deep', 'p/deep')"),
        ("a/s/k", "a/s/", "os.rename('a', 'a2')"),
        ("a/s/k", "a/*", "os.rename('a', 'a2')"),
        ("a/s/.k", "a/**/.*", "os.rename('a/s', 'd/s')"),
        ("a\nb/\u{e4} c/k", "a?b/*c/k", "os.rename('a\\nb', 'e')"),
    ] {
        let place = field
            .place()
            .secret_file(file)
            .file("d/own", "x")
            .ignore(&[pattern])
            .start()?;
        place.attempt(&format!("python3 -c \"import os; {moving}\""))?;
        place.close();
        let next = Place::beside(&place)?;
        next.attempt("grep -r SECRET- .; find . -type f -exec cat {} +")?;
        unchanged(&next, file)?;
        next.works("cat d/own")?;
    }
    Ok(())
}

fn exceptions(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a/k.pem")
        .secret_file("b/s/k")
        .file("own/x", "x")
        .secret_file("own/.env")
        .ignore(&["*.pem", "!pub/*.pem", "**/s/*", "!open/s/k", ".env"])
        .start()?;
    place.refused("mv a pub")?;
    place.refused("mkdir pub && mv a pub/pub")?;
    place.refused("mv b open")?;
    place.refused("mkdir open && mv b/s open/s")?;
    place.works("mv own pub2")?;
    place.close();
    let next = Place::beside(&place)?;
    next.attempt("grep -r SECRET- .; find . -type f -exec cat {} +")?;
    next.refused("cat a/k.pem || cat b/s/k || cat pub2/.env")?;
    next.works("cat pub2/x").map(drop)
}

fn needed_later(field: &Field) -> Checked {
    let place = field
        .place()
        .file("config/own", "x")
        .file("b/own", "x")
        .ignore(&["config/keys/*.pem", "b/c/d/**"])
        .start()?;
    place.works("mv config c2 && mv c2 config")?;
    fs::create_dir(place.work().join("config/keys"))?;
    fs::write(place.work().join("config/keys/k.pem"), place.secret())?;
    place.works("cd b && mkdir -p c && cat own")?;
    place.refused("mv config c2")?;
    place.refused("mv config/keys config/k2")?;
    // Below what is held already, and above what is.
    fs::create_dir_all(place.work().join("b/c/d/e"))?;
    fs::write(place.work().join("b/c/d/e/k"), place.secret())?;
    place.refused("mv b/c b/c2")?;
    place.refused("mv b b2")?;
    place.works("mv config/own own2 && mv own2 config/own && ln config/own b/linked")?;
    place.close();
    let next = Place::beside(&place)?;
    next.attempt("grep -r SECRET- .")?;
    next.refused("cat config/keys/k.pem").map(drop)
}

fn held_anew(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("config/keys/k.pem")
        .file("own", "x")
        .ignore(&["config/keys/**"])
        .start()?;
    place.refused("mv config c2")?;
    // As another branch is checked out; the same directory in a new one; away and back.
    place.host("mv config old && cp -r old config && rm -rf old")?;
    place.refused("mv config c2")?;
    place.host("mkdir new && mv config/keys new/ && rmdir config && mv new config")?;
    place.refused("mv config c2")?;
    place.host("mv config away")?;
    place.works("cat own")?;
    place.host("mv away config")?;
    place.refused("mv config c2")?;
    place.refused("cat config/keys/k.pem").map(drop)
}

fn way_of_a_link(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("real/deep/secret.txt")
        .file("real/deep/own", "x")
        .file("other/own", "x")
        .file("decoy/deep/secret.txt", "decoy")
        .host("ln -s real current; mkdir d; ln -s ../current/deep/secret.txt d/.env")?
        .ignore(&[".env"])
        .start()?;
    for text in [
        "mv real r2",
        "mv real/deep real/d2",
        "rm current",
        "mv current c2",
        "ln -sfn decoy current",
        "\"$TOOLS/files\" exchange real decoy",
        "mkdir e && mv d e/d",
    ] {
        place.refused(text)?;
    }
    place.works("readlink current && cat current/deep/own && ls current/ && rm -r other")?;
    let work = place.work();
    place.refused_tool(FileRequest::Delete(DeleteRequest::new(work.join("current"))))?;
    for name in ["current", "real", "d"] {
        let moving = MoveRequest::new(work.join(name), work.join("moved"));
        place.refused_tool(FileRequest::Move(moving))?;
    }
    place.close();
    let next = Place::beside(&place)?;
    next.attempt("cat d/.env; grep -r SECRET- .")?;
    next.refused("cat real/deep/secret.txt")?;
    next.works("mv decoy decoy2 && cat decoy2/deep/secret.txt").map(drop)
}

fn held_until_killed(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("config/keys/k.pem")
        .file("own", "x")
        .ignore(&["config/keys/**"])
        .start()?;
    place.works("cat own")?;
    place.attempt("mv config c2")?;
    // Everything that the sandbox consists of; a new one is made for the next command.
    place.attempt("kill -9 -1; kill -9 1; mv config c2")?;
    place.attempt("mv config c2")?;
    place.attempt("grep -r SECRET- .")?;
    let next = Place::beside(&place)?;
    next.attempt("grep -r SECRET- .")?;
    next.refused("cat config/keys/k.pem")?;
    next.works("cat own").map(drop)
}

fn file_tools_move(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("config/keys/k.pem")
        .secret_file("a/b/prod.env")
        .file("other/own", "x")
        .ignore(&["config/keys/**", "a/b/prod.env"])
        .start()?;
    let work = place.work();
    for name in ["config", "a", "a/b"] {
        for to in ["moved", "other"] {
            let moving = MoveRequest::new(work.join(name), work.join(to));
            place.refused_tool(FileRequest::Move(moving))?;
        }
        let mut all = DeleteRequest::new(work.join(name));
        all.recursive = true;
        place.refused_tool(FileRequest::Delete(all))?;
    }
    place.write("config/new", "x")?;
    place.works("mv config/new other/ && cat other/new")?;
    unchanged(&place, "config/keys/k.pem")?;
    unchanged(&place, "a/b/prod.env")
}

fn held_in_a_home(field: &Field) -> Checked {
    let making = field.place();
    let work = making.work();
    let place = making
        .secret_file("project/config/keys/k.pem")
        .file("project/own", "x")
        .secret_file(".config/app/token")
        .file(".config/app/own", "x")
        .ignore(&["project/config/keys/**", ".config/*/token"])
        .with(|restrictions| {
            restrictions.home = Some(work);
            restrictions.allow_home = true;
        })
        .start()?;
    place.refused("mv project/config project/c2")?;
    place.refused("mv project p2")?;
    place.refused("mv .config/app .config/app2")?;
    place.works("cat project/own && mv project/own project/config/ && mv project/config/own project/")?;
    place.close();
    let next = Place::beside(&place)?;
    next.attempt("cat project/*/keys/* .config/*/token")?;
    next.works("cat project/own .config/app/own").map(drop)
}

fn work_in_held(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("src/keys/k.pem")
        .file("src/lib/a.rs", "a")
        .file("other/b.rs", "b")
        .host("git init -q . && git add other src/lib && git commit -qm 1 && git switch -qc two && git mv src/lib/a.rs other/ && git commit -qm 2 && git switch -q -")?
        .ignore(&["src/keys/**"])
        .start()?;
    for text in [
        "mv other/b.rs src/ && mv src/b.rs other/",
        "mv other src/ && mv src/other .",
        "ln other/b.rs src/b2.rs && rm src/b2.rs",
        "python3 -c 'import os; os.rename(\"src/lib\", \"lib\"); os.rename(\"lib\", \"src/lib\")'",
        "git mv src/lib lib && git mv lib src/lib",
        "git switch -q two && git switch -q - && git stash -q -u && git status",
        "git merge -q two && git reset -q --hard HEAD~1 && git clean -fdq -e src",
        "cp -al src/lib linked && rm -r linked src/lib && git checkout -q -- src",
        "touch src/new && mkdir -p src/more/dirs && mv src/more/dirs src/d && rm -r src/more src/d src/new",
        "chmod 755 src && tar cf /tmp/x.tar other && df . && df",
    ] {
        place.works(text)?;
    }
    place.refused("mv src s2")?;
    // By any name that leads to the second copy, in which nothing is hidden.
    place.attempt("find / -xdev -name k.pem -exec cat {} + ; cat /.shieling/*/src/keys/k.pem; cat $(awk '{print $5}' /proc/self/mountinfo | sed 's,$,/k.pem,')")?;
    place.refused("ls -A /.shieling/unseen | grep .")?;
    place.refused("umount /.shieling/unseen || umount -l /.shieling/unseen")?;
    unchanged(&place, "src/keys/k.pem")
}

fn free_to_rename(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a/b/.env")
        .secret_file("c/secrets/k")
        .secret_file("p/q/x/y")
        .file("config/dev/own", "x")
        .secret_file("config/prod/k")
        .ignore(&[".env", "**/secrets/**", "**/x/y", "config/prod/*"])
        .start()?;
    for text in [
        "mv a a2 && mv a2/b b && cat b/.env; test -e b",
        "mv c c2",
        "mv p p2 && mv p2/q q && ls q/x",
        "mv config/dev config/dev2 && mv config/dev2 dev",
    ] {
        place.works(text)?;
    }
    place.close();
    let next = Place::beside(&place)?;
    next.attempt("grep -r SECRET- .; find . -type f -exec cat {} +")?;
    next.works("cat dev/own").map(drop)
}

fn hint_of_a_held_name(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a/config/keys/k.pem")
        .file("own", "x")
        .ignore(&["a/config/keys/**"])
        .start()?;
    for (text, path) in [
        ("mv a/config a/c2", "a/config"),
        ("cd a && mv config c2", "a/config"),
        ("python3 -c 'import os; os.rename(\"a\", \"b\")'", "a"),
    ] {
        let outcome = place.refused(text)?;
        let hint = outcome
            .hints
            .iter()
            .find(|hint| hint.path.as_deref() == Some(path.as_ref()));
        check(
            hint.is_some_and(|hint| hint.because.contains("hidden") && hint.instead.contains("--ignore")),
            || format!("`{text}` is not explained: {:?}", outcome.hints),
        )?;
    }
    let outcome = place.run("cat own; mv own missing/own")?;
    check(outcome.hints.is_empty(), || {
        format!("nothing to explain: {:?}", outcome.hints)
    })
}

fn hard_links(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .file("own", "x")
        .host("mkdir d; ln .env d/other; ln .env innocent")?
        .ignore(&[".env"])
        .start()?;
    place.refused("cat innocent")?;
    place.refused("cat d/other")?;
    place.refused("ln .env mine && cat mine")?;
    place.refused_with(
        "\"$TOOLS/files\" link-follow mine2 .env",
        &["ENOENT", "EXDEV", "EACCES"],
    )?;
    place.host("ln .env later")?;
    place.refused("cat later")?;
    place.works("ln own own2 && cat own2").map(drop)
}

fn links(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .secret_file("secrets/key")
        .file("own", "x")
        .host(r#"ln -s .env users; ln -s "$WORK/secrets" directory"#)?
        .ignore(&[".env", "secrets/"])
        .start()?;
    place.refused("cat users")?;
    place.refused("cat directory/key")?;
    place.refused("ln -s .env mine; cat mine")?;
    place.refused("ln -s \"$WORK/.env\" absolute; cat absolute")?;
    place.refused("mkdir -p x && ln -s ../.env x/up; cat x/up")?;
    place.works("ln -s own fine && cat fine").map(drop)
}

fn hidden_link(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("real/config.secret.txt")
        .file("real/own", "x")
        .host("ln -s real/config.secret.txt .env; ln -s real link")?
        .ignore(&[".env"])
        .start()?;
    place.refused("cat .env")?;
    place.refused("cat real/config.secret.txt")?;
    place.refused("cat link/config.secret.txt")?;
    place.works("cat real/own").map(drop)
}

fn hidden_link_outside(field: &Field) -> Checked {
    let place = field
        .place()
        .file("own", "x")
        .host(r#"ln -s "$OUT/secret" .env; ln -s / secrets"#)?
        .ignore(&[".env", "secrets/"])
        .start()?;
    place.refused("cat .env")?;
    place.refused("ls -A secrets/ | grep usr")?;
    place.works("cat own && ls /usr >/dev/null").map(drop)
}

fn mounted(field: &Field) -> Checked {
    if !field.is_root() {
        return skip_unless_root();
    }
    let making = field.place();
    let at = making.work().join("mounted");
    fs::create_dir(&at)?;
    rustix::mount::mount("none", &at, "tmpfs", rustix::mount::MountFlags::empty(), None)?;
    fs::write(at.join(".env"), making.secret())?;
    fs::write(at.join("own"), "x")?;
    let place = making.ignore(&[".env"]).start()?;
    let result = place
        .refused("cat mounted/.env")
        .and_then(|_| place.refused("umount mounted"))
        .and_then(|_| place.works("cat mounted/own"));
    place.close();
    rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH)?;
    result.map(drop)
}

fn mounted_later(field: &Field) -> Checked {
    if !field.is_root() {
        return skip_unless_root();
    }
    let making = field.place();
    let work = making.work();
    let at = work.join("mounted");
    fs::create_dir(&at)?;
    // What is shared hands on what is mounted in it.
    rustix::mount::mount_bind(&work, &work)?;
    rustix::mount::mount_change(&work, rustix::mount::MountPropagationFlags::SHARED)?;
    let place = making.ignore(&[".env"]).start()?;
    let result = (|| {
        place.works("ls mounted")?;
        rustix::mount::mount("none", &at, "tmpfs", rustix::mount::MountFlags::empty(), None)?;
        fs::write(at.join("plain"), place.secret())?;
        let tried = place
            .refused("cat mounted/plain")
            .and_then(|_| place.refused("ls -A mounted | grep ."));
        rustix::mount::unmount(&at, rustix::mount::UnmountFlags::DETACH)?;
        tried.map(drop)
    })();
    place.close();
    rustix::mount::unmount(&work, rustix::mount::UnmountFlags::DETACH)?;
    result
}

fn skip_unless_root() -> Checked {
    // The other of the two runs does it; a suite that is not run as root says so at its start.
    Ok(())
}

fn other_paths(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .file("own", "x")
        .ignore(&[".env"])
        .start()?;
    for text in [
        r#"cat "/proc/self/root$WORK/.env""#,
        "cat /proc/self/cwd/.env",
        r#"cat "/proc/1/root$WORK/.env""#,
        "exec 7< . ; cat /proc/self/fd/7/.env",
        r#"for p in /proc/[0-9]*; do cat "$p/cwd/.env" "$p/root$WORK/.env" && exit 0; done; exit 1"#,
        r#"python3 -c 'import os; print(os.read(os.open(".env", 0, dir_fd=os.open(".", 0)), 99))'"#,
    ] {
        place.refused(text)?;
    }
    place.works("cat /proc/self/cwd/own").map(drop)
}

fn handle(field: &Field) -> Checked {
    let place = field.place().secret_file(".env").ignore(&[".env"]).start()?;
    let inode = fs::metadata(place.work().join(".env"))?.ino();
    place.refused_with(&format!("\"$TOOLS/files\" handle . {inode}"), &["EPERM"])?;
    place.works("echo fine").map(drop)
}

fn covers(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .file("own", "x")
        .ignore(&[".env"])
        .start()?;
    for text in [
        "rm -f .env",
        "rm -f .env; cat .env",
        "unlink .env",
        "mv .env x",
        "mv own .env",
        "umount .env",
        "ln -sf own .env",
        "ln -f own .env",
        "cp own .env",
        "echo x > .env",
        "mount --bind own .env",
        "\"$TOOLS/files\" exchange own .env",
        "\"$TOOLS/files\" creat .env",
        "\"$TOOLS/files\" truncate .env",
        "\"$TOOLS/files\" chmod .env",
        "\"$TOOLS/files\" unlink .env",
    ] {
        place.refused(text)?;
        unchanged(&place, ".env")?;
    }
    place.works("mv own own2 && rm own2").map(drop)
}

fn directory_covers(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("secrets/key")
        .file("d/x", "x")
        .ignore(&["secrets/"])
        .start()?;
    for text in [
        "rm -rf secrets; test -e secrets && exit 1",
        "rmdir secrets",
        "mv secrets x",
        "mv d secrets/",
        "umount secrets",
        "echo x > secrets/key",
        "chmod 777 secrets",
        "\"$TOOLS/files\" exchange d secrets",
        "\"$TOOLS/files\" create secrets/new",
    ] {
        place.refused(text)?;
        unchanged(&place, "secrets/key")?;
    }
    place.works("mv d e && rm -r e").map(drop)
}

fn whole_copies(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .secret_file("a/.env")
        .secret_file("secrets/key")
        .file("own", "x")
        .ignore(&[".env", "secrets/"])
        .start()?;
    place.attempt("cp -a . /tmp/copy; grep -r SECRET- /tmp/copy; cat /tmp/copy/.env")?;
    place.attempt("grep -r SECRET- .")?;
    place.attempt("tar chf - . | grep -a SECRET-")?;
    place.attempt("find . -type f -exec cat {} +")?;
    place.attempt(
        "python3 -c 'import shutil; shutil.make_archive(\"/tmp/a\", \"tar\", \".\")'; grep -a SECRET- /tmp/a.tar",
    )?;
    place.attempt("git init -q /tmp/g; git --git-dir=/tmp/g/.git --work-tree=. add -A; git --git-dir=/tmp/g/.git grep --cached SECRET-")?;
    place.works("test -f /tmp/copy/own").map(drop)
}

fn git(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .file("own", "x")
        .host("git init -q . && git add own && git commit -qm own")?
        .ignore(&[".env"])
        .start()?;
    place.attempt("git status; git diff; git stash -u; git stash show -p --include-untracked")?;
    place.attempt("git add -f .env; git diff --cached; git commit -qm env; git show HEAD:.env; git show")?;
    place.attempt("git hash-object -w .env | xargs git cat-file -p")?;
    place.attempt("git clean -fdx; git archive HEAD | tar t")?;
    unchanged(&place, ".env")?;
    place.works("git log --oneline && git show HEAD:own").map(drop)
}

fn history(field: &Field) -> Checked {
    let place = field
        .place()
        .host("echo recorded > .env; git init -q . && git add -f .env && git commit -qm env; rm .env")?
        .secret_file(".env")
        .ignore(&[".env"])
        .start()?;
    place.refused("cat .env")?;
    // A known limit: who wants it hidden takes it out of the history.
    match place.works("git show HEAD:.env")?.trim() {
        "recorded" => place.attempt("git checkout -f HEAD -- .env; git diff").map(drop)?,
        text => return wrong(format!("unexpected: {text}")),
    }
    unchanged(&place, ".env")
}

fn letters(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .secret_file(".ENV")
        .file("ENV", "x")
        .ignore(&[".env"])
        .start()?;
    place.refused("cat .env")?;
    place.refused("cat .ENV")?;
    place.works("cat ENV").map(drop)
}

fn odd_names(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("a\nb/.env")
        .secret_file("[x]*?/.env")
        .secret_file("-rf/.env")
        .secret_file("\u{e4}\u{202e} b/.env")
        .secret_file("..../.env")
        .secret_file(" /.env")
        .file("a\nb/own", "x")
        .ignore(&[".env"])
        .start()?;
    place.refused("cat $'a\\nb/.env'")?;
    place.refused("cat '[x]*?/.env'")?;
    place.refused("cat ./-rf/.env")?;
    place.refused("cat ..../.env")?;
    place.refused("cat ' /.env'")?;
    place.refused("cat ./*/.env")?;
    place.works("cat $'a\\nb/own'").map(drop)
}

fn shown_again(field: &Field) -> Checked {
    let making = field.place();
    let root = making.root.clone();
    std::os::unix::fs::symlink(".", root.join("alias"))?;
    let alias = root.join("alias");
    std::os::unix::fs::symlink("work", root.join("again"))?;
    let place = making
        .secret_file("sub/.env")
        .file("sub/own", "x")
        .ignore(&[".env"])
        .with(|restrictions| {
            restrictions.read.extend([root.join("again"), root.join("work")]);
        })
        .start()?;
    place.refused(r#"cat "$WORK/sub/.env""#)?;
    place.refused(r#"cat "$WORK/../again/sub/.env""#)?;
    place.refused(r#"cat "$WORK/../work/sub/.env""#)?;
    let above = Place::with(&place, |restrictions| {
        restrictions.read = vec![restrictions.read[0].clone(), alias]
    })?;
    above.refused(r#"cat "$WORK/../alias/work/sub/.env""#)?;
    above.refused(r#"cat "$WORK/../alias/again/sub/.env""#)?;
    above.works(r#"cat "$WORK/../alias/work/sub/own""#)?;
    place.works(r#"cat "$WORK/sub/own""#).map(drop)
}

fn path_alias(field: &Field) -> Checked {
    let making = field.place();
    let root = making.root.clone();
    for (name, to) in [("bin", "../work/bin"), ("tool", "../work")] {
        std::os::unix::fs::symlink(to, root.join("home").join(name))?;
    }
    std::os::unix::fs::symlink("work", root.join("installed"))?;
    let place = making
        .secret_file("bin/.env")
        .file("bin/tool", "#!/bin/sh\necho RAN\n")
        .host("chmod +x bin/tool")?
        .ignore(&[".env"])
        .with(|restrictions| {
            let more = ["home/bin", "home/tool/bin", "installed/bin"].map(|path| root.join(path).display().to_string());
            restrictions.path = format!("{}:{}", more.join(":"), restrictions.path);
        })
        .start()?;
    for path in [
        "$HOME/bin/.env",
        "$HOME/tool/bin/.env",
        "$WORK/../installed/bin/.env",
        "$WORK/bin/.env",
    ] {
        place.refused(&format!("cat \"{path}\""))?;
    }
    place.works("bin/tool").map(drop)
}

fn readonly(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file(".env")
        .secret_file("secrets/key")
        .file("own", "x")
        .ignore(&[".env", "secrets/"])
        .readonly()
        .start()?;
    place.refused_with("\"$TOOLS/files\" read .env", &["ENOENT"])?;
    place.refused_with("\"$TOOLS/files\" read secrets/key", &["ENOENT"])?;
    place.refused("ls -A secrets | grep .")?;
    place.works("cat own").map(drop)
}

fn unreadable(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("closed/.env")
        .secret_file("known/.env")
        .host("chmod 0 closed; chmod 111 known")?
        .ignore(&[".env"])
        .start()?;
    place.attempt("cat known/.env closed/.env")?;
    place.attempt("chmod 755 closed known; cat known/.env closed/.env")?;
    place.refused("cat closed/.env")?;
    place.refused("cat known/.env")?;
    place.close();
    place.host("chmod 755 closed known")?;
    place.works("echo fine").map(drop)
}

fn not_written(field: &Field) -> Checked {
    let place = field
        .place()
        .secret_file("d/.env")
        .file("d/own", "x")
        .ignore(&[".env"])
        .start()?;
    for text in [
        "echo x >> d/.env",
        "cp d/own d/.env",
        "sed -i s/S/x/ d/.env",
        "\"$TOOLS/files\" append d/.env",
        "\"$TOOLS/files\" rename d/own d/.env",
        "\"$TOOLS/files\" noreplace d/own d/.env",
        "rm -rf d",
        "git init -q . && git stash -uq",
    ] {
        place.attempt(text)?;
        unchanged(&place, "d/.env")?;
    }
    place.works("echo y > d/own2 && cat d/own2").map(drop)
}
