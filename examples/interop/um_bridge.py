"""A published function as a model of UM-Bridge: values, gradients, Jacobians and Hessians times vectors (umbridge)."""

import os

import requests
import umbridge


def main(url: str) -> None:
    density = {
        "function": {"text": "r = y - a @ theta; density = -0.5 * sum(r * r) / 0.25"},
        "inputs": {"theta": {"shape": [2]}},
        "weights": {"a": [[1.0, 0.5], [1.0, 1.5], [1.0, 2.5]], "y": [0.5, 1.5, 3.5]},
    }
    requests.put(f"{url}/v1/published/density", json=density).raise_for_status()
    model = umbridge.HTTPModel(f"{url}/umbridge", "density")
    print(model.get_input_sizes(), model.get_output_sizes())
    theta = [[0.5, 0.5]]
    print(model(theta))
    print(model.gradient(0, 0, theta, [1.0]))
    print(model.apply_jacobian(0, 0, theta, [1.0, 0.0]))
    print(model.apply_hessian(0, 0, 0, theta, [1.0], [1.0, 0.0]))


if __name__ == "__main__":
    main(os.environ.get("TELETAPE_URL", "http://127.0.0.1:8470"))
