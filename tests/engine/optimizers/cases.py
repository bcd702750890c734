"""What optimizers are compared on: settings, and gradients of two variables for five steps."""

from typing import Any, Final

import numpy as np

VARIABLES: Final = (np.array([1.0, -2.0, 0.5]), np.array([[0.25, 4.0], [-1.5, 0.0]]))
GRADIENTS: Final = (
    (np.array([0.5, -3.0, 0.0]), np.array([[1.0, 0.125], [-0.75, 2.0]])),
    (np.array([-0.25, 10.0, 1.5]), np.array([[0.0, -4.0], [0.5, 0.0625]])),
    (np.array([0.0, 0.0, 0.0]), np.array([[1e-4, 1.0], [-1.0, 1e3]])),
    (np.array([2.0, -1.0, -0.5]), np.array([[-2.0, 0.75], [0.25, -8.0]])),
    (np.array([0.125, 0.5, 1.0]), np.array([[3.0, 0.0], [1.5, 0.5]])),
)

#: By name of the case: the optimizer and its settings.
CASES: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "sgd": ("sgd", {}),
    "sgd_momentum": ("sgd", {"learning_rate": 0.1, "momentum": 0.9}),
    "sgd_nesterov": ("sgd", {"learning_rate": 0.1, "momentum": 0.9, "nesterov": True}),
    "sgd_weight_decay": ("sgd", {"learning_rate": 0.1, "weight_decay": 0.05}),
    "sgd_clipnorm": ("sgd", {"learning_rate": 0.1, "clipnorm": 1.5}),
    "sgd_clipvalue": ("sgd", {"learning_rate": 0.1, "clipvalue": 0.5}),
    "sgd_global_clipnorm": ("sgd", {"learning_rate": 0.1, "global_clipnorm": 2.0}),
    "adam": ("adam", {}),
    "adam_settings": ("adam", {"learning_rate": 0.05, "beta_1": 0.8, "beta_2": 0.95, "epsilon": 1e-3}),
    "adam_amsgrad": ("adam", {"learning_rate": 0.05, "amsgrad": True}),
    "adamw": ("adamw", {"learning_rate": 0.05}),
    "adamax": ("adamax", {"learning_rate": 0.05}),
    "rmsprop": ("rmsprop", {"learning_rate": 0.05}),
    "rmsprop_centered": ("rmsprop", {"learning_rate": 0.05, "centered": True, "momentum": 0.7, "rho": 0.8}),
    "adagrad": ("adagrad", {"learning_rate": 0.05}),
    "adadelta": ("adadelta", {"learning_rate": 1.0}),
    "lion": ("lion", {"learning_rate": 0.05, "weight_decay": 0.01}),
}
DTYPES: Final = ("float32", "float64")
