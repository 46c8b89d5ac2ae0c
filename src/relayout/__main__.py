"""`python -m relayout`."""

import sys

from relayout.cli import main

sys.exit(main())
