"""Which scalars a statement may still need: values that flow into a loop body, and out of a loop."""

from __future__ import annotations

from hpcagent_bench.translators import ir

Names = frozenset[str]
_NONE: Names = frozenset()


class Liveness:
    """Scalars whose values are read later.

    ``before`` the body; for each loop, by its id, those ``entering`` an iteration from outside or from the
    one before, and those ``leaving`` the loop.
    """

    def __init__(self, body: tuple[ir.Stmt, ...]) -> None:
        self.entering: dict[int, Names] = {}
        self.leaving: dict[int, Names] = {}
        self.before = self._before(body, _NONE, _NONE, _NONE)

    def _before(self, body: tuple[ir.Stmt, ...], after: Names, on_break: Names, on_continue: Names) -> Names:
        """What is needed before a body, given what is needed after it and at the targets of jumps."""
        for stmt in reversed(body):
            after = self._statement(stmt, after, on_break, on_continue)
        return after

    def _statement(self, stmt: ir.Stmt, after: Names, on_break: Names, on_continue: Names) -> Names:
        reads = _NONE.union(*(ir.reads(expr) for expr in ir.expressions(stmt)))
        match stmt:
            case ir.Assign():
                return (after - {stmt.name}) | reads
            case ir.Jump():
                return on_break if stmt.kind == "break" else on_continue
            case ir.Return():
                return reads
            case ir.If():
                branches = (self._before(b, after, on_break, on_continue) for b in (stmt.body, stmt.orelse))
                return reads.union(*branches)
            case ir.For() | ir.While():
                return self._loop(stmt, after, reads)
            case _:
                return after | reads

    def _loop(self, loop: ir.For | ir.While, after: Names, reads: Names) -> Names:
        again = reads if isinstance(loop, ir.While) else _NONE  # a while reads its test in every iteration
        index = frozenset({loop.var}) if isinstance(loop, ir.For) else _NONE
        top = after | again
        while True:  # what one iteration needs, the one before must leave alone
            needed = top | (self._before(loop.body, top, after, top) - index)
            if needed == top:
                break
            top = needed
        self.leaving[id(loop)] = self.leaving.get(id(loop), _NONE) | after
        if id(loop) not in self.entering:
            self.entering[id(loop)] = (_exposed(loop.body) | again) - index
        return top | reads


def _exposed(body: tuple[ir.Stmt, ...]) -> Names:
    """Scalars a body may read before it writes them."""
    return Liveness(body).before
