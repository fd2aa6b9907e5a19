"""What every test runs under."""

import signal

# A shell's background job ignores SIGINT, and what it starts inherits that: the tests of Ctrl-C would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
