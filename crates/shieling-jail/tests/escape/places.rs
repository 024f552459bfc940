//! What may be written besides the workspace, what lasts, and what only seems to.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use shieling::environment::Environment as _;

use super::support::{Case, Checked, Field, Making, Place, case, check};

pub(crate) const CASES: &[Case] = &[
    case("what is neither the workspace nor private is read-only", elsewhere),
    case("a directory that only leads to the workspace is read-only", leading),
    case("a writable place has the rules of the workspace", writable),
    case(
        "a writable place that is reached by a link, or is not there, is refused",
        not_writable,
    ),
    case(
        "a workspace in a writable repository keeps its place and its protection",
        nested,
    ),
    case("nothing is written to a readonly sandbox's writable places", readonly),
    case("caches are read, written privately, and never changed", caches),
    case(
        "no link in a cache leads to credentials, and no trick to its layers",
        cache_attacks,
    ),
    case("a kept home lasts, is the sandbox's alone, and leads nowhere", kept),
    case(
        "of the user's git settings the harmless ones are seen and no other",
        git_settings,
    ),
];

fn elsewhere(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "touch /x",
        "touch ../x",
        "mkdir ../../y",
        "touch /usr/x",
        "echo x > /etc/x",
    ] {
        place.refused_with(text, &["Read-only file system"])?;
    }
    let outcome = place.attempt("touch ../x")?;
    check(
        outcome.hints.iter().any(|hint| hint.instead.contains("--write")),
        || format!("nothing explains it: {:?}", outcome.hints),
    )?;
    place.works("touch /tmp/x /var/tmp/y /dev/shm/z /run/a ~/b && test -e /tmp/x")?;
    let note = place.write_note("../home/lost", "x")?.unwrap_or_default();
    check(note.contains("gone with the sandbox"), || {
        format!("a file tool says: {note}")
    })?;
    check(
        place.write_note("kept", "x")?.is_none() && place.write("../out", "x").is_err(),
        || "a file tool says what is not so".to_owned(),
    )?;
    let places = place.sandbox.places().expect("a sandbox has some");
    check(places.lasting == [place.work()], || format!("{places:?}"))?;
    check(
        places.is_private(&place.root.join("home/x")) && !places.is_private(&place.work()),
        || format!("{places:?}"),
    )
}

fn leading(field: &Field) -> Checked {
    // The workspace lies in the home: `src` is there for its sake alone.
    let making = field.place();
    let work = making.root.join("home/src/deep/app");
    fs::create_dir_all(&work).expect("made");
    let place = making
        .with(|restrictions| restrictions.workspace = work.clone())
        .start_unwatched()?;
    place.works("touch here ~/private && test -e ~/private")?;
    for text in ["touch ../out.txt", "touch ../../out.txt", "mkdir ~/src/other"] {
        place.refused(text)?;
    }
    check(
        work.join("here").exists() && !work.join("../../../private").exists(),
        || "ESCAPED: the private home is the real one".to_owned(),
    )
}

/// A place with one more writable directory, `lib`.
fn with_lib<'a>(field: &'a Field<'a>) -> Making<'a> {
    let making = field.place();
    let lib = making.root.join("lib");
    fs::create_dir_all(lib.join(".vscode")).expect("made");
    fs::write(lib.join(".vscode/tasks.json"), "mine").expect("written");
    fs::write(lib.join(".env"), making.secret()).expect("written");
    making.with(|restrictions| restrictions.write.push(lib))
}

fn writable(field: &Field) -> Checked {
    let making = with_lib(field).ignore(&[".env"]);
    let lib = making.root.join("lib");
    let place = making
        .host("cd ../lib && git init -q . && echo a > a && git add a && git commit -qm a")?
        .start()?;
    place.works("echo x > ../lib/x && cd ../lib && git add x && git commit -qm x && rm x")?;
    for text in [
        "echo x > ../lib/.git/hooks/pre-commit",
        "echo x >> ../lib/.git/config",
        "echo x > ../lib/.vscode/tasks.json",
        "mv ../lib/.vscode ../lib/v",
        "mv ../lib/.git ../lib/g",
        "cat ../lib/.env",
        "echo x > ../lib/.env",
        "cp /bin/true ../lib/t && chmod u+s ../lib/t",
        "touch ../lib/../beside",
    ] {
        place.refused(text)?;
    }
    // What was not there is moved aside, and told.
    let outcome = place.attempt("mkdir ../lib/.claude && echo x > ../lib/.claude/settings.json")?;
    check(
        !lib.join(".claude").exists() && lib.join(".claude.held-back").is_dir() && outcome.changes.is_some(),
        || format!("ESCAPED: {:?}", outcome.changes),
    )?;
    // By the file tools as well.
    check(place.write("../lib/.git/hooks/post-commit", "x").is_err(), || {
        "ESCAPED: a file tool made a hook".to_owned()
    })?;
    place.write("../lib/by-tool", "x")?;
    check(lib.join("by-tool").exists(), || "it should be on the host".to_owned())
}

fn not_writable(field: &Field) -> Checked {
    let making = field.place();
    let root = making.root.clone();
    symlink(root.join("outside"), root.join("work/link")).expect("linked");
    symlink(root.join("outside"), root.join("link")).expect("linked");
    let making = making.start()?;
    let paths = [
        "work/link",
        "link",
        "absent",
        "home",
        "home/.ssh",
        "home/.config/gh",
        ".",
        "work/link/directory",
    ];
    for path in paths {
        let refused = Place::with(&making, |restrictions| restrictions.write.push(root.join(path)))?.start_error()?;
        check(refused.contains("--write"), || format!("{path}: {refused}"))?;
    }
    for path in ["/", "/etc", "/usr", "/tmp", "/etc/ssl", "/dev/null", "/proc"] {
        let refused = Place::with(&making, |restrictions| restrictions.write.push(path.into()))?.start_error()?;
        check(refused.contains("--write"), || format!("{path}: {refused}"))?;
    }
    Ok(())
}

fn nested(field: &Field) -> Checked {
    let making = field.place();
    let repository = making.root.join("repo");
    let work = repository.join("packages/app");
    fs::create_dir_all(work.join(".vscode")).expect("made");
    let making = making
        .host("cd ../repo && git init -q . && git add . && git commit -q --allow-empty -m a")?
        .start()?;
    let alone = Place::with(&making, |restrictions| restrictions.workspace = work.clone())?;
    let outcome = alone.run("git status")?;
    check(
        outcome.hints.iter().any(|hint| hint.instead.contains("--write")),
        || format!("nothing explains it: {:?}", outcome.hints),
    )?;
    drop(alone);
    let place = Place::with(&making, |restrictions| {
        restrictions.workspace = work.clone();
        restrictions.write.push(repository.clone());
    })?;
    place.works("echo a > a && git add a && git commit -qm a && echo b > ../../top")?;
    for text in [
        "mv ../../packages ../../p",
        "mv ../app ../b",
        "echo x > .vscode/x",
        "echo x > ../../.git/hooks/pre-commit",
        "git config core.pager x",
    ] {
        place.refused(text)?;
    }
    check(repository.join("top").exists(), || {
        "it should be on the host".to_owned()
    })
}

fn readonly(field: &Field) -> Checked {
    let place = with_lib(field).readonly().start()?;
    place.refused("python3 -c \"open('../lib/x','w')\" || { echo x > ../lib/y; }")?;
    check(
        !place.root.join("lib/x").exists() && !place.root.join("lib/y").exists(),
        || "ESCAPED: readonly".to_owned(),
    )
}

fn with_cache<'a>(field: &'a Field<'a>) -> Making<'a> {
    let making = field.place();
    let cache = making.root.join("home/.npm/_cacache");
    fs::create_dir_all(cache.join("content/deep")).expect("made");
    fs::write(cache.join("content/one"), "package").expect("written");
    fs::write(cache.join("content/deep/two"), "package").expect("written");
    for link in ["key", "content/key"] {
        symlink(making.root.join("home/.ssh/id_ed25519"), cache.join(link)).expect("linked");
    }
    symlink("../../.npmrc", cache.join("npmrc")).expect("linked");
    symlink(making.root.join("outside"), cache.join("out")).expect("linked");
    fs::create_dir_all(making.root.join("home/.cargo/registry")).expect("made");
    making
}

fn caches(field: &Field) -> Checked {
    let place = with_cache(field).start()?;
    let printed = place.works("cat ~/.npm/_cacache/content/one ~/.npm/_cacache/content/deep/two")?;
    check(printed == "packagepackage", || printed.clone())?;
    for text in [
        "cat ~/.npmrc",
        "cat ~/.cargo/credentials.toml",
        "ls ~/.ssh/id_ed25519",
        "cat ~/.npm/_cacache/key",
    ] {
        place.refused(text)?;
    }
    let missing = place.sandbox.confinement().missing;
    if missing.iter().any(|missing| missing == "private caches") {
        place.refused("echo x > ~/.npm/_cacache/content/one")?;
        return Ok(());
    }
    place.works(
        "cd ~/.npm/_cacache && echo x >> content/one && rm content/deep/two && mkdir new && echo y > new/z \
         && mv content/one content/1 && rm -r content/deep && mkdir content/deep && test -z \"$(ls content/deep)\" \
         && chmod 700 content && ln content/1 content/hard && echo more >> content/hard && touch ~/.cargo/registry/index",
    )?;
    place.works("test \"$(cat ~/.npm/_cacache/new/z)\" = y").map(drop)?;
    // `start` has looked at the home, and looks again.
    Ok(())
}

fn cache_attacks(field: &Field) -> Checked {
    let place = with_cache(field).start()?;
    for text in [
        "cat ~/.npm/_cacache/content/key",
        "cat ~/.npm/_cacache/npmrc",
        "cat ~/.npm/_cacache/out/secret",
        "echo x > ~/.npm/_cacache/out/new",
        "cat ~/.npm/_cacache/../../../outside/secret",
        "ls /.shieling/layers/0",
        "mknod ~/.npm/_cacache/content/dev c 1 3",
        "cp /bin/true ~/.npm/_cacache/t && chmod u+s ~/.npm/_cacache/t",
        "mount -t overlay overlay -o lowerdir=/usr,upperdir=/tmp,workdir=/tmp /mnt",
        "umount ~/.npm/_cacache",
        "mv ~/.npm/_cacache ~/.npm/other",
        "mv ~/.npm/_cacache/content/one ../ && ln ../one ~/.npm/_cacache/content/back",
    ] {
        place.refused(text)?;
    }
    // A whiteout and an opaque mark of one's own show at most that something is not there.
    place.attempt(
        "cd ~/.npm/_cacache; mknod content/w c 0 0; \
         python3 -c \"import os; os.setxattr('content', 'user.overlay.opaque', b'y')\"; \
         python3 -c \"import os; os.setxattr('content', 'user.overlay.redirect', b'/../../.ssh')\"; \
         ls -R . > /dev/null; rm -rf ./* || :",
    )?;
    // The workspace's own file under a name of the cache's is not another's.
    place.attempt("ln -s ~/.npm/_cacache/content w; echo x > w/one; rm -rf w/")?;
    Ok(())
}

fn kept(field: &Field) -> Checked {
    let making = field.place();
    let home = making.root.join("kept");
    fs::create_dir(&home).expect("made");
    fs::set_permissions(&home, fs::Permissions::from_mode(0o700)).expect("set");
    fs::create_dir_all(making.root.join("home/.npm/_cacache/x")).expect("made");
    let place = making
        .with(|restrictions| restrictions.kept_home = Some(home.clone()))
        .start()?;
    place.works("echo kept > ~/file && echo 'export FROM_HOME=1' > ~/.bashrc && ls ~/.npm/_cacache/x")?;
    for text in ["cat ~/.ssh/id_ed25519", "cat ~/.npmrc", "chmod u+s ~/file"] {
        place.refused(text)?;
    }
    // Two at once share it.
    let beside = Place::beside(&place)?;
    check(beside.works("cat ~/file")? == "kept\n", || {
        "it is not shared".to_owned()
    })?;
    // What is laid in the way of what is shown leads nowhere, and is refused by its name.
    place.works("mv ~/.npm ~/was; ln -s /etc ~/.npm || ln -s ~/was ~/other; ln -s \"$OUT\" ~/link")?;
    drop(beside);
    place.close();
    check(
        fs::read_to_string(home.join("file")).is_ok_and(|text| text == "kept\n"),
        || "it did not last".to_owned(),
    )?;
    fs::remove_dir_all(home.join(".npm"))
        .or_else(|_| fs::remove_file(home.join(".npm")))
        .expect("ours");
    symlink(place.root.join("outside"), home.join(".npm")).expect("linked");
    let refused = place.start_error()?;
    check(refused.contains(".npm"), || refused.clone())
}

fn git_settings(field: &Field) -> Checked {
    let making = field.place();
    let secret = making.secret().to_owned();
    let text = format!(
        "[user]\n name = U\n email = u@h\n[alias]\n st = status -sb\n x = !touch pwned\n[init]\n defaultBranch = trunk\n\
         [http]\n extraHeader = {secret}\n[credential]\n helper = !echo {secret}\n[core]\n pager = {secret}\n"
    );
    fs::write(making.root.join("home/.gitconfig"), text).expect("written");
    let place = making.start()?;
    let told = place.works(
        "unset GIT_CONFIG_NOSYSTEM; export GIT_CONFIG_SYSTEM=/etc/gitconfig; git init -q r && cd r && git symbolic-ref HEAD && git st && git config user.email",
    )?;
    check(told.contains("refs/heads/trunk") && told.contains("u@h"), || {
        told.clone()
    })?;
    for text in [
        "unset GIT_CONFIG_NOSYSTEM; export GIT_CONFIG_SYSTEM=/etc/gitconfig; cd r && git x",
        "git config http.extraHeader",
        "git config core.pager",
        "grep -r helper /etc/gitconfig",
    ] {
        place.refused(text)?;
    }
    Ok(())
}
