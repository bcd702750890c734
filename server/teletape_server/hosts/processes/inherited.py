"""What the forkserver does once, when it imports this module, so that all sessions' processes inherit it.

No other process of their user can look into them, and if memory runs out the system ends one of them, not the server.
Nothing else may import this module.
"""

from __future__ import annotations

from teletape_server.ipc.confinement import be_the_first_to_end, hide

be_the_first_to_end()  # first: what is hidden may not change this any more
hide()
