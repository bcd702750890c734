"""`tf.data.Dataset`: a sequence of elements, computed anew in every iteration.

Long because TensorFlow's class has this many methods; their work on elements is in sources.py and transforms.py.
"""

from __future__ import annotations

import functools
import itertools
import operator
import os
import secrets
import weakref
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Iterator as PythonIterator
from typing import Any, Final

import numpy as np

from teletape.core.calls.dispatch import call, constant, convert_to_tensor
from teletape.core.errors import InvalidArgumentError, UnimplementedError
from teletape.core.functions.tensor_spec import TensorSpec, spec_of
from teletape.core.sessions.current import current
from teletape.core.tensors import dtypes
from teletape.core.tensors.tensor import Tensor, TensorLike
from teletape.core.tensors.tensor_shape import TensorShape
from teletape.tf.autograph import dataset_loops
from teletape.tf.data import caches, sources, transforms
from teletape.tf.data.ahead import Ahead
from teletape.tf.data.elements import structure
from teletape.tf.data.elements.functions import ElementFunction, traceable
from teletape.tf.data.elements.leaves import host_of, tensor_of
from teletape.tf.data.elements.mapped import Element, Mapped, leaves_of, parts_of
from teletape.tf.data.elements.specs import (
    NoneTensorSpec,
    merged_specs,
    padded_shapes_of,
    padding_of,
    row_spec,
    unsized,
    with_leading,
)
from teletape.tf.data.elements.uploads import sent
from teletape.tf.data.iterator import Iterator, NumpyIterator
from teletape.tf.data.options import Options
from teletape.tf.data.traits import Traits
from teletape_engine.arrays import philox
from teletape_engine.catalogue.namespace import ops
from teletape_engine.ops.random.philox import unsigned

AUTOTUNE: Final = -1
INFINITE_CARDINALITY: Final = -1
UNKNOWN_CARDINALITY: Final = -2
_MOST_AHEAD: Final = 2  #: Elements that `prefetch(AUTOTUNE)` prepares.

Start = Callable[[int], PythonIterator[Element]]
Transform = Callable[[PythonIterator[Element]], PythonIterator[Element]]


class DatasetSpec:
    """The spec of a dataset that is itself a leaf of an element.

    Args:
        element_spec: The spec of its elements.
        dataset_shape: Always ().
    """

    def __init__(self, element_spec: Any, dataset_shape: Any = ()) -> None:
        self.element_spec, self._shape = element_spec, TensorShape(dataset_shape)

    def __repr__(self) -> str:
        return f"DatasetSpec({self.element_spec!r}, {self._shape!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DatasetSpec) and self.element_spec == other.element_spec

    def __hash__(self) -> int:
        return hash(DatasetSpec)


class Dataset:
    """A sequence of elements: tensors, or tuples, named tuples and dicts of tensors.

    Start with `from_tensor_slices`, `from_generator`, `range` or a file; every method returns a new dataset and leaves
    this one as it is. No gradient passes through a dataset.
    """

    def __init__(
        self,
        start: Start,
        spec: Any,
        cardinality: int,
        kind: str,
        *,
        traits: Traits | None = None,
        options: Options | None = None,
    ) -> None:
        """Makes a dataset; programs use the functions that return one.

        Args:
            start: Starts an iteration; its argument is the number of elements to prepare ahead.
            spec: The spec of the elements, or a function that returns it.
            cardinality: The number of elements, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.
            kind: TensorFlow's name for such a dataset.
            traits: The needs of an iteration; None: it needs nothing.
            options: The options that were set.
        """
        self._begin, self._spec, self._cardinality, self._kind = start, spec, cardinality, kind
        self._traits, self._options = traits or Traits(), options or Options()
        self._resolved: Any = None

    def _start(self, ahead: int) -> PythonIterator[Element]:
        """Starts an iteration; if it is slow, a thread prepares `ahead` elements."""
        if ahead and self._traits.host and self._traits.slow:
            return Ahead(lambda: self._begin(0), ahead)
        return self._begin(ahead)

    def _start_for_session(self, ahead: int) -> PythonIterator[Element]:
        """Starts an iteration whose elements a session uses.

        For a session on a server a thread also sends elements ahead: those that are prepared ahead, and rows of arrays
        that are too large to stay on the server.
        """
        traits, home = self._traits, current().home
        if traits.host and not home.local:
            wanted = max(ahead, traits.ahead) or (_MOST_AHEAD if traits.in_parts else 0)
            if wanted and (traits.slow or traits.in_parts):
                reference = weakref.ref(home)
                return Ahead(lambda: (sent(element, reference) for element in self._begin(0)), wanted)
        return self._start(ahead)

    def _derived(
        self,
        transform: Transform,
        kind: str,
        cardinality: int,
        *,
        spec: Any = None,
        host: bool = True,
        computes: bool = False,
        each: int = 1,
    ) -> Dataset:
        """Returns a dataset whose elements are those of this one through a transformation.

        Args:
            transform: The transformation.
            kind: TensorFlow's name for it.
            cardinality: The number of elements.
            spec: Their spec; None: as here.
            host: Whether the transformation needs no session.
            computes: Whether a session computes with the elements.
            each: The number of elements of this dataset in each.
        """
        start = self._start_for_session if computes else self._start
        return Dataset(
            lambda ahead: transform(start(ahead * each)),
            spec or (lambda: self.element_spec),
            cardinality,
            kind,
            traits=self._traits.derived(host=host),
            options=self._options,
        )

    # ------------------------------------------------------------------------------------------------------- new ones
    @staticmethod
    def from_tensor_slices(tensors: Any, name: str | None = None) -> Dataset:
        """Returns the slices of `tensors` along their first axis.

        Args:
            tensors: An array, tensor or list, or tuples and dicts of them; all with the same first size. The values
                of arrays are copied now.
            name: Without effect, as everywhere in this class.

        Raises:
            ValueError: Nothing to slice, a scalar, or first sizes that differ.
        """
        spec, arrays = sources.arrays_of(tensors)
        size = sources.check_lengths(arrays)
        rows = structure.map_leaves(row_spec, spec)
        traits = Traits(arrays=tuple([array for array in arrays if array is not None]))
        return Dataset(lambda ahead: sources.slices(arrays, size), rows, size, "_TensorSliceDataset", traits=traits)

    @staticmethod
    def from_tensors(tensors: Any, name: str | None = None) -> Dataset:
        """Returns a dataset of one element, `tensors`: as for `from_tensor_slices`, also scalars."""
        spec, arrays = sources.arrays_of(tensors)
        return Dataset(lambda ahead: sources.whole(arrays), spec, 1, "_TensorDataset")

    @staticmethod
    def from_generator(
        generator: Callable[..., Any],
        output_types: Any = None,
        output_shapes: Any = None,
        args: Sequence[Any] | None = None,
        output_signature: Any = None,
        name: str | None = None,
    ) -> Dataset:
        """Returns the values that a Python generator yields. With `prefetch` the generator runs in another thread.

        Args:
            generator: Returns an iterable; each iteration calls it again.
            output_types: The dtypes of an element, in its structure.
            output_shapes: The shapes, in the same structure; None: not known.
            args: Arguments of the generator, which it gets as arrays.
            output_signature: TensorSpecs in the structure of an element, in place of types and shapes.
            name: Without effect.

        Raises:
            TypeError: No function, or no signature, or two.
        """
        if not callable(generator):
            raise TypeError("`generator` must be a Python callable.")
        spec = sources.signature_of(output_types, output_shapes, output_signature)
        arguments = [host_of(convert_to_tensor(argument))[()] for argument in args or ()]
        return Dataset(
            lambda ahead: sources.generated(generator, arguments, spec),
            spec,
            UNKNOWN_CARDINALITY,
            "_FlatMapDataset",
            traits=Traits(slow=True),
        )

    @staticmethod
    def range(*args: Any, output_type: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Returns the numbers of Python's `range` of the same arguments, scalars of `output_type`.

        Raises:
            ValueError: None or more than three arguments.
            InvalidArgumentError: The step is zero.
        """
        if not 1 <= len(args) <= 3:
            raise ValueError(f"Invalid `args`. The length of `args` should be between 1 and 3 but was {len(args)}.")
        bounds = [_count(argument) for argument in args]
        if len(bounds) == 3 and not bounds[2]:
            raise InvalidArgumentError("step must be a non-zero integer.")
        numbers, dtype = range(*bounds), dtypes.as_dtype(output_type)
        spec = TensorSpec([], dtype)
        return Dataset(lambda ahead: sources.counted(numbers, dtype.np.type), spec, len(numbers), "_RangeDataset")

    @staticmethod
    def random(
        seed: int | None = None, rerandomize_each_iteration: bool | None = None, name: str | None = None
    ) -> Dataset:
        """Returns random scalars of int64 in [0, 2**32), without end.

        Args:
            seed: For the same numbers in every run; TensorFlow's are other ones.
            rerandomize_each_iteration: True for other numbers in each iteration.
            name: Without effect.
        """
        root = _root(seed)
        epochs = itertools.count() if rerandomize_each_iteration else itertools.repeat(0)
        return Dataset(
            lambda ahead: sources.random_numbers(f"{root}/{next(epochs)}"),
            TensorSpec([], dtypes.int64),
            INFINITE_CARDINALITY,
            "_RandomDataset",
        )

    @staticmethod
    def list_files(
        file_pattern: Any, shuffle: bool | None = None, seed: int | None = None, name: str | None = None
    ) -> Dataset:
        """Returns the paths of the files that match patterns of the shell, as strings.

        Args:
            file_pattern: A pattern, or a list of them.
            shuffle: False for sorted paths; by default they are shuffled anew in each iteration.
            seed: Of the shuffling.
            name: Without effect.

        Raises:
            InvalidArgumentError: No file matches.
        """
        paths = sources.matching_files(file_pattern)
        files = Dataset.from_tensor_slices(paths)
        return files if shuffle is False else files.shuffle(len(paths), seed)

    @staticmethod
    def zip(*args: Any, datasets: Any = None, name: str | None = None) -> Dataset:
        """Returns tuples of the elements of several datasets, as many as the shortest has.

        Args:
            *args: Datasets; or one tuple or dict of them, whose structure the elements have.
            datasets: The older name of the one structure.
            name: Without effect.

        Raises:
            TypeError: No datasets, a list of them, or something else.
        """
        if not args and datasets is None:
            raise TypeError("Must pass at least one dataset to `zip`.")
        parts = datasets if datasets is not None else args[0] if len(args) == 1 else args
        inputs = structure.flatten(parts)
        for part in inputs:
            if not isinstance(part, Dataset):
                more = (
                    "Python `list` is not supported and you should use `tuple` instead."
                    if isinstance(part, list)
                    else f"but encountered object of type {type(part)}."
                )
                space = ". " if isinstance(part, list) else " "
                raise TypeError(
                    "Invalid input to `zip`. Inputs are expected to be (nested) structures of `tf.data.Dataset` objects"
                    f"{space}{more}"
                )

        def start(ahead: int) -> PythonIterator[Element]:
            if len(inputs) == 1:
                only: Dataset = inputs[0]
                return only._start(ahead)
            rows = zip(*[part._start(ahead) for part in inputs], strict=False)
            return (list(itertools.chain.from_iterable(map(parts_of, row))) for row in rows)

        return Dataset(
            start,
            lambda: structure.map_leaves(lambda part: part.element_spec, parts),
            _least(part._cardinality for part in inputs),
            "_ZipDataset",
            traits=Traits.of_all(part._traits for part in inputs),
        )

    @staticmethod
    def counter(start: int = 0, step: int = 1, dtype: Any = dtypes.int64, name: str | None = None) -> Dataset:
        """Returns the numbers from `start` on, `step` apart, without end."""
        first, by, kind = _count(start), _count(step), dtypes.as_dtype(dtype)
        return Dataset(
            lambda ahead: ([kind.np.type(number)] for number in itertools.count(first, by)),
            TensorSpec([], kind),
            INFINITE_CARDINALITY,
            "_CounterDataset",
        )

    @staticmethod
    def choose_from_datasets(
        datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = True
    ) -> Dataset:
        """Returns elements of several datasets, in the order of the numbers that `choice_dataset` has.

        Raises:
            TypeError: They differ in structure or dtype, or the choices are no int64 scalars.
            ValueError: There are no datasets.
        """
        inputs = _inputs(datasets)
        spec = choice_dataset.element_spec
        if spec != TensorSpec([], dtypes.int64):
            raise TypeError(
                "Invalid `choice_dataset`. Elements of `choice_dataset` must be scalar `tf.int64` tensors but are "
                f"{spec}."
            )

        def choices() -> PythonIterator[int | None]:
            return (int(host_of(leaves_of(each)[0])) for each in choice_dataset._start(0))

        return _directed(inputs, choices, stop_on_empty_dataset)

    @staticmethod
    def sample_from_datasets(
        datasets: Sequence[Dataset],
        weights: Any = None,
        seed: int | None = None,
        stop_on_empty_dataset: bool = False,
        rerandomize_each_iteration: bool | None = None,
    ) -> Dataset:
        """Returns elements of several datasets, each drawn at random.

        Args:
            datasets: The datasets.
            weights: The probability of each, or a dataset of such lists; None: all the same.
            seed: For the same choices in every run.
            stop_on_empty_dataset: Whether the first dataset that has no more ends all of it.
            rerandomize_each_iteration: True for other choices in each iteration.

        Raises:
            ValueError: No datasets, or another number of weights.
        """
        inputs = _inputs(datasets)
        count = len(inputs)
        weighted = isinstance(weights, Dataset)
        fixed = None if weights is None or weighted else _probabilities(weights, count)
        root = _root(seed)
        epochs = itertools.count() if rerandomize_each_iteration else itertools.repeat(0)

        def choices() -> PythonIterator[int | None]:
            drawn = np.random.default_rng([abs(root), next(epochs)])
            if weighted:
                for row in weights._start(0):
                    yield int(drawn.choice(count, p=_probabilities(host_of(leaves_of(row)[0]), count)))
            while not weighted:
                yield int(drawn.choice(count, p=fixed))

        return _directed(inputs, choices, stop_on_empty_dataset)

    # -------------------------------------------------------------------------------------------------- its properties
    @property
    def element_spec(self) -> Any:
        """The spec of the elements: a TensorSpec for each tensor, in their structure."""
        if self._resolved is None:
            self._resolved = self._spec() if callable(self._spec) else self._spec
        return self._resolved

    def _spec_as_leaf(self) -> DatasetSpec:
        return DatasetSpec(self.element_spec)

    def cardinality(self) -> Any:
        """Returns the number of elements, a scalar int64 tensor, or INFINITE_CARDINALITY or UNKNOWN_CARDINALITY."""
        return constant(np.int64(self._cardinality))

    def __len__(self) -> int:
        if self._cardinality == INFINITE_CARDINALITY:
            raise TypeError("The dataset is infinite.")
        if self._cardinality == UNKNOWN_CARDINALITY:
            raise TypeError("The dataset length is unknown.")
        return self._cardinality

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"<{self._kind} element_spec={self.element_spec!r}>"

    def __iter__(self) -> Iterator:
        return Iterator(self)

    def as_numpy_iterator(self) -> NumpyIterator:
        """Returns an iterator over the elements as NumPy arrays and scalars; strings are bytes."""
        return NumpyIterator(self)

    def get_single_element(self, name: str | None = None) -> Any:
        """Returns the only element.

        Raises:
            InvalidArgumentError: There is none, or more than one.
        """
        elements = iter(self)
        first = next(elements, None)
        if first is None:
            raise InvalidArgumentError("Dataset was empty.")
        if next(elements, None) is not None:
            raise InvalidArgumentError("Dataset had more than one element.")
        return first

    def options(self) -> Options:
        """Returns the options of this dataset and those that it was made from."""
        return self._options

    def with_options(self, options: Options, name: str | None = None) -> Dataset:
        """Returns this dataset with further options, which change nothing."""
        dataset = self._derived(lambda elements: elements, "_OptionsDataset", self._cardinality)
        dataset._options = self._options.merge(options)
        return dataset

    def apply(self, transformation_func: Callable[[Dataset], Dataset]) -> Dataset:
        """Returns `transformation_func` of this dataset.

        Raises:
            TypeError: It returns something else than a dataset.
        """
        dataset = transformation_func(self)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"`transformation_func` must return a `tf.data.Dataset` object. Got {type(dataset)}.")
        return dataset

    # -------------------------------------------------------------------------------------------- which, in what order
    def take(self, count: Any, name: str | None = None) -> Dataset:
        """Returns the first `count` elements; all if `count` is negative or there are fewer."""
        wanted = _count(count)
        if wanted < 0:
            return self._derived(lambda elements: elements, "_TakeDataset", self._cardinality)
        size = wanted if self._cardinality == INFINITE_CARDINALITY else self._cardinality
        size = min(wanted, size) if size >= 0 else size if wanted else 0
        return self._derived(lambda elements: itertools.islice(elements, wanted), "_TakeDataset", size)

    def skip(self, count: Any, name: str | None = None) -> Dataset:
        """Returns the elements after the first `count`; none if `count` is negative."""
        left_out = _count(count)
        if left_out < 0:
            return self._derived(lambda elements: iter(()), "_SkipDataset", 0)
        size = max(self._cardinality - left_out, 0) if self._cardinality >= 0 else self._cardinality
        return self._derived(lambda elements: itertools.islice(elements, left_out, None), "_SkipDataset", size)

    def shard(self, num_shards: Any, index: Any, name: str | None = None) -> Dataset:
        """Returns every `num_shards`th element, from element `index` on.

        Raises:
            InvalidArgumentError: `num_shards` is less than 1, or there is no such shard.
        """
        count, at = _count(num_shards), _count(index)
        if count < 1:
            raise InvalidArgumentError(f"Number of shards must be greater than zero (currently num_shards = {count}).")
        if not 0 <= at < count:
            raise InvalidArgumentError(f"Index must be between 0 and {count - 1} (currently index = {at}).")
        size = self._cardinality
        size = size if size < 0 else -(-max(size - at, 0) // count)
        return self._derived(lambda elements: itertools.islice(elements, at, None, count), "_ShardDataset", size)

    def repeat(self, count: Any = None, name: str | None = None) -> Dataset:
        """Returns this dataset `count` times over; without end if `count` is None or negative."""
        times = -1 if count is None else _count(count)
        if not times or not self._cardinality:
            size = 0
        elif times < 0 or self._cardinality == INFINITE_CARDINALITY:
            size = INFINITE_CARDINALITY
        else:
            size = self._cardinality * times if self._cardinality > 0 else UNKNOWN_CARDINALITY
        return Dataset(
            lambda ahead: transforms.repeated(lambda: self._start(ahead), times),
            lambda: self.element_spec,
            size,
            "_RepeatDataset",
            traits=self._traits,
            options=self._options,
        )

    def shuffle(
        self,
        buffer_size: Any,
        seed: int | None = None,
        reshuffle_each_iteration: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Returns the elements in random order: each is drawn from a buffer, which the following elements refill.

        Args:
            buffer_size: The number of elements in the buffer; at least the dataset's size for a uniform shuffle.
            seed: For the same order in every run, TensorFlow's. None: the same after `tf.random.set_seed` only.
            reshuffle_each_iteration: False for the same order in every iteration of this dataset.
            name: Without effect.

        Raises:
            InvalidArgumentError: `buffer_size` is less than 1.
        """
        size = _count(buffer_size)
        if size < 1 and size != UNKNOWN_CARDINALITY:
            raise InvalidArgumentError(f"buffer_size must be greater than zero or UNKNOWN_CARDINALITY. It is {size}.")
        held_back = None if size < 0 else size
        draws = current().draws("dataset", None if seed is None else _count(seed)).of_another_kernel()
        first = unsigned(draws.state(0))
        seeds = philox.endless_words(first)  # two for each iteration

        def shuffled(elements: PythonIterator[Element]) -> PythonIterator[Element]:
            state = first
            if reshuffle_each_iteration is not False:
                key = next(seeds)
                state = [0, next(seeds), key]
            return transforms.shuffled(elements, held_back, philox.endless_words(state))

        return self._derived(shuffled, "_ShuffleDataset", self._cardinality)

    def concatenate(self, dataset: Dataset, name: str | None = None) -> Dataset:
        """Returns these elements, and then those of another dataset.

        Raises:
            TypeError: Its elements have another structure or dtype.
        """
        first, second = self.element_spec, dataset.element_spec
        spec = merged_specs(first, second)
        if spec is None:
            raise TypeError(f"Incompatible dataset elements:\n  {first} vs.   {second}")
        sizes = (self._cardinality, dataset._cardinality)
        if INFINITE_CARDINALITY in sizes:
            size = INFINITE_CARDINALITY
        else:
            size = UNKNOWN_CARDINALITY if UNKNOWN_CARDINALITY in sizes else sum(sizes)
        return Dataset(
            lambda ahead: itertools.chain.from_iterable(part._start(ahead) for part in (self, dataset)),
            spec,
            size,
            "_ConcatenateDataset",
            traits=Traits.of_all((self._traits, dataset._traits)),
            options=self._options,
        )

    def filter(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Returns the elements for which a function returns true.

        Raises:
            ValueError: It returns something else than a bool.
        """
        function = self._predicate(predicate)
        return self._derived(
            lambda elements: transforms.filtered(elements, function), "_FilterDataset", UNKNOWN_CARDINALITY, host=False
        )

    def take_while(self, predicate: Callable[..., Any], name: str | None = None) -> Dataset:
        """Returns the elements before the first for which a function returns false."""
        function = self._predicate(predicate)
        return self._derived(
            lambda elements: transforms.taken_while(elements, function),
            "_TakeWhileDataset",
            UNKNOWN_CARDINALITY,
            host=False,
        )

    def _predicate(self, predicate: Callable[..., Any]) -> ElementFunction:
        function = ElementFunction(predicate, self.element_spec)
        result = function.result
        if result is not None and result != TensorSpec([], dtypes.bool):
            raise ValueError(
                "Invalid `predicate`. `predicate` must return a `tf.bool` scalar tensor, but its return type is "
                f"{result}."
            )
        return function

    def ignore_errors(self, log_warning: bool = False, name: str | None = None) -> Dataset:
        """Returns the elements that can be computed, without the others. Each element is read to find out.

        Args:
            log_warning: Whether a line in the log says why an element is left out.
            name: Without effect.
        """
        return self._derived(
            lambda elements: transforms.without_failures(elements, log=log_warning),
            "_IgnoreErrorsDataset",
            UNKNOWN_CARDINALITY,
            host=False,
        )

    def unique(self, name: str | None = None) -> Dataset:
        """Returns the elements without repetitions, in the order of their first occurrence."""
        return self._derived(transforms.unique, "_UniqueDataset", UNKNOWN_CARDINALITY, host=False)

    def cache(self, filename: Any = "", name: str | None = None) -> Dataset:
        """Returns this dataset, which is computed once: later iterations repeat the elements of the first complete one.

        Args:
            filename: A file that keeps the elements, also for later runs of the program; "": in memory. The format is
                Teletape's own.
            name: Without effect.
        """
        path = os.fspath(filename) if not isinstance(filename, TensorLike) else filename.numpy().decode()
        store = caches.FileStore(path) if path else caches.MemoryStore()
        return self._derived_lazily(store.elements, "CacheDataset")

    def _derived_lazily(
        self, elements: Callable[[Callable[[], PythonIterator[Element]]], PythonIterator[Element]], kind: str
    ) -> Dataset:
        """Returns a dataset whose iterations may start without starting this one."""
        return Dataset(
            lambda ahead: elements(lambda: self._start(ahead)),
            lambda: self.element_spec,
            self._cardinality,
            kind,
            traits=self._traits,
            options=self._options,
        )

    def prefetch(self, buffer_size: Any, name: str | None = None) -> Dataset:
        """Returns this dataset; a thread prepares `buffer_size` elements ahead of their use.

        The thread runs generators and reads files; a dataset of elements in memory has no thread. The thread also sends
        large elements ahead to a session on a server.
        """
        wanted = _count(buffer_size)
        size = _MOST_AHEAD if wanted < 0 else max(wanted, 1)
        return Dataset(
            lambda ahead: self._start(max(size, ahead)),
            lambda: self.element_spec,
            self._cardinality,
            "_PrefetchDataset",
            traits=self._traits.prefetched(size),
            options=self._options,
        )

    # --------------------------------------------------------------------------------------------------- several in one
    def batch(
        self,
        batch_size: Any,
        drop_remainder: bool = False,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Returns elements stacked along a new first axis, `batch_size` at a time.

        Args:
            batch_size: At least 1.
            drop_remainder: Whether a last batch that is smaller is left out.
            num_parallel_calls: Without effect.
            deterministic: Without effect: the order is always kept.
            name: Without effect.

        Raises:
            InvalidArgumentError: `batch_size` is less than 1; at an iteration: shapes in a batch differ.
        """
        size = _positive(batch_size, "Batch size")
        leading = size if drop_remainder else None
        kind = "_BatchDataset" if num_parallel_calls is None else "_ParallelBatchDataset"
        return self._derived(
            lambda elements: transforms.batched(elements, size, bool(drop_remainder)),
            kind,
            self._batches(size, drop_remainder),
            spec=lambda: structure.map_leaves(lambda spec: with_leading(spec, leading), self.element_spec),
            each=size,
        )

    def _batches(self, size: int, drop_remainder: bool) -> int:
        if self._cardinality < 0:
            return self._cardinality
        complete, rest = divmod(self._cardinality, size)
        return complete + bool(rest and not drop_remainder)

    def padded_batch(
        self,
        batch_size: Any,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Returns batches of elements that are padded to one shape.

        Args:
            batch_size: At least 1.
            padded_shapes: A shape for each leaf, in the structure of the elements; a size that is None or -1 is the
                largest in the batch. None: all sizes are.
            padding_values: A scalar for each leaf, or one for all; None: 0, or an empty string.
            drop_remainder: Whether a last batch that is smaller is left out.
            name: Without effect.

        Raises:
            InvalidArgumentError: `batch_size` is less than 1; at an iteration: an element has another rank.
            DataLossError: At an iteration: an element is larger than its shape.
            TypeError: A value of another dtype.
        """
        size = _positive(batch_size, "Batch size")
        specs = structure.flatten(self.element_spec)
        shapes: list[Any] = (
            [None] * len(specs) if padded_shapes is None else padded_shapes_of(self.element_spec, padded_shapes)
        )
        values = padding_of(specs, self.element_spec, padding_values)
        leading = size if drop_remainder else None

        def spec() -> Any:
            padded = [
                TensorSpec([leading, *(shape if shape is not None else unsized(each))], each.dtype)
                for each, shape in zip(specs, shapes, strict=True)
            ]
            return structure.pack(self.element_spec, padded)

        return self._derived(
            lambda elements: transforms.padded_batches(elements, size, shapes, values, bool(drop_remainder)),
            "_PaddedBatchDataset",
            self._batches(size, drop_remainder),
            spec=spec,
            each=size,
        )

    def ragged_batch(self, batch_size: Any, *args: Any, **kwargs: Any) -> Dataset:
        """Refused: elements are dense tensors.

        Raises:
            UnimplementedError: Always; it says what to use.
        """
        raise UnimplementedError(
            "ragged_batch: elements are dense tensors; pad the elements to one shape with padded_batch, or use "
            "bucket_by_sequence_length"
        )

    def unbatch(self, name: str | None = None) -> Dataset:
        """Returns the slices of the elements along their first axis.

        Raises:
            ValueError: A leaf is a scalar.
        """
        specs = [spec for spec in structure.flatten(self.element_spec) if isinstance(spec, TensorSpec)]
        if any(spec.shape.rank == 0 for spec in specs):
            raise ValueError("Cannot unbatch an input with scalar components.")
        sizes = {spec.shape.as_list()[0] for spec in specs if spec.shape.rank}
        size = next(iter(sizes)) if len(sizes) == 1 else None
        return self._derived(
            transforms.unbatched,
            "_UnbatchDataset",
            UNKNOWN_CARDINALITY if size is None or self._cardinality < 0 else size * self._cardinality,
            spec=lambda: structure.map_leaves(row_spec, self.element_spec),
        )

    def rebatch(self, batch_size: Any, drop_remainder: bool = False, name: str | None = None) -> Dataset:
        """Returns the rows of these batches in batches of another size."""
        return self.unbatch().batch(batch_size, drop_remainder)

    def window(
        self, size: Any, shift: Any = None, stride: Any = 1, drop_remainder: bool = False, name: str | None = None
    ) -> Dataset:
        """Returns datasets of `size` elements each; elements with several leaves give a dataset for each leaf.

        Args:
            size: Elements in a window.
            shift: Elements from the beginning of one window to that of the next; None: `size`.
            stride: Elements from one element of a window to the next.
            drop_remainder: Whether smaller windows at the end are left out.
            name: Without effect.

        Raises:
            InvalidArgumentError: A number is less than 1.
        """
        count, by = _positive(size, "Window size"), _positive(stride, "Window stride")
        step = count if shift is None else _positive(shift, "Window shift")

        def nested(elements: PythonIterator[Element]) -> PythonIterator[Element]:
            specs = structure.flatten(self.element_spec)
            for window in transforms.windows(elements, count, step, by, bool(drop_remainder)):
                columns = [list(column) for column in zip(*map(leaves_of, window), strict=True)]
                yield [_of_leaves(column, spec) for column, spec in zip(columns, specs, strict=True)]

        return self._derived(
            nested,
            "_WindowDataset",
            self._windows(count, step, by, bool(drop_remainder)),
            spec=lambda: structure.map_leaves(DatasetSpec, self.element_spec),
        )

    def _windows(self, size: int, shift: int, stride: int, drop_remainder: bool) -> int:
        if self._cardinality < 0:
            return self._cardinality
        span = (size - 1) * stride + 1 if drop_remainder else 1
        return max((self._cardinality - span) // shift + 1, 0)

    # ----------------------------------------------------------------------------------------------- through functions
    def map(
        self,
        map_func: Callable[..., Any],
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        synchronous: bool | None = None,
        use_unbounded_threadpool: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Returns `map_func` of every element; a tuple is passed as several arguments.

        The function is traced once, as by `tf.function`. If it cannot be traced (it takes strings, reads values, calls
        `tf.py_function`), it runs as Python on every element. The results belong to the program's session, and are not
        connected to any tape; they are computed when they are needed, a batch at once if that is possible.

        Args:
            map_func: Returns tensors, or what becomes tensors, in tuples and dicts; a list counts as a tuple.
            num_parallel_calls: Without effect.
            deterministic: Without effect: the order is always kept.
            synchronous: Without effect.
            use_unbounded_threadpool: Without effect.
            name: Without effect.

        Raises:
            ValueError: `map_func` is not callable.
        """
        function = ElementFunction(map_func, self.element_spec)
        lazy = function.lazy

        def mapped(elements: PythonIterator[Element]) -> PythonIterator[Element]:
            if lazy:
                return (Mapped(function, element) for element in elements)
            return map(lambda element: function(leaves_of(element)), elements)  # noqa: C417  # it goes on after an error

        kind = "_MapDataset" if num_parallel_calls is None else "_ParallelMapDataset"
        return self._derived(
            mapped,
            kind,
            self._cardinality,
            spec=lambda: function.result if function.result is not None else self._first_result(function),
            host=not lazy,
            computes=lazy,
        )

    def _first_result(self, function: ElementFunction) -> Any:
        """Returns the spec of a function's results, from the first of them."""
        for element in self._start(0):
            function(leaves_of(element))
            break
        return function.result if function.result is not None else NoneTensorSpec()

    def scan(self, initial_state: Any, scan_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Returns the results of a function of a state and each element.

        Args:
            initial_state: Tensors, or what becomes tensors, in tuples and dicts.
            scan_func: From (state, element) to (next state, result).
            name: Without effect.

        Raises:
            TypeError: It returns a state of another structure or dtype, or no pair.
        """
        state, function = _with_state(initial_state, scan_func, self.element_spec, pair=True)
        return self._derived(
            lambda elements: transforms.scanned(elements, state, function),
            "_ScanDataset",
            self._cardinality,
            spec=lambda: (function.result or self._scan_result(state, function))[1],
            host=False,
        )

    def _scan_result(self, state: Sequence[Any], function: ElementFunction) -> Any:
        for _ in transforms.scanned(self._start(0), state, function):
            break
        return function.result or (None, NoneTensorSpec())

    def reduce(self, initial_state: Any, reduce_func: Callable[..., Any], name: str | None = None) -> Any:
        """Returns the last state: a function computes each state from the one before and an element.

        Args:
            initial_state: Tensors, or what becomes tensors, in tuples and dicts.
            reduce_func: From (state, element) to the next state.
            name: Without effect.

        Raises:
            TypeError: It returns a state of another structure or dtype.
        """
        if current().tracing:
            return dataset_loops.reduced(self, initial_state, reduce_func)
        state, function = _with_state(initial_state, reduce_func, self.element_spec, pair=False)
        for element in self._start(0):
            state = function([*state, *leaves_of(element)])
        return structure.pack(initial_state, state)

    def flat_map(self, map_func: Callable[..., Any], name: str | None = None) -> Dataset:
        """Returns the elements of the datasets that a function returns, one dataset after the other.

        Raises:
            TypeError: It returns something else than a dataset.
        """
        return self._flattened(map_func, 1, 1, "_FlatMapDataset")

    def interleave(
        self,
        map_func: Callable[..., Any],
        cycle_length: Any = None,
        block_length: Any = None,
        num_parallel_calls: Any = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Returns the elements of the datasets that a function returns, in turn.

        Args:
            map_func: From an element to a dataset.
            cycle_length: The number of datasets that take turns; None: the number of CPU cores, as in TensorFlow.
            block_length: The number of elements of each in its turn; None: 1.
            num_parallel_calls: Without effect.
            deterministic: Without effect: the order is always the same.
            name: Without effect.

        Raises:
            TypeError: It returns something else than a dataset.
            InvalidArgumentError: A number is less than 1.
        """
        cycle = os.cpu_count() or 1 if cycle_length is None else _count(cycle_length)
        cycle = os.cpu_count() or 1 if cycle == AUTOTUNE else cycle
        block = 1 if block_length is None else _count(block_length)
        if cycle < 1 or block < 1:
            raise InvalidArgumentError(
                f"`cycle_length` and `block_length` must be greater than zero: they are {cycle} and {block}."
            )
        kind = "_InterleaveDataset" if num_parallel_calls is None else "_ParallelInterleaveDataset"
        return self._flattened(map_func, cycle, block, kind)

    def _flattened(self, map_func: Callable[..., Any], cycle: int, block: int, kind: str) -> Dataset:
        if not callable(map_func):
            raise ValueError(f"Argument `func` must be a callable. Received func={map_func} (of type {type(map_func)})")
        specs: list[Any] = []

        def inner(element: Element) -> Dataset:
            arguments = structure.pack(self.element_spec, [tensor_of(leaf) for leaf in leaves_of(element)])
            dataset = map_func(*arguments) if type(arguments) is tuple else map_func(arguments)
            if not isinstance(dataset, Dataset):
                raise TypeError(f"`map_func` must return a `Dataset` object. Got {type(dataset)}.")
            if not specs:
                specs.append(dataset.element_spec)
            return dataset

        def spec() -> Any:
            for element in () if specs else self._start(0):
                inner(element)
                break
            return specs[0] if specs else NoneTensorSpec()

        return Dataset(
            lambda ahead: transforms.interleaved(
                self._start(0), lambda element: inner(element)._start(ahead), cycle, block
            ),
            spec,
            UNKNOWN_CARDINALITY,
            kind,
            traits=Traits(host=False),
            options=self._options,
        )

    def enumerate(self, start: Any = 0, name: str | None = None) -> Dataset:
        """Returns pairs of a count from `start`, a scalar int64, and the element."""
        first = _count(start)
        return Dataset.zip(Dataset.range(first, _END_OF_RANGE), self)

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[..., Any],
        window_size: Any = None,
        window_size_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Groups elements by key into windows, and returns the elements of a function's dataset for each window.

        Args:
            key_func: From an element to its key, an int64 scalar.
            reduce_func: From a key and the dataset of a window's elements to a dataset.
            window_size: The number of elements in a window.
            window_size_func: Returns that number for a key.
            name: Without effect.

        Raises:
            ValueError: Both or none of `window_size` and `window_size_func`.
        """
        if (window_size is None) == (window_size_func is None):
            raise ValueError("Either the `window_size` argument or the `window_size_func` argument must be specified.")
        keys = ElementFunction(key_func, self.element_spec)
        specs: list[Any] = []

        def reduced(key: Any, group: list[Element]) -> PythonIterator[Element]:
            dataset = reduce_func(constant(np.int64(key)), _of_elements(group, self.element_spec))
            if not specs:
                specs.append(dataset.element_spec)
            return dataset._start(0)  # type: ignore[no-any-return]  # of the program's function

        def size_of(key: Any) -> int:
            return _count(window_size if window_size_func is None else window_size_func(constant(np.int64(key))))

        def spec() -> Any:
            if not specs:
                empty = _of_elements([], self.element_spec)
                specs.append(reduce_func(constant(np.int64(0)), empty).element_spec)
            return specs[0]

        return self._derived(
            lambda elements: transforms.grouped(elements, keys, size_of, reduced),
            "_GroupByWindowDataset",
            UNKNOWN_CARDINALITY,
            spec=spec,
            host=False,
        )

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> Dataset:
        """Returns batches of elements of about the same length, padded.

        Args:
            element_length_func: From an element to its length, an int32 scalar.
            bucket_boundaries: Lengths at which the next bucket begins.
            bucket_batch_sizes: The batch size of each bucket: one more than there are boundaries.
            padded_shapes: As in `padded_batch`.
            padding_values: As in `padded_batch`.
            pad_to_bucket_boundary: Whether sizes that are not known are padded to the boundary minus 1, and not to the
                longest in the batch.
            no_padding: Whether batches are not padded.
            drop_remainder: Whether last batches that are smaller are left out.
            name: Without effect.

        Raises:
            ValueError: Another number of batch sizes.
        """
        if len(bucket_batch_sizes) != len(bucket_boundaries) + 1:
            raise ValueError(
                "`len(bucket_batch_sizes)` must equal `len(bucket_boundaries) + 1` but `len(bucket_batch_sizes)="
                f"{len(bucket_batch_sizes)}` and `len(bucket_boundaries)={len(bucket_boundaries)}`."
            )
        boundaries = np.asarray(bucket_boundaries)

        def bucket(*element: Any) -> Any:
            length = convert_to_tensor(element_length_func(*element))
            return _bucket_of(length, boundaries)

        def batches(key: Any, window: Dataset) -> Dataset:
            at = int(key)
            size = bucket_batch_sizes[at]
            if no_padding:
                return window.batch(size, drop_remainder)
            shapes = padded_shapes
            if pad_to_bucket_boundary:
                if at == len(bucket_boundaries):
                    raise InvalidArgumentError(
                        "When pad_to_bucket_boundary=True, elements must have length < max(bucket_boundaries)."
                    )
                shapes = structure.map_leaves(
                    lambda spec: TensorShape([bucket_boundaries[at] - 1 if dim is None else dim for dim in spec.shape]),
                    self.element_spec,
                )
            return window.padded_batch(size, shapes, padding_values, drop_remainder)

        return self.group_by_window(bucket, batches, window_size_func=lambda key: bucket_batch_sizes[int(key)])

    def rejection_resample(
        self,
        class_func: Callable[..., Any],
        target_dist: Any,
        initial_dist: Any = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> Dataset:
        """Returns (class, element) pairs, without some elements, so that the classes have the target distribution.

        Args:
            class_func: From an element to its class, an int32 scalar.
            target_dist: The probability of each class.
            initial_dist: The probability in this dataset; None: counted as the elements come.
            seed: For the same choices in every run.
            name: Without effect.
        """
        classes = ElementFunction(class_func, self.element_spec)
        target = np.asarray(host_of(convert_to_tensor(target_dist)), np.float64)
        initial = None if initial_dist is None else np.asarray(host_of(convert_to_tensor(initial_dist)), np.float64)
        root = _root(seed)

        def resampled(elements: PythonIterator[Element]) -> PythonIterator[Element]:
            draw = np.random.default_rng(abs(root))
            counts = np.full(len(target), 1.0)
            for element in elements:
                at = int(classes.host(element)[0])
                counts[at] += 1
                ratios = target / (counts / counts.sum() if initial is None else np.maximum(initial, 1e-30))
                if draw.random() < ratios[at] / ratios.max():
                    yield [np.int32(at), *leaves_of(element)]

        return self._derived(
            resampled,
            "_DirectedInterleaveDataset",
            UNKNOWN_CARDINALITY,
            spec=lambda: (TensorSpec([], dtypes.int32), self.element_spec),
            host=False,
        )


#: The end of `enumerate`'s numbers.
_END_OF_RANGE: Final = (1 << 63) - 1


# -------------------------------------------------------------------------------------------------- parts of datasets
def _of_elements(elements: list[Element], spec: Any) -> Dataset:
    return Dataset(lambda ahead: iter(elements), spec, len(elements), "_VariantDataset", traits=Traits(host=False))


def _of_leaves(leaves: list[Any], spec: Any) -> Dataset:
    return Dataset(
        lambda ahead: ([leaf] for leaf in leaves), spec, len(leaves), "_VariantDataset", traits=Traits(host=False)
    )


def _directed(
    inputs: Sequence[Dataset], choices: Callable[[], PythonIterator[int | None]], stop_on_empty: bool
) -> Dataset:
    """Returns elements of several datasets, in the order of choices."""
    spec = inputs[0].element_spec
    for dataset in inputs[1:]:
        merged = merged_specs(spec, dataset.element_spec)
        if merged is None:
            raise TypeError(
                "Invalid `datasets`. `datasets` must have compatible element specs.\n Dataset 0 element_spec="
                f"{inputs[0].element_spec}.\n Dataset element_spec={dataset.element_spec}."
            )
        spec = merged
    return Dataset(
        lambda ahead: transforms.chosen(
            [functools.partial(dataset._start, ahead) for dataset in inputs], choices(), bool(stop_on_empty)
        ),
        spec,
        UNKNOWN_CARDINALITY,
        "_DirectedInterleaveDataset",
        traits=Traits.of_all(dataset._traits for dataset in inputs),
    )


def _inputs(datasets: Sequence[Dataset]) -> list[Dataset]:
    inputs = list(datasets)
    if not inputs:
        raise ValueError("Invalid `datasets`. `datasets` should not be empty.")
    return inputs


def _probabilities(weights: Any, count: int) -> Any:
    """Returns the probability of each dataset.

    Raises:
        ValueError: There is another number of them.
    """
    chances = np.asarray(host_of(convert_to_tensor(weights)), np.float64).reshape(-1)
    if len(chances) != count:
        raise ValueError(
            f"Invalid `weights`. The shape of `weights` must be compatible with `[len(datasets)]`: there are {count} "
            f"datasets and {len(chances)} weights."
        )
    return chances / chances.sum()


def _least(sizes: Iterable[int]) -> int:
    """Returns the cardinality of datasets that end with the shortest of them."""
    values = list(sizes)
    if UNKNOWN_CARDINALITY in values:
        return UNKNOWN_CARDINALITY
    return min((size for size in values if size >= 0), default=INFINITE_CARDINALITY)


# ----------------------------------------------------------------------------------------------------------- functions
def _with_state(
    initial_state: Any, function: Callable[..., Any], spec: Any, *, pair: bool
) -> tuple[list[Any], ElementFunction]:
    """Returns the leaves of the first state, and the function of a state and an element.

    Args:
        initial_state: The first state.
        function: The program's function.
        spec: The spec of the elements.
        pair: Whether it returns a result as well.
    """
    state = [convert_to_tensor(leaf) for leaf in structure.flatten(initial_state)]
    specs = structure.pack(initial_state, [spec_of(leaf) for leaf in state])

    def checked(before: Any, element: Any) -> Any:
        result = traceable(function)(before, element)
        if pair and not (isinstance(result, list | tuple) and len(result) == 2):
            raise TypeError(
                "Invalid `scan_func`. `scan_func` should return a pair consisting of new state and the output value."
            )
        after = result[0] if pair else result
        if not structure.same(before, after):
            raise TypeError(
                f"The new state must have the structure of the initial state, {specs}; the function returned {after}."
            )
        leaves = [convert_to_tensor(leaf) for leaf in structure.flatten(after)]
        for leaf, first in zip(leaves, state, strict=True):
            if leaf.dtype is not first.dtype:
                raise TypeError(
                    "The element types for the new state must match the initial state. Expected "
                    f"{structure.map_leaves(lambda each: each.dtype, specs)}; got "
                    f"{structure.pack(after, [each.dtype for each in leaves])}."
                )
        after = structure.pack(after, leaves)
        return (after, result[1]) if pair else after

    return state, ElementFunction(checked, (specs, spec), single=not pair)


def _bucket_of(length: Tensor, boundaries: Any) -> Tensor:
    """Returns the index of the bucket for elements of a length."""
    bounds = constant(boundaries.astype(length.dtype.np))
    reached = call(ops.cast, (call(ops.greater_equal, (length, bounds)),), dtype=dtypes.int64.np)
    return call(ops.reduce_sum, (reached,), axis=None, keepdims=False)


# ------------------------------------------------------------------------------------------------------------- numbers
def _count(value: Any) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"Cannot convert {value!r} to EagerTensor of dtype int64") from None


def _positive(value: Any, name: str) -> int:
    count = _count(value)
    if count < 1:
        raise InvalidArgumentError(f"{name} must be greater than zero. It is {count}.")
    return count


def _root(seed: Any) -> int:
    """Returns the seed, or the program's next random draw, which `tf.random.set_seed` makes repeatable."""
    if seed is not None:
        return _count(seed)
    seeds = current().draws("dataset", None).seeds
    return secrets.randbits(62) if seeds is None else seeds[0] << 32 | seeds[1]
