/* Makes system calls and prints what each answered, one a line: KIND NAME ANSWER TELLS.
 *
 *   KIND    `refused`: the sandbox's filter must refuse it; `works`: it must succeed.
 *   ANSWER  `OK`, or the name of the error.
 *   TELLS   who gets another answer than EPERM without a filter: `anybody`, `root`, or `nobody` where
 *           the call is not to be made outside at all.
 *
 * It is given the name of a group of calls, and `outside` if it is run there: it then leaves out what
 * TELLS says. Every argument is one that can do no harm if the call gets through: null or dangling
 * pointers, closed descriptors, wrong magic numbers.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <linux/seccomp.h>
#include <linux/filter.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/shm.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#define BAD ((void *)1)
#define JUNK (1UL << 32)

enum tells { NOBODY, ROOT, ANYBODY };
static const char *const TELLS[] = {"nobody", "root", "anybody"};

static int outside;

static int skipped(enum tells tells)
{
	return outside && (tells == NOBODY || (tells == ROOT && geteuid() != 0));
}

static void say(const char *kind, const char *name, int error, enum tells tells)
{
	const char *answer = error ? strerrorname_np(error) : "OK";
	printf("%s %s %s %s\n", kind, name, answer ? answer : "?", TELLS[tells]);
	fflush(stdout);
}

/* The error of an expression that gives -1 if it fails. */
#define ERROR(expression) (errno = 0, (long)(expression) == -1 ? errno : 0)
#define REFUSED(tells, name, expression)                                                           \
	do                                                                                         \
		if (!skipped(tells))                                                               \
			say("refused", name, ERROR(expression), tells);                            \
	while (0)
#define CALL(tells, number, ...) REFUSED(tells, #number, syscall(SYS_##number, ##__VA_ARGS__))
#define WORKS(name, expression) say("works", name, ERROR(expression), ANYBODY)

/* In a process of its own, whose error comes back as its exit status. */
#define APART(expression)                                                                          \
	({                                                                                         \
		int status_ = 0;                                                                   \
		pid_t child_ = fork();                                                             \
		if (child_ == 0)                                                                   \
			_exit(ERROR(expression));                                                  \
		waitpid(child_, &status_, 0);                                                      \
		errno = WIFEXITED(status_) ? WEXITSTATUS(status_) : EINTR;                         \
		errno ? -1 : 0;                                                                    \
	})

static long copied(unsigned long flags)
{
	long child = syscall(SYS_clone, flags, 0, 0, 0, 0);
	if (child == 0)
		_exit(0);
	if (child > 0)
		waitpid(child, NULL, __WALL);
	return child;
}

static const struct {
	const char *name;
	unsigned long flag;
} SPACES[] = {
	{"NEWTIME", 0x80},	  {"NEWNS", 0x20000},	     {"NEWCGROUP", 0x2000000},
	{"NEWUTS", 0x4000000},	  {"NEWIPC", 0x8000000},     {"NEWUSER", 0x10000000},
	{"NEWPID", 0x20000000},	  {"NEWNET", 0x40000000},
};

static void namespaces(void)
{
	char name[64];
	for (unsigned i = 0; i < sizeof SPACES / sizeof *SPACES; i++) {
		unsigned long flag = SPACES[i].flag;
		/* Only a user namespace needs no capability; the bit of time is no flag of `clone`'s. */
		enum tells tells = flag == 0x10000000 ? ANYBODY : ROOT;
		snprintf(name, sizeof name, "clone_%s", SPACES[i].name);
		REFUSED(tells, name, copied(flag | SIGCHLD));
		snprintf(name, sizeof name, "unshare_%s", SPACES[i].name);
		REFUSED(tells, name, APART(syscall(SYS_unshare, flag)));
		snprintf(name, sizeof name, "clone_NEWUSER_%s", SPACES[i].name);
		REFUSED(ANYBODY, name, copied(flag | 0x10000000 | SIGCHLD));
	}
	REFUSED(ANYBODY, "unshare_everything", APART(syscall(SYS_unshare, 0x7e020000)));
	REFUSED(ANYBODY, "unshare_NEWUSER_junk_above", APART(syscall(SYS_unshare, 0x10000000 | JUNK)));
	REFUSED(ANYBODY, "unshare_NEWUSER_among_others", APART(syscall(SYS_unshare, 0x10000000 | CLONE_FILES)));
	uint64_t three[8] = {0x10000000, 0, 0, 0, SIGCHLD};
	REFUSED(ANYBODY, "clone3", syscall(SYS_clone3, NULL, 0));
	for (unsigned i = 0; i < sizeof SPACES / sizeof *SPACES; i++) {
		three[0] = SPACES[i].flag;
		snprintf(name, sizeof name, "clone3_%s", SPACES[i].name);
		long child = -1;
		enum tells tells = i == 5 ? ANYBODY : ROOT;
		if (skipped(tells))
			continue;
		errno = 0;
		child = syscall(SYS_clone3, three, 64);
		if (child == 0)
			_exit(0);
		say("refused", name, child < 0 ? errno : 0, tells);
		if (child > 0)
			waitpid(child, NULL, __WALL);
	}
	CALL(ANYBODY, setns, -1, 0);
	int pinned = syscall(SYS_pidfd_open, getpid(), 0);
	REFUSED(ROOT, "setns_pidfd", APART(syscall(SYS_setns, pinned, 0x4000000)));
	static const char *const FILES[] = {"mnt", "user", "pid", "net", "ipc", "uts", "cgroup", "time"};
	for (unsigned i = 0; i < sizeof FILES / sizeof *FILES; i++) {
		char path[64];
		snprintf(path, sizeof path, "/proc/self/ns/%s", FILES[i]);
		int space = open(path, O_RDONLY | O_CLOEXEC);
		snprintf(name, sizeof name, "setns_%s", FILES[i]);
		REFUSED(i == 1 ? ANYBODY : ROOT, name, APART(syscall(SYS_setns, space, 0)));
	}
}

static void files(void)
{
	CALL(ANYBODY, mount, NULL, NULL, NULL, 0, NULL);
	REFUSED(ANYBODY, "mount_bind", syscall(SYS_mount, "/nowhere", "/nowhere", NULL, 4096, NULL));
	CALL(ANYBODY, umount2, NULL, 0xffffff);
	CALL(ROOT, pivot_root, NULL, NULL);
	CALL(ANYBODY, chroot, NULL);
	CALL(ANYBODY, open_tree, -1, NULL, -1);
	CALL(ROOT, move_mount, -1, NULL, -1, NULL, -1);
	CALL(ROOT, fsopen, NULL, -1);
	CALL(ANYBODY, fsconfig, -1, -1, NULL, NULL, 0);
	CALL(ROOT, fsmount, -1, -1, -1);
	CALL(ROOT, fspick, -1, NULL, -1);
	CALL(ANYBODY, mount_setattr, -1, NULL, -1, NULL, 0);
	REFUSED(ANYBODY, "statmount", syscall(457, NULL, NULL, 0, -1));
	REFUSED(ANYBODY, "listmount", syscall(458, NULL, NULL, 0, -1));
	REFUSED(ANYBODY, "open_tree_attr", syscall(467, -1, NULL, -1, NULL, 7));
	CALL(ROOT, open_by_handle_at, -1, NULL, 0);
	CALL(ANYBODY, name_to_handle_at, -1, NULL, NULL, NULL, -1);
	struct { unsigned bytes; int type; char space[128]; } handle = {128, 0, {0}};
	int mount;
	REFUSED(ANYBODY, "name_to_handle_at_works", syscall(SYS_name_to_handle_at, AT_FDCWD, ".", &handle, &mount, 0));
	/* Each of the type of btrfs or bcachefs; the descriptor is closed. */
	static const unsigned SUBVOLUMES[] = {
		0x50009401, 0x5000940e, 0x5000940f, 0x50009417, 0x50009418, 0x5000943f, 0x4008941a, 0xc0c89420,
		0x4040bc10, 0x4040bc11,
	};
	char name[64];
	for (unsigned i = 0; i < sizeof SUBVOLUMES / sizeof *SUBVOLUMES; i++) {
		snprintf(name, sizeof name, "ioctl_%x", SUBVOLUMES[i]);
		REFUSED(ANYBODY, name, syscall(SYS_ioctl, -1, SUBVOLUMES[i], NULL));
	}
	REFUSED(ANYBODY, "ioctl_subvolume_junk_above", syscall(SYS_ioctl, -1, 0x5000940e | JUNK, NULL));
	REFUSED(ANYBODY, "ioctl_encryption_policy", syscall(SYS_ioctl, -1, 0x800c6613, NULL));
	REFUSED(ANYBODY, "ioctl_encryption_key", syscall(SYS_ioctl, -1, 0xc0506617, NULL));
	REFUSED(ANYBODY, "ioctl_verity", syscall(SYS_ioctl, -1, 0x40806685, NULL));
	/* As on a kernel that does not have it: what it makes has a mode that a filter cannot read. */
	uint64_t how[3] = {O_CREAT | O_WRONLY, 0600, 0};
	REFUSED(ANYBODY, "openat2", syscall(SYS_openat2, -1, NULL, NULL, 0));
	if (!skipped(NOBODY))
		REFUSED(NOBODY, "openat2_new_file", syscall(SYS_openat2, AT_FDCWD, "openat2", how, sizeof how));
}

/* A file, a directory and a pipe in the working directory, each tried with every way to a mode. */
static void set_id(void)
{
	static const unsigned MODES[] = {04755, 02755, 06755, 04000, 02000, 0104755};
	char name[96];
	int file = open("file", O_CREAT | O_RDWR, 0644);
	mkdir("directory", 0755);
	for (unsigned i = 0; i < sizeof MODES / sizeof *MODES; i++) {
		unsigned long mode = MODES[i];
#define WAY(way, expression)                                                                       \
	do {                                                                                       \
		snprintf(name, sizeof name, "%s_%lo", way, MODES[i] + 0UL);                         \
		REFUSED(ANYBODY, name, expression);                                                \
	} while (0)
		for (int junk = 0; junk < 2; junk++, mode |= 0xffffffff00000000UL) {
			WAY(junk ? "fchmod_junk" : "fchmod", syscall(SYS_fchmod, file, mode));
			WAY(junk ? "fchmodat_junk" : "fchmodat", syscall(SYS_fchmodat, AT_FDCWD, "file", mode));
			WAY(junk ? "fchmodat2_junk" : "fchmodat2", syscall(452, AT_FDCWD, "file", mode, 0x100));
			WAY(junk ? "fchmodat2_empty_junk" : "fchmodat2_empty", syscall(452, file, "", mode, AT_EMPTY_PATH));
			WAY(junk ? "openat_junk" : "openat", (unlink("new"), syscall(SYS_openat, AT_FDCWD, "new", (unsigned long)(O_CREAT | O_EXCL | O_RDWR), mode)));
			WAY(junk ? "openat_flags_junk" : "openat_flags", (unlink("new"), syscall(SYS_openat, AT_FDCWD, "new", O_CREAT | O_WRONLY | JUNK, mode)));
			WAY(junk ? "tmpfile_junk" : "tmpfile", syscall(SYS_openat, AT_FDCWD, ".", (unsigned long)(O_TMPFILE | O_RDWR), mode));
			WAY(junk ? "mknodat_junk" : "mknodat", (unlink("new"), syscall(SYS_mknodat, AT_FDCWD, "new", mode & 0xffffffff00007fffUL, 0)));
			WAY(junk ? "directory_junk" : "directory", syscall(SYS_fchmodat, AT_FDCWD, "directory", mode));
#ifdef __x86_64__
			WAY(junk ? "chmod_junk" : "chmod", syscall(SYS_chmod, "file", mode));
			WAY(junk ? "creat_junk" : "creat", (unlink("new"), syscall(SYS_creat, "new", mode)));
			WAY(junk ? "open_junk" : "open", (unlink("new"), syscall(SYS_open, "new", (unsigned long)(O_CREAT | O_EXCL | O_RDWR), mode)));
			WAY(junk ? "mknod_junk" : "mknod", (unlink("new"), syscall(SYS_mknod, "new", mode & 0xffffffff00007fffUL, 0)));
#endif
		}
	}
	unlink("new");
	WORKS("chmod_usual", syscall(SYS_fchmodat, AT_FDCWD, "file", 0755));
	WORKS("chmod_sticky", syscall(SYS_fchmodat, AT_FDCWD, "directory", 01777));
	WORKS("chmod_none", syscall(SYS_fchmod, file, 0UL));
	WORKS("chmod_again", syscall(SYS_fchmod, file, 0600UL | JUNK));
	WORKS("openat_made", syscall(SYS_openat, AT_FDCWD, "new", (unsigned long)(O_CREAT | O_EXCL | O_RDWR), 0644UL | JUNK));
	WORKS("openat_mode_is_junk", syscall(SYS_openat, AT_FDCWD, "file", O_RDWR, ~0UL));
	WORKS("openat_directory_mode_is_junk", syscall(SYS_openat, AT_FDCWD, ".", O_DIRECTORY, ~0UL));
	WORKS("tmpfile_usual", syscall(SYS_openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600UL));
	WORKS("fifo", mkfifo("fifo", 0600));
	/* The kernel itself leaves these bits out here. */
	struct stat found;
	WORKS("mkdir_leaves_them_out", (mkdir("inner", 06755), stat("inner", &found) ? -1 : found.st_mode & 06000 ? (errno = EBADE, -1) : 0));
	/* And no capability can be given to a file. */
	static const unsigned CAPABILITY[6] = {0x03000001, 0xffffffff, 0, 0, 0, 0};
	static const unsigned CAPABILITY_2[5] = {0x02000001, 0xffffffff, 0, 0, 0};
	if (!skipped(NOBODY)) {
		REFUSED(NOBODY, "file_capability", syscall(SYS_fsetxattr, file, "security.capability", CAPABILITY, 24UL, 0UL));
		REFUSED(NOBODY, "file_capability_2", syscall(SYS_fsetxattr, file, "security.capability", CAPABILITY_2, 20UL, 0UL));
	}
}

/* Threads and children are numbered 300 and above; below are the sandbox's own processes. */
static void scheduling(void)
{
	static const struct { unsigned size, policy; unsigned long rest[5]; } attributes = {48, 5, {0}};
	struct sched_param none = {0};
	cpu_set_t cpus;
	char name[64];
	sched_getaffinity(0, sizeof cpus, &cpus);
	int numbers[] = {1, getppid(), 2, 3, 17, 299};
	for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; i++) {
		/* Outside, the number is nobody's. */
		unsigned long number = outside ? 1 << 30 : numbers[i];
		for (int junk = 0; junk < 2; junk++, number |= JUNK) {
#define OF(call, ...)                                                                              \
	do {                                                                                       \
		snprintf(name, sizeof name, "%s_%u%s", #call, i, junk ? "_junk" : "");             \
		REFUSED(ANYBODY, name, syscall(SYS_##call, __VA_ARGS__));                          \
	} while (0)
			OF(sched_setaffinity, number, sizeof cpus, &cpus);
			OF(sched_setscheduler, number, 5, &none);
			OF(sched_setparam, number, &none);
			OF(sched_setattr, number, &attributes, 0);
			OF(setpriority, 0, number, 19);
			OF(setpriority, 1, number, 19);
			OF(ioprio_set, 1, number, 3 << 13);
			OF(ioprio_set, 2, number, 3 << 13);
		}
	}
	REFUSED(NOBODY, "setpriority_user", syscall(SYS_setpriority, 2, 0, 19));
	REFUSED(NOBODY, "setpriority_user_number", syscall(SYS_setpriority, 2, getuid(), 19));
	REFUSED(NOBODY, "ioprio_set_user", syscall(SYS_ioprio_set, 3, 0, 3 << 13));
}

/* What threads and parents do with numbers of their own; not in the reduced isolation. */
static void *placed(void *argument)
{
	cpu_set_t cpus;
	struct sched_param none = {0};
	int policy;
	errno = pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
	if (!errno)
		errno = pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
	if (!errno)
		errno = pthread_getschedparam(pthread_self(), &policy, &none);
	if (!errno)
		errno = pthread_setschedparam(pthread_self(), policy, &none);
	if (!errno && syscall(SYS_setpriority, 0, syscall(SYS_gettid), 19))
		return argument;
	*(int *)argument = errno;
	return NULL;
}

static void own_namespaces(void)
{
	pthread_t other;
	int wrong = ENOLCK, child = fork();
	cpu_set_t cpus;
	if (child == 0)
		pause();
	sched_getaffinity(child, sizeof cpus, &cpus);
	WORKS("shm", shmctl(shmget(IPC_PRIVATE, 4096, 0600), IPC_RMID, NULL));
	WORKS("sem", semctl(semget(IPC_PRIVATE, 1, 0600), 0, IPC_RMID));
	WORKS("msg", msgctl(msgget(IPC_PRIVATE, 0600), IPC_RMID, NULL));
	WORKS("a_thread_places_itself", (pthread_create(&other, NULL, placed, &wrong), pthread_join(other, NULL), errno = wrong, wrong ? -1 : 0));
	WORKS("affinity_of_a_child", sched_setaffinity(child, sizeof cpus, &cpus));
	WORKS("priority_of_a_child", setpriority(PRIO_PROCESS, child, 5));
	WORKS("priority_of_the_group", setpriority(PRIO_PGRP, 0, 7));
	WORKS("io_priority_of_a_child", syscall(SYS_ioprio_set, 1, child, 2 << 13 | 5));
	WORKS("idle_child", ({ struct sched_param none = {0}; sched_setscheduler(child, SCHED_IDLE, &none); }));
	WORKS("batch", ({ struct sched_param none = {0}; sched_setscheduler(0, SCHED_BATCH, &none); }));
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void kernel(void)
{
	CALL(ANYBODY, io_uring_setup, 1, NULL);
	CALL(ANYBODY, io_uring_enter, -1, 0, 0, 0, NULL, 0);
	CALL(ANYBODY, io_uring_register, -1, 0, NULL, 0);
	CALL(ROOT, bpf, 0xffff, NULL, 0);
	CALL(ANYBODY, perf_event_open, NULL, 0, -1, -1, 0);
	CALL(ANYBODY, userfaultfd, -1);
	CALL(ANYBODY, fanotify_init, 0x200, -1);
	CALL(ANYBODY, keyctl, 0xffff, 0, 0, 0, 0);
	CALL(ANYBODY, add_key, NULL, NULL, NULL, 0, 0);
	CALL(ANYBODY, request_key, NULL, NULL, NULL, 0);
	CALL(ROOT, init_module, NULL, 0, NULL);
	CALL(ROOT, finit_module, -1, NULL, 0);
	CALL(ROOT, delete_module, NULL, 0);
	CALL(NOBODY, kexec_load, 0, -1, NULL, -1);
	CALL(NOBODY, kexec_file_load, -1, -1, 0, NULL, -1);
	CALL(NOBODY, reboot, 0, 0, 0, NULL);
	CALL(NOBODY, clock_settime, 9999, NULL);
	CALL(NOBODY, clock_adjtime, 9999, NULL);
	CALL(NOBODY, settimeofday, BAD, BAD);
	CALL(NOBODY, adjtimex, NULL);
	CALL(NOBODY, sethostname, NULL, -1);
	CALL(NOBODY, setdomainname, NULL, -1);
	CALL(NOBODY, swapon, NULL, -1);
	CALL(NOBODY, swapoff, NULL);
	CALL(ROOT, syslog, 999, NULL, 0);
	CALL(NOBODY, acct, BAD);
	CALL(ANYBODY, quotactl, -1, NULL, 0, NULL);
	CALL(ANYBODY, quotactl_fd, -1, -1, 0, NULL);
	CALL(NOBODY, vhangup);
	REFUSED(ANYBODY, "lsm_set_self_attr", syscall(460, -1, NULL, NULL, -1));
	/* Of a process of the same user, whatever watches over it: it could open no file any more, or would
	 * be killed for its use of the processor. Outside, the number is nobody's. */
	REFUSED(ANYBODY, "prlimit_of_another", syscall(SYS_prlimit64, outside ? 1 << 30 : 1, RLIMIT_NOFILE, NULL, NULL));
}

#ifdef __x86_64__
/* A call by the door of 32-bit programs. */
static long old(long number, long a, long b, long c)
{
	long answer;
	__asm__ volatile("int $0x80" : "=a"(answer) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory", "r8", "r9", "r10", "r11");
	if (answer < 0 && answer > -4096) {
		errno = (int)-answer;
		return -1;
	}
	return answer;
}

static void processor(void)
{
	CALL(ANYBODY, modify_ldt, 0x7777, NULL, 0);
	CALL(ANYBODY, iopl, 99);
	CALL(ANYBODY, ioperm, -1L, 2, 1);
	CALL(ANYBODY, uselib, NULL);
	CALL(ANYBODY, _sysctl, NULL);
	CALL(ANYBODY, nfsservctl, 0, NULL, NULL);
	REFUSED(ANYBODY, "create_module", syscall(174, NULL, 0));
	REFUSED(ANYBODY, "get_kernel_syms", syscall(177, NULL));
	REFUSED(ANYBODY, "query_module", syscall(178, NULL, 0, NULL, 0, NULL));
	REFUSED(ANYBODY, "x32_getpid", syscall(0x40000000 + 39));
	REFUSED(ANYBODY, "x32_open", syscall(0x40000000 + 2, NULL, 0, 0));
	REFUSED(ANYBODY, "x32_unshare", APART(syscall(0x40000000 + 272, 0x10000000)));
	REFUSED(ANYBODY, "x32_io_uring_setup", syscall(0x40000000 + 425, 1, NULL));
	REFUSED(ANYBODY, "x32_execve", syscall(0x40000000 + 520, NULL, NULL, NULL));
	/* What it points at has to lie below 4 GiB. */
	int32_t *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	if (low == MAP_FAILED)
		abort();
	low[0] = 40, low[1] = SOCK_STREAM, low[2] = 0;
	REFUSED(ANYBODY, "i386_getpid", old(20, 0, 0, 0));
	REFUSED(ANYBODY, "i386_unshare", APART(old(310, 0x10000000, 0, 0)));
	REFUSED(ANYBODY, "i386_socketcall_vsock", old(102, 1, (long)low, 0));
	REFUSED(ANYBODY, "i386_keyctl", old(288, 0xffff, 0, 0));
	strcpy((char *)low, "/etc/passwd");
	REFUSED(ANYBODY, "i386_open", old(5, (long)low, 0, 0));
}
#endif

static void terminal(void)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY);
	if (grantpt(master) || unlockpt(master))
		abort();
	const char *name = ptsname(master);
	/* A session of its own, whose terminal it is: only then is typing allowed at all. */
#define TYPING(command) APART((setsid(), syscall(SYS_ioctl, open(name, O_RDWR), (unsigned long)(command), "x")))
	REFUSED(ROOT, "TIOCSTI", TYPING(0x5412));
	REFUSED(ROOT, "TIOCSTI_junk_above", TYPING(0x5412 | JUNK));
	REFUSED(ROOT, "TIOCSTI_all_above", TYPING(0x5412 | 0xffffffff00000000UL));
	REFUSED(ROOT, "TIOCSETD", ({ int line = 0; APART(syscall(SYS_ioctl, open(name, O_RDWR | O_NOCTTY), 0x5423UL, &line)); }));
	REFUSED(ANYBODY, "TIOCSETD_junk_above", APART(syscall(SYS_ioctl, -1, 0x5423 | JUNK, NULL)));
	REFUSED(ANYBODY, "TIOCLINUX", TYPING(0x541c));
	REFUSED(ANYBODY, "TIOCLINUX_junk_above", TYPING(0x541c | JUNK));
	int slave = open(name, O_RDWR | O_NOCTTY);
	struct winsize size;
	struct termios modes;
	int waiting;
	WORKS("TIOCGWINSZ", ioctl(slave, TIOCGWINSZ, &size));
	WORKS("TCGETS", tcgetattr(slave, &modes));
	WORKS("TCSETS", tcsetattr(slave, TCSANOW, &modes));
	WORKS("FIONREAD", ioctl(slave, FIONREAD, &waiting));
}

static void sockets(void)
{
	char name[64];
	/* A kind that no family has: without the filter the answer would be EINVAL or, for a family that
	 * does not exist, EAFNOSUPPORT, whoever asks. */
	for (int family = 0; family <= 46; family++) {
		if (family == AF_UNIX || family == AF_INET || family == AF_INET6 || family == AF_NETLINK)
			continue;
		snprintf(name, sizeof name, "socket_%d", family);
		REFUSED(ANYBODY, name, syscall(SYS_socket, family, 15, 0));
	}
	REFUSED(ANYBODY, "socket_vsock_stream", socket(40, SOCK_STREAM, 0));
	REFUSED(ANYBODY, "socket_vsock_junk_above", syscall(SYS_socket, 40 | JUNK, SOCK_STREAM, 0));
	REFUSED(ANYBODY, "socket_alg", socket(38, SOCK_SEQPACKET, 0));
	REFUSED(ROOT, "socket_packet_raw", socket(17, SOCK_RAW, 0));
	REFUSED(ANYBODY, "socket_negative", syscall(SYS_socket, -1, SOCK_STREAM, 0));
	for (int protocol = 1; protocol <= 22; protocol++) {
		snprintf(name, sizeof name, "netlink_%d", protocol);
		REFUSED(ANYBODY, name, syscall(SYS_socket, AF_NETLINK, SOCK_RAW, protocol));
	}
	/* Types and protocols beside the usual ones; of some kinds only root has another answer. */
	static const int FAMILIES[] = {AF_INET, AF_INET6};
	for (unsigned f = 0; f < 2; f++) {
		for (int type = 0; type < 16; type++) {
			if (type == SOCK_STREAM || type == SOCK_DGRAM)
				continue;
			snprintf(name, sizeof name, "socket_%d_type_%d", FAMILIES[f], type);
			REFUSED(type == SOCK_RAW || type == SOCK_PACKET ? ROOT : ANYBODY, name, syscall(SYS_socket, FAMILIES[f], type | SOCK_CLOEXEC, type == SOCK_RAW ? 1 : 0));
		}
		static const int PROTOCOLS[] = {1, 2, 33, 58, 132, 136, 143, 255, 256, 262};
		for (unsigned i = 0; i < sizeof PROTOCOLS / sizeof *PROTOCOLS; i++) {
			for (int type = SOCK_STREAM; type <= SOCK_DGRAM; type++) {
				snprintf(name, sizeof name, "socket_%d_%d_protocol_%d", FAMILIES[f], type, PROTOCOLS[i]);
				REFUSED(ANYBODY, name, syscall(SYS_socket, FAMILIES[f], type, PROTOCOLS[i]));
			}
		}
		snprintf(name, sizeof name, "socket_%d_tcp_as_datagram", FAMILIES[f]);
		REFUSED(ANYBODY, name, socket(FAMILIES[f], SOCK_DGRAM, IPPROTO_TCP));
		snprintf(name, sizeof name, "socket_%d_protocol_junk_above", FAMILIES[f]);
		REFUSED(ANYBODY, name, syscall(SYS_socket, FAMILIES[f] | JUNK, SOCK_STREAM | JUNK, 262 | JUNK));
	}
	for (int type = 0; type < 16; type++) {
		if (type == SOCK_STREAM || type == SOCK_DGRAM || type == SOCK_SEQPACKET)
			continue;
		snprintf(name, sizeof name, "socket_unix_type_%d", type);
		REFUSED(ANYBODY, name, syscall(SYS_socket, AF_UNIX, type, 0));
	}
	REFUSED(ANYBODY, "socket_unix_protocol", socket(AF_UNIX, SOCK_STREAM, 7));
	REFUSED(ANYBODY, "netlink_stream", socket(AF_NETLINK, SOCK_STREAM, 0));
	int pair[2];
	static const int PAIRS[] = {AF_INET, AF_INET6, AF_NETLINK, 30, 40};
	for (unsigned i = 0; i < sizeof PAIRS / sizeof *PAIRS; i++) {
		snprintf(name, sizeof name, "socketpair_%d", PAIRS[i]);
		/* TIPC (30) can make pairs, where a kernel has it. */
		REFUSED(ANYBODY, name, socketpair(PAIRS[i], SOCK_STREAM, 0, pair));
	}
	WORKS("socket_unix", socket(AF_UNIX, SOCK_STREAM, 0));
	WORKS("socket_unix_junk_above", syscall(SYS_socket, AF_UNIX | JUNK, SOCK_DGRAM, 0));
	WORKS("socket_inet_stream", socket(AF_INET, SOCK_STREAM, 0));
	WORKS("socket_inet_datagram", socket(AF_INET, SOCK_DGRAM, 0));
	WORKS("socket_inet_tcp", socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP));
	WORKS("socket_inet6_udp", socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, IPPROTO_UDP));
	WORKS("socket_inet6", socket(AF_INET6, SOCK_STREAM, 0));
	WORKS("netlink_route_datagram", socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	WORKS("netlink_route", socket(AF_NETLINK, SOCK_RAW, 0));
	WORKS("socketpair_unix", socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
	WORKS("socketpair_unix_packets", socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair));
}

static void *thread(void *argument)
{
	return argument;
}

static int threaded(void)
{
	pthread_t other;
	errno = pthread_create(&other, NULL, thread, NULL);
	if (!errno)
		errno = pthread_join(other, NULL);
	return errno ? -1 : 0;
}

static int filtered(void)
{
	struct sock_filter allow[] = {{0x06, 0, 0, 0x7fff0000}};
	struct sock_fprog program = {1, allow};
	return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program);
}

static int landlocked(void)
{
	uint64_t handled = 1 << 1;
	int rules = syscall(444, &handled, sizeof handled, 0);
	if (rules < 0 || syscall(446, rules, 0))
		return -1;
	/* It holds: nothing can be written to any more. */
	if (open("/dev/null", O_WRONLY) >= 0 || errno != EACCES) {
		errno = ENOLCK;
		return -1;
	}
	return 0;
}

static int copied_memory(void)
{
	char from[] = "from", to[5];
	struct iovec local = {to, 5}, remote = {from, 5};
	return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 5 ? 0 : -1;
}

static int posted(void)
{
	int pair[2], got = -1, memory = memfd_create("sent", 0);
	if (memory < 0 || socketpair(AF_UNIX, SOCK_STREAM, 0, pair))
		return -1;
	char byte = 'x', space[CMSG_SPACE(sizeof(int))] = {0};
	struct iovec text = {&byte, 1};
	struct msghdr message = {.msg_iov = &text, .msg_iovlen = 1, .msg_control = space, .msg_controllen = sizeof space};
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);
	header->cmsg_level = SOL_SOCKET, header->cmsg_type = SCM_RIGHTS, header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &memory, sizeof(int));
	if (sendmsg(pair[0], &message, 0) != 1 || recvmsg(pair[1], &message, 0) != 1)
		return -1;
	memcpy(&got, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
	return fcntl(got, F_GETFD);
}

static void neighbours(void)
{
	sigset_t set;
	cpu_set_t cpus;
	timer_t timer;
	char bytes[16];
	int word = 0, queue = epoll_create1(0), event = eventfd(0, 0), watch = inotify_init1(0), ends[2];
	struct epoll_event wanted = {.events = EPOLLIN};
	struct timespec soon = {0, 1};
	struct rlimit limit;
	sigemptyset(&set);
	WORKS("fork", copied(SIGCHLD));
	WORKS("vfork", copied(CLONE_VFORK | SIGCHLD));
	WORKS("thread", threaded());
	WORKS("unshare_files_and_fs", APART(syscall(SYS_unshare, CLONE_FILES | CLONE_FS)));
	WORKS("prctl", prctl(PR_SET_NAME, "named"));
	WORKS("prctl_subreaper", prctl(PR_SET_CHILD_SUBREAPER, 0));
	WORKS("seccomp", APART(filtered()));
	WORKS("landlock", APART(landlocked()));
	WORKS("memfd", memfd_create("m", MFD_ALLOW_SEALING));
	WORKS("epoll", epoll_ctl(queue, EPOLL_CTL_ADD, event, &wanted));
	WORKS("epoll_wait", epoll_wait(queue, &wanted, 1, 0));
	WORKS("inotify", inotify_add_watch(watch, "/tmp", IN_CREATE));
	WORKS("timerfd", timerfd_create(CLOCK_MONOTONIC, 0));
	WORKS("signalfd", signalfd(-1, &set, 0));
	WORKS("eventfd", event);
	WORKS("futex", syscall(SYS_futex, &word, 1 /* wake */, 1, NULL, NULL, 0));
	WORKS("sched_yield", sched_yield());
	WORKS("sched_getaffinity", sched_getaffinity(0, sizeof cpus, &cpus));
	WORKS("sched_setaffinity", sched_setaffinity(0, sizeof cpus, &cpus));
	WORKS("setpriority", APART(setpriority(PRIO_PROCESS, 0, 5)));
	WORKS("getrandom", getrandom(bytes, sizeof bytes, 0));
	WORKS("clock_gettime", syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &soon));
	WORKS("nanosleep", (soon = (struct timespec){0, 1}, nanosleep(&soon, NULL)));
	WORKS("timer_create", timer_create(CLOCK_MONOTONIC, NULL, &timer));
	WORKS("getrlimit", getrlimit(RLIMIT_NOFILE, &limit));
	WORKS("prlimit_own", syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, NULL, &limit));
	WORKS("setrlimit_lower", APART((limit.rlim_cur = limit.rlim_max = 50, setrlimit(RLIMIT_NOFILE, &limit))));
	WORKS("pidfd_open", syscall(SYS_pidfd_open, getpid(), 0));
	WORKS("pidfd_send_signal", syscall(SYS_pidfd_send_signal, syscall(SYS_pidfd_open, getpid(), 0), 0, NULL, 0));
	WORKS("process_vm_readv", copied_memory());
	WORKS("mlock", mlock(bytes, sizeof bytes));
	WORKS("mprotect_exec", mprotect(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), 4096, PROT_READ | PROT_EXEC));
	WORKS("membarrier", syscall(SYS_membarrier, 0, 0, 0));
	WORKS("pipe2", pipe2(ends, O_CLOEXEC));
	WORKS("close_range", syscall(SYS_close_range, 900, 1000, 0));
	WORKS("descriptor_passing", posted());
	WORKS("personality", syscall(SYS_personality, 0xffffffff));
	WORKS("setsid", APART(setsid()));
	WORKS("umask", umask(022));
	WORKS("statx", syscall(SYS_statx, AT_FDCWD, "/", 0, 0, malloc(256)));
}

static const struct {
	const char *name;
	void (*make)(void);
} GROUPS[] = {
	{"namespaces", namespaces}, {"files", files},	    {"kernel", kernel},
#ifdef __x86_64__
	{"processor", processor},
#endif
	{"terminal", terminal},	    {"sockets", sockets}, {"neighbours", neighbours},
	{"set_id", set_id},	    {"scheduling", scheduling}, {"own_namespaces", own_namespaces},
};

int main(int argc, char **argv)
{
	outside = argc > 2 && !strcmp(argv[2], "outside");
	/* Without it, nobody but root may make a filter or a ruleset; inside it is set. */
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	for (unsigned i = 0; argc > 1 && i < sizeof GROUPS / sizeof *GROUPS; i++)
		if (!strcmp(argv[1], GROUPS[i].name)) {
			GROUPS[i].make();
			return 0;
		}
	return 2;
}
