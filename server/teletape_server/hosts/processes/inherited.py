"""What the forkserver does once, when it imports this module, so that all sessions' processes inherit it.

No other process of their user can look into them, and if memory runs out the system ends one of them, not the server.
The catalogue's digest, which the log of each session that lasts begins with, takes 0.05 s, and a look at all ops: a
process that did that itself would have 8 MB more of its own.
Nothing else may import this module.
"""

from __future__ import annotations

from teletape_engine.catalogue.describe import digest
from teletape_server.ipc.confinement import be_the_first_to_end, hide

be_the_first_to_end()  # first: what is hidden may not change this any more
hide()
digest()
