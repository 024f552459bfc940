//! What later commands of the user would run code from: it stays as it was, and its neighbours work.

use std::fs;
use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use shieling::environment::Isolation;

use super::outside::Background;
use super::support::{Case, Checked, Fail, Field, Place, case, check, wrong};

mod half_done;

pub(crate) const CASES: &[Case] = &[
    case("git's hooks and settings that are there cannot be changed", git_files),
    case("git's hooks that were not there are moved aside", absent_hooks),
    case("no git command changes what git runs code from", git_commands),
    case("git's everyday commands work beside what is protected", git_works),
    case("git's directory cannot be moved away and made anew", git_moved),
    case(
        "what would stop half-way at something protected is refused before it begins",
        half_done::before_it_begins,
    ),
    case("what a script leaves half-done is told", half_done::by_a_script),
    case(
        "the hooks and settings of a repository one level below are protected",
        nested,
    ),
    case(
        "the hooks and settings of submodules and linked trees are protected",
        modules,
    ),
    case(
        "a repository is not sent to another configuration by a file that was not there",
        redirected,
    ),
    case(
        "directories of hooks and files of settings that git's settings name are protected",
        named,
    ),
    case(
        "programs and settings are protected in every form that git reads them in",
        named_in_every_form,
    ),
    case(
        "what a command closes is not taken for absent by the next sandbox",
        closed,
    ),
    case(
        "a workspace that its owner cannot look into is refused with the cure",
        closed_whole,
    ),
    case("a protected name that is a link is kept, and what it leads to", links),
    case("settings of editors and agents that are there cannot be changed", tools),
    case(
        "settings of editors and agents that were not there are moved aside and told",
        moved_aside,
    ),
    case("what a command made is kept, however much it is", kept),
    case("nothing of ours stands in the workspace", nothing_of_ours),
    case(
        "names that a job makes after another command's end are found at the next end",
        later,
    ),
    case("of two sandboxes either moves aside what appears", two_at_once),
    case("file tools do not make what would be moved aside", file_tools),
    case(
        "a link in the place of a directory leads nothing of ours out of the workspace",
        parent_is_a_link,
    ),
    case(
        "a repository that commands make is theirs until the sandbox ends",
        own_repository,
    ),
    case(
        "a git directory outside that a command names is not shown to the next sandbox",
        stale_entry,
    ),
    case("what cannot be looked after whole is refused", too_many),
    case("shieling's own files cannot be changed", own_files),
    case(
        "in a home that is the workspace nothing that starts by itself can be made or changed",
        home,
    ),
    case("nor where a link of the home leads", linked_home),
    case(
        "without a word no part of a home is taken, to change it or to read it",
        parts_of_a_home,
    ),
    case("what a home outside leads to in the workspace is kept", led_to),
    case(
        "nor in a home that the workspace holds; and without a word no home is taken",
        homes_held,
    ),
    case(
        "a policy and a configuration in the workspace cannot be changed or replaced",
        fixed,
    ),
    case("nothing of ours is left after the host was killed", host_killed),
    case("protected paths can be opened by whoever asks for it", opened),
    case(
        "what git runs code from and was not there is not kept, whoever sees it first",
        appeared,
    ),
    case("the cover of a protected path cannot be taken off", covers),
];

const REPOSITORY: &str = "git init -q . && echo a > a && git add a && git commit -qm a";

/// Each of these fails, and what is below the directory is as it was.
fn all_refused(place: &Place, directory: &str, texts: &[&str]) -> Checked {
    let before = place.host(&format!(
        "find {directory} | sort | xargs -d '\\n' stat -c '%n %i %a %s %Y' 2>&1"
    ))?;
    for text in texts {
        place.refused(text)?;
    }
    let after = place.host(&format!(
        "find {directory} | sort | xargs -d '\\n' stat -c '%n %i %a %s %Y' 2>&1"
    ))?;
    check(before == after, || {
        format!("ESCAPED: {directory} was {before} and is {after}")
    })
}

fn git_files(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    all_refused(
        &place,
        ".git/hooks .git/config",
        &[
            "echo x > .git/hooks/pre-commit",
            "echo x >> .git/config",
            "rm .git/config",
            "rm -rf .git/hooks",
            "mv .git/hooks .git/h",
            "mv .git/config .git/c",
            "cp a .git/config",
            "mv a .git/config",
            "ln -sf a .git/config",
            "ln .git/config c && echo x >> c",
            "chmod 777 .git/hooks",
            "truncate -s 0 .git/config",
            "touch .git/hooks/post-checkout",
            "mkdir .git/hooks/x",
            "mv .git/hooks/pre-commit.sample .git/hooks/pre-commit",
            "sed -i s/false/true/ .git/config",
            "\"$TOOLS/files\" exchange a .git/config",
            "echo x > \"/proc/self/root$WORK/.git/config\"",
        ],
    )?;
    place
        .works("cat .git/config && ls .git/hooks && echo x > .git/description")
        .map(drop)
}

/// The paths that the text's outcome says were held back.
fn held(place: &Place, text: &str) -> Checked<Vec<String>> {
    let outcome = place.attempt(text)?;
    let held = outcome.changes.iter().flat_map(|changes| &changes.held_back);
    Ok(held.map(|held| held.path.display().to_string()).collect())
}

/// The text makes this name, which is moved aside and told, and is not there afterwards.
fn is_held(place: &Place, text: &str, name: &str) -> Checked {
    let held = held(place, text)?;
    check(held == [name], || {
        format!("`{text}`: {held:?} was held back, not {name}")
    })?;
    check(place.work().join(name).symlink_metadata().is_err(), || {
        format!("ESCAPED: {name} is there after `{text}`")
    })
}

fn absent_hooks(field: &Field) -> Checked {
    let place = field
        .place()
        .host(&format!("{REPOSITORY} && rm -rf .git/hooks"))?
        .start()?;
    for text in [
        "mkdir .git/hooks && echo x > .git/hooks/pre-commit",
        "echo x > .git/hooks",
        "ln -s /tmp .git/hooks",
        "mkdir h && echo x > h/post-checkout && mv h .git/hooks",
        "mkdir -p .git/hooks/x && touch .git/hooks/pre-commit.sample",
    ] {
        is_held(&place, text, ".git/hooks")?;
    }
    place.works("mkdir .git/hooks && touch .git/hooks/pre-commit.sample")?;
    place.works("git commit -q --allow-empty -m x")?;
    let held = held(&place, "echo x > .git/hooks/pre-commit")?;
    check(held == [".git/hooks"], || format!("ESCAPED: {held:?}"))?;
    place.close();
    check(!place.work().join(".git/hooks").exists(), || {
        "hooks are left".to_owned()
    })
}

fn git_commands(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    all_refused(
        &place,
        ".git/hooks .git/config",
        &[
            "git config core.fsmonitor /tmp/x",
            "git config core.hooksPath /tmp/x",
            "git config --replace-all core.bare true",
            "git config alias.x '!sh'",
            "git config --add include.path /tmp/x",
            "git config --file .git/config core.pager x",
            "git config --unset core.bare",
            "git config --rename-section core other",
            "git remote add x /tmp/x",
            "git branch other; git branch --set-upstream-to=other; git config branch.master.merge",
        ],
    )?;
    let outcome = place.attempt("git config alias.x status")?;
    let hints: Vec<_> = outcome.hints.iter().filter_map(|hint| hint.path.as_deref()).collect();
    check(hints == [std::path::Path::new(".git/config")], || {
        format!("{hints:?} is explained of `{}`", outcome.stderr)
    })?;
    place
        .works("git -c core.pager=cat log && git config --list && git config core.bare")
        .map(drop)
}

fn git_works(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    for text in [
        "echo b > b && git add b && git commit -qm b",
        "git branch other && git checkout -q other && echo c > c && git add c && git commit -qm c",
        "git checkout -q - && git merge -q other -m m",
        "echo d >> a && git stash -q && git stash pop -q && git checkout -q a",
        "git tag one && git tag -a two -m two && git tag -d one",
        "git checkout -qb topic HEAD~1 && echo e > e && git add e && git commit -qm e && git rebase -q @{-1}",
        "git reset -q --hard HEAD~1 && git reflog && git gc -q && git fsck",
        "git worktree add -q /tmp/tree -b tree && git -C /tmp/tree commit -q --allow-empty -m x && git worktree remove /tmp/tree",
        "git cherry-pick other --no-commit || git cherry-pick --abort; git reset -q --hard",
        "git branch renamed topic && git branch -D topic; git notes add -m note",
        "git init -q /tmp/new && cd /tmp/new && git config core.hooksPath x",
        "git init -q sub && git -C sub commit -q --allow-empty -m x",
        "rm -rf .git/index && git reset -q && git status",
    ] {
        place.works(text)?;
    }
    Ok(())
}

fn git_moved(field: &Field) -> Checked {
    let place = field.place().host(&format!("{REPOSITORY}; cp -r .git evil"))?.start()?;
    all_refused(
        &place,
        ".git/hooks .git/config",
        &[
            "printf 'mv .git .git2' > /tmp/s; bash /tmp/s",
            "printf 'mv .git /tmp/x' > /tmp/s; bash /tmp/s",
            "\"$TOOLS/files\" exchange .git evil",
            "\"$TOOLS/files\" rename evil .git",
            "printf 'rm -rf .git' > /tmp/s; bash /tmp/s && test ! -e .git",
            "git init -q --separate-git-dir=/tmp/elsewhere .",
        ],
    )?;
    place.works("mv evil good && rm -rf good").map(drop)
}

fn nested(field: &Field) -> Checked {
    let place = field
        .place()
        .host("git init -q one && git init -q two && mkdir three && rm -rf two/.git/hooks")?
        .start()?;
    all_refused(
        &place,
        "one/.git/config one/.git/hooks two/.git/config",
        &[
            "echo x >> one/.git/config",
            "echo x > one/.git/hooks/pre-commit",
            "printf 'mv one/.git one/x' > /tmp/s; bash /tmp/s",
            "printf 'mv one uno' > /tmp/s; bash /tmp/s",
            "git -C two config x.y z",
            "echo x > two/.git/hooks/pre-commit",
            "git -C one config core.fsmonitor x",
        ],
    )?;
    place
        .works("git -C one commit -q --allow-empty -m x && echo x > two/file && mv three four")
        .map(drop)
}

fn modules(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"git init -q ../outside/module && git -C ../outside/module commit -q --allow-empty -m x && git init -q . && git commit -q --allow-empty -m x
               git -c protocol.file.allow=always submodule --quiet add ../outside/module module && git commit -qam module && git worktree add -q tree"#,
        )?
        .start()?;
    all_refused(
        &place,
        ".git/config .git/hooks .git/modules/module/config .git/modules/module/hooks module/.git tree/.git .git/worktrees/tree/commondir",
        &[
            "echo x >> .git/modules/module/config",
            "echo x > .git/modules/module/hooks/pre-commit",
            "mv .git/modules .git/m",
            "mv .git/modules/module .git/modules/m",
            "git -C module config core.fsmonitor x",
            "echo 'gitdir: /tmp' > module/.git",
            "rm module/.git",
            "git -C tree config core.fsmonitor x",
            "echo /tmp > .git/worktrees/tree/commondir",
        ],
    )?;
    place
        .works("git -C module commit -q --allow-empty -m y && git -C tree commit -q --allow-empty -m z")
        .map(drop)
}

fn redirected(field: &Field) -> Checked {
    let place = field
        .place()
        .host("git init -q . && mkdir -p evil/objects evil/refs && cp .git/HEAD evil/ && printf '[core]\n\tfsmonitor = touch ran\n' > evil/config")?
        .start()?;
    place.attempt("echo ../evil > .git/commondir")?;
    // As the user, afterwards.
    place.host("git status > /dev/null 2>&1; true")?;
    check(!place.work().join("ran").exists(), || {
        "ESCAPED: git ran what a command had put into its way".to_owned()
    })?;
    check(!place.work().join(".git/commondir").exists(), || {
        "ESCAPED: it is still there".to_owned()
    })?;
    place.works("git status --short").map(drop)
}

fn named(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            "git init -q . && mkdir -p tools/hooks && echo x > tools/settings && echo x > tools/other
             git config core.hooksPath tools/hooks && git config include.path ../tools/settings",
        )?
        .start()?;
    all_refused(
        &place,
        "tools/hooks tools/settings",
        &[
            "echo x > tools/hooks/pre-commit",
            "echo x >> tools/settings",
            "mv tools tools2",
            "rm -rf tools/hooks",
            "mv tools/other tools/settings",
        ],
    )?;
    place.works("echo y > tools/other && mkdir tools/more").map(drop)
}

fn named_in_every_form(field: &Field) -> Checked {
    let place = field
        .place()
        .host(
            r#"git init -q . && mkdir -p tools evil && echo x > inc2 && for name in smudge y.sh tc free; do echo x > tools/$name; done
               cat >> .git/config <<'END'
[include]
 path = ../inc2 ; comment
[core]
 hooksPath = \
  evil
[filter "f"] smudge = 'tools/smudge' %f
[alias]
 y = "!bash tools/y.sh"
[diff "d"]
 textconv = sh tools/tc
END"#,
        )?
        .start()?;
    all_refused(
        &place,
        "inc2 evil tools/smudge tools/y.sh tools/tc",
        &[
            "echo x >> inc2",
            "echo x > evil/post-checkout",
            "echo x >> tools/smudge",
            "echo x >> tools/y.sh",
            "rm tools/tc",
            "mv tools other",
        ],
    )?;
    place
        .works("echo y > tools/free && git config --list > /dev/null")
        .map(drop)
}

fn closed(field: &Field) -> Checked {
    let names =
        ".git/modules/m/hooks .git/modules/m/config sub/.git/hooks sub/.git/config .vscode/x .git/config .git/hooks";
    let place = field
        .place()
        .host(
            "git init -q . && git init -q sub && mkdir -p .git/modules .vscode && echo x > .vscode/x && \
             cp -r sub/.git .git/modules/m",
        )?
        .start()?;
    let before = place.host(&format!("md5sum $(find {names} -type f | sort)"))?;
    place.works("chmod 000 .git/modules sub; chmod 300 .; chmod 700 .")?;
    place.close();
    for (closed, mode) in [
        ("", "000"),
        (".git", "000"),
        (".git", "300"),
        ("sub/.git .git/modules/m", "600"),
    ] {
        if !closed.is_empty() {
            place.host(&format!("chmod 700 .git .git/modules sub; chmod {mode} {closed}"))?;
        }
        let next = Place::beside(&place)?;
        next.attempt(
            "chmod 700 .git .git/modules .git/modules/m sub sub/.git; for d in .git/modules/m sub/.git .git; do \
             mkdir -p $d/hooks; echo evil > $d/hooks/post-checkout; echo evil >> $d/config; echo ../x > $d/commondir; done",
        )?;
        let told = held(&next, "true")?;
        next.close();
        place.host("chmod 700 .git .git/modules .git/modules/m sub sub/.git")?;
        let after = place.host(&format!("md5sum $(find {names} -type f | sort)"))?;
        let is_there = |name: &str| place.work().join(name).symlink_metadata().is_ok();
        check(
            before == after
                && ![".git", "sub/.git", ".git/modules/m"]
                    .iter()
                    .any(|git| is_there(&format!("{git}/commondir"))),
            || format!("ESCAPED: `{closed}` with {mode}: it was {before} and is {after}; {told:?} was told"),
        )?;
        check(told.iter().all(|name| name.ends_with("commondir")), || {
            format!("the user's own {told:?} was moved aside")
        })?;
        place.host("find . -name 'commondir.held-back*' -delete")?;
    }
    place.works("git status --short").map(drop)
}

fn closed_whole(field: &Field) -> Checked {
    if rustix::process::geteuid().is_root() {
        // Nothing is closed to it.
        field.attempted();
        field.worked();
        return Ok(());
    }
    let place = field.place().host("git init -q sub")?.start()?;
    for mode in ["000", "300"] {
        place.host(&format!("chmod {mode} ."))?;
        field.attempted();
        let started = Place::beside(&place)?.run("true");
        fs::set_permissions(place.work(), std::os::unix::fs::PermissionsExt::from_mode(0o700))?;
        match started {
            Err(Fail::Wrong(said)) if said.contains("chmod u+rwX") => {}
            other => return wrong(format!("{mode}: {:?}", other.map(|outcome| outcome.status))),
        }
    }
    place.works("true").map(drop)
}

fn links(field: &Field) -> Checked {
    let place = field
        .place()
        .host("git init -q . && mv .git/hooks hooks && ln -s ../hooks .git/hooks && mkdir editor && ln -s editor .vscode && echo x > bashrc && ln -s bashrc .bashrc")?
        .start()?;
    all_refused(
        &place,
        "hooks .git/hooks editor .vscode bashrc .bashrc",
        &[
            "echo x > hooks/pre-commit",
            "echo x > .git/hooks/pre-commit",
            "rm .git/hooks",
            "ln -sfn /tmp .git/hooks",
            "mv hooks h",
            "rm .vscode",
            "echo x > editor/tasks.json",
            "mv editor e",
            "echo x >> bashrc",
            "echo x >> .bashrc",
        ],
    )?;
    place.works("mkdir other && ln -s other fine && rm fine").map(drop)
}

fn tools(field: &Field) -> Checked {
    let mut making = field.place();
    let names = [
        ".vscode/tasks.json",
        ".idea/x.xml",
        ".claude/settings.json",
        ".cursor/rules",
        ".codex/x",
        ".gemini/x",
        ".zed/x",
        ".mcp.json",
        ".envrc",
        ".mise.toml",
        ".devcontainer/devcontainer.json",
        ".husky/pre-commit",
        ".windsurf/x",
        ".aider.conf.yml",
    ];
    for name in names {
        making = making.file(name, "the user's");
    }
    let place = making.file(".editorconfig", "x").start()?;
    for name in names {
        let top = name.split('/').next().unwrap_or(name);
        place.refused(&format!("echo x > {name}"))?;
        place.refused(&format!("rm -rf {top}"))?;
        place.refused(&format!("mv {top} elsewhere"))?;
        let text = fs::read_to_string(place.work().join(name))?;
        check(text == "the user's", || format!("ESCAPED: {name} is `{text}`"))?;
        place.works(&format!("cat {name}"))?;
    }
    place.works("echo y > .editorconfig && rm .editorconfig").map(drop)
}

fn moved_aside(field: &Field) -> Checked {
    let place = field.place().start()?;
    for name in [".vscode", ".claude", ".cursor"] {
        for text in [
            format!("mkdir {name} && echo x > {name}/settings.json"),
            format!("echo x > {name}"),
            format!("ln -s /etc {name}"),
            format!("mkdir -p own && echo x > own/x && mv own {name}"),
            format!("mkfifo {name}"),
            format!("mkdir {name} && chmod 500 {name}"),
            format!("mv {name}.held-back {name}"),
        ] {
            is_held(&place, &text, name)?;
        }
    }
    let outcome = place.attempt("mkdir .vscode && echo x > .vscode/tasks.json && exit 3")?;
    let told = outcome.changes.map(|changes| changes.held_back).unwrap_or_default();
    let moved = told.iter().find_map(|held| {
        let (_, moved) = held.instead.split_once("moved to `")?;
        moved.split('`').next().map(str::to_owned)
    });
    let moved = moved.unwrap_or_default();
    check(place.work().join(&moved).join("tasks.json").exists(), || {
        format!("{told:?} does not say where it is")
    })?;
    place.works("mkdir .other && echo x > .other/x").map(drop)
}

fn kept(field: &Field) -> Checked {
    let place = field.place().start()?;
    is_held(
        &place,
        "mkdir -p .claude/deep && for n in $(seq 10000); do echo > .claude/deep/$n; done",
        ".claude",
    )?;
    let count = fs::read_dir(place.work().join(".claude.held-back/deep"))?.count();
    check(count == 10_000, || format!("{count} of 10000 files are left"))
}

fn nothing_of_ours(field: &Field) -> Checked {
    let place = field
        .place()
        .host(&format!("{REPOSITORY} && rm -rf .git/hooks"))?
        .start()?;
    let listed = place.works("ls -A; ls -A .git | grep -c hooks; git status --short; git clean -fdx; tar c . | tar t | grep -cE 'vscode|claude|cursor|hooks'; true")?;
    check(listed == ".git\na\n0\n0\n", || format!("`{listed}` is listed"))?;
    check(names_left(&place.work()).is_empty(), || {
        format!("{:?} are there while it runs", names_left(&place.work()))
    })?;
    place.close();
    check(names_left(&place.work()).is_empty(), || {
        format!("{:?} are left", names_left(&place.work()))
    })
}

/// Waits until a file is there.
fn wait_for(path: &std::path::Path) -> Checked {
    let until = Instant::now() + Duration::from_secs(20);
    while !path.exists() {
        if Instant::now() > until {
            return wrong(format!("{} was not made", path.display()));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(())
}

fn later(field: &Field) -> Checked {
    let place = field.place().start()?;
    let job = "while [ ! -e go ]; do sleep 0.01; done; mkdir a; echo x > a/x; mv a .cursor; touch made; \
               while [ ! -e again ]; do sleep 0.01; done; mkdir a; echo y > a/y; mv a .cursor; touch made-again; sleep 100";
    let running = Background::start(field, &place, job)?;
    place.works("touch go")?;
    wait_for(&place.work().join("made"))?;
    // Seen before the next command, and told by its outcome.
    let first = held(&place, "test ! -e .cursor")?;
    check(first.len() <= 1 && !place.work().join(".cursor").exists(), || {
        format!("ESCAPED: {first:?} was held back")
    })?;
    place.host("touch again")?;
    wait_for(&place.work().join("made-again"))?;
    place.close();
    running.drop_it();
    check(!place.work().join(".cursor").exists(), || {
        "ESCAPED: it is there after the end".to_owned()
    })?;
    for name in [".cursor.held-back/x", ".cursor.held-back-2/y"] {
        check(place.work().join(name).exists(), || format!("{name} is lost"))?;
    }
    Ok(())
}

fn two_at_once(field: &Field) -> Checked {
    let first = field.place().host(REPOSITORY)?.start()?;
    first.works("true")?;
    let job = "touch ready; while [ ! -e go ]; do sleep 0.01; done; mkdir .vscode; echo x > .vscode/tasks.json; \
               echo ../x > .git/commondir; touch made; sleep 100";
    let second = Place::beside(&first)?;
    second.works("true")?;
    let running = Background::start(field, &first, job)?;
    wait_for(&first.work().join("ready"))?;
    fs::write(first.work().join("go"), "")?;
    wait_for(&first.work().join("made"))?;
    // One that starts now takes them for the user's, and keeps nobody from moving them.
    let third = Place::beside(&first)?;
    third.works("test -e .vscode/tasks.json")?;
    let told = held(&second, "true")?;
    check(told == [".git/commondir", ".vscode"], || {
        format!("{told:?} was held back")
    })?;
    running.drop_it();
    for place in [&third, &second, &first] {
        place.close();
    }
    for name in [".vscode", ".git/commondir"] {
        check(!first.work().join(name).exists(), || {
            format!("ESCAPED: {name} is there")
        })?;
    }
    Ok(())
}

fn file_tools(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    for name in [
        ".vscode/tasks.json",
        ".claude",
        ".git/commondir",
        ".git/config.worktree",
    ] {
        field.attempted();
        let made = place.write(name, "x");
        check(made.is_err() && !place.work().join(name).exists(), || {
            format!("ESCAPED: a file tool made {name}: {made:?}")
        })?;
    }
    place.write("file", "x")?;
    // What a command makes is not kept since a file tool came by.
    let running = Background::start(
        field,
        &place,
        "mkdir .vscode; echo x > .vscode/x; echo ../x > .git/commondir; touch made; sleep 100",
    )?;
    wait_for(&place.work().join("made"))?;
    place.write("other", "x")?;
    for name in [".vscode", ".git/commondir"] {
        check(!place.work().join(name).exists(), || {
            format!("ESCAPED: {name} is there")
        })?;
    }
    running.drop_it();
    Ok(())
}

fn parent_is_a_link(field: &Field) -> Checked {
    let making = field
        .place()
        .host("git init -q . && git config core.hooksPath tools/hooks")?;
    let outside = making.root.join("outside");
    fs::create_dir_all(outside.join("hooks"))?;
    fs::write(outside.join("hooks/pre-commit"), "the user's")?;
    // From here on nothing may change there, which the suite looks at.
    let place = making.start()?;
    is_held(&place, "ln -s \"$OUT\" tools", "tools")?;
    is_held(
        &place,
        "mkdir prepared && ln -s prepared tools && mkdir prepared/hooks",
        "tools",
    )?;
    is_held(
        &place,
        "mkdir -p tools/hooks && echo x > tools/hooks/pre-commit",
        "tools/hooks",
    )?;
    place.works("test -d tools && rm -rf tools").map(drop)
}

fn own_repository(field: &Field) -> Checked {
    let place = field.place().start()?;
    for text in [
        "git init -q . && git commit -q --allow-empty -m x",
        "git config user.email e@e && git remote add origin /tmp/x && git checkout -q -b other",
        "git init -q sub && git -C sub config x.y z && git -C sub commit -q --allow-empty -m x",
        "git clone -q sub copy && git -C copy config x.y z",
        "git -C copy branch -m renamed && mv copy moved && git -C moved status",
        "git worktree add -q tree && git -C tree commit -q --allow-empty -m x && git worktree remove tree",
        "rm -rf moved sub && mv .git .git2 && mv .git2 .git && git status",
        "echo x > .git/hooks/pre-commit",
    ] {
        let held = held(&place, text)?;
        check(held.is_empty(), || format!("{held:?} was held back after `{text}`"))?;
        place.works("true")?;
    }
    place.works("git log --oneline && test -e .git/hooks/pre-commit")?;
    let next = Place::beside(&place)?;
    next.refused("git config x.y z")?;
    next.refused("rm .git/hooks/pre-commit").map(drop)
}

fn stale_entry(field: &Field) -> Checked {
    let making = field
        .place()
        .host(
            r#"root=$(cd .. && pwd) && cd "$root" && git init -q outside/main && git -C outside/main commit -q --allow-empty -m x &&
               rmdir work && git -C outside/main worktree add -q "$root/work" && rm work/.git"#,
        )?;
    // As a linked tree leaves it that was removed by hand: the entry is there, and names this place.
    let entry = making.root.join("outside/main/.git/worktrees/work/gitdir");
    check(entry.exists(), || format!("{} is not there", entry.display()))?;
    let place = making.start()?;
    place.attempt("echo \"gitdir: $OUT/main/.git/worktrees/work\" > .git")?;
    place.close();
    let next = Place::beside(&place)?;
    next.refused("ls \"$OUT/main/.git\"")?;
    next.refused("git log")?;
    next.refused("touch \"$OUT/main/.git/refs/heads/x\"").map(drop)
}

fn too_many(field: &Field) -> Checked {
    let place = field
        .place()
        .host("git init -q . && head -c 1100000 /dev/zero | tr '\\0' '#' >> .git/config")?
        .start()?;
    field.attempted();
    match place.run("true") {
        Err(Fail::Wrong(said)) if said.contains("more than 1048576 bytes") && said.contains("--open-protected") => {
            Ok(())
        }
        other => wrong(format!("{:?}", other.map(|outcome| outcome.status))),
    }
}

fn own_files(field: &Field) -> Checked {
    let place = field
        .place()
        .file("shieling.toml", "x")
        .file(".shieling/x", "x")
        .start()?;
    all_refused(
        &place,
        "shieling.toml .shieling",
        &[
            "echo x >> shieling.toml",
            "rm shieling.toml",
            "mv shieling.toml x",
            "rm -rf .shieling",
            "echo x > .shieling/y",
            "mv .shieling x",
        ],
    )?;
    place.works("cat shieling.toml").map(drop)
}

fn home(field: &Field) -> Checked {
    let names = [
        ".bashrc",
        ".profile",
        ".zshrc",
        ".gitconfig",
        ".ssh/config",
        ".config/fish/config.fish",
        ".vimrc",
        ".inputrc",
        ".config/git/config",
        ".config/systemd/user/x.service",
        ".local/bin/x",
        "bin/x",
        ".tmux.conf",
        ".npmrc",
        ".cargo/env",
        ".fzf.bash",
        ".bash_completion",
        ".config/i3/config",
        ".config/app/settings",
        ".gitconfig.local",
        ".nvm/nvm.sh",
        ".local/lib/python3.11/site-packages/x.pth",
        ".cache/p10k-instant-prompt-u.zsh",
        "miniconda3/etc/profile.d/conda.sh",
    ];
    let mut making = field.place();
    for name in names {
        making = making.file(name, "the user's");
    }
    let work = making.work();
    let place = making
        .file("project/README", "x")
        .file(".cache/pip/x", "x")
        .file(".cargo/registry/x", "x")
        .file("notes", "x")
        .secret_file(".local/state/shieling/x")
        .with(|restrictions| {
            restrictions.own = vec![work.join(".local/state/shieling")];
            restrictions.home = Some(work);
            restrictions.allow_home = true;
        })
        .start()?;
    for name in names {
        place.refused(&format!("echo x >> {name}"))?;
        place.refused(&format!("rm {name}"))?;
        let text = fs::read_to_string(place.work().join(name))?;
        check(text == "the user's", || format!("ESCAPED: {name} is `{text}`"))?;
    }
    place.refused("mv .config .c")?;
    place.refused("mv .local .l")?;
    // What is absent cannot be made, by any way to it.
    for absent in ABSENT {
        place.refused(&format!("mkdir -p $(dirname {absent}) && echo x > {absent}"))?;
        place.refused(&format!("echo x > project/new && ln project/new {absent}"))?;
        place.refused(&format!("mkdir -p project/d && mv -T project/d {absent}"))?;
        place.refused(&format!("ln -s project {absent}"))?;
        check(place.work().join(absent).symlink_metadata().is_err(), || {
            format!("ESCAPED: {absent} was made")
        })?;
    }
    place.refused("mv project other")?;
    place.refused("rmdir .local .config")?;
    place.refused("mv .local/state .local/s || cat .local/state/shieling/x")?;
    // What the user makes meanwhile is the user's.
    place.host("mkdir .aws && echo x > .aws/credentials")?;
    let held = held(&place, "true")?;
    check(held.is_empty(), || format!("{held:?} was held back"))?;
    place
        .works(
            "echo x > project/new && mkdir project/deep && mv project/new project/deep && echo x > .cache/new && \
             echo x > .cache/pip/x && rm .cargo/registry/x && echo x > .cargo/registry/new && echo x > notes",
        )
        .map(drop)
}

/// Names of a home from which something would start, or which would speak for the user.
const ABSENT: &[&str] = &[
    ".bash_profile",
    ".zshenv",
    ".xprofile",
    ".netrc",
    ".git-credentials",
    ".aws/credentials",
    ".docker/config.json",
    ".config/autostart/x.desktop",
    ".config/environment.d/x.conf",
    ".config/shieling/shieling.toml",
    ".local/share/systemd/user/x.service",
    ".cargo/bin/x",
    ".vscode/tasks.json",
    ".config/app/new",
    ".local/lib/python3.11/site-packages/new.pth",
    ".nvm/alias",
    "anything",
];

fn linked_home(field: &Field) -> Checked {
    let making = field
        .place()
        .file("dotfiles/deep/config/app", "x")
        .file("dotfiles/other/x", "x")
        .file("project/x", "x")
        .host(
            "ln -s dotfiles/deep/config .config && ln -s dotfiles/bashrc .bashrc && ln -s ../work/project/.. up && \
             ln -s project/profile .profile && mkdir -p .app/bin stow/app && echo x > stow/app/init && \
             ln -s ../stow/app/init .app/init && ln -s ../stow/app/absent .app/absent && ln -s stow/rc .rc && \
             ln -s ../../project/x .app/bin/x",
        )?;
    let work = making.work();
    let place = making
        .with(|restrictions| {
            restrictions.home = Some(work);
            restrictions.allow_home = true;
        })
        .start()?;
    for text in [
        "mkdir -p .config/autostart",
        "mkdir -p dotfiles/deep/config/autostart",
        "echo x >> dotfiles/deep/config/app",
        "mv dotfiles/deep dotfiles/other",
        "mv dotfiles other",
        "echo x > .bashrc",
        "echo x > dotfiles/bashrc",
        "echo x > up/.zshrc",
        "echo x > .profile",
        "echo x > project/profile",
        "rm .config",
        "ln -sfn project .config",
        "echo x > stow/app/init",
        "rm stow/app/init",
        "mv stow other",
    ] {
        place.refused(text)?;
    }
    for name in [
        "dotfiles/bashrc",
        "project/profile",
        "dotfiles/deep/config/autostart",
        ".zshrc",
    ] {
        check(place.work().join(name).symlink_metadata().is_err(), || {
            format!("ESCAPED: {name} was made")
        })?;
    }
    place.works("echo x >> project/x && echo x >> dotfiles/other/x && echo x > stow/app/new && mkdir stow/more")?;
    for name in ["stow/app/absent", "stow/rc"] {
        is_held(&place, &format!("echo x > {name}"), name)?;
    }
    place.works("true").map(drop)
}

fn parts_of_a_home(field: &Field) -> Checked {
    for (part, readonly, allowed) in [
        (".ssh", false, false),
        (".ssh", false, true),
        (".ssh", true, false),
        (".config/autostart", false, false),
        (".dotfiles", false, false),
        ("", true, false),
    ] {
        let making = field.place();
        let home = making.work().join("home");
        fs::create_dir_all(home.join(part))?;
        let place = making
            .with(|restrictions| {
                restrictions.workspace = home.join(part);
                restrictions.home = Some(home);
                restrictions.readonly = readonly;
                restrictions.allow_home = allowed;
            })
            .start()?;
        field.attempted();
        match place.run("true") {
            Err(Fail::Wrong(told)) if told.contains("--allow-home") => {}
            other => return wrong(format!("`{part}` was taken without a word: {other:?}")),
        }
    }
    field.worked();
    Ok(())
}

fn led_to(field: &Field) -> Checked {
    let making = field.place().file("bash/rc", "the user's").file("x", "x");
    let (home, work) = (making.root.join("home"), making.work());
    std::os::unix::fs::symlink(work.join("bash/rc"), home.join(".bashrc"))?;
    std::os::unix::fs::symlink(work.join("profile"), home.join(".profile"))?;
    let place = making.start()?;
    for text in ["echo x > bash/rc", "rm bash/rc", "mv bash other"] {
        place.refused(text)?;
    }
    is_held(&place, "echo x > profile", "profile")?;
    place.works("echo x > x && echo x > bash/other").map(drop)
}

fn homes_held(field: &Field) -> Checked {
    let making = field
        .place()
        .file("over/u/.bashrc", "x")
        .file("over/u/project/x", "x")
        .file("other/x", "x");
    let home = making.work().join("over/u");
    let asked = making
        .with(|restrictions| {
            restrictions.home = Some(home);
            restrictions.allow_home = true;
        })
        .start()?;
    for text in [
        "echo x > over/u/.profile",
        "echo x > over/u/.bashrc",
        "mv over/u over/v",
        "mv over v",
        "mkdir over/u/.ssh",
        "rm -r over/u",
    ] {
        asked.refused(text)?;
    }
    asked.works("echo x > over/u/project/y && echo x > over/y && echo x > other/y && mkdir new")?;
    is_held(&asked, "mkdir .vscode && echo x > .vscode/tasks.json", ".vscode")?;
    for (allowed, isolation) in [(false, Isolation::Full), (true, Isolation::Landlock)] {
        field.attempted();
        let refused = Place::with(&asked, |restrictions| {
            restrictions.allow_home = allowed;
            restrictions.isolation = isolation;
        })?;
        let told = match refused.run("true") {
            Err(Fail::Wrong(told)) => told,
            other => return wrong(format!("a home was taken without a word: {other:?}")),
        };
        check(told.contains("holds the home directory"), || {
            format!("it was refused for something else: {told}")
        })?;
    }
    Ok(())
}

fn fixed(field: &Field) -> Checked {
    for opened in [false, true] {
        let making = field
            .place()
            .file("conf/real/team.toml", "x")
            .file("shieling.toml", "x")
            .file("conf/other", "x")
            .host("ln -s real conf/link && ln -s conf/link/team.toml policy.toml")?;
        let files = ["policy.toml", "shieling.toml"].map(|name| making.work().join(name));
        let place = making
            .with(|restrictions| {
                restrictions.fixed = files.into();
                restrictions.open_protected = opened;
            })
            .start()?;
        for text in [
            "echo x > policy.toml",
            "echo x > conf/real/team.toml",
            "rm policy.toml",
            "mv conf other",
            "mv conf/real conf/x",
            "rm conf/link",
            "ln -sfn /tmp conf/link",
            "ln -sf /tmp/x policy.toml",
            "cp conf/other new && mv new shieling.toml",
            "echo readonly = false > shieling.toml",
        ] {
            place.refused(text)?;
        }
        place.works("echo x > conf/other && mkdir conf/new && cat policy.toml")?;
        // An editor of the user's replaces it; from the next command on the new one is kept.
        place.host("echo y > conf/n && mv conf/n conf/real/team.toml")?;
        place.works("true")?;
        place.refused("echo x > policy.toml")?;
        let text = fs::read_to_string(place.work().join("policy.toml"))?;
        check(text == "y\n", || format!("ESCAPED: the policy is `{text}`"))?;
    }
    Ok(())
}

fn names_left(place: &std::path::Path) -> Vec<String> {
    [".vscode", ".claude", ".cursor", ".git/hooks"]
        .into_iter()
        .filter(|name| place.join(name).symlink_metadata().is_ok())
        .map(str::to_owned)
        .collect()
}

fn host_killed(field: &Field) -> Checked {
    let making = field.place().host("git init -q . && rm -rf .git/hooks")?;
    let work = making.work();
    // This program once more, as a host that can be killed.
    let mut host = Command::new("/proc/self/exe")
        .arg(super::support::suite::HOLD)
        .arg(&work)
        .arg("echo x > /tmp/x; sleep 100 & sleep 100")
        .stdout(Stdio::piped())
        .spawn()?;
    let mut line = String::new();
    let said = std::io::BufReader::new(host.stdout.take().expect("piped")).read_line(&mut line);
    let kept = names_left(&work);
    host.kill()?;
    host.wait()?;
    said?;
    field.attempted();
    check(line.trim() == "ready" && kept.is_empty(), || {
        format!("`{line}`, {kept:?} are there")
    })?;
    let left = names_left(&work);
    check(left.is_empty(), || format!("{left:?} are left in the user's workspace"))?;
    field.worked();
    Ok(())
}

fn opened(field: &Field) -> Checked {
    let place = field
        .place()
        .host(REPOSITORY)?
        .with(|restrictions| restrictions.open_protected = true)
        .start()?;
    place.works(
        "git config x.y z && echo x > .git/hooks/pre-commit && mkdir .vscode && mv .git .git2 && mv .git2 .git",
    )?;
    place.refused(r#"echo x > "$OUT/canary""#).map(drop)
}

fn appeared(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    for name in ["config.worktree", "commondir"] {
        is_held(&place, &format!("echo ../x > .git/{name}"), &format!(".git/{name}"))?;
    }
    // While two overlap: the second's look before it starts is no first sight.
    let running = Background::start(
        field,
        &place,
        "printf '[core]\\n\\tfsmonitor = x\\n' > .git/config.worktree; echo ../x > .git/commondir; touch made; sleep 100",
    )?;
    wait_for(&place.work().join("made"))?;
    place.works("true")?;
    for name in ["config.worktree", "commondir"] {
        check(!place.work().join(".git").join(name).exists(), || {
            format!("ESCAPED: .git/{name} is there")
        })?;
    }
    running.drop_it();
    place.works("git log --oneline").map(drop)
}

fn covers(field: &Field) -> Checked {
    let place = field.place().host(REPOSITORY)?.start()?;
    all_refused(
        &place,
        ".git/hooks .git/config",
        &[
            "umount .git/config",
            "umount -l .git/hooks",
            "umount .git",
            "mount -o remount,rw .git/config",
            "mount --bind a .git/config",
            "unshare -Urm sh -c 'umount .git/config; echo x >> .git/config'",
            "unshare -Urm sh -c 'mount -o remount,rw,bind .git/config && echo x >> .git/config'",
        ],
    )?;
    place.works("git status --short").map(drop)
}
