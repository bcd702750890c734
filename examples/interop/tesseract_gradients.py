"""A published function as a Tesseract: its own client, and JAX's grad, jit and vmap over it (tesseract-jax)."""

import os

import jax
import jax.numpy as jnp
import numpy as np
import requests
from tesseract_core import Tesseract
from tesseract_jax import apply_tesseract


def main(url: str) -> None:
    drag = {
        "function": {"text": "force = rho * v * v * area"},
        "inputs": {"v": {"shape": ["n"]}, "area": {"shape": []}},
        "weights": {"rho": 0.5},
    }
    requests.put(f"{url}/v1/published/drag", json=drag).raise_for_status()
    drag = Tesseract.from_url(f"{url}/tesseract/drag")
    v, area = np.array([1.0, 2.0], np.float32), np.float32(3.0)
    print(drag.apply({"v": v, "area": area})["force"])
    print(drag.jacobian({"v": v, "area": area}, ["v"], ["force"])["force"]["v"])

    @jax.jit
    def total(v, area):
        force = apply_tesseract(drag, {"v": v, "area": area}, vmap_method="broadcast_all")["force"]
        return jnp.sum(force**2)

    print(jax.grad(total, argnums=(0, 1))(jnp.array(v), area))
    areas = jnp.array([1.0, 2.0, 3.0])
    print(jax.vmap(jax.grad(total), in_axes=(None, 0))(jnp.array(v), areas))


if __name__ == "__main__":
    main(os.environ.get("TELETAPE_URL", "http://127.0.0.1:8470"))
