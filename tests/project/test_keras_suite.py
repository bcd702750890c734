"""The rules by which `make keras-tests` judges how Keras's own tests ended."""

import pytest

from keras_suite import run
from keras_suite.outcomes import ExpectedFailures, Outcomes, not_passed_on_tensorflow

VERSION = "3.15.1"
RNN = "src/layers/rnn/rnn_test.py::RNNTest::test_"
FLOAT8 = "src/models/model_test.py::ModelTest::test_quantize_float8"
PASSED = {f"{RNN}{i}": ("passed", "") for i in range(100)}


@pytest.mark.parametrize(
    ("outcomes", "words"),
    [
        ({}, []),
        ({f"{RNN}new": ("failed", "ValueError: no")}, ["1 unexpected", f"{RNN}new: ValueError: no"]),
        ({f"{RNN}new": ("skipped", "")}, ["1 unexpected", f"{RNN}new: skipped"]),
        ({FLOAT8: ("failed", "TypeError: float8")}, []),
        ({FLOAT8: ("skipped", "")}, []),
        ({FLOAT8: ("passed", "")}, ["remove them there", FLOAT8]),
        ({"src/ops/nn_test.py::NNTest::test_x": ("failed", "AttributeError")}, []),
        ({f"{RNN}new{i}": ("failed", "") for i in range(4)}, ["96.2 %", "at least 97 %"]),
    ],
    ids=["all", "failed", "skipped", "expected", "expected-skip", "passes", "other-family", "share"],
)
def test_what_is_a_problem(outcomes: Outcomes, words: list[str]) -> None:
    problems = "\n".join(run.problems_of(VERSION, {**PASSED, **outcomes}))
    assert bool(problems) == bool(words)
    assert all(word in problems for word in words), problems


def test_what_tensorflow_does_not_pass_does_not_count() -> None:
    skipped = next(node for node in not_passed_on_tensorflow(VERSION) or () if node.startswith(run.MUST_PASS["rnn"]))
    outcomes = {**PASSED, skipped: ("failed", "")}
    assert not run.problems_of(VERSION, outcomes)
    assert run.counts_of(VERSION, outcomes)["rnn"] == {"passed": 100}


def test_a_version_without_a_record_is_a_problem() -> None:
    assert run.problems_of("3.99.0", PASSED) == ["What TensorFlow passes was not recorded for Keras 3.99.0."]


@pytest.mark.parametrize("version", [VERSION, *run.VERSIONS])
def test_each_version_of_the_matrix_is_recorded(version: str) -> None:
    recorded = not_passed_on_tensorflow(version)
    assert recorded
    assert any(node.startswith(run.MUST_PASS["rnn"]) for node in recorded)


def test_some_tests_may_fail_through_a_server_alone() -> None:
    forks = {"src/saving/saving_lib_test.py::SavingTest::test_load_model_concurrently": ("failed", "SessionEndedError")}
    assert run.problems_of(VERSION, {**PASSED, **forks})
    assert not run.problems_of(VERSION, {**PASSED, **forks}, http=True)


def test_every_expected_failure_has_a_reason_and_a_family() -> None:
    patterns = ExpectedFailures(VERSION, http=True).patterns
    assert patterns
    assert all(reason and run.family_of(pattern) in run.MUST_PASS for pattern, reason in patterns.items())
