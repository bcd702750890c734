"""What the forkserver does once, when it imports this module, so that all sessions' processes inherit it.

No other process of their user can look into them, and if memory runs out the system ends one of them, not the server.
The log of each session that lasts begins with versions, of the catalogue too: to gather them takes 0.05 s, and a look
at all ops: a process that did that itself would have 10 MB more of its own. Freed memory stays for the next arrays, and
TELETAPE_PLANS says how functions run.
Nothing else may import this module.
"""

from __future__ import annotations

import os

from teletape_engine.arrays.cpu import reuse_freed_memory
from teletape_engine.plans.policy import POLICY
from teletape_server.durable.records import versions
from teletape_server.ipc.confinement import be_the_first_to_end, hide

be_the_first_to_end()  # first: what is hidden may not change this any more
hide()
versions()
reuse_freed_memory()
POLICY.use(os.environ.get("TELETAPE_PLANS"), threads=1)
