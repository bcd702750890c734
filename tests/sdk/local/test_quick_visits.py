"""The conversion of functions is quicker than with malt's own visitors, and its code is the same."""

import subprocess
import sys

COMPARISON = """
import sys, types
from conformance.programs import autograph_branches, autograph_errors, autograph_loops
from teletape.autograph import api, conversion, quick_visits

def described(code):
    constants = [described(each) if isinstance(each, types.CodeType) else repr(each) for each in code.co_consts]
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    return code.co_qualname, code.co_code, list(code.co_lines()), code.co_exceptiontable, names, constants

def all_codes():
    conversion._transpiler.cache_clear()
    conversion._conversions.clear()
    options = api._options(recursive=True, features=None)
    functions = [
        each
        for programs in (autograph_branches, autograph_errors, autograph_loops)
        for each in list(vars(programs).values())[-16:]
        if isinstance(each, types.FunctionType) and each.__module__ == programs.__name__
    ]
    return [described(conversion.conversion_of(each, options).factory.__code__) for each in functions]

install, quick_visits.install = quick_visits.install, lambda: None
by_malt = all_codes()
quick_visits.install = install
quick = all_codes()
from malt.pyct import transformer
assert transformer.Base.generic_visit is quick_visits.generic_visit
assert len(quick) > 30, len(quick)
assert quick == by_malt
"""


def test_the_converted_code_is_that_of_the_visitors_of_malt() -> None:
    environment = {"PYTHONPATH": "tests"}
    done = subprocess.run(
        [sys.executable, "-P", "-c", COMPARISON],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )

    assert done.returncode == 0, done.stderr
