"""What `tf.distribute.experimental` holds. Written by `make reference` from scripts/public_surface.py."""

from teletape.extras.distribution.reductions import CollectiveHints as CollectiveHints
from teletape.extras.distribution.reductions import CommunicationImplementation as CollectiveCommunication
from teletape.extras.distribution.reductions import CommunicationImplementation as CommunicationImplementation
from teletape.extras.distribution.reductions import CommunicationOptions as CommunicationOptions
from teletape.extras.distribution.strategies import CentralStorageStrategy as CentralStorageStrategy
from teletape.extras.distribution.strategies import EarlierMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy
from teletape.extras.distribution.strategies import EarlierTPUStrategy as TPUStrategy
from teletape.extras.distribution.strategies import ParameterServerStrategy as ParameterServerStrategy
from teletape.extras.distribution.values import ValueContext as ValueContext

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
