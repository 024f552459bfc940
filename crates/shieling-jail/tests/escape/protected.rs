//! What later commands of the user would run code from: it stays as it was, and its neighbours work.

use std::fs;
use std::io::BufRead as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use super::support::{Case, Checked, Field, Place, case, check, wrong};

pub(crate) const CASES: &[Case] = &[
    case("git's hooks and settings that are there cannot be changed", git_files),
    case("git's hooks that are not there cannot be made", absent_hooks),
    case("no git command changes what git runs code from", git_commands),
    case("git's everyday commands work beside what is protected", git_works),
    case("git's directory cannot be moved away and made anew", git_moved),
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
    case("a protected name that is a link is kept, and what it leads to", links),
    case("settings of editors and agents that are there cannot be changed", tools),
    case(
        "settings of editors and agents that are not there cannot be made",
        reserved,
    ),
    case("shieling's own files cannot be changed", own_files),
    case("start-up files of a home that is the workspace are protected", home),
    case("names that were kept taken are free after the end", released),
    case(
        "of two sandboxes the last to end frees the names that were kept taken",
        released_by_the_last,
    ),
    case(
        "names stay taken while other sandboxes come and go, and none is left",
        coming_and_going,
    ),
    case("an empty directory of the user's stays where it is", empty_of_the_user),
    case(
        "a command that locks such names keeps no other sandbox from starting",
        locked_by_a_command,
    ),
    case(
        "a name that a killed keeper has left taken is free after the next end",
        left_by_a_killed_keeper,
    ),
    case(
        "names that were kept taken are free after the host was killed",
        released_after_kill,
    ),
    case("protected paths can be opened by whoever asks for it", opened),
    case(
        "what git runs code from and is made by one command is protected from the next",
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

fn absent_hooks(field: &Field) -> Checked {
    let place = field
        .place()
        .host(&format!("{REPOSITORY} && rm -rf .git/hooks"))?
        .start()?;
    for text in [
        "mkdir .git/hooks",
        "echo x > .git/hooks/pre-commit",
        "rmdir .git/hooks",
        "mv a .git/hooks",
        "ln -s /tmp .git/hooks",
        "git init -q --template=/usr/share/git-core/templates . && test -e .git/hooks/pre-commit.sample",
    ] {
        place.refused(text)?;
    }
    place.works("git commit -q --allow-empty -m x")?;
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
        "git branch -m topic renamed; git notes add -m note",
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
            "mv .git .git2",
            "mv .git /tmp/x",
            "\"$TOOLS/files\" exchange .git evil",
            "\"$TOOLS/files\" rename evil .git",
            "rm -rf .git && test ! -e .git",
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
            "mv one/.git one/x",
            "mv one uno",
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

fn reserved(field: &Field) -> Checked {
    let place = field.place().start()?;
    for name in [".vscode", ".claude", ".cursor"] {
        place.refused(&format!("echo x > {name}/settings.json"))?;
        place.refused(&format!("rmdir {name} && mkdir {name} && echo x > {name}/x"))?;
        place.refused(&format!("mv {name} x"))?;
        place.refused(&format!("mkdir own && \"$TOOLS/files\" exchange own {name}"))?;
        place.attempt("rm -rf own; true")?;
    }
    place.works("mkdir .other && echo x > .other/x").map(drop)
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
    ];
    let mut making = field.place();
    for name in names {
        making = making.file(name, "the user's");
    }
    let work = making.work();
    let place = making.with(|restrictions| restrictions.home = Some(work)).start()?;
    for name in names {
        place.refused(&format!("echo x >> {name}"))?;
        place.refused(&format!("rm {name}"))?;
        let text = fs::read_to_string(place.work().join(name))?;
        check(text == "the user's", || format!("ESCAPED: {name} is `{text}`"))?;
    }
    place.refused("mv .config .c")?;
    place.refused("mv .local .l")?;
    place
        .works("mkdir -p .config/other && echo x > .config/other/x && echo x > notes")
        .map(drop)
}

fn names_left(place: &std::path::Path) -> Vec<String> {
    [".vscode", ".claude", ".cursor", ".git/hooks"]
        .into_iter()
        .filter(|name| place.join(name).symlink_metadata().is_ok())
        .map(str::to_owned)
        .collect()
}

fn check_released(place: &Place) -> Checked {
    let left = names_left(&place.work());
    check(left.is_empty(), || format!("{left:?} are left in the user's workspace"))
}

fn released(field: &Field) -> Checked {
    let place = field.place().host("git init -q . && rm -rf .git/hooks")?.start()?;
    place.works("true")?;
    let kept = names_left(&place.work());
    check(kept.len() == 4, || format!("only {kept:?} are kept"))?;
    place.close();
    field.attempted();
    check_released(&place)
}

fn released_after_kill(field: &Field) -> Checked {
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
    check(line.trim() == "ready" && kept.len() == 4, || {
        format!("`{line}`, {kept:?} kept")
    })?;
    let until = Instant::now() + Duration::from_secs(10);
    while !names_left(&work).is_empty() {
        if Instant::now() > until {
            return wrong(format!("{:?} are left in the user's workspace", names_left(&work)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
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
    place.attempt("printf '[core]\\n\\tfsmonitor = x\\n' > .git/config.worktree")?;
    place.refused("echo more >> .git/config.worktree")?;
    place.refused("mv .git/config.worktree x")?;
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

fn released_by_the_last(field: &Field) -> Checked {
    for first_goes in [true, false] {
        let first = field.place().start()?;
        first.works("true")?;
        let second = Place::beside(&first)?;
        second.works("true")?;
        let (goes, stays) = if first_goes {
            (&first, &second)
        } else {
            (&second, &first)
        };
        goes.close();
        for name in [".vscode", ".claude", ".cursor"] {
            stays.refused(&format!("mkdir -p {name} && echo x > {name}/settings.json"))?;
        }
        stays.close();
        field.attempted();
        check_released(&first)?;
    }
    Ok(())
}

/// How often sandboxes start and end beside others, in each of two threads.
const COMINGS: usize = 60;

fn coming_and_going(field: &Field) -> Checked {
    // Beside one that stays, and with none of them the first or the last for long.
    for stays in [true, false] {
        let first = field.place().start()?;
        if stays {
            first.works("true")?;
        }
        let come_and_go = || -> Checked {
            for _ in 0..COMINGS {
                let beside = Place::beside(&first)?;
                beside.refused("mkdir -p .cursor && echo x > .cursor/x")?;
                beside.close();
            }
            Ok(())
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(come_and_go);
            come_and_go()?;
            other.join().unwrap_or_else(|_| panic!("the other thread panicked"))
        })?;
        first.close();
        check_released(&first)?;
    }
    Ok(())
}

fn locked_by_a_command(field: &Field) -> Checked {
    // Repositories whose hooks look like a keeper's, and the whole lock on each.
    let first = field.place().start()?;
    let lock = "for n in 1 2 3 4 5; do mkdir -p r$n/.git && mkdir -m 1755 r$n/.git/hooks || exit 1; \
                flock -x r$n/.git/hooks sleep 60 & done; sleep 1; echo locked; wait";
    std::thread::scope(|scope| {
        let locking = scope.spawn(|| first.attempt(lock).map(drop));
        let begun = Instant::now();
        while !first.work().join("r5/.git/hooks").exists() && begun.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(20));
        }
        std::thread::sleep(Duration::from_millis(500));
        let second = Place::beside(&first)?;
        let started = second
            .works("true")
            .and_then(|_| second.refused("echo x > r1/.git/hooks/pre-commit").map(drop));
        second.close();
        first.close();
        // It ended with its sandbox.
        let _ = locking.join();
        started
    })
}

fn left_by_a_killed_keeper(field: &Field) -> Checked {
    let place = field.place().host("mkdir -m 1755 .cursor")?.start()?;
    place.refused("echo x > .cursor/x")?;
    place.close();
    check_released(&place)
}

fn empty_of_the_user(field: &Field) -> Checked {
    let place = field.place().host("mkdir .cursor")?.start()?;
    place.refused("echo x > .cursor/x")?;
    let beside = Place::beside(&place)?;
    beside.refused("echo x > .cursor/x")?;
    place.close();
    beside.close();
    let left = names_left(&place.work());
    check(left == [".cursor"], || {
        format!("{left:?} are there, and the user had an empty .cursor")
    })
}
