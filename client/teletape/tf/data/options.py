"""`tf.data.Options`: programs can set and read them. None changes the elements."""

from __future__ import annotations

import enum
from typing import Any, ClassVar, Self


class AutoShardPolicy(enum.IntEnum):
    """Ways to divide a distributed dataset among workers; without effect, because there is one worker."""

    OFF = -1
    AUTO = 0
    FILE = 1
    DATA = 2
    HINT = 3


class ExternalStatePolicy(enum.Enum):
    """Ways to treat state outside a dataset that is saved; without effect."""

    WARN = 0
    IGNORE = 1
    FAIL = 2


class AutotuneAlgorithm(enum.Enum):
    """Ways to tune a pipeline in TensorFlow; without effect."""

    DEFAULT = 0
    HILL_CLIMB = 1
    GRADIENT_DESCENT = 2
    MAX_PARALLELISM = 3
    STAGE_BASED = 4


class _OptionsBase:
    """Named options, None unless set; other names are refused."""

    _defaults: ClassVar[dict[str, Any]] = {}

    def __init__(self) -> None:
        for name, default in self._defaults.items():
            object.__setattr__(self, name, default() if isinstance(default, type) else default)

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._defaults:
            raise AttributeError(f"Cannot set the property {name} on {type(self).__name__}.")
        object.__setattr__(self, name, value)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    __hash__ = None  # type: ignore[assignment]  # it can be changed

    def merge(self, options: Self) -> Self:
        """Returns these options with those of `options` that were set."""
        merged = type(self)()
        for name, default in self._defaults.items():
            own, other = getattr(self, name), getattr(options, name)
            if isinstance(default, type):
                object.__setattr__(merged, name, own.merge(other))
            else:
                object.__setattr__(merged, name, own if other is None or other == default else other)
        return merged


class AutotuneOptions(_OptionsBase):
    """`options.autotune`."""

    _defaults: ClassVar[dict[str, Any]] = dict.fromkeys(
        ("autotune_algorithm", "cpu_budget", "enabled", "initial_parallelism", "min_parallelism", "ram_budget")
    )


class DistributeOptions(_OptionsBase):
    """`options.experimental_distribute`."""

    _defaults: ClassVar[dict[str, Any]] = {"auto_shard_policy": AutoShardPolicy.AUTO, "num_devices": None}


class OptimizationOptions(_OptionsBase):
    """`options.experimental_optimization`."""

    _defaults: ClassVar[dict[str, Any]] = dict.fromkeys(
        """
        apply_default_optimizations filter_fusion filter_parallelization inject_prefetch map_and_batch_fusion
        map_and_filter_fusion map_fusion map_parallelization noop_elimination parallel_batch seq_interleave_prefetch
        shuffle_and_repeat_fusion
        """.split()
    )


class ThreadingOptions(_OptionsBase):
    """`options.threading`."""

    _defaults: ClassVar[dict[str, Any]] = dict.fromkeys(("max_intra_op_parallelism", "private_threadpool_size"))


class Options(_OptionsBase):
    """Options of a dataset, for `Dataset.with_options`."""

    _defaults: ClassVar[dict[str, Any]] = {
        "autotune": AutotuneOptions,
        "dataset_name": None,
        "deterministic": None,
        "experimental_deterministic": None,
        "experimental_distribute": DistributeOptions,
        "experimental_external_state_policy": None,
        "experimental_optimization": OptimizationOptions,
        "experimental_slack": None,
        "experimental_symbolic_checkpoint": None,
        "experimental_threading": ThreadingOptions,
        "experimental_warm_start": None,
        "framework_type": None,
        "threading": ThreadingOptions,
    }
