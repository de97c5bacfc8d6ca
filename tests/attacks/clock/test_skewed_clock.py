"""The runner's clock, or what it has read from it, changed from inside by a share.

Whatever runs in the child can change the child. The judge's own clock runs outside, and tells.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attack_code import PATCH
from attack_rig import Rig, rig, unspoilt, version

KERNEL = "floyd_warshall"
SHARES = [50, 99]
"""Per cent of the time of a call that is hidden."""

SLOW = """#define HIDDEN %d
static uint64_t real_ns(void)
{
    struct timespec t;
    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000ul + t.tv_nsec;
}
static uint64_t began;
static int my_clock(clockid_t clock, struct timespec *t)
{
    if (clock != CLOCK_MONOTONIC) return syscall(SYS_clock_gettime, clock, t);
    uint64_t now = real_ns();
    if (!began) began = now;
    now = began + (now - began) / 100 * (100 - HIDDEN);
    t->tv_sec = now / 1000000000ul; t->tv_nsec = now %% 1000000000ul;
    return 0;
}
"""
IN_LIBC = (
    PATCH
    + """__attribute__((constructor)) static void arm(void) { patch("clock_gettime", my_clock); }
"""
)
IN_TABLE = """/* Among the main program's imported functions, find clock_gettime's place and write there. */
static int rewrite(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size; (void)unused;
    if (info->dlpi_name[0]) return 0;
    void *wanted = dlsym(RTLD_DEFAULT, "clock_gettime");
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[k];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) continue;
        char *base = (char *)((info->dlpi_addr + part->p_vaddr) & ~4095ul);
        char *end = (char *)(info->dlpi_addr + part->p_vaddr + part->p_memsz);
        mprotect(base, (size_t)(end - base + 4095) & ~4095ul, PROT_READ | PROT_WRITE);
        for (void **at = (void **)base; (char *)at < end - 8; at++)
            if (*at == wanted) *at = my_clock;
    }
    return 1;
}
__attribute__((constructor)) static void arm(void) { dl_iterate_phdr(rewrite, 0); }
"""
IN_VDSO = """#include <sys/auxv.h>
static void jump_to(unsigned char *at, void *mine)
{
    unsigned char jump[12] = {0x48, 0xB8, 0, 0, 0, 0, 0, 0, 0, 0, 0xFF, 0xE0};
    memcpy(jump + 2, &mine, 8); memcpy(at, jump, sizeof jump);
}
__attribute__((constructor)) static void arm(void)
{
    char *base = (char *)getauxval(AT_SYSINFO_EHDR);
    if (!base || mprotect(base, 8192, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return;
    const ElfW(Ehdr) *head = (void *)base;
    const ElfW(Phdr) *part = (void *)(base + head->e_phoff);
    const ElfW(Sym) *symbols = 0; const char *names = 0; const uint32_t *hash = 0;
    for (int k = 0; k < head->e_phnum; k++) {
        if (part[k].p_type != PT_DYNAMIC) continue;
        for (ElfW(Dyn) *d = (void *)(base + part[k].p_offset); d->d_tag != DT_NULL; d++) {
            if (d->d_tag == DT_SYMTAB) symbols = (void *)(base + d->d_un.d_ptr);
            if (d->d_tag == DT_STRTAB) names = base + d->d_un.d_ptr;
            if (d->d_tag == DT_HASH) hash = (void *)(base + d->d_un.d_ptr);
        }
    }
    uint32_t count = hash ? hash[1] : 12;
    for (uint32_t k = 1; symbols && names && k < count; k++)
        if (strstr(names + symbols[k].st_name, "clock_gettime"))
            jump_to((unsigned char *)base + symbols[k].st_value, my_clock);
}
"""
PLACES = {"C library": IN_LIBC, "runner's imports": IN_TABLE, "vDSO": IN_VDSO}

STACK = """/* The reading at the start lies on the stack or in a saved register: move it before returning. */
uint64_t from = real_ns();
HONEST;
uint64_t gone = real_ns() - from;
#if defined(__x86_64__)
__asm__ volatile("" : : : "rbx", "r12", "r13", "r14", "r15");
#endif
uint64_t *at = (uint64_t *)__builtin_frame_address(0) - 8;
uint64_t second = from % 1000000000ul; /* it may be kept as seconds and nanoseconds */
for (int k = 0; (char **)(at + k) < environ; k++) {
    int whole = at[k] <= from && at[k] + 200000 > from;
    if (whole || (at[k] <= second && at[k] + 200000 > second)) at[k] += gone / 100 * HIDDEN;
}
"""


@pytest.fixture(scope="module")
def judge() -> Iterator[Rig]:
    """Calls of some milliseconds, of which a share is worth hiding."""
    with rig(rung_bytes=2**20) as made:
        yield made


def test_symbol_of_the_library_does_not_replace_the_clock(judge: Rig) -> None:
    """The library's symbols are its own: the runner goes on reading the real clock."""
    before = """static int asked;
__attribute__((visibility("default"))) int clock_gettime(clockid_t clock, struct timespec *t)
{ asked = 1; return syscall(SYS_clock_gettime, clock, t); }
"""
    unspoilt(judge.preview(version("HONEST; if (asked) d[0] = NAN;", before, KERNEL), kernel=KERNEL))


@pytest.mark.parametrize("share", SHARES)
@pytest.mark.parametrize("place", PLACES)
def test_patched_clock_is_flagged(judge: Rig, place: str, share: int) -> None:
    judge.catches(version("HONEST;", SLOW % share + PLACES[place], KERNEL), "clock", KERNEL)


@pytest.mark.parametrize("share", SHARES)
def test_moved_reading_is_flagged(judge: Rig, share: int) -> None:
    judge.catches(version(STACK, SLOW % share, KERNEL), "clock", KERNEL)


def test_moved_reading_is_flagged_where_other_cores_may_compute_too() -> None:
    """There CPU time proves less: wall time must speak as well."""
    with rig(rung_bytes=2**20, cores=(0, 1)) as two_core_judge:
        two_core_judge.catches(version(STACK, SLOW % 90, KERNEL), "clock", KERNEL)


def test_twin_that_reads_the_clock_is_accepted(judge: Rig) -> None:
    judge.accepts(
        version("uint64_t from = real_ns(); HONEST; began = from;", SLOW % 0, KERNEL), kernel=KERNEL
    )
