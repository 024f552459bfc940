/* Uses up what is limited, up to a bound of its own: KIND AMOUNT.
 *
 *   memory MIB     touches so much memory, and sleeps a moment
 *   shared MIB     the same, shared without a file
 *   shm MIB        the same, in a segment of System V
 *   forks N        makes processes until it is refused, or N; prints how many
 *   threads N      makes threads likewise
 *   spin MS        computes for so long, by the clock on the wall; prints the processor time in ms
 */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void *rest(void *argument)
{
	pause();
	return argument;
}

static long now(clockid_t clock)
{
	struct timespec time;
	clock_gettime(clock, &time);
	return time.tv_sec * 1000 + time.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	const char *kind = argv[1];
	long amount = atol(argv[2]), made = 0;
	size_t bytes = (size_t)amount << 20;
	if (!strcmp(kind, "memory") || !strcmp(kind, "shared")) {
		int how = MAP_ANONYMOUS | (*kind == 'm' ? MAP_PRIVATE : MAP_SHARED);
		char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, how, -1, 0);
		if (memory == MAP_FAILED)
			return 3;
		memset(memory, 1, bytes);
		usleep(300000);
	} else if (!strcmp(kind, "shm")) {
		int segment = shmget(IPC_PRIVATE, bytes, 0600);
		char *memory = shmat(segment, NULL, 0);
		shmctl(segment, IPC_RMID, NULL);
		if (memory == (void *)-1)
			return 3;
		memset(memory, 1, bytes);
		usleep(300000);
	} else if (!strcmp(kind, "forks")) {
		pid_t child = 0;
		while (made < amount && (child = fork()) > 0)
			made++;
		if (child == 0 && made < amount)
			rest(NULL);
		printf("%ld\n", made);
		fflush(stdout);
		sleep(1);
		signal(SIGTERM, SIG_IGN);
		kill(0, SIGTERM);
		while (wait(NULL) > 0)
			;
	} else if (!strcmp(kind, "threads")) {
		pthread_t thread;
		pthread_attr_t small;
		pthread_attr_init(&small);
		pthread_attr_setstacksize(&small, 65536);
		while (made < amount && !pthread_create(&thread, &small, rest, NULL))
			made++;
		printf("%ld\n", made);
		fflush(stdout);
		sleep(1);
	} else if (!strcmp(kind, "spin")) {
		long until = now(CLOCK_MONOTONIC) + amount;
		while (now(CLOCK_MONOTONIC) < until)
			;
		printf("%ld\n", now(CLOCK_PROCESS_CPUTIME_ID));
	} else {
		return 2;
	}
	return 0;
}
