"""`python -m teletape.conformity URL`: runs every check, prints what failed, and ends with 1 if something did."""

import argparse
import json
import sys
from collections.abc import Sequence

from teletape.conformity import derivatives, faces, problems, resources, values  # noqa: F401  # they have the checks
from teletape.conformity.checks import Server, run_all
from teletape.core import environment


def main(arguments: Sequence[str]) -> int:
    """Runs the command line; returns the exit status."""
    parser = argparse.ArgumentParser("python -m teletape.conformity", description="Check a server's REST interface.")
    parser.add_argument("url", help="the server, as http://127.0.0.1:8470")
    parser.add_argument("--api-key", default=environment.api_key(), help="without it TELETAPE_API_KEY")
    parser.add_argument("--only", default="", help="run the checks whose names have this text")
    parser.add_argument("--json", action="store_true", help="print one JSON object instead of lines")
    options = parser.parse_args(arguments)
    with Server(options.url, options.api_key) as server:
        outcomes = run_all(server, options.only)
    failed = {outcome.name: outcome.fault for outcome in outcomes if outcome.fault}
    absent = [outcome.name for outcome in outcomes if not outcome.is_offered]
    passed = len(outcomes) - len(failed) - len(absent)
    if options.json:
        print(json.dumps({"passed": passed, "failed": failed, "not_offered": absent}))
    else:
        for name, fault in failed.items():
            print(f"FAIL  {name}: {fault}")
        for name in absent:
            print(f"not offered  {name}")
        print(f"{passed} of {len(outcomes) - len(absent)} checks passed")
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
