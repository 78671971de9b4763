"""``python -m tessella``: the command line, for those whose PATH has no ``tessella``."""

from tessella.cli import main

if __name__ == "__main__":
    main()
