"""`make simulate`: runs seeds, and prints the first that fails, with what has happened in it."""

import argparse
import sys
import time
import traceback
from collections import Counter

from simulation.simulation import simulator


def main() -> int:
    """Returns 1 if a seed fails."""
    parser = argparse.ArgumentParser(prog="make simulate", description=__doc__)
    parser.add_argument("seeds", type=int, nargs="?", default=1000, help="how many (default: 1000)")
    parser.add_argument("--first", type=int, default=0, help="the first of them (default: 0)")
    parser.add_argument("--seed", type=int, help="this one alone")
    parser.add_argument("--keep-going", action="store_true", help="run all of them, whatever fails")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.seeds)
    if options.seed is not None:
        seeds = range(options.seed, options.seed + 1)
    began, failed = time.monotonic(), list[int]()
    counts: Counter[str] = Counter()
    acknowledged, seconds = 0, 0.0
    with simulator() as simulations:
        for seed in seeds:
            try:
                outcome = simulations.run(seed)
            except BaseException as error:
                if isinstance(error, KeyboardInterrupt):
                    raise
                if options.keep_going:
                    _say(f"{type(error).__name__}: {str(error)[:300]}")
                else:
                    traceback.print_exc()
                _say(f"seed {seed} fails: make simulate ARGS='--seed {seed}' repeats it")
                failed.append(seed)
                if not options.keep_going:
                    break
                continue
            acknowledged += outcome.acknowledged
            seconds += outcome.seconds
            counts += outcome.counts
            if (seed + 1) % 200 == 0:
                _say(f"{seed + 1} seeds, {time.monotonic() - began:.0f} s")
    faults = ", ".join(f"{number:,} {kind}" for kind, number in sorted(counts.items()))
    _say(
        f"{len(seeds):,} seeds in {time.monotonic() - began:.0f} s, {seconds:,.0f} s of simulated time: "
        f"{acknowledged:,} additions acknowledged; {faults}; failed: {failed or 'none'}"
    )
    return bool(failed)


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
