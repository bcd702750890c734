"""`make fuzz`: draws cases for each target, and prints what must not happen and how to repeat it."""

import argparse
import contextlib
import secrets
import sys
import time
from itertools import count

from fuzz.bodies import Bodies
from fuzz.frames import Frames
from fuzz.ops import Ops
from fuzz.plans import Plans
from fuzz.sequences import Sequences
from fuzz.target import Report, Target, run
from fuzz.tensor_files import TensorFiles


def main() -> int:
    """Returns 1 if anything came up."""
    targets: dict[str, Target] = {
        target.name: target for target in (Ops(), Frames(), Sequences(), Bodies(), Plans(), TensorFiles())
    }
    options = _options(", ".join(targets))
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    names = options.only.split(",") if options.only else list(targets)
    if unknown := [name for name in names if name not in targets]:
        sys.exit(f"unknown target {unknown[0]!r}: choose from {', '.join(targets)}")
    numbers = range(options.case, options.case + 1) if options.case is not None else None
    if numbers is None and options.count is not None:
        numbers = range(options.first, options.first + options.count)
    seconds = options.seconds if options.seconds is not None else float("inf") if numbers is not None else 30
    failed = False
    for name in names:
        began = time.monotonic()
        with contextlib.closing(targets[name]) as target:
            report = run(target, seed, iter(numbers or count(options.first)), until=began + seconds, show=_say)
        _say(_summary(name, report, seed, time.monotonic() - began))
        failed = failed or bool(report.findings)
    return int(failed)


def _options(names: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="make fuzz",
        description=__doc__,
        epilog="A case depends on seed and number alone: --seed and --case repeat a printed one.",
    )
    parser.add_argument("--only", metavar="NAMES", help=f"of {names}; separated by commas")
    parser.add_argument("--seconds", type=float, help="for each target (default: 30, with --count no limit)")
    parser.add_argument("--count", type=int, help="cases for each target")
    parser.add_argument("--seed", type=int, help="of the run (default: a new one, which is printed)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="the one case of this number")
    return parser.parse_args()


def _summary(name: str, report: Report, seed: int, seconds: float) -> str:
    outcomes = ", ".join(f"{outcome} {number:,}" for outcome, number in report.outcomes.most_common())
    slowest, case = report.slowest
    lines = [
        f"{name}: {report.cases:,} cases in {seconds:.0f} s, seed {seed}: {len(report.findings)} kinds of finding",
        f"  outcomes: {outcomes}",
        f"  slowest: {slowest:.2f} s (case {case})",
        *(f"  {number:,} × {kind} (case {first})" for kind, (number, first, _) in sorted(report.findings.items())),
    ]
    return "\n".join(lines)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
