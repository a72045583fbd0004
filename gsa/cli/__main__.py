"""python -m gsa.cli"""

import sys

from gsa.cli import main

sys.exit(main())
