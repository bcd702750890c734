"""Tracebacks: the program's own lines, and at most two more; in this process and over HTTP."""

import importlib
import inspect
import pickle
import sys
import traceback
from types import FunctionType

import numpy as np
import pytest

import teletape as tf
from teletape.core.program import tracebacks
from teletape.core.program.call_site import PACKAGES
from teletape.core.sessions.current import use
from teletape.core.sessions.local import LocalSession
from teletape.names.modules import by_module
from teletape.names.table import NAMES

A = np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]], np.float32)


@pytest.fixture(params=["in this process", "over HTTP"])
def session(request):
    return use(LocalSession()) if request.param == "in this process" else request.getfixturevalue("remote")


def product(x):
    return tf.matmul(x, x)


def gradient_with_a_wrong_function():
    @tf.custom_gradient
    def double(x):
        return x * 2.0, lambda upstream: product(tf.constant(A))

    x = tf.Variable(A)
    with tf.GradientTape() as tape:
        y = double(x)
    tape.gradient(y, x)


def gradient_of_another_shape():
    x = tf.Variable(A)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x, output_gradients=tf.ones(4))


def second_gradient():
    x = tf.Variable(A)
    with tf.GradientTape() as tape:
        y = x * x
    tape.gradient(y, x)
    tape.gradient(y, x)


class Layer:
    @tf.function
    def call(self, x):
        return tf.matmul(x, x)


#: What raises, and how many lines of this file lie between the test and the error.
MISTAKES = {
    "a function": (lambda: tf.matmul(tf.constant(A), tf.constant(A)), 1),
    "an operator": (lambda: tf.constant(A) @ tf.constant(A), 1),
    "a comparison": (lambda: tf.constant(A) < tf.ones(2), 1),
    "an index": (lambda: tf.constant(A)[5], 1),
    "an attribute": (lambda: tf.reduce_sum(tf.constant(A), axis=[[0.5]]), 1),
    "a composite written by hand": (lambda: tf.norm(tf.constant(A), axis=7), 1),
    "a constant": (lambda: tf.constant([[1, 2], [3]]), 1),
    "a dtype": (lambda: tf.cast(tf.constant(A), "float31"), 1),
    "an assignment": (lambda: tf.Variable(A).assign(tf.ones(3)), 1),
    "an addition to a variable": (lambda: tf.Variable(A).assign_add(tf.ones(3)), 1),
    "a conversion": (lambda: float(tf.constant(A)), 1),
    "a function of the program's, traced": (lambda: tf.function(product)(tf.constant(A)), 2),
    "a method, traced": (lambda: Layer().call(tf.constant(A)), 2),
    "a loop": (lambda: tf.while_loop(lambda i, x: i < 3, lambda i, x: (i + 1, product(x)), [0, tf.constant(A)]), 3),
    "a gradient function of the program's": (gradient_with_a_wrong_function, 3),
    "a gradient of another shape": (gradient_of_another_shape, 1),
    "a second gradient": (second_gradient, 1),
    "a value": (lambda: tf.gather(tf.constant(A), [9]).numpy(), 1),
    "a value that is read later": (lambda: float((tf.gather(tf.constant(A), [9]) * 2.0)[0, 0]), 1),
    "an assertion": (lambda: tf.debugging.assert_equal(tf.constant(A), 2.0 * tf.constant(A)), 1),
    "a lambda, traced": (lambda: tf.function(lambda x: tf.matmul(x, x))(tf.constant(A)), 2),
    "a dataset": (lambda: list(tf.data.Dataset.from_tensors(A).map(product)), 2),
    "a lambda of a dataset": (lambda: list(tf.data.Dataset.from_tensors(A).map(lambda x: tf.matmul(x, x))), 2),
    "an argument": (lambda: tf.GradientTape().gradient(None, None), 1),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_an_error_shows_the_lines_of_the_program(session, mistake):
    call, own = MISTAKES[mistake]
    handled = sys.exc_info()[1]  # None, unless a test of interrupts has left a handler by one
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of each its own
        call()
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert [entry.filename for entry in entries].count(__file__) == own + 1
    assert len(entries) <= own + 1 + 2
    assert [entry.filename for entry in entries if entry.filename.startswith(PACKAGES)] == []
    text = "".join(traceback.format_exception(caught.value))
    assert caught.value.__suppress_context__ or caught.value.__context__ is handled
    assert "direct cause" not in text


#: What reads the value of a tensor or a variable.
READS = {
    "numpy": lambda x: x.numpy(),
    "float": float,
    "int": int,
    "complex": complex,
    "bool": bool,
    "an f-string": lambda x: f"{x}",
    "str": str,
    "repr": repr,
    "an array": np.asarray,
    "an index of a list": lambda x: [1, 2][x],
    "a range": lambda x: range(x),
    "a pickle": pickle.dumps,
    "dlpack": np.from_dlpack,
}


@pytest.mark.parametrize("read", READS)
@pytest.mark.parametrize("kind", ["a tensor", "a variable"])
def test_a_read_shows_the_lines_of_the_program(remote, kind, read):
    lost = tf.gather(tf.constant([1, 2]), tf.cast(9.0 * tf.ones(20), tf.int32))[0]
    value = lost if kind == "a tensor" else tf.Variable(lost)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        READS[read](value)
    assert only_lines_of_the_program(caught.value)


#: Names that there are not, of modules and of objects.
MISSING = {
    "a module": lambda: tf.nope,
    "an inner module": lambda: tf.nn.nope,
    "an import": lambda: importlib.import_module("teletape.nn.nope"),
    "a tensor": lambda: tf.constant(1.0).nope,
    "a variable": lambda: tf.Variable(1.0).nope,
    "a tape": lambda: tf.GradientTape().nope,
}


@pytest.mark.parametrize("name", MISSING)
def test_a_missing_name_shows_the_lines_of_the_program(name):
    with pytest.raises((AttributeError, ImportError)) as caught:
        MISSING[name]()
    assert only_lines_of_the_program(caught.value)


#: What records a command; each takes the constant 3.
RECORDINGS = {
    "a function": tf.sin,
    "an operator": lambda x: x + 1.0,
    "a composite": tf.nn.relu,
    "an index": lambda x: x[None],
    "a conversion": lambda x: tf.convert_to_tensor([x, x]),
    "an assignment": lambda x: tf.Variable(x).assign(4.0),
}


@pytest.mark.parametrize("recording", RECORDINGS)
def test_an_interrupt_while_a_full_buffer_is_sent_shows_the_lines_of_the_program(remote, recording, monkeypatch):
    x = tf.constant(3.0)

    def interrupted(*args, **kwargs):
        raise KeyboardInterrupt

    for emit in ("emit", "emit_call"):
        monkeypatch.setattr(remote.channel, emit, interrupted, raising=False)
    with pytest.raises(KeyboardInterrupt) as caught:
        RECORDINGS[recording](x)
    assert only_lines_of_the_program(caught.value, besides=["interrupted"])


def only_lines_of_the_program(error, besides=()):
    """Whether a traceback has no frames of Teletape."""
    entries = [entry for entry in traceback.extract_tb(error.__traceback__) if entry.name not in besides]
    return not [entry for entry in entries if entry.filename.startswith(tuple(PACKAGES))]


def test_an_interrupt_in_the_data_of_a_fit_shows_no_line_of_teletape():
    from teletape import keras

    class Interrupting(keras.utils.PyDataset):
        def __len__(self):
            return 4

        def __getitem__(self, index):
            raise KeyboardInterrupt

    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(Interrupting(), verbose=0)
    files = [entry.filename for entry in traceback.extract_tb(caught.value.__traceback__)]
    assert [file for file in files if file.startswith(PACKAGES)] == []


def test_an_error_names_its_op_and_the_line_that_recorded_it(remote):
    positions = tf.cast(9.0 * tf.ones(20), tf.int32)  # too many for this side to know them
    picked = tf.gather(tf.constant(A), positions)
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        (picked * 2.0).numpy()
    first, second = str(caught.value).split("\n")
    assert first == "indices[0] = 9 is not in [0, 2) [Op:GatherV2]"
    assert second.startswith("  op 'gather', recorded at an earlier line than this read: ")
    assert f": tests/sdk/remote/test_tracebacks.py:{line}, in test_an_error_names_its_op" in second


def picks(x, i):
    return tf.gather(x, i)  # a step


def asserts(x, i):
    tf.debugging.assert_less(i, 100, message="too far")  # a step
    return x


def divides(x, i):
    return i // (i - 200)  # a step


def loops(x, i):
    for number in tf.range(3):
        x += tf.gather(x, i + number)  # a step
    return x


def calls(x, i):
    return tf.function(picks)(x, i) + 1.0


@pytest.mark.parametrize(
    ("function", "written", "word"),
    [
        (picks, picks, "op 'gather'"),
        (asserts, asserts, "an assertion"),
        (divides, divides, "op 'floordiv'"),
        (loops, loops, "op 'gather'"),
        (calls, picks, "op 'gather'"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_an_error_in_a_function_names_the_line_that_wrote_the_op(session, function, written, word):
    traced = tf.function(function)
    x, far = (
        tf.random.uniform([20]),
        tf.cast(tf.random.uniform([20]) * 0.0, tf.int32) + 200,
    )  # known to the server alone
    for _ in range(2):  # the second time a plan may run it
        with pytest.raises(tf.errors.InvalidArgumentError) as caught:
            traced(x, far).numpy()
        lines, first = inspect.getsourcelines(written)
        line = next(number for number, text in enumerate(lines, first) if "# a step" in text)
        place = f"tests/sdk/remote/test_tracebacks.py:{line}, in {written.__name__}"
        last = str(caught.value).splitlines()[-1]
        assert last.startswith(f"  {word}, written at {place}"), (
            "and then, of a read, the line that called the function"
        )
        assert caught.value.details["where"] == place


def test_filtering_can_be_disabled(session):
    assert tf.debugging.is_traceback_filtering_enabled()
    tf.debugging.disable_traceback_filtering()
    try:
        assert not tf.debugging.is_traceback_filtering_enabled()
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"\[Op:MatMul\]") as caught:
            product(tf.constant(A))
        assert caught.traceback[-1].name == "_matmul_spec"
    finally:
        tf.debugging.enable_traceback_filtering()
    assert tf.debugging.is_traceback_filtering_enabled()


def test_what_the_program_was_handling_stays(session):
    def handle():
        try:
            raise KeyError("mine")
        except KeyError:
            product(tf.constant(A))

    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        handle()
    assert isinstance(caught.value.__context__, KeyError)
    assert "During handling" in "".join(traceback.format_exception(caught.value))


def test_an_error_in_a_function_of_the_program_is_its_own(session):
    def body(row):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        tf.map_fn(body, tf.constant(A))
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert [entry.name for entry in entries if entry.filename == __file__][-1] == "body"
    assert len(entries) <= 4


def failing(*_):
    raise OSError("no disk")
    yield 1.0


def failing_at_once(*_):
    raise OSError("no disk")


#: What calls a function of the program's that raises.
CALLERS = {
    "a dataset": lambda: list(tf.data.Dataset.from_generator(failing, output_signature=tf.TensorSpec([]))),
    "a mapped dataset": lambda: list(
        tf.data.Dataset.range(2).map(lambda x: tf.py_function(failing_at_once, [x], tf.int64))
    ),
    "py_function": lambda: tf.py_function(failing_at_once, [1.0], tf.float32),
    "numpy_function": lambda: tf.numpy_function(failing_at_once, [1.0], tf.float32),
}


@pytest.mark.parametrize("caller", CALLERS)
def test_a_function_of_the_program_that_raises_shows_its_lines_alone(session, caller):
    with pytest.raises((tf.errors.UnknownError, OSError)) as caught:
        CALLERS[caller]()
    shown = "".join(traceback.format_exception(caught.value))
    assert 'raise OSError("no disk")' in shown
    assert [package for package in PACKAGES if package in shown] == []


def test_a_generator_that_yields_another_dtype_shows_no_line_of_teletape(session):
    with pytest.raises(tf.errors.InvalidArgumentError, match="yielded an element") as caught:
        list(tf.data.Dataset.from_generator(lambda: iter([np.ones(2)]), output_signature=tf.TensorSpec([], tf.int32)))
    assert [package for package in PACKAGES if package in "".join(traceback.format_exception(caught.value))] == []


def test_every_public_function_reports_its_errors():
    functions = [getattr(module, name) for module in public_modules() for name in module.__all__]
    own = [each for each in functions if isinstance(each, FunctionType)]
    assert len(own) > sum(home.startswith("_generated.") for home in NAMES.values())
    assert [each for each in own if tracebacks.report.__name__ not in each.__code__.co_names] == []
    for function in own:
        assert pickle.loads(pickle.dumps(function)) is function  # noqa: S301  # made here


def test_every_public_method_reports_its_errors():
    classes = {getattr(module, name) for module in public_modules() for name in module.__all__}
    bases = {base for value in classes if isinstance(value, type) for base in value.__mro__}
    methods = {
        f"{base.__qualname__}.{name}": method
        for base in bases
        if base.__module__.startswith("teletape.")
        for name, value in vars(base).items()
        if not name.startswith("_")
        and isinstance(method := getattr(value, "__func__", value), FunctionType)
        and name not in tracebacks._AT_EACH_OP
    }
    assert {"Checkpoint.restore", "Checkpoint.write", "CheckpointManager.save", "Generator.from_seed"} <= methods.keys()
    assert [name for name, value in methods.items() if "report" not in value.__code__.co_names] == []


#: Mistakes in files.
MISTAKES_IN_FILES = {
    "restore": lambda folder: tf.train.Checkpoint(v=tf.Variable(1.0)).restore(str(folder / "none")),
    "read": lambda folder: tf.train.Checkpoint(v=tf.Variable(1.0)).read(str(folder / "none")),
    "save": lambda folder: tf.train.Checkpoint(v=tf.Variable(1.0)).save(str(folder / "file" / "x")),
    "a manager": lambda folder: tf.train.CheckpointManager(tf.train.Checkpoint(), str(folder / "file"), 1).save(),
    "a manager that keeps none": lambda folder: tf.train.CheckpointManager(tf.train.Checkpoint(), str(folder), -1),
    "a variable": lambda folder: tf.train.load_variable(str(folder / "none"), "v"),
    "a file": lambda folder: tf.io.gfile.GFile(str(folder / "none")).read(),
    "records": lambda folder: tf.io.TFRecordWriter(str(folder / "file" / "x")),
    "a summary": lambda folder: tf.summary.create_file_writer(str(folder / "file")).flush(),
    "a saved model": lambda folder: tf.saved_model.load(str(folder / "none")),
}


@pytest.mark.parametrize("mistake", MISTAKES_IN_FILES)
def test_a_mistake_in_a_file_shows_the_lines_of_the_program(tmp_path, mistake):
    (tmp_path / "file").write_text("a file, not a folder")
    with pytest.raises(Exception) as caught:  # noqa: PT011  # of each its own
        MISTAKES_IN_FILES[mistake](tmp_path)
    assert only_lines_of_the_program(caught.value)


def public_modules():
    """The modules that `import teletape` publishes, without Keras, which filters its tracebacks itself."""
    modules = [module for path, module in sys.modules.items() if path == "teletape" or path in public_paths()]
    return [module for module in modules if not module.__name__.startswith("teletape.keras")]


def public_paths():
    return {f"teletape.{path}" for path in by_module()}


def test_an_error_of_an_earlier_line_shows_that_line_first(remote):
    positions = tf.cast(9.0 * tf.ones(20), tf.int32)
    unrelated = tf.constant(A) * 2.0
    tf.gather(tf.constant(A), positions)  # never read
    line = inspect.currentframe().f_lineno - 1
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        unrelated.numpy()
    error = caught.value
    assert str(error).startswith("indices[0] = 9 is not in [0, 2) [Op:GatherV2]\n")
    assert f"recorded at an earlier line than this read: tests/sdk/remote/test_tracebacks.py:{line}, in " in str(error)
    assert isinstance(error.__cause__, tf.errors.InvalidArgumentError)
    (entry,) = traceback.extract_tb(error.__cause__.__traceback__)
    assert (entry.filename, entry.lineno) == (__file__, line)
    assert entry.name == "test_an_error_of_an_earlier_line_shows_that_line_first"
    text = "".join(traceback.format_exception(error))
    assert text.index("# never read") < text.index("direct cause") < text.index("unrelated.numpy()")
    assert (unrelated * 2.0).numpy()[0, 0] == 4.0  # the error is reported once


def test_an_error_of_the_line_that_reads_is_not_an_earlier_one(remote):
    positions = tf.cast(9.0 * tf.ones(20), tf.int32)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        tf.gather(tf.constant(A), positions).numpy()
    assert caught.value.__cause__ is None
    assert "an earlier line" not in str(caught.value)
