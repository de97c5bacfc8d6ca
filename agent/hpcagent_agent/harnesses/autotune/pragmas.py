"""What is said to the compiler, or stored past the cache, without changing the order of anything."""

from __future__ import annotations

from dataclasses import replace

from . import ir
from .affine import Poly
from .dependence import Analysis, Loops
from .reduce import clauses, loop_reductions
from .rewrite import element_type, minus, rewrite, smaller

STREAM_BLOCK = 512
STREAM_HELPER = """
#if defined(__AVX__)
#include <immintrin.h>
#endif

/* Copies past the cache: for elements nobody reads again soon. */
static inline void store_past_cache(double *restrict to, const double *restrict from, int64_t count)
{
    int64_t k = 0;
#if defined(__AVX__)
    while (k < count && ((uintptr_t)(to + k) & 31) != 0) {
        to[k] = from[k];
        k++;
    }
    for (; k + 4 <= count; k += 4) {
        _mm256_stream_pd(to + k, _mm256_loadu_pd(from + k));
    }
#endif
    for (; k < count; k++) {
        to[k] = from[k];
    }
}

static inline void finish_stores(void)
{
#if defined(__AVX__)
    _mm_sfence();
#endif
}
"""


def simd(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Marks every innermost loop whose iterations share nothing but reductions."""

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or not ir.innermost(stmt):
            return None
        if stmt.pragma or ir.has_raw(stmt.body) or any(isinstance(s, ir.Do) for s in stmt.body):
            return (stmt,)
        found = loop_reductions(stmt)
        if analysis.carries(stmt, outer, found):
            return (stmt,)
        return (replace(stmt, pragma=f"#pragma omp simd{clauses(found)}"),)

    return fn.with_body(rewrite(fn.body, visit))


def parallel(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Spreads the outermost loops whose iterations share nothing but reductions over threads."""

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or ir.has_raw(stmt.body):
            return None
        found = loop_reductions(stmt)
        if analysis.carries(stmt, outer, found):
            return None
        simd_too = " simd" if ir.innermost(stmt) else ""
        return (replace(stmt, pragma=f"#pragma omp parallel for{simd_too} schedule(static){clauses(found)}"),)

    return fn.with_body(rewrite(fn.body, visit))


def store_past_cache(fn: ir.Function, analysis: Analysis) -> ir.Function:
    """Arrays of doubles that are only written, once per iteration and unit-stride, go around the cache."""
    fresh = ir.Fresh(fn)
    read = ir.reads(fn.body)

    def visit(stmt: ir.Stmt, outer: Loops) -> ir.Body | None:
        if not isinstance(stmt, ir.Loop) or not ir.innermost(stmt) or stmt.step != 1:
            return None
        if ir.has_raw(stmt.body) or analysis.carries(stmt, outer, loop_reductions(stmt)):
            return None
        targets = [t for t in _write_only(fn, stmt, analysis, outer) if t.array not in read]
        return (_blocked(stmt, targets, fresh), ir.Do(ir.Call("finish_stores", ()))) if targets else None

    new = fn.with_body(rewrite(fn.body, visit))
    return fn if new.body == fn.body else replace(new, helpers=(*fn.helpers, STREAM_HELPER))


def _write_only(fn: ir.Function, loop: ir.Loop, analysis: Analysis, outer: Loops) -> list[ir.Sub]:
    found: list[ir.Sub] = []
    for stmt in loop.body:
        if not isinstance(stmt, ir.Assign) or not isinstance(target := stmt.target, ir.Sub):
            continue
        flat = analysis.poly(target.index, (*outer, loop))
        writes = [
            s
            for s in ir.statements(loop.body)
            if isinstance(s, ir.Assign) and target.array in ir.writes((s,))
        ]
        unit = flat is not None and flat.coefficient(loop.var) == Poly.const(1)
        if unit and len(writes) == 1 and element_type(fn, target.array) == "double":
            found.append(target)
    return found


def _blocked(loop: ir.Loop, targets: list[ir.Sub], fresh: ir.Fresh) -> ir.Loop:
    block, end = fresh(f"{loop.var}_block"), fresh(f"{loop.var}_end")
    stop = ir.Bin("+", ir.Name(block), ir.Num(str(STREAM_BLOCK)))
    lead: list[ir.Stmt] = [ir.Decl("const int64_t", end, smaller(stop, loop.hi))]
    trail: list[ir.Stmt] = []
    body = loop.body
    for target in targets:
        buffer = fresh(f"{target.array}_block")
        lead.append(ir.Decl("double", buffer, None, STREAM_BLOCK))
        place = ir.Sub(buffer, minus(ir.Name(loop.var), ir.Name(block)))
        body = tuple(
            replace(s, target=place) if isinstance(s, ir.Assign) and s.target == target else s for s in body
        )
        first = ir.Un("&", ir.substitute_expr(target, {loop.var: ir.Name(block)}))
        length = minus(ir.Name(end), ir.Name(block))
        trail.append(ir.Do(ir.Call("store_past_cache", (first, ir.Name(buffer), length))))
    inner_pragma, outer_pragma = loop.pragma, ""
    if "parallel" in loop.pragma:  # threads share out the blocks, each block is one vector loop
        inner_pragma = f"#pragma omp simd{clauses(loop_reductions(loop))}"
        outer_pragma = loop.pragma.replace(" simd", "")
    inner = replace(loop, lo=ir.Name(block), hi=ir.Name(end), body=body, pragma=inner_pragma)
    return ir.Loop(block, loop.lo, loop.hi, STREAM_BLOCK, (*lead, inner, *trail), outer_pragma)
