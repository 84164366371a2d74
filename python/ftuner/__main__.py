"""`python -m ftuner` is the command line `ftuner`."""

import sys

from .cli import main

sys.exit(main())
