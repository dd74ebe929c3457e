"""Where tests keep what every user may enter: /tmp, unless scripts/tests.sh names a file system of its own."""

import os
from pathlib import Path

PUBLIC = Path(os.environ.get("PLINTH_TESTS_FOLDER", "/tmp"))
