"""What the judge knows of one call of a child."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

JUDGE_SIDE = ("seal:", "memory:")
"""How the detail of a failure starts that is the judge's; what a child says of itself never does."""


@dataclass(frozen=True)
class Outcome:
    """One call as measured. Times are nanoseconds; all are 0 unless ``status`` is ok.

    ``inside_ns`` is read by the child around the call alone, less what calling an empty function takes and
    never below 1; ``outside_ns`` is read by the judge around the exchange. ``cpu_ns`` is CPU time of all the
    child's threads from GO until they stood, ``late_cpu_ns`` the part of it that came after the answer and
    ``load_cpu_ns`` what they used while this call's draw was handed over (0 for a child's first draw), all
    read by the judge. ``fp_modes`` names floating-point modes that the code left changed (they are put
    right before the next call), ``overrun`` the array past whose end it wrote. ``skewed`` says that the
    child's own clock fell behind the kernel's, whose reading ``inside_ns`` then is.

    ``detail`` of a failure is one line. It starts with ``seal:`` when the child failed before any code of a
    submission was loaded or the machine did not stop it, and with ``memory:`` when the judge had none left:
    neither is the submission's fault, and no submission can bring these words about. It starts with
    ``sanitizer:`` when the address sanitizer ended the child.
    """

    status: Literal["ok", "crash", "timeout", "refused"]
    inside_ns: int = 0
    outside_ns: int = 0
    cpu_ns: int = 0
    detail: str = ""
    late_cpu_ns: int = 0
    load_cpu_ns: int = 0
    fp_modes: str = ""
    overrun: str = ""
    skewed: bool = False

    @property
    def judges_fault(self) -> bool:
        """Whether the judge's own sealing or memory failed, not the submission."""
        return self.status == "refused" and self.detail.startswith(JUDGE_SIDE)


def modes_changed(at_load: str, at_call: str) -> str:
    """Which floating-point modes were left changed, and by what."""
    said = [f"{modes} {when}" for modes, when in ((at_load, "at load"), (at_call, "by the call")) if modes]
    return "; ".join(said)
