//! What must work, by table.

use super::Row;

pub(super) const COMPILED: &[Row] = &[
    (
        "C",
        &["gcc"],
        "printf '#include <stdio.h>\\nint main(void){puts(\"c\");}' > a.c; gcc -O2 -Wall a.c -o a; [ $(./a) = c ]",
    ),
    (
        "C++",
        &["g++"],
        "printf '#include <iostream>\\n#include <vector>\\n#include <thread>\\nint main(){std::vector<int> v{1,2};int s=0;std::thread t([&]{for(int i:v)s+=i;});t.join();std::cout<<s;}' > a.cc; g++ -pthread a.cc -o a; [ $(./a) = 3 ]",
    ),
    (
        "an exception is thrown",
        &["g++"],
        "printf '#include <stdexcept>\\nint main(){try{throw std::runtime_error(\"x\");}catch(std::exception&){return 0;}return 1;}' > a.cc; g++ -g a.cc -o a; ./a",
    ),
    (
        "a library",
        &["gcc"],
        "echo 'int f(void){return 4;}' > f.c; gcc -shared -fPIC f.c -o libf.so; echo 'int f(void);int main(void){return f()-4;}' > m.c; gcc m.c -L. -lf -o m; LD_LIBRARY_PATH=. ./m",
    ),
    (
        "make",
        &["make", "gcc"],
        "printf 'all: a b\\n%%: %%.c\\n\\tgcc $< -o $@\\n' > Makefile; echo 'int main(void){return 0;}' | tee a.c > b.c; make -j4 -s; ./a; ./b",
    ),
    (
        "a core is not dumped",
        &["gcc"],
        "echo 'int main(void){__builtin_trap();}' > a.c; gcc a.c -o a; ./a 2> /dev/null && exit 1; [ ! -e core ]",
    ),
    ("strace", &["strace"], "strace -f -o t true; grep -q exit_group t"),
    (
        "gdb",
        &["gdb", "gcc"],
        "echo 'int main(void){return 0;}' > a.c; gcc -g a.c -o a; gdb -nx -q -batch -ex 'break main' -ex run -ex 'info line' -ex cont ./a > out 2>&1; grep -q 'exited normally' out",
    ),
];

pub(super) const PYTHON: &[Row] = &[
    (
        "modules",
        &["python3"],
        "python3 -c 'import json, sqlite3, ssl, ctypes, hashlib, zlib, decimal, uuid; assert json.loads(json.dumps({\"a\": 1}))'",
    ),
    (
        "a virtual environment",
        &["python3"],
        "python3 -m venv --without-pip v; v/bin/python -c 'import sys; assert sys.prefix != sys.base_prefix'",
    ),
    (
        "sqlite on disk",
        &["python3"],
        "python3 -c 'import sqlite3; c = sqlite3.connect(\"d.db\"); c.execute(\"pragma journal_mode=wal\"); c.execute(\"create table t(a)\"); c.executemany(\"insert into t values(?)\", [(i,) for i in range(1000)]); c.commit(); assert c.execute(\"select count(*) from t\").fetchone() == (1000,)'",
    ),
    (
        "a pool of processes",
        &["python3"],
        "python3 -c 'import multiprocessing as m\nwith m.Pool(3) as p: assert p.map(abs, [-1, -2, -3]) == [1, 2, 3]'",
    ),
    (
        "a pool by spawn",
        &["python3"],
        "echo 'import multiprocessing as m\nif __name__ == \"__main__\":\n with m.get_context(\"spawn\").Pool(2) as p: assert p.map(abs, [-1]) == [1]' > s.py; python3 s.py",
    ),
    (
        "shared memory, semaphores and queues",
        &["python3"],
        "python3 -c '\nimport multiprocessing as m\nfrom multiprocessing import shared_memory\ns = shared_memory.SharedMemory(create=True, size=1 << 20); s.buf[0] = 7\ndef f(name, q, l):\n o = shared_memory.SharedMemory(name)\n with l: q.put(o.buf[0])\n o.close()\nq, l = m.Queue(), m.Lock()\np = m.Process(target=f, args=(s.name, q, l)); p.start(); assert q.get() == 7; p.join(); s.close(); s.unlink()'",
    ),
    (
        "threads",
        &["python3"],
        "python3 -c 'import threading as t; r = []; ts = [t.Thread(target=r.append, args=(i,)) for i in range(50)]; [x.start() for x in ts]; [x.join() for x in ts]; assert len(r) == 50'",
    ),
    (
        "asyncio with children",
        &["python3"],
        "python3 -c '\nimport asyncio\nasync def one():\n p = await asyncio.create_subprocess_exec(\"echo\", \"x\", stdout=-1); out, _ = await p.communicate(); assert out == b\"x\\n\"\nasync def main(): await asyncio.gather(*(one() for _ in range(10)), asyncio.sleep(0.01))\nasyncio.run(main())'",
    ),
    (
        "an own server and client by a socket file",
        &["python3"],
        "python3 -c '\nimport asyncio\nasync def main():\n async def serve(r, w): w.write(await r.read(1)); w.close()\n s = await asyncio.start_unix_server(serve, \"s\")\n r, w = await asyncio.open_unix_connection(\"s\"); w.write(b\"x\"); w.write_eof(); assert await r.read() == b\"x\"; s.close()\nasyncio.run(main())'",
    ),
    (
        "subprocess, tempfile, socketpair",
        &["python3"],
        "python3 -c 'import subprocess, tempfile, socket; assert subprocess.check_output(\"echo $0\", shell=True); f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); d = tempfile.mkdtemp(); a, b = socket.socketpair(); a.send(b\"x\"); assert b.recv(1) == b\"x\"'",
    ),
    (
        "inotify",
        &["python3"],
        "python3 -c 'import ctypes, os; l = ctypes.CDLL(None); f = l.inotify_init1(0); assert l.inotify_add_watch(f, b\".\", 256) > 0; open(\"new\", \"w\"); assert b\"new\" in os.read(f, 4096)'",
    ),
    (
        "mmap and sparse files",
        &["python3"],
        "python3 -c 'import mmap, os; f = open(\"m\", \"w+b\"); f.truncate(1 << 30); m = mmap.mmap(f.fileno(), 0); m[1 << 29] = 7; m.flush(); assert os.stat(\"m\").st_blocks < 100'",
    ),
    (
        "a terminal",
        &["python3"],
        "python3 -c 'import pty, os; assert pty.spawn([\"tty\"]) == 0' > out; grep -q /dev/pts/ out",
    ),
    (
        "signals and timers",
        &["python3"],
        "python3 -c 'import signal, time; signal.signal(14, lambda *a: None); signal.setitimer(signal.ITIMER_REAL, 0.01); signal.pause(); time.sleep(0.01)'",
    ),
];

pub(super) const RUNTIMES: &[Row] = &[
    (
        "node",
        &["node"],
        "node -e 'const fs = require(\"fs\"); fs.writeFileSync(\"x\", \"1\"); fs.watch(\".\").close(); require(\"child_process\").execSync(\"cat x\")'",
    ),
    (
        "node's threads",
        &["node"],
        "node -e 'const {Worker} = require(\"worker_threads\"); new Worker(\"require(\\\"worker_threads\\\").parentPort.postMessage(5)\", {eval: true}).on(\"message\", m => process.exit(m - 5))'",
    ),
    (
        "npm",
        &["npm"],
        "npm --version; npm init -y > /dev/null; [ -s package.json ]; npm run env > /dev/null",
    ),
    (
        "java",
        &["java", "javac"],
        "echo 'public class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println(4)); t.start(); t.join(); } }' > A.java; javac A.java; [ $(java A) = 4 ]",
    ),
    (
        "perl",
        &["perl"],
        "perl -MPOSIX -MFile::Temp=tempfile -e 'my ($f) = tempfile(); print $f \"x\"; my $p = fork; exit 3 if !$p; waitpid $p, 0; exit(($? >> 8) - 3)'",
    ),
];

pub(super) const GIT: &[Row] = &[
    (
        "a repository",
        &["git"],
        "git init -q -b main; echo 1 > a; git add .; git commit -qm one; git log --oneline | grep -q one; [ -z \"$(git status --porcelain)\" ]; git fsck --strict",
    ),
    (
        "diff and stash",
        &["git"],
        "git init -q -b main; echo 1 > a; git add .; git commit -qm one; echo 2 > a; git diff | grep -q '^+2'; git stash -q; [ $(cat a) = 1 ]; git stash pop -q; [ $(cat a) = 2 ]",
    ),
    (
        "branch, rebase and merge",
        &["git"],
        "git init -q -b main; echo 1 > a; git add .; git commit -qm one; git switch -qc side; echo 2 > b; git add .; git commit -qm two; git switch -q main; echo 3 > c; git add .; git commit -qm three; git switch -q side; git rebase -q main; git switch -q main; git merge -q side; [ -e b ]; git tag v1; git describe --tags",
    ),
    (
        "worktree and clone",
        &["git"],
        "git init -q -b main r; cd r; echo 1 > a; git add .; git commit -qm one; git worktree add -q ../w; [ -e ../w/a ]; cd ..; git clone -q r c; [ -e c/a ]; cd c; git fetch -q; git bundle create -q b main",
    ),
    (
        "bisect, blame, grep, archive, gc",
        &["git"],
        "git init -q -b main; for i in 1 2 3; do echo $i > a; git add .; git commit -qm $i; done; git blame a; git grep -q 3; git archive main | tar t; git gc -q; git bisect start HEAD HEAD~2; git bisect run true; git bisect reset 2> /dev/null",
    ),
    (
        "no hooks are needed",
        &["git"],
        "git init -q -b main; rm -rf .git/hooks; echo 1 > a; git add .; git commit -qm one; git commit -q --amend --no-edit; git checkout -q -b x; git apply --allow-empty /dev/null",
    ),
];

pub(super) const SHELL: &[Row] = &[
    (
        "pipes and substitution",
        &[],
        "[ \"$(seq 100000 | sort -rn | head -1)\" = 100000 ]; diff <(seq 3) <(printf '1\\n2\\n3\\n'); seq 3 > >(cat > got); sleep 0.2; [ $(wc -l < got) = 3 ]",
    ),
    (
        "here documents and strings",
        &[],
        "[ \"$(cat <<< x)\" = x ]; cat > f <<'END'\n$x\nEND\n[ \"$(cat f)\" = '$x' ]",
    ),
    (
        "jobs",
        &[],
        "set -m; sleep 0.1 & sleep 5 & kill %2; wait %1; jobs > /dev/null; fg %1 2> /dev/null || true",
    ),
    (
        "coprocesses",
        &[],
        "coproc cat; echo x >&${COPROC[1]}; read -u ${COPROC[0]} got; [ $got = x ]",
    ),
    (
        "traps",
        &[],
        "got=; trap 'got=1' USR1; kill -USR1 $$; [ $got = 1 ]; (trap 'echo out > trapped' EXIT; exit 3) || [ $? = 3 ]; [ $(cat trapped) = out ]",
    ),
    (
        "environment and umask",
        &["stat"],
        "umask 077; touch private; [ $(stat -c %a private) = 600 ]; A=b env | grep -q ^A=b; [ -n \"$HOME\" ] && cd ~ && touch in-home; env -i /bin/true",
    ),
    (
        "timeouts",
        &["timeout"],
        "timeout 0.1 sleep 5 && exit 1; [ $? = 124 ]; timeout -k 0.1 0.1 bash -c 'trap \"\" TERM; sleep 2' && exit 1; true",
    ),
    (
        "a deep tree of processes",
        &[],
        "f() { [ $1 = 0 ] || bash -c \"$(declare -f f); f $(($1 - 1))\"; }; f 30",
    ),
    (
        "files given by numbers",
        &[],
        "exec 7> f; echo x >&7; exec 7>&-; [ $(cat f) = x ]; exec 8< f; read -u 8 got; [ $got = x ]; echo y | cat /dev/stdin /dev/fd/0; echo z > /dev/stdout; echo e > /dev/stderr",
    ),
    (
        "standard input is at its end",
        &[],
        "[ -z \"$(cat)\" ]; cat /dev/stdin; cat /proc/self/fd/0; read -r x && exit 1; [ ! -t 0 ]",
    ),
    (
        "the clock and chance",
        &[],
        "a=$(date +%s); sleep 0.01; [ $(date +%s) -ge $a ]; [ $RANDOM$RANDOM$RANDOM != $RANDOM$RANDOM$RANDOM ]; [ $SECONDS -ge 0 ]; time true",
    ),
    (
        "other shells",
        &["dash"],
        "dash -c 'x=1; [ $x = 1 ]'; sh -c 'kill -l > /dev/null'; printf '#!/bin/sh\\nexit 0' > s; chmod +x s; ./s; printf '#!/usr/bin/env bash\\nexit 0' > t; chmod +x t; ./t",
    ),
    (
        "a hundred jobs at once",
        &[],
        "for i in $(seq 100); do (echo $i > out.$i) & done; wait; [ $(ls out.* | wc -l) = 100 ]",
    ),
];

pub(super) const FILES: &[Row] = &[
    (
        "links",
        &[],
        "echo x > a; ln a hard; ln -s a soft; ln -s /etc/passwd far; [ $(cat soft) = x ]; [ $(stat -c %h a) = 2 ]; cat far > /dev/null; [ $(readlink -f soft) = $PWD/a ]",
    ),
    (
        "moves across directories",
        &[],
        "mkdir -p a/b c; echo x > a/b/f; mv a/b/f c/g; mv a/b c/; mv c d; [ $(cat d/g) = x ]; ln d/g d/b/g; cp -a d e; diff -r d e",
    ),
    (
        "moves across file systems",
        &[],
        "echo x > f; mv f /tmp/f.$$; mv /tmp/f.$$ g; cp g /dev/shm/; cp g ~/g; [ $(cat g) = x ]",
    ),
    (
        "modes and times",
        &[],
        "touch f; chmod 640 f; [ $(stat -c %a f) = 640 ]; chmod +t f; touch -d 2001-01-01 f; [ $(stat -c %Y f) -lt 1000000000 ]; chown $(id -u):$(id -g) f; mkdir -m 700 d; truncate -s 1G sparse; [ $(du -k sparse | cut -f1) -lt 100 ]",
    ),
    (
        "odd names",
        &[],
        "touch -- $'new\\nline' '-dash' 'sp ace' 'ünï' '日本' \"$(printf 'x%.0s' $(seq 250))\" $'\\xff'; [ $(find . -type f -print0 | tr -dc '\\0' | wc -c) = 7 ]; rm -- -dash $'new\\nline'",
    ),
    (
        "long paths",
        &[],
        "p=.; for i in $(seq 60); do p=$p/directory-with-a-name-$i; done; mkdir -p $p; echo x > $p/f; [ $(cat $p/f) = x ]; rm -r ./directory*",
    ),
    (
        "locks",
        &["flock"],
        "flock f true; (flock -n 9; flock -n f true && exit 1; true) 9> f",
    ),
    ("fifos", &[], "mkfifo p; echo x > p & read got < p; [ $got = x ]"),
    (
        "attributes",
        &["python3"],
        "touch f; python3 -c 'import os; os.setxattr(\"f\", \"user.k\", b\"v\"); assert os.getxattr(\"f\", \"user.k\") == b\"v\"'",
    ),
    (
        "programs in tmp and home",
        &[],
        "for d in . /tmp ~ /var/tmp; do cp /bin/true $d/own-true; $d/own-true; rm $d/own-true; done",
    ),
    (
        "temporary files",
        &["mktemp"],
        "f=$(mktemp); d=$(mktemp -d); echo x > $f; mv $f $d/; rm -r $d; [ $(stat -c %a /tmp) = 1777 ]",
    ),
];

pub(super) const TOOLS: &[Row] = &[
    (
        "sed and find",
        &["sed"],
        "echo a > f; sed -i s/a/b/ f; [ $(cat f) = b ]; find . -name f -exec cp {} g \\;; find . -type f | xargs -P 4 -n 1 cat | wc -l | grep -qx 2; find . -name g -delete",
    ),
    (
        "archives",
        &["tar", "gzip"],
        "mkdir d; seq 1000 > d/f; ln -s f d/l; tar czf a.tgz d; mkdir x; tar xzf a.tgz -C x; diff -r d x/d; gzip -k d/f; gunzip -c d/f.gz | cmp - d/f; tar c d | tar t",
    ),
    (
        "a large sort",
        &["sort"],
        "seq 500000 | shuf > f; sort -n -S 1M -T . f -o g; [ $(tail -1 g) = 500000 ]; sort f --parallel=2 | uniq -d | wc -l | grep -qx 0",
    ),
    (
        "awk and jq",
        &["awk", "jq"],
        "[ $(seq 10 | awk '{s+=$1} END {print s}') = 55 ]; [ $(echo '{\"a\":[1,2]}' | jq '.a|add') = 3 ]",
    ),
    (
        "digests and encodings",
        &["sha256sum"],
        "echo x | sha256sum | grep -q ^73cb; echo x | base64 | base64 -d; head -c 99 /bin/true | od -c; echo x | md5sum; cksum /bin/true;head -c 99 /bin/true | base32",
    ),
    (
        "comparison and patch",
        &["patch"],
        "echo 1 > a; echo 2 > b; diff -u a b > p || true; patch a < p; cmp a b; comm -12 a b; paste a b; join a b",
    ),
    (
        "curl without a network",
        &["curl"],
        "echo x > f; [ $(curl -s file://$PWD/f) = x ]; curl -s http://127.0.0.1:1/ && exit 1; [ $? = 7 ]",
    ),
    (
        "openssl",
        &["openssl"],
        "openssl rand -hex 8; openssl req -x509 -newkey rsa:2048 -nodes -keyout k -out c -days 1 -subj /CN=x 2> /dev/null; openssl x509 -in c -noout -subject",
    ),
];

pub(super) const DEVICES: &[Row] = &[
    (
        "null, zero, full, random",
        &[],
        "echo x > /dev/null; [ -z \"$(cat /dev/null)\" ]; [ $(head -c 9 /dev/zero | wc -c) = 9 ]; [ $(head -c 9 /dev/urandom | wc -c) = 9 ]; [ $(head -c 1 /dev/random | wc -c) = 1 ]; echo x > /dev/full 2> /dev/null && exit 1; exec 9<> /dev/null; dd if=/dev/zero of=/dev/null bs=1M count=10 2> /dev/null",
    ),
    (
        "links in dev",
        &[],
        "ls -l /dev/fd/ > /dev/null; [ -c /dev/null ]; [ -d /dev/pts ]; [ -d /dev/shm ]; [ -e /dev/ptmx ]; echo x > /dev/shm/f; rm /dev/shm/f",
    ),
    (
        "script",
        &["script"],
        "script -qec 'tty; stty size; echo done' typescript < /dev/null > out; grep -q done out; grep -q /dev/pts out",
    ),
    (
        "terminals of one's own",
        &["python3"],
        "python3 -c '\nimport os, pty, fcntl, termios, struct\npid, fd = pty.fork()\nif pid == 0: os.execvp(\"bash\", [\"bash\", \"-c\", \"read x; stty size; echo got $x; tty; echo to > /dev/tty\"])\nfcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack(\"HHHH\", 33, 44, 0, 0))\nos.write(fd, b\"hello\\n\")\nout = b\"\"\ntry:\n while True: out += os.read(fd, 1000)\nexcept OSError: pass\nassert b\"got hello\" in out and b\"33 44\" in out and b\"/dev/pts/\" in out and b\"to\" in out, out'",
    ),
    (
        "tmux",
        &["tmux"],
        "tmux -f /dev/null -S ./t new -d -s x 'echo in tmux > out; sleep 5'; for i in $(seq 50); do [ -s out ] && break; sleep 0.05; done; [ -s out ]; tmux -S ./t kill-server",
    ),
    (
        "job control in a terminal",
        &["script"],
        "script -qec 'bash -i -c \"sleep 0.1 & jobs; wait; echo end\"' /dev/null < /dev/null > out 2>&1; grep -q end out",
    ),
];

pub(super) const MACHINE: &[Row] = &[
    (
        "processes",
        &["ps", "top"],
        "ps aux | grep -q shieling; ps -o pid,ppid,comm,etime,rss -p $$; top -bn1 | grep -q bash; pgrep bash; pidof bash; kill -0 $$",
    ),
    (
        "memory and disks",
        &["free", "df"],
        "free -m | grep -q Mem; df -h . /tmp / | grep -q /; du -s .; [ $(nproc) -ge 1 ]; grep -q MemTotal /proc/meminfo; grep -q processor /proc/cpuinfo; ls /sys/devices/system/cpu/ > /dev/null",
    ),
    (
        "time",
        &["uptime"],
        "uptime; date -u; date -d tomorrow > /dev/null; TZ=America/New_York date +%Z | grep -q E; cat /proc/uptime /proc/loadavg > /dev/null",
    ),
    (
        "the user",
        &["id"],
        "id; whoami; [ $(id -un) = $(whoami) ]; groups; logname 2> /dev/null || true; getent passwd $(id -u) | grep -q \"$HOME\"; [ -w ~ ]; getent group; [ -O . ]",
    ),
    (
        "the host",
        &["hostname", "uname"],
        "[ $(hostname) = shieling ]; uname -a; getent hosts localhost; [ -r /etc/os-release ]; locale > /dev/null; getconf PAGESIZE; arch; ulimit -a > /dev/null",
    ),
    (
        "a login shell",
        &[],
        "bash -lc true; bash -ic true < /dev/null 2> /dev/null; sh -lc 'echo $PATH' | grep -q bin",
    ),
    (
        "libraries",
        &["ldd"],
        "ldd /bin/ls | grep -q libc; ldconfig -p | head -1; [ -r /etc/ld.so.cache ]",
    ),
];
