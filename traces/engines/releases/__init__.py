"""Recording the block managers of faulty releases, and of the releases that fixed them.

    build       puts one release's Python files in a folder of its own
    standins    imports a release without its heavy needs (torch, ray, ...)
    hooks       wrapping methods from outside
    ledger      one engine call is one group of events, in ownership order
    v0_ring     hooks for vLLM 0.3.3 and 0.4.0: the first block manager, sliding-window ring tables
    v0_prefix   hooks for vLLM 0.4.2 to 0.6.3: BlockSpaceManagerV2 with prefix caching
    v1          hooks for vLLM V1, 0.6.4 to 0.33: KVCacheManager and its block pool
    v1_parts    where each of these releases keeps what is watched
    nano        nano-vLLM's block manager: hooks and drive
    sglang      SGLang's token allocator: hooks and drive
    v0_drive, v1_drive, v1_late_drive, v1_transfer_drive    the calls a scenario makes
    catalogue   which release has which fault, and what is driven
    scenarios   records one, from the command line

Nothing of an engine is copied here: its own classes run, wrapped from outside.
"""
