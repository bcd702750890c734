"""Programs that bring their tests: which assertions of `tf.test.TestCase` hold, and which fail."""

from conformance.probes import raises
from conformance.program import program


def _verdicts(tf, *calls):
    """For each call, an assertion's name and arguments, whether it holds or what it raises."""
    case = tf.test.TestCase()
    return {
        f"{number} {name}": raises(lambda name=name, arguments=arguments: getattr(case, name)(*arguments))
        for number, (name, *arguments) in enumerate(calls)
    }


@program()
def elements_are_compared(tf, np):
    x = tf.constant([1.0, 2.0, 3.0])
    return _verdicts(
        tf,
        ("assertAllEqual", x, [1, 2, 3]),
        ("assertAllEqual", x, [1, 2]),
        ("assertAllClose", x, np.array([1.0, 2.0, 3.0000001])),
        ("assertAllClose", {"a": x}, {"a": x + 1.0}),
        ("assertAllGreater", x, 0.5),
        ("assertAllGreater", x, 1.0),
        ("assertAllGreaterEqual", x, 1.0),
        ("assertAllGreaterEqual", x, 1.5),
        ("assertAllLess", x, 3.5),
        ("assertAllLess", x, 3.0),
        ("assertAllLessEqual", x, 3.0),
        ("assertAllLessEqual", x, 2.5),
        ("assertAllInRange", x, 1, 3),
        ("assertAllInRange", x, 1, 3, True),
        ("assertAllInRange", x, 1, 3, False, True),
        ("assertAllInRange", [float("nan")], 1, 3),
        ("assertAllInRange", [True], 0, 1),
        ("assertAllInSet", [1, 2, 1], {1, 2, 5}),
        ("assertAllInSet", [1, 2, 7], {1, 2, 5}),
        ("assertArrayNear", [1.0, 2.0], [1.05, 2.0], 0.1),
        ("assertArrayNear", [1.0, 2.0], [1.5, 2.0], 0.1),
        ("assertArrayNear", [1.0], [1.0, 2.0], 0.1),
        ("assertNDArrayNear", np.ones(4), np.ones(4) + 0.1, 0.3),
        ("assertNDArrayNear", np.ones(4), np.ones(4) + 0.1, 0.1),
        ("assertNear", 1.0, 1.05, 0.1),
        ("assertNear", 1.0, 1.5, 0.1),
    )


@program()
def containers_are_compared(tf, np):
    return _verdicts(
        tf,
        ("assertEmpty", []),
        ("assertEmpty", [1]),
        ("assertNotEmpty", [1]),
        ("assertNotEmpty", {}),
        ("assertLen", (1, 2), 2),
        ("assertLen", (1, 2), 3),
        ("assertBetween", 2, 1, 3),
        ("assertBetween", 4, 1, 3),
        ("assertSameElements", [1, 2, 2], [2, 1]),
        ("assertSameElements", [1, 2], [1, 3]),
        ("assertItemsEqual", [1, 2], [2, 1]),
        ("assertItemsEqual", [1, 2], [2, 2, 1]),
        ("assertContainsSubset", [1], [1, 2]),
        ("assertContainsSubset", [3], [1, 2]),
        ("assertNoCommonElements", [1], [2]),
        ("assertNoCommonElements", [1, 2], [2]),
        ("assertSequenceAlmostEqual", [1.0, 2.0], [1.0, 2.00000001]),
        ("assertSequenceAlmostEqual", [1.0, 2.0], [1.0, 2.1], 3),
        ("assertDictAlmostEqual", {"a": 1.0}, {"a": 1.05}, None, None, 0.1),
        ("assertDictAlmostEqual", {"a": 1.0}, {"b": 1.0}),
        ("assertStartsWith", "tape", "ta"),
        ("assertStartsWith", "tape", "pe"),
        ("assertEndsWith", "tape", "pe"),
        ("assertEndsWith", "tape", "ta"),
        ("assertIsSubclass", bool, int),
        ("assertIsSubclass", int, bool),
    )


@program()
def exceptions_are_expected(tf, np):
    case = tf.test.TestCase()

    def unequal_lengths():
        return tf.add(tf.constant([1.0, 2.0]), tf.constant([1.0, 2.0, 3.0])).numpy()

    def expects(context, call):
        def check():
            with context:
                call()

        return raises(check)

    return [
        expects(case.assertRaisesOpError("(?i)shapes"), unequal_lengths),
        expects(case.assertRaisesOpError("no such text"), unequal_lengths),
        expects(case.assertRaisesOpError("anything"), lambda: None),
        expects(case.assertRaisesIncompatibleShapesError(), unequal_lengths),
        expects(case.assertRaisesWithPredicateMatch(ValueError, lambda error: "b" in str(error)), lambda: int("b")),
        expects(case.assertRaisesWithPredicateMatch(ValueError, "^nothing"), lambda: int("b")),
        expects(case.assertRaisesWithLiteralMatch(KeyError, "'a'"), lambda: {}["a"]),
        expects(case.assertRaisesWithLiteralMatch(KeyError, "'b'"), lambda: {}["a"]),
    ]


@program()
def a_session_reads_values(tf, np):
    class Case(tf.test.TestCase):
        def runTest(self):
            pass

    case = Case()
    with case.session():
        first = case.evaluate({"a": tf.constant([1, 2])})
    with case.cached_session() as session:
        second = session.run([tf.constant(1.5), tf.constant(2)])
    both = case.evaluate_if_both_tensors(tf.constant(1), tf.constant(2))
    single = case.evaluate_if_both_tensors(1, 2)
    return [np.asarray(first["a"]), [float(value) for value in second], [int(value) for value in both], list(single)]


@program()
def a_test_is_skipped_by_a_predicate(tf, np):
    outcomes = []

    class Case(tf.test.TestCase):
        @tf.test.disable_with_predicate(lambda: True, "not today")
        def test_skipped(self):
            outcomes.append("ran")

        @tf.test.disable_with_predicate(lambda: False, "not today")
        def test_run(self):
            outcomes.append("ran too")

    for name in ("test_skipped", "test_run"):
        case = Case(name)
        try:
            getattr(case, name)()
        except Exception as error:
            outcomes.append(f"{type(error).__name__}: {error}")
    return outcomes


@program()
def tolerances_that_are_arrays(tf, np):
    case = tf.test.TestCase()
    case.assertAllClose([1.0, 2.0], [1.05, 2.05], atol=np.array([0.1, 0.1]))
    case.assertAllClose({"a": tf.constant([1.0, 2.0])}, {"a": [1.05, 2.0]}, rtol=np.array([0.1, 0.0]))
    return "all hold"
