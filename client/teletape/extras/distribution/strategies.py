"""The strategies that programs make. Each has one replica; those that need other hosts or TPUs are refused."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from teletape.core.errors import InvalidArgumentError
from teletape.core.program.logs import log_first_n
from teletape.extras.distribution.strategy import Strategy
from teletape.tf.configuration.devices import device, list_logical_devices


class MirroredStrategy(Strategy):
    """The strategy that copies variables to each device; a program has one device here.

    Args:
        devices: The devices; at most one.
        cross_device_ops: Without effect.

    Raises:
        InvalidArgumentError: A device that does not exist, or several.
    """

    def __init__(self, devices: Sequence[str] | None = None, cross_device_ops: Any = None) -> None:
        if devices is not None:
            listed = [devices] if isinstance(devices, str) else list(devices)
            known = [logical.name for logical in list_logical_devices()]
            for name in listed:
                if str(name).upper().rpartition("/")[2].removeprefix("DEVICE:") not in {"CPU", "CPU:0"}:
                    raise InvalidArgumentError(
                        f"MirroredStrategy was given the device {name!r}, and this program has {', '.join(known)}, "
                        "wherever its session computes: leave `devices` out"
                    )
            if len(listed) > 1:
                raise InvalidArgumentError(
                    f"MirroredStrategy was given {len(listed)} devices, and a Teletape program has one replica: leave "
                    "`devices` out"
                )
        super().__init__()


class OneDeviceStrategy(Strategy):
    """Runs on one device: the session's, whatever the name.

    Args:
        device: The name of a device; checked as by `tf.device`.

    Raises:
        ValueError: No device name.
    """

    def __init__(self, device: str) -> None:
        with _device(device):
            super().__init__()


_device = device


class CentralStorageStrategy(Strategy):
    """The strategy with the variables on one device and the computation on others; a program has one device here.

    Args:
        compute_devices: Without effect.
        parameter_device: Without effect.
    """

    def __init__(self, compute_devices: Any = None, parameter_device: Any = None) -> None:
        super().__init__()


class MultiWorkerMirroredStrategy(Strategy):
    """The strategy that copies variables to several hosts; without a cluster it has one replica, as in TensorFlow.

    Args:
        cluster_resolver: Without effect if its cluster has one host.
        communication_options: Without effect.

    Raises:
        NotImplementedError: A cluster of several hosts.
    """

    def __init__(self, cluster_resolver: Any = None, communication_options: Any = None) -> None:
        if cluster_resolver is not None and len(cluster_resolver.cluster_spec()) > 1:
            raise NotImplementedError(_REFUSED.format(name="MultiWorkerMirroredStrategy", needs="several hosts"))
        log_first_n(20, "tf.distribute.MultiWorkerMirroredStrategy has one replica here", 1, "multi_worker")
        super().__init__()


_REFUSED = (
    "tf.distribute.{name} needs {needs}, and a Teletape program has one replica. Instead: tf.distribute.get_strategy() "
    "and tf.connect, which computes on a server's GPU"
)


class TPUStrategy(Strategy):
    """Refuses: there are no TPUs.

    Raises:
        ValueError: Always, as in TensorFlow where there is no TPU.
    """

    def __init__(
        self,
        tpu_cluster_resolver: Any = None,
        experimental_device_assignment: Any = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        raise ValueError(_REFUSED.format(name="TPUStrategy", needs="a TPU"))


class ParameterServerStrategy(Strategy):
    """Refuses: it needs several hosts.

    Raises:
        NotImplementedError: Always.
    """

    def __init__(self, cluster_resolver: Any, variable_partitioner: Any = None) -> None:
        raise NotImplementedError(_REFUSED.format(name="ParameterServerStrategy", needs="several hosts"))


class EarlierMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy):
    """`tf.distribute.experimental.MultiWorkerMirroredStrategy`: other arguments, the same strategy.

    Args:
        communication: Without effect.
        cluster_resolver: Without effect if its cluster has one host.

    Raises:
        NotImplementedError: A cluster of several hosts.
    """

    def __init__(self, communication: Any = None, cluster_resolver: Any = None) -> None:
        super().__init__(cluster_resolver)


class EarlierTPUStrategy(TPUStrategy):
    """`tf.distribute.experimental.TPUStrategy`: refuses, because there are no TPUs.

    Raises:
        ValueError: Always, as in TensorFlow where there is no TPU.
    """

    def __init__(self, tpu_cluster_resolver: Any = None, device_assignment: Any = None) -> None:
        super().__init__(tpu_cluster_resolver)
