/* A crew of threads that lives for one call: nothing of it spins or waits beside a later timed call. */
#ifndef CREW_H
#define CREW_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>

#define CREW_MAX 256

typedef void (*crew_task)(void *context, int64_t task);

typedef struct {
    crew_task run;
    void *context;
    int64_t tasks;
    _Atomic int64_t next;
} crew;

static void *crew_work(void *argument)
{
    crew *c = argument;
    for (;;) {
        int64_t task = atomic_fetch_add(&c->next, 1);
        if (task >= c->tasks)
            return NULL;
        c->run(c->context, task);
    }
}

/* Runs task 0 .. tasks-1, each once, on at most `threads` threads, the caller being one of them. */
static void crew_run(int threads, int64_t tasks, crew_task run, void *context)
{
    crew c = {.run = run, .context = context, .tasks = tasks};
    pthread_t helper[CREW_MAX];
    int wanted = threads < CREW_MAX ? threads : CREW_MAX;
    int started = 0;
    atomic_init(&c.next, 0);
    while (started + 1 < wanted && started + 1 < tasks) {
        if (pthread_create(&helper[started], NULL, crew_work, &c) != 0)
            break; /* fewer threads do the same work */
        started++;
    }
    crew_work(&c);
    for (int i = 0; i < started; i++)
        pthread_join(helper[i], NULL);
}

#endif
