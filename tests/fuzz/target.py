"""What all fuzz targets share: a case from seed and number, the bounds that it runs under, and what a run prints."""

import contextlib
import faulthandler
import json
import random
import resource
import signal
import sys
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

CORPUS = Path(__file__).with_name("corpus")

#: Seconds of one case. Far more than any takes, also on a busy machine.
SECONDS = 20.0
#: Bytes that the process may map beyond what it has mapped when a run begins.
ADDRESS_SPACE = 3 << 30


class Finding(AssertionError):
    """Raised if a case does what no document says; the message begins with a phrase that is the same for its kind."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind


class Hang(BaseException):
    """Raised inside a case that takes too long. No Exception: nothing that is tested catches it."""


class Target(Protocol):
    """One thing to fuzz.

    Attributes:
        name: Its word on the command line, and its file in the corpus.
    """

    name: str

    def close(self) -> None:
        """Ends what the target has started."""

    def draw(self, rng: random.Random) -> Any:
        """A case as JSON-able data."""

    def check(self, case: Any) -> list[str]:
        """Runs a case; returns a word for what became of each call, frame, body or batch in it.

        Raises:
            Finding: It did what no document says.
        """

    def smaller(self, case: Any) -> Iterator[Any]:
        """Simpler cases, to be tried in place of one that failed; none if that is not cheap."""


@dataclass
class Report:
    """What a run came to.

    Attributes:
        cases: How many ran.
        outcomes: How many calls, frames, bodies or batches by the word that `Target.check` returned.
        findings: By kind: how many, the number of the first, its message.
    """

    cases: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    findings: dict[str, tuple[int, int, str]] = field(default_factory=dict)
    slowest: tuple[float, int] = (0.0, -1)


def random_of(target: Target, seed: int, number: int) -> random.Random:
    """The random numbers of one case: they depend on nothing else, so that any case can be drawn again by itself."""
    return random.Random(f"{target.name} {seed} {number}")


def corpus(target: Target) -> list[Any]:
    """The cases that failed once, and were mended."""
    path = CORPUS / f"{target.name}.json"
    return json.loads(path.read_text()) if path.exists() else []  # type: ignore[no-any-return]


@contextlib.contextmanager
def bounded(address_space: int = ADDRESS_SPACE) -> Iterator[None]:
    """A block under a limit of the address space, in which warnings are errors and time is limited by `in_time`."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    previous = signal.signal(signal.SIGALRM, _hang)
    resource.setrlimit(resource.RLIMIT_AS, (mapped + address_space, hard))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
        signal.signal(signal.SIGALRM, previous)


def _hang(signum: int, frame: object) -> None:
    raise Hang


def in_time(check: Callable[[Any], list[str]], case: Any, seconds: float = SECONDS) -> list[str]:
    """`check(case)`; one that does not end is a finding.

    Raises:
        Finding: As `check`, or after too many seconds. Native code that does not return to Python cannot be stopped:
            then the process prints its stack and ends.
    """
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        return check(case)
    except Hang:
        raise Finding("hang", f"no end after {seconds:g} s") from None
    except MemoryError as error:
        raise Finding("memory", "more than the address space that the run may have") from error
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def run(
    target: Target,
    seed: int,
    numbers: Iterator[int],
    *,
    until: float = float("inf"),
    show: Callable[[str], None] = lambda text: None,
) -> Report:
    """Draws and checks the cases of these numbers, until `time.monotonic()` passes `until`, or until an interrupt.

    Args:
        target: What to fuzz.
        seed: Of the run.
        numbers: Of the cases.
        until: No further case begins after that.
        show: Called with a text about each new kind of finding.
    """
    report = Report()
    with contextlib.suppress(KeyboardInterrupt), bounded():
        for number in numbers:
            if time.monotonic() > until:
                break
            faulthandler.dump_traceback_later(6 * SECONDS, exit=True, file=sys.__stderr__ or sys.stderr)
            began, case = time.monotonic(), None
            try:
                case = target.draw(random_of(target, seed, number))
                report.outcomes.update(in_time(target.check, case))
            except Finding as finding:
                count, first, text = report.findings.get(finding.kind, (0, number, str(finding)))
                report.findings[finding.kind] = (count + 1, first, text)
                if not count:
                    show(described(target, seed, number, case, finding))
            report.cases += 1
            report.slowest = max(report.slowest, (time.monotonic() - began, number))
    return report


def described(target: Target, seed: int, number: int, case: Any, finding: Finding) -> str:
    """A finding, the smallest case of its kind, and how to repeat it."""
    small = None if case is None else smallest(target, case, finding.kind)
    text = json.dumps(small)
    return (
        f"{finding}\n"
        f"  again:    make fuzz ARGS='--only {target.name} --seed {seed} --case {number}'\n"
        f"  smallest: {text if len(text) < 2000 else text[:2000] + ' …'}"
    )


def smallest(target: Target, case: Any, kind: str, attempts: int = 400) -> Any:
    """The simplest case of the same kind that few attempts find."""
    left = attempts
    progress = True
    while progress and left > 0:
        progress = False
        for simpler in target.smaller(case):
            left -= 1
            if left <= 0:
                break
            try:
                in_time(target.check, simpler)
            except Finding as finding:
                if finding.kind == kind:
                    case, progress = simpler, True
                    break
    return case
