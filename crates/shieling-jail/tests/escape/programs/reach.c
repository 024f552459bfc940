/* Tries to reach into a process in every way there is, and prints what each answered, one a line:
 * NAME ANSWER. The process is given by its number; `child` is one that is made for it, of which all
 * must succeed. Signals that would end a process are sent last, since a child obeys them.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pid_t target;
static char word[16] = "word";

static void say(const char *name, int error)
{
	printf("%s %s\n", name, error ? strerrorname_np(error) : "OK");
	fflush(stdout);
}

#define TRY(name, expression) (errno = 0, say(name, (long)(expression) == -1 ? errno : 0))

static int file(const char *name, int flags)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", target, name);
	int fd = open(path, flags | O_CLOEXEC);
	char byte;
	/* Of some files the opening tells nothing yet. */
	if (fd >= 0 && flags & O_DIRECTORY) {
		char entries[1024];
		long got = syscall(SYS_getdents64, fd, entries, sizeof entries);
		/* `.` and `..` alone are nothing. */
		errno = got < 0 ? errno : ENOENT;
		return got > 2 * 24 ? 0 : -1;
	}
	if (fd >= 0 && (flags & O_ACCMODE) == O_RDONLY && !(flags & (O_DIRECTORY | O_PATH)) && strcmp(name, "mem"))
		return strcmp(name, "pagemap") && read(fd, &byte, 1) < 0 ? -1 : 0;
	return fd < 0 ? -1 : 0;
}

static int link_of(const char *name)
{
	char path[64], to[256];
	snprintf(path, sizeof path, "/proc/%d/%s", target, name);
	return readlink(path, to, sizeof to) < 0 ? -1 : 0;
}

/* The kernel sends a signal on behalf of whoever owns a descriptor. */
static int owned(int signal)
{
	int ends[2];
	if (pipe(ends) || fcntl(ends[0], F_SETSIG, signal) || fcntl(ends[0], F_SETOWN, target) ||
	    fcntl(ends[0], F_SETFL, O_ASYNC) || write(ends[1], "x", 1) != 1)
		return -1;
	return 0;
}

static int traced(int seize)
{
	if (ptrace(seize ? PTRACE_SEIZE : PTRACE_ATTACH, target, NULL, NULL))
		return -1;
	if (seize && ptrace(PTRACE_INTERRUPT, target, NULL, NULL))
		return -1;
	int status;
	waitpid(target, &status, __WALL);
	/* As a debugger does: look at a word, change it, step. */
	long seen = ptrace(PTRACE_PEEKDATA, target, word, NULL);
	if (ptrace(PTRACE_POKEDATA, target, word, seen) || ptrace(PTRACE_SINGLESTEP, target, NULL, NULL))
		return -1;
	waitpid(target, &status, __WALL);
	return ptrace(PTRACE_DETACH, target, NULL, NULL);
}

static void memory(void)
{
	char here[16];
	struct iovec local = {here, sizeof here}, remote = {word, sizeof word};
	TRY("process_vm_readv", process_vm_readv(target, &local, 1, &remote, 1, 0));
	TRY("process_vm_writev", process_vm_writev(target, &local, 1, &remote, 1, 0));
	TRY("ptrace_attach", traced(0));
	TRY("ptrace_seize", traced(1));
	TRY("mem", file("mem", O_RDONLY));
	TRY("environ", file("environ", O_RDONLY));
	TRY("auxv", file("auxv", O_RDONLY));
	TRY("maps", file("maps", O_RDONLY));
	TRY("smaps", file("smaps", O_RDONLY));
	TRY("pagemap", file("pagemap", O_RDONLY));
	TRY("map_files", file("map_files", O_RDONLY | O_DIRECTORY));
}

static void descriptors(void)
{
	int pinned = syscall(SYS_pidfd_open, target, 0);
	TRY("pidfd_getfd", syscall(SYS_pidfd_getfd, pinned, 0, 0));
	TRY("kcmp", syscall(SYS_kcmp, getpid(), target, 2 /* files */, 0, 0));
	/* Which numbers are open, the same user may list; not what is behind one. */
	TRY("fd_0", link_of("fd/0"));
	TRY("fd_0_opened", file("fd/0", O_RDONLY));
	TRY("fdinfo", file("fdinfo", O_RDONLY | O_DIRECTORY));
	TRY("root", file("root/etc", O_PATH));
	TRY("root_link", link_of("root"));
	TRY("cwd", file("cwd/.", O_PATH));
	TRY("cwd_link", link_of("cwd"));
	TRY("exe", file("exe", O_PATH));
	TRY("exe_link", link_of("exe"));
	TRY("ns_mnt", file("ns/mnt", O_PATH));
	TRY("ns_mnt_link", link_of("ns/mnt"));
	TRY("syscall", file("syscall", O_RDONLY));
	TRY("io", file("io", O_RDONLY));
	TRY("robust_list", ({ void *head; size_t size; syscall(SYS_get_robust_list, target, &head, &size); }));
}

static void signals(void)
{
	int pinned = syscall(SYS_pidfd_open, target, 0);
	TRY("kill_0", kill(target, 0));
	TRY("kill_CONT", kill(target, SIGCONT));
	TRY("tgkill_0", syscall(SYS_tgkill, target, target, 0));
	TRY("sigqueue", sigqueue(target, SIGURG, (union sigval){0}));
	TRY("pidfd_send_signal", syscall(SYS_pidfd_send_signal, pinned, 0, NULL, 0));
	TRY("setpgid", setpgid(target, getpgrp()));
	TRY("kill_STOP", kill(target, SIGSTOP));
	TRY("kill_CONT_again", kill(target, SIGCONT));
	/* These say nothing if they are refused. Whether the target lives is seen by whoever ran this. */
	owned(SIGKILL);
	owned(SIGSTOP);
	TRY("kill_TERM", kill(target, SIGTERM));
	TRY("kill_KILL", kill(target, SIGKILL));
}

int main(int argc, char **argv)
{
	if (argc < 2)
		return 2;
	int own = !strcmp(argv[1], "child");
	if (own) {
		target = fork();
		if (target == 0) {
			signal(SIGTERM, SIG_IGN);
			signal(SIGURG, SIG_IGN);
			/* Not `pause`, which would never come to the end of a step. */
			for (;;)
				usleep(1000);
		}
	} else {
		target = atoi(argv[1]);
	}
	memory();
	descriptors();
	signals();
	if (own) {
		int status;
		waitpid(target, &status, 0);
		say("child_died_of_KILL", WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL ? 0 : EBUSY);
	}
	return 0;
}
