"""`tf.distribute.cluster_resolver`: resolvers that find no cluster. A program that looks for a TPU goes on without."""

from __future__ import annotations

from typing import Any


class ClusterResolver:
    """Finds the hosts of a program: only its own."""

    def cluster_spec(self) -> dict[str, list[str]]:
        """Returns the addresses of the hosts of each job: none."""
        return {}

    def master(self, task_type: str | None = None, task_id: int | None = None, rpc_layer: str | None = None) -> str:
        """Returns the address of the first host; "": this one."""
        return ""

    def num_accelerators(
        self, task_type: str | None = None, task_id: int | None = None, config_proto: Any = None
    ) -> dict[str, int]:
        """Returns the number of accelerators of each kind: none."""
        return {}

    @property
    def environment(self) -> str:
        """The platform of the cluster; "": none."""
        return ""

    @property
    def task_type(self) -> str | None:
        """The job of this program; None: it has none."""
        return None

    @property
    def task_id(self) -> int | None:
        """The number of this program in its job; None: it has none."""
        return None


class TFConfigClusterResolver(ClusterResolver):
    """The resolver of the environment variable TF_CONFIG, which is not read: there is one host.

    Args:
        task_type: Without effect.
        task_id: Without effect.
        rpc_layer: Without effect.
        environment: Without effect.
    """

    def __init__(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
        environment: str | None = None,
    ) -> None:
        """Reads nothing."""


class TPUClusterResolver(ClusterResolver):
    """Looks for a TPU, and finds none.

    Raises:
        ValueError: Always, as in TensorFlow where there is no TPU. Programs catch it and go on without.
    """

    def __init__(
        self,
        tpu: str | None = None,
        zone: str | None = None,
        project: str | None = None,
        job_name: str = "worker",
        coordinator_name: str | None = None,
        coordinator_address: str | None = None,
        credentials: str = "default",
        service: Any = None,
        discovery_url: str | None = None,
    ) -> None:
        raise ValueError(
            "Please provide a TPU Name to connect to: Teletape has no TPUs. Instead: tf.distribute.get_strategy(), "
            "and tf.connect to compute on a server's GPU"
        )
