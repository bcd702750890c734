"""`python -m teletape`: see terminal/commands.py."""

import sys

from teletape.extras.terminal.commands import main

sys.exit(main(sys.argv[1:]))
