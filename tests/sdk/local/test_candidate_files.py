"""A file of a vocabulary gives candidates their weights."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import teletape as tf


def test_a_vocabulary_file_gives_the_weights(tmp_path: Path) -> None:
    path = tmp_path / "words.csv"
    path.write_text("the,4\nof,3\n", encoding="utf-8")
    options: list[dict[str, Any]] = [{"vocab_file": str(path)}, {"unigrams": [4.0, 3.0]}]
    for each in options:
        tf.random.set_seed(1)
        result = tf.random.fixed_unigram_candidate_sampler([[0]], 1, 4, False, 2, seed=1, **each)
        np.testing.assert_allclose(result.true_expected_count, [[4 * 4 / 7]], rtol=1e-6)
    path.write_text("the\n", encoding="utf-8")
    with pytest.raises(tf.errors.InvalidArgumentError, match="Wrong vocabulary format"):
        tf.random.fixed_unigram_candidate_sampler([[0]], 1, 4, False, 2, vocab_file=str(path))
