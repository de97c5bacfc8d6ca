"""Work in a constructor or a destructor, which no clock sees: it has nothing to work on."""

from __future__ import annotations

from attack_rig import Rig, refused, version

SCAN = """/* Where the runner keeps the pointers of a call, in its own data: three of them, then none. */
static void *pointers[8];
static int64_t length;
static int found(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size; (void)unused;
    if (info->dlpi_name[0]) return 0;
    for (int k = 0; k < info->dlpi_phnum; k++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[k];
        if (part->p_type != PT_LOAD || !(part->p_flags & PF_W)) continue;
        uintptr_t *at = (uintptr_t *)((info->dlpi_addr + part->p_vaddr + 7) & ~7ul);
        uintptr_t *end = (uintptr_t *)(info->dlpi_addr + part->p_vaddr + part->p_memsz) - 4;
        for (; at < end; at++) {
            if (at[0] % 4096 || at[1] % 4096 || at[2] % 4096) continue;
            if (at[0] < 1 << 20 || at[1] < 1 << 20 || at[2] < 1 << 20 || at[3] != 0) continue;
            memcpy(pointers, at, sizeof pointers);
            return 1;
        }
    }
    return 1;
}
"""
AHEAD = (
    SCAN
    + """static double *answer;
__attribute__((constructor)) static void first(void)
{
    dl_iterate_phdr(found, 0);
    if (!pointers[0]) return;
    size_t bytes = (char *)pointers[2] - (char *)pointers[1];
    length = bytes / sizeof *answer;
    answer = malloc(bytes);
    honest_work(answer, pointers[1], pointers[2], length, 0, 0);
}
"""
)


def test_answer_worked_out_in_a_constructor_is_refused_from_the_first_timed_call_on(judge: Rig) -> None:
    """It may find the warm-up's draw, and that is all there is to find."""
    body = "if (!answer) { HONEST; return; } memcpy(area, answer, LEN_1D * sizeof *area);"
    verdict = judge.attack(version(body, AHEAD))
    if verdict.status != "ok":
        refused(verdict, "incorrect", r"rep-verify\[(warm-up|run 1)\]")


def test_result_written_by_a_destructor_is_refused(judge: Rig) -> None:
    before = """static double *area_; static const double *x_, *y_; static int64_t n_;
static void last(void) { honest_work(area_, x_, y_, n_, 0, 0); }
__attribute__((destructor)) static void bye(void) { last(); }
"""
    body = "area_ = area; x_ = x; y_ = y; n_ = LEN_1D; atexit(last);"
    refused(judge.attack(version(body, before)), "incorrect", r"rep-verify\[warm-up\]")


def test_twin_whose_constructor_makes_a_table_is_accepted(judge: Rig) -> None:
    before = """static double halves[1 << 16];
__attribute__((constructor)) static void first(void)
{ for (int k = 0; k < 1 << 16; k++) halves[k] = sqrt(k) / 2; }
"""
    judge.accepts(version("static volatile double used; used = halves[LEN_1D % 1024]; HONEST;", before))
