"""Attack the library, and count what goes wrong.

Run ``python bench/campaign.py --help`` from the root of the repository. A whole campaign takes
about two hours on two cores; it goes on where it has stopped.
"""

import sys

from tessella_bench.campaign._command import main

if __name__ == "__main__":
    sys.exit(main())
