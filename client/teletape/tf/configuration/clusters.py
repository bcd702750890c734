"""`tf.config`'s functions that connect a program to other machines: refused, because `tf.connect` does that."""

from __future__ import annotations

from typing import Any, NoReturn

from teletape.core.errors import UnimplementedError


def experimental_connect_to_cluster(
    cluster_spec_or_resolver: Any,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: str | None = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> NoReturn:
    """Refuses: a Teletape program has one session on one host.

    Raises:
        UnimplementedError: Always; it says what to use instead.
    """
    raise UnimplementedError(_TEXT.format(name="experimental_connect_to_cluster"))


def experimental_connect_to_host(remote_host: Any = None, job_name: str = "worker") -> NoReturn:
    """Refuses; see `experimental_connect_to_cluster`.

    Raises:
        UnimplementedError: Always; it says what to use instead.
    """
    raise UnimplementedError(_TEXT.format(name="experimental_connect_to_host"))


_TEXT = (
    "tf.config.{name} is not in Teletape: a program computes in one session on one host. Instead: "
    "tf.connect('https://host:8470', api_key='…') connects to a Teletape server, which may have a GPU"
)
