"""`teletape.service`: the client for services, which is also a distribution of its own, teletape-client.

A program that needs nothing else imports `teletape_client`, which loads neither the SDK nor the engine.
"""

from teletape_client import *  # noqa: F403
from teletape_client import __all__ as __all__
