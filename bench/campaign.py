"""Attack the library, and count what goes wrong.

Run ``python bench/campaign.py --help`` from the root of the repository. A whole campaign takes
one to two hours of one core; it goes on where it has stopped.
"""

import sys

from tessella_bench.campaign._command import main

if __name__ == "__main__":
    sys.exit(main())
