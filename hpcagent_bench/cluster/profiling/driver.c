/* Calls a kernel again and again for a profiler to watch; nothing here is graded.
 *
 *   driver DRAW_FD REPORT_FD MIN_NS MAX_CALLS WORKSPACE SHIM KERNEL SYMBOL POINTERS OUTPUTS SCALARS
 *
 * POINTERS are offsets into the draw, OUTPUTS offset:bytes of what is restored before each call, SCALARS the eight
 * bytes of each as a number. It stops after MIN_NS nanoseconds of calls, or MAX_CALLS, and reports "calls nanoseconds".
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "lockdown.h"

#define MOST 256

typedef void (*kernel_fn)(void);
typedef void (*shim_fn)(kernel_fn, void **, const uint64_t *, uint8_t *, int64_t);

static int die(const char *what)
{
    fprintf(stderr, "%s\n", what);
    return 4;
}

static uint64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
    if (argc != 12)
        return die("usage: driver DRAW_FD REPORT_FD MIN_NS MAX_CALLS WORKSPACE SHIM KERNEL SYMBOL POINTERS OUTPUTS SCALARS");
    int draw = atoi(argv[1]), report = atoi(argv[2]);
    uint64_t enough = strtoull(argv[3], NULL, 10), most = strtoull(argv[4], NULL, 10);
    uint64_t workspace_bytes = strtoull(argv[5], NULL, 10);
    struct stat size;
    if (fstat(draw, &size) != 0)
        return die("no draw");
    char *work = mmap(NULL, (size_t)size.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE, draw, 0);
    const char *first = mmap(NULL, (size_t)size.st_size, PROT_READ, MAP_PRIVATE, draw, 0);
    uint8_t *workspace = workspace_bytes ? aligned_alloc(256, (workspace_bytes + 255) / 256 * 256) : NULL;
    if (work == MAP_FAILED || first == MAP_FAILED || (workspace_bytes && !workspace))
        return die("not enough memory");

    void *pointers[MOST];
    uint64_t scalars[MOST], offset[MOST], bytes[MOST];
    size_t n_pointers = 0, n_outputs = 0, n_scalars = 0;
    for (char *at = argv[9]; *at && n_pointers < MOST; at += *at == ',')
        pointers[n_pointers++] = work + strtoull(at, &at, 10);
    for (char *at = argv[10]; *at && n_outputs < MOST; at += *at == ',', n_outputs++) {
        offset[n_outputs] = strtoull(at, &at, 10);
        bytes[n_outputs] = strtoull(at + 1, &at, 10);
    }
    for (char *at = argv[11]; *at && n_scalars < MOST; at += *at == ',')
        scalars[n_scalars++] = strtoull(at, &at, 10);

    if (hb_lockdown() != 0)
        return die("this kernel has no system-call filter");
    void *shim = dlopen(argv[6], RTLD_NOW | RTLD_LOCAL);
    void *library = dlopen(argv[7], RTLD_NOW | RTLD_LOCAL);
    if (!shim || !library)
        return die(dlerror());
    shim_fn call = (shim_fn)dlsym(shim, "hb_call");
    kernel_fn kernel = (kernel_fn)dlsym(library, argv[8]);
    if (!call || !kernel)
        return die("the kernel's symbol is missing");

    uint64_t spent = 0, calls = 0;
    do {
        for (size_t k = 0; k < n_outputs; k++)
            memcpy(work + offset[k], first + offset[k], bytes[k]);
        if (workspace)
            memset(workspace, 0, workspace_bytes);
        uint64_t start = now();
        call(kernel, pointers, scalars, workspace, (int64_t)workspace_bytes);
        spent += now() - start;
    } while (++calls < most && spent < enough);
    fflush(NULL);
    dprintf(report, "%llu %llu\n", (unsigned long long)calls, (unsigned long long)spent);
    return 0;
}
