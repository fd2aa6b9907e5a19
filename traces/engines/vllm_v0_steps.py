def install(version: str) -> None:
    pass
