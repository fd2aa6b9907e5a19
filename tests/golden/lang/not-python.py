"""Bad on purpose: no Python."""

def alloc(s:
    pass
