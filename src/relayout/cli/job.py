"""A command in a process that a sweep started: ends with it, and has no more memory than allowed.

    python -m relayout.cli.job PARENT BYTES COMMAND ...

PARENT is the id of the process that started it; BYTES may be empty, for no limit.
"""

from __future__ import annotations

import sys

from relayout.cli import main
from relayout.verify.worker import end_with_parent, limit_memory

if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]))
    limit_memory(int(sys.argv[2]) if sys.argv[2] else None)
    sys.exit(main(sys.argv[3:]))
