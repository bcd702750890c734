"""As cupy."""

import cupy  # noqa: F401  # it replaces this module
