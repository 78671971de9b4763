"""What all tests need: Ctrl-C works, wherever they are started from."""

import signal


def pytest_configure():
    # A shell turns Ctrl-C off for what it runs in the background, and Python leaves it so.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
