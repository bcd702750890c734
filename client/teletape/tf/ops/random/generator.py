"""`tf.random.Generator`: random numbers from a state in a variable, which every draw advances.

The numbers are TensorFlow's, of the algorithm Philox.
"""

from __future__ import annotations

import math
import secrets
from typing import Any, Final, TypeVar

from teletape.core.calls import arguments as to
from teletape.core.calls.dispatch import call, convert_to_tensor
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.variables import name_scope
from teletape.core.variables.trackable import AutoTrackable
from teletape.core.variables.variable import Variable
from teletape.tf.ops.random.algorithms import SIZES, Algorithm, draws, number_of
from teletape.tf.ops.random.stateful import dims_of, scaled, within
from teletape_engine.catalogue.namespace import ops
from teletape_engine.catalogue.op import Op
from teletape_engine.errors import UnimplementedError
from teletape_engine.locks import ReentrantLock
from teletape_engine.spec import broadcast

__all__ = ["Algorithm", "Generator", "create_rng_state", "get_global_generator", "set_global_generator"]

V = TypeVar("V", bound=TensorLike)

_WORD: Final = 2**64
_DRAWS_OF_A_BINOMIAL: Final = 200  #: TensorFlow's state advances by this for four numbers of one distribution.


def _signed(value: int) -> int:
    """An unsigned integer of 64 bits as the signed one with the same bits."""
    return value - _WORD if value >= _WORD // 2 else value


def _as_state(value: Any) -> Tensor:
    """Integers, also those from 2**63 up, as an int64 tensor."""
    if isinstance(value, int):
        value = _signed(value)
    elif isinstance(value, list | tuple):
        value = [_signed(item) if isinstance(item, int) else item for item in value]
    tensor = convert_to_tensor(value)
    return tensor if tensor.dtype is dtypes.int64 else call(ops.cast, (tensor,), dtype=dtypes.int64.np)


def create_rng_state(seed: Any, alg: Any) -> Tensor:
    """The state of an algorithm for a seed.

    Args:
        seed: An integer of any size, or a vector of integers; a short one is filled with zeros on the left.
        alg: "philox", "threefry", an Algorithm, or its number.

    Returns:
        int64: three integers for Philox, two for ThreeFry.

    Example:
        tf.random.create_rng_state(1, "philox")
    """
    size = SIZES[number_of(alg)]
    if isinstance(seed, int):
        seed = [seed >> 64 * place & _WORD - 1 for place in range(size)]
    flat = call(ops.reshape, (_as_state(seed),), shape=(-1,))
    length = flat.shape.as_list()[0]
    if length < size:
        return call(ops.concat, (convert_to_tensor([0] * (size - length), dtypes.int64), flat), axis=0)
    start: Tensor = flat[:size]
    return start


def _of_size(state: V, alg: int) -> V:
    if tuple(state.shape) != (SIZES[alg],):
        raise ValueError(f"Shapes {state.shape} and [{SIZES[alg]}] are incompatible")
    return state


def _joined(key: Any, counter: Any, alg: int) -> Tensor:
    counters, last = _as_state(counter), _as_state(key)
    if tuple(counters.shape) != (SIZES[alg] - 1,):
        raise ValueError(f"Shapes {counters.shape} and [{SIZES[alg] - 1}] are incompatible")
    if last.shape.rank:
        raise ValueError(f"Shapes {last.shape} and [] are incompatible")
    return call(ops.concat, (counters, call(ops.reshape, (last,), shape=(1,))), axis=0)


class Generator(AutoTrackable):
    """A source of random numbers with a state of its own; checkpoints save it.

    Args:
        copy_from: A generator whose algorithm and state are copied.
        state: The state, a vector of integers; a variable is used itself, and shared.
        alg: "philox", "auto_select", an Algorithm, or its number. ThreeFry has a state, but draws no numbers here.
    """

    _state_var: Variable

    def __init__(self, copy_from: Generator | None = None, state: Any = None, alg: Any = None) -> None:
        if copy_from is not None:
            if alg is not None or state is not None:
                raise AssertionError("copy_from has a state and an algorithm")
            self._alg = copy_from.algorithm
            initial: TensorLike = copy_from.state.read_value()
        else:
            if alg is None or state is None:
                raise AssertionError("a generator needs a state and an algorithm")
            self._alg = number_of(alg)
            initial = _of_size(state, self._alg) if isinstance(state, Variable) else _as_state(state)
        if isinstance(initial, Variable):
            self._state_var = initial
        else:
            with name_scope.name_scope(""):  # TensorFlow's has no prefix
                value = _of_size(initial, self._alg)
                self._state_var = Variable(value, trainable=False, name="StateVar", dtype=dtypes.int64)

    @classmethod
    def from_state(cls, state: Any, alg: Any) -> Generator:
        """A generator that continues at a state."""
        return cls(state=state, alg=alg)

    @classmethod
    def from_seed(cls, seed: Any, alg: Any = None) -> Generator:
        """A generator whose numbers follow from a seed, an integer or a vector of integers."""
        number = number_of(Algorithm.PHILOX if alg is None else alg)
        return cls(state=create_rng_state(seed, number), alg=number)

    @classmethod
    def from_non_deterministic_state(cls, alg: Any = None) -> Generator:
        """A generator with a state from the operating system's random source."""
        number = number_of(Algorithm.PHILOX if alg is None else alg)
        return cls(state=[secrets.randbits(64) for _ in range(SIZES[number])], alg=number)

    @classmethod
    def from_key_counter(cls, key: Any, counter: Any, alg: Any) -> Generator:
        """A generator from the two parts of a state: the key, and a counter of one integer less than a state."""
        number = number_of(alg)
        return cls(state=_joined(key, counter, number), alg=number)

    @property
    def state(self) -> Variable:
        """The variable with the state."""
        return self._state_var

    @property
    def algorithm(self) -> int:
        """The number of the algorithm: a value of tf.random.Algorithm."""
        return self._alg

    @property
    def key(self) -> Tensor:
        """The last integer of the state, which draws do not change."""
        last: Tensor = self._state_var[-1]
        return last

    def reset(self, state: Any) -> None:
        """Replaces the state."""
        self._state_var.assign(_of_size(_as_state(state), self._alg))

    def reset_from_seed(self, seed: Any) -> None:
        """Replaces the state by that of a seed."""
        self._state_var.assign(create_rng_state(seed, self._alg))

    def reset_from_key_counter(self, key: Any, counter: Any) -> None:
        """Replaces the state by a key and a counter."""
        self._state_var.assign(_joined(key, counter, self._alg))

    def skip(self, delta: to.IntInput) -> Tensor:
        """Advances the state by `delta` numbers, and returns the state before.

        Raises:
            UnimplementedError: The algorithm is ThreeFry.
        """
        if not draws(self._alg):
            raise UnimplementedError(
                "Non-XLA devices don't support the ThreeFry algorithm: make the generator with alg='philox'"
            )
        before = self._state_var.read_value()
        step = delta if isinstance(delta, TensorLike) else convert_to_tensor(delta, dtypes.int64)
        self._state_var.assign(call(ops.philox_skip, (before, step)))
        return before

    def normal(
        self,
        shape: to.IntsInput,
        mean: to.TensorInput = 0.0,
        stddev: to.TensorInput = 1.0,
        dtype: to.DTypeInput = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Normally distributed numbers."""
        return self._scaled(ops.philox_normal, shape, mean, stddev, dtype)

    def truncated_normal(
        self,
        shape: to.IntsInput,
        mean: to.TensorInput = 0.0,
        stddev: to.TensorInput = 1.0,
        dtype: to.DTypeInput = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Normally distributed numbers, none further than two standard deviations from the mean."""
        return self._scaled(ops.philox_truncated_normal, shape, mean, stddev, dtype)

    def uniform(
        self,
        shape: to.IntsInput,
        minval: to.TensorInput | None = 0,
        maxval: to.TensorInput | None = None,
        dtype: to.DTypeInput = dtypes.float32,
        name: str | None = None,
    ) -> Tensor:
        """Numbers evenly distributed in [minval, maxval); integers without bounds are those of their whole dtype."""
        wanted = dtypes.as_dtype(dtype)
        if wanted.is_integer and (minval is None) != (maxval is None):
            raise ValueError(
                f"For integer dtype {wanted!r}, minval and maxval must be both `None` or both non-`None`; got "
                f"minval={minval} and maxval={maxval}"
            )
        if wanted.is_integer and minval is None:
            return self.uniform_full_int(shape, wanted)
        dims = dims_of(shape)
        return within(dims, minval, 1 if maxval is None else maxval, wanted, self._drawn(dims))

    def uniform_full_int(
        self, shape: to.IntsInput, dtype: to.DTypeInput = dtypes.uint64, name: str | None = None
    ) -> Tensor:
        """Integers evenly distributed in the whole range of int32, int64, uint32 or uint64."""
        dims = dims_of(shape)
        return call(ops.philox_bits, (self._drawn(dims),), shape=dims, dtype=dtypes.as_dtype(dtype).np)

    def binomial(
        self,
        shape: to.IntsInput,
        counts: to.TensorInput,
        probs: to.TensorInput,
        dtype: to.DTypeInput = dtypes.int32,
        name: str | None = None,
    ) -> Tensor:
        """Numbers of successes among `counts` trials, each of probability `probs`; both broadcast to `shape`."""
        dims = dims_of(shape)
        chances = to.float_tensor(probs)
        trials = to.cast(counts, chances)
        distributions = math.prod(broadcast(tuple(trials.shape), tuple(chances.shape)))
        each = math.prod(dims) // max(distributions, 1)
        before = self.skip(distributions * _DRAWS_OF_A_BINOMIAL * (each + 3) // 4)
        return call(ops.philox_binomial, (before, trials, chances), shape=dims, dtype=dtypes.as_dtype(dtype).np)

    def make_seeds(self, count: to.IntInput = 1) -> Tensor:
        """Seeds for the stateless functions: int64 [2, count], a seed in each column."""
        keys = self.uniform_full_int([to.whole(count)], dtypes.int64)
        return call(ops.stack, (keys, call(ops.zeros_like, (keys,))), axis=0)

    def split(self, count: to.IntInput = 1) -> list[Generator]:
        """Returns `count` generators of the same algorithm, independent of each other and of this one."""
        keys = self.uniform_full_int([to.whole(count)], dtypes.int64)
        counter, alg = [0] * (SIZES[self._alg] - 1), self._alg
        return [Generator(state=_joined(keys[place], counter, alg), alg=alg) for place in range(to.whole(count))]

    def _drawn(self, dims: tuple[int, ...]) -> Tensor:
        """Returns the state for a draw of this shape, and advances it."""
        return self.skip(math.prod(dims))

    def _scaled(self, op: Op, shape: Any, mean: Any, stddev: Any, dtype: Any) -> Tensor:
        dims = dims_of(shape)
        return scaled(op, dims, mean, stddev, dtype, self._drawn(dims))


# --------------------------------------------------------------------------------------------------- the program's own
_lock: Final = ReentrantLock()
_global: Generator | None = None


def get_global_generator() -> Generator:
    """The program's generator; the first call makes it, with a state from the operating system's random source.

    Example:
        tf.random.get_global_generator()
    """
    global _global
    with _lock:
        if _global is None:
            _global = Generator.from_non_deterministic_state()
        return _global


def set_global_generator(generator: Generator) -> None:
    """Replaces the program's generator.

    Example:
        tf.random.set_global_generator(tf.random.Generator.from_seed(1))
    """
    global _global
    _global = generator
