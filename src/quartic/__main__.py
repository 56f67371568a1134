"""``python -m quartic`` is ``quartic``."""

import sys

from quartic.cli import main

if __name__ == "__main__":
    sys.exit(main())
