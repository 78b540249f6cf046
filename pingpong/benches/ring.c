/*
 * The least that a ring of pinned threads can be, to compare the crate with.
 *
 *     cc -O2 -pthread -o ring ring.c
 *     ./ring pipe|futex|spin LOOPS CPU CPU...
 *
 * One stop for each CPU. Prints nanoseconds per loop; both stamps are the first stop's,
 * around the loops only.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { GO, STOP, WARM_UP = 8 };

struct hop {
	_Alignas(128) atomic_uint word;
	int fd[2];
};

struct stop {
	_Alignas(128) struct hop *in, *out;
	unsigned seen, sent;
	int cpu, first;
	pthread_t thread;
};

static long loops;
static pthread_barrier_t pinned;

static void die(const char *what)
{
	fprintf(stderr, "error: %s: %s\n", what, strerror(errno));
	exit(1);
}

static inline int pipe_receive(struct stop *s)
{
	char byte;

	if (read(s->in->fd[0], &byte, 1) != 1)
		die("read");
	return byte;
}

static inline void pipe_send(struct stop *s, char token)
{
	if (write(s->out->fd[1], &token, 1) != 1)
		die("write");
}

/* Each token is a new value, its low bit the message. */
static inline int word_changed(struct stop *s)
{
	unsigned value = atomic_load_explicit(&s->in->word, memory_order_acquire);

	if (value == s->seen)
		return 0;
	s->seen = value;
	return 1;
}

static inline void word_send(struct stop *s, int token)
{
	s->sent = ((s->sent & ~1u) + 2) | token;
	atomic_store_explicit(&s->out->word, s->sent, memory_order_release);
}

static inline int futex_receive(struct stop *s)
{
	while (!word_changed(s))
		if (syscall(SYS_futex, &s->in->word, FUTEX_WAIT_PRIVATE, s->seen, NULL) != 0 &&
		    errno != EAGAIN)
			die("futex wait");
	return s->seen & 1;
}

static inline void futex_send(struct stop *s, int token)
{
	word_send(s, token);
	if (syscall(SYS_futex, &s->out->word, FUTEX_WAKE_PRIVATE, 1) < 0)
		die("futex wake");
}

static inline int spin_receive(struct stop *s)
{
	while (!word_changed(s))
#if defined(__x86_64__) || defined(__i386__)
		__builtin_ia32_pause();
#elif defined(__aarch64__)
		__asm__ volatile("isb");
#else
		;
#endif
	return s->seen & 1;
}

static inline void spin_send(struct stop *s, int token)
{
	word_send(s, token);
}

static void pin(int cpu)
{
	cpu_set_t set;

	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	if (sched_setaffinity(0, sizeof set, &set))
		die("sched_setaffinity");
	pthread_barrier_wait(&pinned);
}

static double now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1e9 + t.tv_nsec;
}

#define STOP_BODY(transport)                                          \
	static void *transport##_stop(void *arg)                      \
	{                                                             \
		struct stop *s = arg;                                 \
		double start;                                         \
									\
		pin(s->cpu);                                          \
		if (!s->first) {                                      \
			while (transport##_receive(s) == GO)          \
				transport##_send(s, GO);              \
			transport##_send(s, STOP);                    \
			return NULL;                                  \
		}                                                     \
		for (int i = 0; i < WARM_UP; i++) {                   \
			transport##_send(s, GO);                      \
			transport##_receive(s);                       \
		}                                                     \
		start = now_ns();                                     \
		for (long i = 0; i < loops; i++) {                    \
			transport##_send(s, GO);                      \
			transport##_receive(s);                       \
		}                                                     \
		printf("%.3f\n", (now_ns() - start) / loops);         \
		transport##_send(s, STOP);                            \
		transport##_receive(s);                               \
		return NULL;                                          \
	}

STOP_BODY(pipe)
STOP_BODY(futex)
STOP_BODY(spin)

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void *(*stop)(void *);
	} transports[] = {
		{ "pipe", pipe_stop }, { "futex", futex_stop }, { "spin", spin_stop },
	};
	void *(*body)(void *) = NULL;
	int n = argc - 3;

	for (unsigned i = 0; argc > 1 && i < sizeof transports / sizeof *transports; i++)
		if (!strcmp(argv[1], transports[i].name))
			body = transports[i].stop;
	if (n < 2 || !body || (loops = atol(argv[2])) < 1) {
		fprintf(stderr, "usage: %s pipe|futex|spin LOOPS CPU CPU...\n", argv[0]);
		return 2;
	}

	struct hop *hops = aligned_alloc(128, n * sizeof *hops);
	struct stop *stops = aligned_alloc(128, n * sizeof *stops);

	if (!hops || !stops)
		die("aligned_alloc");
	memset(hops, 0, n * sizeof *hops);
	memset(stops, 0, n * sizeof *stops);
	pthread_barrier_init(&pinned, NULL, n);
	for (int i = 0; i < n; i++) {
		if (pipe(hops[i].fd))
			die("pipe");
		stops[i].out = &hops[i];
		stops[i].in = &hops[(i + n - 1) % n];
		stops[i].cpu = atoi(argv[i + 3]);
		stops[i].first = i == 0;
	}
	for (int i = 0; i < n; i++)
		if ((errno = pthread_create(&stops[i].thread, NULL, body, &stops[i])))
			die("pthread_create");
	for (int i = 0; i < n; i++)
		pthread_join(stops[i].thread, NULL);
	return 0;
}
