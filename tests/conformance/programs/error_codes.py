"""`tf.errors`: the numbers of the errors, and how programs make and catch them."""

from conformance.program import program

_NUMBERS = (
    "OK CANCELLED UNKNOWN INVALID_ARGUMENT DEADLINE_EXCEEDED NOT_FOUND ALREADY_EXISTS PERMISSION_DENIED "
    "RESOURCE_EXHAUSTED FAILED_PRECONDITION ABORTED OUT_OF_RANGE UNIMPLEMENTED INTERNAL UNAVAILABLE DATA_LOSS "
    "UNAUTHENTICATED"
).split()
_CLASSES = (
    "AbortedError AlreadyExistsError CancelledError DataLossError DeadlineExceededError FailedPreconditionError "
    "InternalError InvalidArgumentError NotFoundError OutOfRangeError PermissionDeniedError ResourceExhaustedError "
    "UnauthenticatedError UnavailableError UnimplementedError UnknownError"
).split()


@program()
def every_kind_has_a_number(tf, np):
    return {name: getattr(tf.errors, name) for name in _NUMBERS}


@program()
def every_class_has_its_number(tf, np):
    errors = {name: getattr(tf.errors, name)(None, None, "a text") for name in _CLASSES}
    return {
        name: [error.error_code, error.message, str(error), error.op, error.node_def, dict(error.experimental_payloads)]
        for name, error in errors.items()
    }


@program()
def a_bare_error_takes_its_number(tf, np):
    error = tf.errors.OpError(None, None, "a text", tf.errors.ABORTED)
    return [error.error_code, error.message, isinstance(error, tf.errors.AbortedError)]


@program()
def a_caught_error_is_known_by_its_number(tf, np):
    def caught(call):
        try:
            call()
        except tf.errors.OpError as error:
            return [type(error).__name__, error.error_code]
        return []

    return [
        caught(lambda: tf.matmul([[1.0]], [[1.0], [2.0]]).numpy()),
        caught(lambda: tf.math.floordiv([1], [0]).numpy()),
        caught(lambda: tf.io.read_file("/no/such/file").numpy()),
        caught(lambda: tf.add_n([[1.0], [1.0, 2.0]]).numpy()),
    ]


@program()
def an_operator_that_a_graph_refuses_is_a_type_error(tf, np):
    error = tf.errors.OperatorNotAllowedInGraphError("a text")
    return [isinstance(error, TypeError), isinstance(error, tf.errors.OpError), str(error)]


@program()
def methods_of_aggregation_have_numbers(tf, np):
    names = ("ADD_N", "DEFAULT", "EXPERIMENTAL_TREE", "EXPERIMENTAL_ACCUMULATE_N")
    return {name: getattr(tf.AggregationMethod, name) for name in names}
