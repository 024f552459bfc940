use super::*;
use crate::settings;

fn held(text: &str) -> Option<String> {
    let (found, is_whole) = settings::read(text.as_bytes());
    assert!(is_whole && found.len() == 1, "one setting that git can read: {text}");
    holds(&found[0], &|path| !path.is_absolute() && !path.starts_with("../../.."))
}

#[test]
fn what_ordinary_work_sets_passes() {
    let lines = [
        "[user]email=a@b.c", "[user]name = A B", "[branch \"x\"]remote=origin", "[branch \"x.y\"]merge=refs/heads/x",
        "[branch \"x\"]rebase", "[branch]autoSetupMerge=always", "[branch \"a\"]vscode-merge-base=origin/main",
        "[remote \"origin\"]url=https://host/a/b.git", "[remote \"o\"]url=git@github.com:a/b.git",
        "[remote \"o\"]url=ssh://git@host:22/a", "[remote \"o\"]url=../other", "[remote \"o\"]url=/srv/git/x.git",
        "[remote \"o\"]url=file:///srv/x", "[remote \"o\"]fetch=+refs/heads/*:refs/remotes/o/*",
        "[core]bare=false", "[core]repositoryformatversion=0", "[core]fsmonitor=true", "[core]fsmonitor",
        "[core]hooksPath=/dev/null", "[core]pager=cat", "[core]editor=true", "[core]autocrlf=input",
        "[core]worktree=../../sub", "[core]excludesFile=.ignored", "[init]defaultBranch=main", "[color]ui=auto",
        "[color \"diff\"]meta=yellow", "[advice]detachedHead=false", "[pull]rebase=true", "[pull]ff=only",
        "[push]default=simple", "[push]autoSetupRemote=true", "[merge]conflictStyle=zdiff3", "[merge]ff=false",
        "[merge]tool=meld", "[diff]algorithm=histogram", "[diff \"x\"]xfuncname=y", "[rerere]enabled=true",
        "[rebase]autoStash=true", "[extensions]worktreeConfig=true", "[extensions]objectFormat=sha256",
        "[submodule \"lib\"]url=https://h/lib", "[submodule \"lib\"]active=true", "[submodule]recurse=true",
        "[submodule \"lib\"]update=rebase", "[alias]st=status -sb", "[alias]lg=log --oneline --graph --decorate --color",
        "[alias]co=checkout", "[commit]gpgsign=false", "[commit]verbose", "[gc]auto=0", "[pager]log=false", "[lfs]repositoryformatversion=0",
        "[filter \"lfs\"]process=git-lfs filter-process", "[filter \"lfs\"]required=true", "[protocol]version=2",
        "[protocol \"file\"]allow=always", "[url \"https://github.com/\"]insteadOf=gh:", "[fetch]prune=true",
        "[http]postBuffer=1", "[gpg]format=ssh", "[branch \"x\"]mergeoptions=--no-ff", "[log]date=iso",
        "[maintenance]auto=false", "[maintenance]strategy=incremental",
    ];
    for line in lines {
        assert_eq!(held(line), None, "{line}");
    }
}

#[test]
fn what_runs_code_or_is_not_known_is_held_back() {
    let lines = [
        "[core]fsmonitor=./x", "[CORE]FSMONITOR = \"sh -c x\"", "[core]hooksPath=.h", "[core]hooksPath=/dev/null/",
        "[core]sshCommand=x", "[core]pager=x", "[core]pager=cat x", "[core]editor=sh x", "[core]askPass=x",
        "[core]gitProxy=x", "[core]alternateRefsCommand=x", "[core]worktree=/home/u", "[core]worktree=../../../x",
        "[core]unheardof=1", "[sequence]editor=x", "[init]templateDir=x", "[branch \"x\"]remote=ext::sh -c x",
        "[branch \"x\"]mergeoptions=-s evil", "[remote \"o\"]url=ext::sh -c x", "[remote \"o\"]url=evil://x",
        "[remote \"o\"]url=-x", "[remote \"o\"]url=ssh://-oProxyCommand=x/y", "[remote \"o\"]url=u@-oProxyCommand=x:y",
        "[remote \"o\"]url=ssh://u@-x/y", "[remote \"o\"]pushurl=fd::7", "[remote \"o\"]uploadpack=x",
        "[remote \"o\"]receivepack=x", "[remote \"o\"]vcs=x", "[remote \"o\"]proxy=http://x", "[remote \"o\"]unheardof=x",
        "[url \"ext::sh -c x \"]insteadOf=https://", "[url \"evil::\"]pushInsteadOf=https://", "[submodule \"a\"]update=!x",
        "[submodule \"a\"]url=ext::x", "[alias]st=!sh x", "[alias]st=\" !x\"", "[alias]st=-c core.pager=x log",
        "[alias]a=grep -Ox y", "[alias]a=difftool -x y", "[alias]a=rebase --exec x", "[alias]a=rebase -x x",
        "[alias]a=submodule foreach x", "[alias]a=log \\\"-c", "[alias]a=fetch --upload-pack=x", "[alias]a=diff --output=/x",
        "[alias]a=merge -sx", "[pager]log=x", "[diff]external=x", "[diff \"d\"]command=x", "[diff \"d\"]textconv=x",
        "[diff]tool=./x", "[merge \"d\"]driver=x", "[mergetool \"t\"]cmd=x", "[difftool \"t\"]path=x",
        "[filter \"f\"]clean=x", "[filter \"f\"]smudge=x", "[filter \"f\"]process=x", "[filter \"f.g\"]clean=x",
        "[filter \"lfs\"]process=./git-lfs filter-process", "[pull]twohead=evil", "[gpg]program=x", "[gpg \"ssh\"]program=x",
        "[gpg \"ssh\"]defaultKeyCommand=x", "[credential]helper=x", "[credential \"https://h\"]helper=!x",
        "[include]path=x", "[includeIf \"gitdir:/\"]path=x", "[interactive]diffFilter=x", "[trailer \"t\"]command=x",
        "[trailer \"t\"]cmd=x", "[tar \"t\"]command=x", "[gc]recentObjectsHook=x", "[hook \"h\"]command=x",
        "[protocol \"ext\"]allow=always", "[protocol]allow=always", "[http]proxy=x", "[http]sslVerify=false",
        "[http]cookieFile=x", "[sendemail]sendmailCmd=x", "[browser \"b\"]cmd=x", "[man \"m\"]path=x", "[imap]tunnel=x",
        "[gitflow \"path\"]hooks=x", "[unheardof]x=1", "[safe]directory=*", "[uploadpack]packObjectsHook=x",
        "[lfs \"customtransfer.x\"]path=x", "[format]outputDirectory=/home/u", "[commit]template=/home/u/x",
    ];
    for line in lines {
        assert!(held(line).is_some(), "{line}");
    }
}
