"""`make fuzz`: draws cases for each target, and prints what must not happen and how to repeat it."""

import argparse
import secrets
import sys
import time
from itertools import count

from fuzz.target import Target, run

USAGE = "A case depends on seed and number alone: --seed and --case repeat a printed one."


def targets() -> dict[str, Target]:
    """All targets by name."""
    from fuzz.frames import Frames
    from fuzz.ops import Ops
    from fuzz.sequences import Sequences

    return {target.name: target for target in (Ops(), Frames(), Sequences())}


def main() -> int:
    """Returns 1 if anything came up."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__, epilog=USAGE)
    parser.add_argument("--only", metavar="NAMES", help=f"of {', '.join(targets())}; separated by commas")
    parser.add_argument("--seconds", type=float, default=30, help="for each target (default: 30)")
    parser.add_argument("--count", type=int, help="cases for each target, instead of seconds")
    parser.add_argument("--seed", type=int, help="of the run (default: a new one, which is printed)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="the one case of this number")
    options = parser.parse_args()
    seed = secrets.randbelow(1 << 32) if options.seed is None else options.seed
    known = targets()
    names = options.only.split(",") if options.only else list(known)
    if unknown := [name for name in names if name not in known]:
        parser.error(f"unknown target {unknown[0]!r}: choose from {', '.join(known)}")
    failed = False
    for name in names:
        numbers = iter([options.case]) if options.case is not None else count(options.first)
        if options.count is not None and options.case is None:
            numbers = iter(range(options.first, options.first + options.count))
        until = float("inf") if options.count is not None else time.monotonic() + options.seconds
        began = time.monotonic()
        report = run(known[name], seed, numbers, until=until, show=_say)
        seconds = time.monotonic() - began
        _say(
            f"{name}: {report.cases:,} cases in {seconds:.0f} s, seed {seed}: {len(report.findings)} kinds of finding; "
            f"slowest {report.slowest[0]:.2f} s (case {report.slowest[1]}); "
            + ", ".join(f"{outcome} {number:,}" for outcome, number in report.outcomes.most_common())
        )
        for kind, (number, first, _) in sorted(report.findings.items()):
            _say(f"  {number:6,} × {kind} (case {first})")
        failed = failed or bool(report.findings)
    return int(failed)


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
