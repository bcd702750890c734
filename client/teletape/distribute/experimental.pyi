"""What `tf.distribute.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.distribution.reductions import CollectiveHints as CollectiveHints
from teletape.distribution.reductions import CommunicationImplementation as CollectiveCommunication
from teletape.distribution.reductions import CommunicationImplementation as CommunicationImplementation
from teletape.distribution.reductions import CommunicationOptions as CommunicationOptions
from teletape.distribution.strategies import CentralStorageStrategy as CentralStorageStrategy
from teletape.distribution.strategies import EarlierMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from teletape.distribution.strategies import EarlierTPUStrategy as TPUStrategy
from teletape.distribution.strategies import ParameterServerStrategy as ParameterServerStrategy
from teletape.distribution.values import ValueContext as ValueContext

__all__ = [
    "CentralStorageStrategy",
    "CollectiveCommunication",
    "CollectiveHints",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "ParameterServerStrategy",
    "TPUStrategy",
    "ValueContext",
]
