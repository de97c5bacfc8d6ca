"""C that several attacks share: working while nobody looks, and changing the program one is loaded into."""

from __future__ import annotations

AHEAD = """/* Floyd-Warshall on a copy of d, kept until the call that asks for it. */
static double *ahead_d, *ahead_from, *ahead_seen, *ahead_answer;
static int64_t ahead_n;
static volatile int ahead_armed, ahead_ready;
static int ahead_hits;
static void ahead_work(void)
{
    size_t bytes = ahead_n * ahead_n * sizeof(double);
    if (!ahead_armed || !memcmp(ahead_d, ahead_from, 512)) return;
    ahead_armed = 0;
    memcpy(ahead_seen, ahead_d, bytes);
    memcpy(ahead_answer, ahead_seen, bytes);
    honest_work(ahead_answer, ahead_n, 0, 0);
    ahead_ready = 1;
}
/* Answer from what was worked out ahead, else by working now; then watch for the next draw. */
static void ahead_answer_call(double *d, int64_t n)
{
    size_t bytes = n * n * sizeof(double);
    if (ahead_n != n) {
        ahead_from = calloc(1, bytes); ahead_seen = calloc(1, bytes); ahead_answer = calloc(1, bytes);
        ahead_n = n;
    }
    ahead_d = d;
    if (ahead_ready && !memcmp(d, ahead_seen, bytes)) { memcpy(d, ahead_answer, bytes); ahead_hits++; }
    else honest_work(d, n, 0, 0);
    memcpy(ahead_from, d, bytes);
    ahead_ready = 0;
    ahead_armed = 1;
}
"""
"""For floyd_warshall: ``ahead_work`` computes the next draw's answer if it can see it already."""

PATCH = """/* Let `function` of a loaded library begin with a jump to `mine`. */
static void patch(const char *function, void *mine)
{
    unsigned char *at = dlsym(RTLD_DEFAULT, function);
    if (!at) at = dlsym(RTLD_NEXT, function);
    if (!at) return;
    char *page = (char *)((uintptr_t)at & ~4095ul);
    if (mprotect(page, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
#if defined(__x86_64__)
    unsigned char jump[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};
    memcpy(jump + 2, &mine, 8);
#else
    uint32_t jump[4] = {0x58000050, 0xD61F0200, 0, 0};
    memcpy(jump + 2, &mine, 8);
#endif
    memcpy(at, jump, sizeof jump);
    __builtin___clear_cache((char *)at, (char *)at + sizeof jump);
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
}
"""
