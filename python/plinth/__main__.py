"""`python -m plinth` is the command `plinth`."""

import sys

from plinth.cli import main

sys.exit(main())
