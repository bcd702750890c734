"""`tf.distribute.Strategy` and `ReplicaContext` with one replica: values pass through unchanged."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from teletape._generated.reduce import reduce_mean, reduce_sum
from teletape.core.tensors import nest
from teletape.extras.distribution import contexts
from teletape.extras.distribution.contexts import Place
from teletape.extras.distribution.reductions import ReduceOp
from teletape.extras.distribution.values import InputContext, ValueContext
from teletape.tf.configuration.devices import list_logical_devices


class StrategyExtended:
    """The part of a strategy for libraries.

    Args:
        container_strategy: The strategy.
    """

    def __init__(self, container_strategy: Any) -> None:
        self._strategy = container_strategy

    @property
    def experimental_require_static_shapes(self) -> bool:
        """Whether shapes have to be known before a step: no."""
        return False

    @property
    def worker_devices(self) -> tuple[str, ...]:
        """The device that computes."""
        return tuple(device.name for device in list_logical_devices())

    @property
    def parameter_devices(self) -> tuple[str, ...]:
        """The device that holds the variables."""
        return self.worker_devices

    @contextlib.contextmanager
    def colocate_vars_with(self, colocate_with_variable: Any) -> Iterator[None]:
        """Has no effect: there is one device."""
        yield

    def variable_created_in_scope(self, v: Any) -> bool:
        """Whether a variable belongs to the strategy: every one does, because there is one device."""
        return True

    def value_container(self, value: Any) -> Any:
        """Returns the value."""
        return value

    def reduce_to(self, reduce_op: Any, value: Any, destinations: Any, options: Any = None) -> Any:
        """Returns the value; see `Strategy.reduce`."""
        return self._strategy.reduce(reduce_op, value, None)

    def batch_reduce_to(self, reduce_op: Any, value_destination_pairs: Any, options: Any = None) -> list[Any]:
        """Returns the values of pairs of a value and its destination."""
        return [self.reduce_to(reduce_op, value, destination) for value, destination in value_destination_pairs]

    def update(
        self,
        var: Any,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        group: bool = True,
    ) -> Any:
        """Calls `fn` with the variable and returns its result."""
        return fn(var, *args, **(kwargs or {}))


class Strategy:
    """Runs a program on one replica: the program's session.

    Args:
        extended: A StrategyExtended; None: one of its own.
    """

    def __init__(self, extended: StrategyExtended | None = None) -> None:
        self._extended = extended or StrategyExtended(self)

    @property
    def extended(self) -> StrategyExtended:
        """The part of the strategy for libraries."""
        return self._extended

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas: 1."""
        return 1

    @property
    def cluster_resolver(self) -> Any:
        """The cluster that the strategy runs on: None."""
        return None

    @contextlib.contextmanager
    def scope(self) -> Iterator[Strategy]:
        """A context manager in which this is the strategy of the program.

        Raises:
            RuntimeError: In the scope of another strategy.
        """
        present = contexts.get_strategy()
        if present is not self and contexts.has_strategy():
            raise RuntimeError(f"Mixing different tf.distribute.Strategy objects: {present!r} is not {self!r}")
        with contexts.entered(self._scope_place()):
            yield self

    def _scope_place(self) -> Place:
        return Place(self, None)

    def run(
        self,
        fn: Callable[..., Any],
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
        options: Any = None,
    ) -> Any:
        """Calls `fn` in the replica and returns its result.

        Args:
            fn: A function, or a `tf.function`.
            args: Its arguments.
            kwargs: Its named arguments.
            options: Without effect.
        """
        with contexts.entered(Place(self, ReplicaContext(self, 0))):
            return fn(*args, **(kwargs or {}))

    def reduce(self, reduce_op: Any, value: Any, axis: int | Sequence[int] | None) -> Any:
        """Combines the values of all replicas, and along an axis.

        Args:
            reduce_op: ReduceOp.SUM or MEAN, or its name.
            value: The result of `run`: a tensor or a structure of them.
            axis: The axis along which values are combined too; None: the result is the value.

        Raises:
            ValueError: No such op.
        """
        op = ReduceOp.of(reduce_op)
        if axis is None:
            return value
        function = reduce_sum if op is ReduceOp.SUM else reduce_mean
        return nest.map_structure(lambda leaf: function(leaf, axis), value)

    def gather(self, value: Any, axis: int) -> Any:
        """Returns the value: that of the one replica."""
        return value

    def experimental_local_results(self, value: Any) -> tuple[Any, ...]:
        """Returns the values of all replicas: a tuple of one."""
        return (value,)

    def unwrap(self, value: Any) -> tuple[Any, ...]:
        """The older name of `experimental_local_results`."""
        return self.experimental_local_results(value)

    def group(self, value: Any, name: str | None = None) -> Any:
        """Returns the value: ops run at once."""
        return value

    def experimental_distribute_dataset(self, dataset: Any, options: Any = None) -> Any:
        """Returns the dataset: the one replica gets every batch."""
        return dataset

    def distribute_datasets_from_function(self, dataset_fn: Callable[[InputContext], Any], options: Any = None) -> Any:
        """Returns the dataset that `dataset_fn` makes for the one replica."""
        return dataset_fn(InputContext())

    def experimental_distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Any], options: Any = None
    ) -> Any:
        """The older name of `distribute_datasets_from_function`."""
        return self.distribute_datasets_from_function(dataset_fn, options)

    def experimental_distribute_values_from_function(self, value_fn: Callable[[ValueContext], Any]) -> Any:
        """Returns the value that `value_fn` makes for the one replica."""
        return value_fn(ValueContext())


class _DefaultStrategy(Strategy):
    """The strategy of a program that has made none."""

    def _scope_place(self) -> Place:
        return Place(self, _DEFAULT_REPLICA)


class ReplicaContext:
    """The replica that code runs in.

    Args:
        strategy: The strategy that runs it.
        replica_id_in_sync_group: The index of the replica: 0.
    """

    def __init__(self, strategy: Strategy, replica_id_in_sync_group: int) -> None:
        self._strategy, self._id = strategy, replica_id_in_sync_group

    @property
    def strategy(self) -> Strategy:
        """The strategy that runs the replica."""
        return self._strategy

    @property
    def replica_id_in_sync_group(self) -> int:
        """The index of the replica."""
        return self._id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas: 1."""
        return self._strategy.num_replicas_in_sync

    @property
    def devices(self) -> tuple[str, ...]:
        """The device of the replica; "": wherever the session computes."""
        return ("",)

    def all_reduce(self, reduce_op: Any, value: Any, options: Any = None) -> Any:
        """Returns the value: that of the one replica.

        Raises:
            ValueError: No such op.
        """
        ReduceOp.of(reduce_op)
        return value

    def all_gather(self, value: Any, axis: int, options: Any = None) -> Any:
        """Returns the value: that of the one replica."""
        return value

    def merge_call(
        self, merge_fn: Callable[..., Any], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Calls `merge_fn` with the strategy, across replicas, and returns its result."""
        with contexts.entered(Place(self._strategy, None)):
            return merge_fn(self._strategy, *args, **(kwargs or {}))


_DEFAULT = _DefaultStrategy()
_DEFAULT_REPLICA = ReplicaContext(_DEFAULT, 0)
contexts.set_default(Place(_DEFAULT, _DEFAULT_REPLICA))


def get_replica_context() -> ReplicaContext | None:
    """Returns the replica that this code runs in; None in the scope of a strategy and outside its `run`."""
    replica: ReplicaContext | None = contexts.current().replica
    return replica


def experimental_set_strategy(strategy: Strategy | None) -> None:
    """Sets the strategy of all code outside scopes; None: the one that has no effect."""
    contexts.set_global(None if strategy is None else Place(strategy, None))
