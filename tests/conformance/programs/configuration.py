"""`tf.config`, `tf.version` and `tf.test`: what programs set before they compute."""

from conformance.probes import raises
from conformance.program import program


@program(fresh=True)
def devices_of_a_program(tf, np):
    config = tf.config
    (cpu,) = config.list_physical_devices()
    config.set_visible_devices([], "GPU")
    for gpu in config.list_physical_devices("GPU"):
        config.experimental.set_memory_growth(gpu, True)
    return [
        [list(device) for device in config.get_visible_devices()],
        config.get_visible_devices("GPU"),
        [list(device) for device in config.experimental.list_physical_devices("CPU")],
        [list(device) for device in config.experimental.list_logical_devices()],
        list(config.LogicalDeviceConfiguration(memory_limit=100)),
        config.get_logical_device_configuration(cpu),
        config.experimental.get_device_details(cpu),
        raises(lambda: config.experimental.set_memory_growth(cpu, True)),
        raises(lambda: config.experimental.set_memory_growth("GPU:0", True)),
        raises(lambda: config.set_visible_devices("GPU:0")),
        raises(
            lambda: config.set_logical_device_configuration(cpu, [config.LogicalDeviceConfiguration(memory_limit=9)])
        ),
        raises(lambda: config.experimental.get_memory_info("GPU:0")),
    ]


@program(fresh=True)
def settings_are_read_back(tf, np):
    config = tf.config
    config.threading.set_inter_op_parallelism_threads(2)
    config.threading.set_intra_op_parallelism_threads(3)
    config.set_soft_device_placement(False)
    config.optimizer.set_jit(True)
    config.optimizer.set_experimental_options({"constant_folding": True})
    config.experimental.enable_tensor_float_32_execution(False)
    config.experimental.set_device_policy("warn")
    tf.debugging.set_log_device_placement(False)
    results = [
        config.threading.get_inter_op_parallelism_threads(),
        config.threading.get_intra_op_parallelism_threads(),
        config.get_soft_device_placement(),
        config.optimizer.get_jit(),
        config.optimizer.get_experimental_options(),
        config.experimental.tensor_float_32_execution_enabled(),
        config.experimental.get_device_policy(),
        tf.debugging.get_log_device_placement(),
        config.experimental_functions_run_eagerly(),
        tf.ones([2]) * 2.0,
    ]
    config.experimental.set_device_policy(None)
    return results


@program()
def versions(tf, np):
    return [
        tf.__version__.startswith("2.21.0"),
        tf.version.VERSION == tf.__version__,
        [int(number) for number in tf.__version__.split(".")[:2]],
        tf.version.GRAPH_DEF_VERSION,
        isinstance(tf.__git_version__, str),
    ]


@program()
def what_is_available_to_tests(tf, np):
    return [
        tf.test.is_gpu_available(),
        tf.test.gpu_device_name(),
        tf.test.is_built_with_cuda(),
        *tf.test.compute_gradient(lambda x, y: x * x + tf.reduce_sum(y), [tf.constant([1.0, 2.0]), tf.constant([3.0])]),
    ]


@program()
def assertions_of_a_test_case(tf, np):
    class Case(tf.test.TestCase):
        def runTest(self):
            self.assertAllEqual(tf.constant([1, 2]), [1, 2])
            self.assertAllClose({"a": tf.constant([1.0])}, {"a": [1.0 + 1e-8]})
            self.assertAllCloseAccordingToType(tf.constant([1.0], tf.float16), [1.0005])
            self.assertNotAllClose([1.0], [2.0])
            self.assertShapeEqual(np.zeros((2, 3)), tf.zeros((2, 3)))
            with self.assertRaises(AssertionError):
                self.assertAllClose([1.0], [1.1])
            with self.assertRaises(AssertionError):
                self.assertAllEqual([1.0], [[1.0]])
            with self.assertRaisesOpError("Incompatible shapes"):
                tf.add(tf.zeros([2]), tf.zeros([3])).numpy()

    result = Case().run()
    return [] if result is None else [result.testsRun, len(result.failures), len(result.errors)]


@program()
def optional_values(tf, np):
    full = tf.experimental.Optional.from_value({"a": tf.constant([1.0, 2.0])})
    empty = tf.experimental.Optional.empty(tf.TensorSpec([], tf.float32))
    return [
        bool(full.has_value()),
        full.get_value(),
        str(full.element_spec["a"].dtype),
        bool(empty.has_value()),
        isinstance(empty.element_spec, tf.TypeSpec),
    ]


@program()
def static_values(tf, np):
    v = tf.Variable(3.0)
    return [tf.get_static_value(tf.constant([1, 2])), tf.get_static_value(3), tf.get_static_value(v)]
