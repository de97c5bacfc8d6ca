/* Runs one compiled kernel, one call at a time, as told over a control socket.
 *
 *   runner launch CORES STACK DATA FILE -- PROGRAM ARGS...   bind and limit this process, then become PROGRAM
 *   runner launch-compiler, launch-sanitized                 the same, filtered or at addresses that do not vary
 *   runner serve CONTROL_FD SHIM LIBRARY SYMBOL STRICT       serve calls of SYMBOL until the socket closes
 *
 * STRICT 1 makes a missing system-call filter fatal. Frames: see hpcagent_bench/harness/messages.py. Clocks:
 * CLOCK_MONOTONIC around the call and nothing else, less what calling an empty function takes, and held to the kernel's.
 *
 * Built with HB_SANITIZED (and the address and undefined-behaviour sanitizers) every array is an allocation of exactly
 * its bytes, so that the sanitizer sees who leaves it, and what the sanitizer prints stays readable for the judge.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fp_modes.h"
#include "kernel_clock.h"
#include "launch.h"
#include "lockdown.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22 /* Linux 5.14; older kernels refuse it */
#define MADV_POPULATE_WRITE 23
#endif

enum kind { HELLO = 1, LOAD, READY, GO, DONE, FAIL };
enum { NEW_OUTPUTS = 1, NEW_DRAW = 2 };
enum { FRAME_MAX = 1 << 16, MAX_ARGS = 256, HUGE_PAGE = 2 << 20, PAGE = 4096, CALIBRATIONS = 1000 };
enum { SKEW_NS = 10000, SKEW_SHARE = 1000 };

struct go_frame { uint32_t kind, pad; uint64_t nonce; };
struct done_frame { uint32_t kind, changed; uint64_t nonce, inside_ns, cpu_ns; };
struct load_frame {
    uint32_t kind, n_pointers, n_scalars, fresh;
    uint64_t draw_bytes, output_bytes, workspace_offset, workspace_bytes;
};
struct pointer_frame { uint64_t in_outputs, offset, bytes; };

struct mapping { char *base; size_t bytes; };
typedef void (*kernel_fn)(void);
typedef void (*shim_fn)(kernel_fn kernel, void **pointers, const void *scalars, uint8_t *workspace, int64_t bytes);

struct call {
    int control;
    const char *library, *symbol;
    shim_fn shim;
    kernel_fn kernel;
    struct mapping draw, outputs;
    void *pointers[MAX_ARGS];
    uint64_t scalars[MAX_ARGS];
    uint8_t *workspace;
    int64_t workspace_bytes;
    size_t populated; /* bytes of the draw that are in the page table */
    struct clocks { uint64_t own_ns, kernel_ns; } overhead;
    uint32_t fp_modes; /* what the library's own start left changed */
#ifdef HB_SANITIZED
    uint32_t n_pointers;
    void *shared[MAX_ARGS]; /* where an output goes back to, NULL for an input */
    size_t bytes[MAX_ARGS];
#endif
};

_Noreturn static void fail(int control, const char *format, ...)
{
    struct { uint32_t kind, pad; char text[1024]; } frame = {.kind = FAIL};
    va_list args;
    va_start(args, format);
    vsnprintf(frame.text, sizeof frame.text, format, args);
    va_end(args);
    send(control, &frame, 8 + strlen(frame.text), MSG_NOSIGNAL);
    _exit(3);
}

static void reply(const struct call *call, const void *frame, size_t bytes)
{
    ssize_t sent;
    do
        sent = send(call->control, frame, bytes, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0)
        _exit(0);
}

/* One frame and the descriptors that came with it; the judge having gone is the normal end. */
static size_t receive(const struct call *call, void *frame, size_t room, int fds[2])
{
    union { char raw[CMSG_SPACE(2 * sizeof(int))]; struct cmsghdr align; } control;
    struct iovec part = {.iov_base = frame, .iov_len = room};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    message.msg_control = control.raw;
    message.msg_controllen = sizeof control.raw;
    ssize_t got;
    do
        got = recvmsg(call->control, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && errno == EINTR);
    if (got <= 0)
        _exit(0);
    fds[0] = fds[1] = -1;
    for (struct cmsghdr *part_of = CMSG_FIRSTHDR(&message); part_of; part_of = CMSG_NXTHDR(&message, part_of))
        if (part_of->cmsg_level == SOL_SOCKET && part_of->cmsg_type == SCM_RIGHTS)
            memcpy(fds, CMSG_DATA(part_of), part_of->cmsg_len - CMSG_LEN(0));
    return (size_t)got;
}

static void unmap(struct mapping *mapping)
{
    if (mapping->base)
        munmap(mapping->base, mapping->bytes);
    mapping->base = NULL;
    mapping->bytes = 0;
}

/* Map `fd` (or fresh memory, fd -1) at a huge-page boundary, so that the kernel may back it by huge pages. */
static char *map_aligned(const struct call *call, const char *what, size_t bytes, int protection, int flags, int fd)
{
    char *reserved = mmap(NULL, bytes + HUGE_PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED)
        fail(call->control, "memory: cannot reserve %zu bytes for %s: %s", bytes, what, strerror(errno));
    char *base = (char *)(((uintptr_t)reserved + HUGE_PAGE - 1) & ~(uintptr_t)(HUGE_PAGE - 1));
    if (base > reserved)
        munmap(reserved, (size_t)(base - reserved));
    size_t page = (size_t)sysconf(_SC_PAGESIZE), end = (bytes + page - 1) & ~(page - 1);
    munmap(base + end, (size_t)(reserved + HUGE_PAGE - base));
    if (mmap(base, bytes, protection, flags | MAP_FIXED, fd, 0) == MAP_FAILED)
        fail(call->control, "memory: cannot map %zu bytes for %s: %s", bytes, what, strerror(errno));
    madvise(base, bytes, MADV_HUGEPAGE);
    return base;
}

/* Fill the page table now, so that no call pays for the first touch of a page. */
static void populate(char *base, size_t bytes, int advice)
{
    if (!bytes || madvise(base, bytes, advice) == 0)
        return;
    for (size_t at = 0; at < bytes; at += 4096)
        (void)*(volatile const char *)(base + at);
}

static size_t size_of(const struct call *call, int fd)
{
    struct stat status;
    if (fd < 0 || fstat(fd, &status) != 0)
        fail(call->control, "protocol: a descriptor is missing");
    return (size_t)status.st_size;
}

static void map_outputs(struct call *call, size_t bytes, int fd)
{
    unmap(&call->outputs);
    call->outputs.bytes = size_of(call, fd);
    call->outputs.base = map_aligned(call, "outputs", call->outputs.bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd);
    madvise(call->outputs.base, call->outputs.bytes, MADV_DONTFORK);
    populate(call->outputs.base, bytes, MADV_POPULATE_WRITE);
    close(fd);
}

/* Every draw of this process lies in the same memory, which only the judge can write. */
static void map_draw(struct call *call, int fd)
{
    unmap(&call->draw);
    call->draw.bytes = size_of(call, fd);
    call->draw.base = map_aligned(call, "inputs", call->draw.bytes, PROT_READ, MAP_SHARED, fd);
    call->populated = 0;
    close(fd);
}

#ifdef HB_SANITIZED
/* `bytes` of memory that ends where the array ends, holding what `from` holds. */
static void *exact_copy(const struct call *call, const void *from, size_t bytes)
{
    void *made = NULL;
    if (posix_memalign(&made, PAGE, bytes) != 0)
        fail(call->control, "memory: cannot copy %zu bytes", bytes);
    if (bytes)
        memcpy(made, from, bytes);
    return made;
}

static void copy_in(struct call *call, const struct load_frame *head, const struct pointer_frame *pointer)
{
    call->n_pointers = head->n_pointers;
    for (uint32_t k = 0; k < head->n_pointers; k++) {
        call->shared[k] = pointer[k].in_outputs ? call->pointers[k] : NULL;
        call->bytes[k] = pointer[k].bytes;
        call->pointers[k] = exact_copy(call, call->pointers[k], pointer[k].bytes);
    }
    if (call->workspace)
        call->workspace = exact_copy(call, call->workspace, (size_t)call->workspace_bytes);
}

static void copy_out(struct call *call)
{
    for (uint32_t k = 0; k < call->n_pointers; k++) {
        if (call->shared[k] && call->bytes[k])
            memcpy(call->shared[k], call->pointers[k], call->bytes[k]);
        free(call->pointers[k]);
    }
    free(call->workspace);
}
#endif

/* The kernel's library comes last: by then no descriptor of shared memory is open in this process. */
static void open_library(struct call *call)
{
    void *handle = dlopen(call->library, RTLD_NOW | RTLD_LOCAL);
    if (!handle)
        fail(call->control, "library: %s", dlerror());
    call->kernel = (kernel_fn)dlsym(handle, call->symbol);
    if (!call->kernel)
        fail(call->control, "library: no symbol %s", call->symbol);
    call->fp_modes = hb_fp_restore();
}

/* Map what is new and find the arguments in it. The judge has written every first value and zeroed the workspace. */
static void load(struct call *call)
{
    static _Alignas(8) char frame[FRAME_MAX];
    int fds[2];
    size_t got = receive(call, frame, sizeof frame, fds);
    const struct load_frame *head = (const struct load_frame *)frame;
    size_t need = sizeof *head;
    if (got >= need)
        need += head->n_pointers * sizeof(struct pointer_frame) + head->n_scalars * sizeof(uint64_t);
    if (got != need || head->kind != LOAD || head->n_pointers > MAX_ARGS || head->n_scalars > MAX_ARGS)
        fail(call->control, "protocol: not a load frame");
    int next = 0;
    if (head->fresh & NEW_DRAW)
        map_draw(call, fds[next++]);
    if (head->fresh & NEW_OUTPUTS)
        map_outputs(call, head->output_bytes, fds[next]);
    if (head->draw_bytes > call->draw.bytes || head->output_bytes > call->outputs.bytes)
        fail(call->control, "protocol: the arrays do not fit their memory");
    if (head->draw_bytes > call->populated) {
        populate(call->draw.base + call->populated, head->draw_bytes - call->populated, MADV_POPULATE_READ);
        call->populated = head->draw_bytes;
    }
    const struct pointer_frame *pointer = (const struct pointer_frame *)(head + 1);
    for (uint32_t k = 0; k < head->n_pointers; k++) {
        char *base = pointer[k].in_outputs ? call->outputs.base : call->draw.base;
        call->pointers[k] = base + pointer[k].offset;
    }
    memcpy(call->scalars, pointer + head->n_pointers, head->n_scalars * sizeof(uint64_t));
    call->workspace = head->workspace_bytes ? (uint8_t *)call->outputs.base + head->workspace_offset : NULL;
    call->workspace_bytes = (int64_t)head->workspace_bytes;
#ifdef HB_SANITIZED
    copy_in(call, head, pointer);
#endif
    if (!call->kernel)
        open_library(call);
}

static inline uint64_t now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void nothing(void)
{
}

/* The call by two clocks: the quick one right around it, and the kernel's, which nothing in this process can change. */
static inline struct clocks clocked(struct call *call, kernel_fn kernel)
{
    struct clocks took;
    uint64_t outer = hb_kernel_ns(), start = now(CLOCK_MONOTONIC);
    /* clock, shim, arguments and the first line of the kernel are in cache again before it counts */
    __builtin_prefetch((const void *)kernel);
    call->shim(nothing, call->pointers, call->scalars, call->workspace, call->workspace_bytes);
    start = now(CLOCK_MONOTONIC);
    call->shim(kernel, call->pointers, call->scalars, call->workspace, call->workspace_bytes);
    took.own_ns = now(CLOCK_MONOTONIC) - start;
    took.kernel_ns = hb_kernel_ns() - outer;
    return took;
}

static inline uint64_t less(uint64_t took, uint64_t overhead)
{
    return took > overhead ? took - overhead : 1;
}

/* What the clocks and the call itself take: the least that calling an empty function was seen to take. */
static void calibrate(struct call *call)
{
    call->overhead.own_ns = call->overhead.kernel_ns = UINT64_MAX;
    for (int k = 0; k < CALIBRATIONS; k++) {
        struct clocks took = clocked(call, nothing);
        if (took.own_ns < call->overhead.own_ns)
            call->overhead.own_ns = took.own_ns;
        if (took.kernel_ns < call->overhead.kernel_ns)
            call->overhead.kernel_ns = took.kernel_ns;
    }
}

/* The quick clock's reading, unless the kernel's says that more has passed than an interrupt between the two takes. */
static uint64_t believed(const struct call *call, struct clocks took, uint32_t *flags)
{
    uint64_t own = less(took.own_ns, call->overhead.own_ns), kernel = less(took.kernel_ns, call->overhead.kernel_ns);
    if (kernel <= own + own / SKEW_SHARE + SKEW_NS)
        return own;
    *flags |= HB_CLOCK;
    return kernel;
}

static void run(struct call *call)
{
    struct go_frame go;
    int fds[2];
    if (receive(call, &go, sizeof go, fds) != sizeof go || go.kind != GO)
        fail(call->control, "protocol: not a go frame");
    uint64_t cpu = now(CLOCK_PROCESS_CPUTIME_ID);
    struct clocks took = clocked(call, call->kernel);
    struct done_frame done = {.kind = DONE, .nonce = go.nonce, .changed = hb_fp_restore()};
    done.inside_ns = believed(call, took, &done.changed);
    done.cpu_ns = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
#ifdef HB_SANITIZED
    copy_out(call);
#endif
    reply(call, &done, sizeof done);
}

/* As process 1 of its namespace this process is spared its own default signals, abort()'s among them. */
static void on_abort(int signal_number)
{
    _exit(128 + signal_number);
}

/* The socket at the first number after the standard ones, which says nothing about what the judge has open. */
static int first_free(int control)
{
    int low = fcntl(control, F_DUPFD, STDERR_FILENO + 1);
    if (low < 0 || low > control) {
        close(low);
        return control;
    }
    close(control);
    return low;
}

_Noreturn static void serve(char **argv)
{
    static struct call call;
    call.control = first_free(atoi(argv[0]));
    call.library = argv[2];
    call.symbol = argv[3];
#ifndef HB_SANITIZED
    dup2(STDOUT_FILENO, STDERR_FILENO); /* from here on nothing is read from this process but its frames */
#endif
    void *handle = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    call.shim = handle ? (shim_fn)dlsym(handle, "hb_call") : NULL;
    if (!call.shim)
        fail(call.control, "cannot load the call shim: %s", dlerror());
    calibrate(&call);
    signal(SIGABRT, on_abort);
    if (hb_lockdown() != 0 && atoi(argv[4]))
        fail(call.control, "this kernel has no system-call filter: %s", strerror(errno));
    uint32_t hello[2] = {HELLO, 0}, ready[2] = {READY, 0};
    reply(&call, hello, sizeof hello);
    for (;;) {
        load(&call);
        ready[1] = call.fp_modes;
        reply(&call, ready, sizeof ready);
        run(&call);
    }
}

int main(int argc, char **argv)
{
    if (argc == 7 && !strcmp(argv[1], "serve"))
        serve(argv + 2);
    if (argc > 7 && !strncmp(argv[1], "launch", 6))
        return hb_launch(argv[1] + 6, argv + 2);
    fprintf(stderr, "usage: runner launch[-compiler|-sanitized] CORES STACK DATA FILE -- PROGRAM ARGS...\n"
                    "       runner serve FD SHIM LIBRARY SYMBOL STRICT\n");
    return 2;
}
