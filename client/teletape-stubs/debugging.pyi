"""What `tf.debugging` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.core.derivatives.check_gradients import check_gradients as check_gradients
from teletape.core.program.tracebacks import disable_traceback_filtering as disable_traceback_filtering
from teletape.core.program.tracebacks import enable_traceback_filtering as enable_traceback_filtering
from teletape.core.program.tracebacks import is_traceback_filtering_enabled as is_traceback_filtering_enabled
from teletape.tf.configuration.execution import get_log_device_placement as get_log_device_placement
from teletape.tf.configuration.execution import set_log_device_placement as set_log_device_placement
from teletape.tf.debugging import Assert as Assert
from teletape.tf.debugging import assert_all_finite as assert_all_finite
from teletape.tf.debugging import assert_equal as assert_equal
from teletape.tf.debugging import assert_greater as assert_greater
from teletape.tf.debugging import assert_greater_equal as assert_greater_equal
from teletape.tf.debugging import assert_integer as assert_integer
from teletape.tf.debugging import assert_less as assert_less
from teletape.tf.debugging import assert_less_equal as assert_less_equal
from teletape.tf.debugging import assert_near as assert_near
from teletape.tf.debugging import assert_negative as assert_negative
from teletape.tf.debugging import assert_non_negative as assert_non_negative
from teletape.tf.debugging import assert_non_positive as assert_non_positive
from teletape.tf.debugging import assert_none_equal as assert_none_equal
from teletape.tf.debugging import assert_positive as assert_positive
from teletape.tf.debugging import assert_proper_iterable as assert_proper_iterable
from teletape.tf.debugging import assert_rank as assert_rank
from teletape.tf.debugging import assert_rank_at_least as assert_rank_at_least
from teletape.tf.debugging import assert_rank_in as assert_rank_in
from teletape.tf.debugging import assert_same_float_dtype as assert_same_float_dtype
from teletape.tf.debugging import assert_scalar as assert_scalar
from teletape.tf.debugging import assert_shapes as assert_shapes
from teletape.tf.debugging import assert_type as assert_type
from teletape.tf.debugging import check_numerics as check_numerics
from teletape.tf.debugging import is_numeric_tensor as is_numeric_tensor

__all__ = [
    "Assert",
    "assert_all_finite",
    "assert_equal",
    "assert_greater",
    "assert_greater_equal",
    "assert_integer",
    "assert_less",
    "assert_less_equal",
    "assert_near",
    "assert_negative",
    "assert_non_negative",
    "assert_non_positive",
    "assert_none_equal",
    "assert_positive",
    "assert_proper_iterable",
    "assert_rank",
    "assert_rank_at_least",
    "assert_rank_in",
    "assert_same_float_dtype",
    "assert_scalar",
    "assert_shapes",
    "assert_type",
    "check_gradients",
    "check_numerics",
    "disable_traceback_filtering",
    "enable_traceback_filtering",
    "get_log_device_placement",
    "is_numeric_tensor",
    "is_traceback_filtering_enabled",
    "set_log_device_placement",
]
