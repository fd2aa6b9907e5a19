"""The rules of the discipline: each a fact, with where it comes from and what it is there for.

A rule says *what* is true; the conditions stand once, as `obey` lines in the events that can break it.
"""

from __future__ import annotations

from kvsan.spec.lang.surface import ghost_rule, lint, order_rule, rule, step_rule


@rule
def alloc_from_free() -> None:
    """An allocated block exists and was free; the free queue hands each block out once.

    Source: vLLM V1 `BlockPool.get_new_blocks`; vllm#42571 (a block twice in the free queue).
    Catches: one block handed to two branches by a corrupted free list.
    Except: the past of a log that starts mid-run, where a block's state before its first event is unknown.
    Deviates: the order of the free queue is not modelled; any free block may be next.
    Mend: a free of the block before this line, or another block from the queue.
    """


@rule
def free_once() -> None:
    """A freed block was held, has no owner and no pin, and enters the free queue once.

    Source: vLLM V0 `RefCounter.decr`, V1 `BlockPool.free_blocks`; vllm#1556, sglang#40305.
    Catches: a double free, or a free under a live table entry or a running transfer.
    Except: device work that still runs on the block is judged by the order rules, not here.
    Deviates: a reference count is not modelled; owners and pins are counted, which is what it should equal.
    Mend: the release of every owner and pin before this line, and no second free.
    """


@rule
def entry_is_held() -> None:
    """A table entry, a fork or a pin names a held block; another branch's block enters a table only by fork or by hit.

    A copy reads a life that has not ended and, where it names its branch, a block that branch holds, hit, or has
    just replaced.

    Source: PagedAttention (SOSP'23) section 4.4; vllm#20512 (fork of released blocks).
    Catches: a fork that walks stale links, a table that adopts somebody else's block.
    Except: the null block, which every table may name.
    Deviates: a block counts as just replaced until its branch next writes or reads.
    Mend: an alloc of the block before this line, or the fork or hit by which the branch got it.
    """


@rule
def exclusive_write() -> None:
    """A slot on which the owners do not agree is written by a sole owner only, and nothing frozen by another's pin is
    written.

    Source: PagedAttention (SOSP'23) section 4.4, copy-on-write at block granularity.
    Catches: an append into a shared partial tail without a private copy.
    Except: agreed slots (below the length at which the owners forked, or covered by the identity by which they hold
        the block) are filled once by one of them: a group's prefill of a shared prompt; again only where an
        identity covers them.
    Deviates: agreement is one length per block, the least of all joins since the block last had a sole owner; when
        the branch that joined lowest leaves and several stay, they are judged by that lower length until one is
        left.
    Mend: a copy of the block for the writer, or the other owners' release of it, before this line.
    """


@rule
def write_within_table() -> None:
    """A branch writes only slots of blocks in its own table, at the table's place for the tokens it names.

    A transfer that has pinned anything writes only what it pins; one that never did, only held blocks with at most
    one owner.

    Source: vLLM `slot_mapping`; vllm#16370 (draft tokens written past the table).
    Catches: a write through a stale table, a wrong slot, a transfer that lands on a block it does not hold.
    Except: where the slots are sealed, the tokens are judged by `sealed_is_immutable`.
    Deviates: none.
    Mend: the entry that maps the block at the place of these tokens, or the transfer's pin.
    """


@rule
def sealed_is_immutable() -> None:
    """Sealed slots are written only by an owner that holds the block by that identity, at the identity's own tokens,
    or by the one copy or transfer that first fills them.

    Source: vLLM V1 prefix caching; vllm#57908 (a state block written after it was cached), sglang#35270.
    Catches: a cache that returns the contents of a later position, or drafts.
    Except: the promised first write, and an idempotent recomputation (the lint `recomputed_sealed`).
    Deviates: contents are not compared; a recomputation at the identity's own place counts as idempotent.
    Mend: a private copy of the block for the writer, or the end of its identity, before this line.
    """


@rule
def seal_is_earned() -> None:
    """A seal covers only tokens its branch has, whole blocks unless the discipline seals partial tails, in a block its
    branch's table holds; slots still unwritten are due when the sealer ends or at `quiescent`. A block that nobody owns
    and that a copy filled is sealed only if its source had been sealed, in the life that the copy read.

    Source: vLLM V1 `BlockPool.cache_full_blocks`, which publishes a block when it is scheduled; vllm#29870 (a block
        that is stored after it has been handed out again).
    Catches: a partial block sealed, a seal past the branch's tokens, an identity whose tokens never came, a stored copy
        of what is in the block by now.
    Except: a seal may precede its writes: it promises the tokens. A source in a pool of which no block is sealed, and
        copies of less than a whole block.
    Deviates: a seal without a branch is made by the block's owners, or by the pin that keeps it in another tier. The
        identities of a copy and its source are not compared, for each tier may have hashes of its own.
    Mend: the tokens, the entry or the writes that the seal promises; for a copy, a pin on its source from when it is
        decided.
    """


@rule
def hit_is_live() -> None:
    """A hit finds an identity that stands, in that namespace and with that digest; until the block is mapped, pinned,
    freed or its branch ends, nothing else allocates or evicts it. `alloc` ends every identity.

    Source: vllm#4764 (a hash that outlives its block), vllm#37076, nano-vllm#163, vllm#44701.
    Catches: a prefix hit on a block that now belongs to somebody else.
    Except: a hit in a log whose past is unknown, on a block not allocated since.
    Deviates: tokens are not compared; where a digest is logged, it stands for them.
    Mend: an evict that drops the identity when its block is taken, or a hold on the block from the hit on.
    """


@rule
def ref_count_agrees() -> None:
    """The engine's own reference count equals owners, plus pins where it counts them, plus hits not yet mapped.

    Source: vLLM V0 `RefCounter`, V1 `KVCacheBlock.ref_cnt`.
    Catches: a count that drifts from the tables long before anything is freed wrongly.
    Except: the null block, whose count engines do not maintain.
    Deviates: a ring table counts once however often it names a block.
    Mend: the increment or decrement that the engine left out, or the event that the log left out.
    """


@rule
def free_count_agrees() -> None:
    """The engine's own free count equals the free queue.

    Source: vLLM `get_num_free_blocks`; vllm#11562 (blocks lost by failed admissions).
    Catches: a leak, or a queue with duplicates, while the engine runs.
    Except: a log that starts mid-run, where the free queue is unknown.
    Deviates: blocks found by a hit are out of the queue from the hit on.
    Mend: the alloc or free that the engine or the log left out.
    """


@rule
def tables_agree() -> None:
    """A second view of a table equals the table.

    Source: vllm#51766 (scheduler and worker tables diverge after a copy-on-write).
    Catches: a worker that reads another block than the scheduler mapped.
    Except: none.
    Deviates: none.
    Mend: the map or unmap that one of the two tables has not seen.
    """


@rule
def append_only_table() -> None:
    """In an append-only discipline an entry is replaced only by the end of its branch, rollback, the window, or copy-
    on-write of a partial tail.

    Source: vLLM V1 block tables, which the worker extends and never rewrites.
    Catches: a scheduler that swaps a block under a worker that has already copied the table row.
    Except: null entries.
    Deviates: any position at or past the branch's last token counts as the tail.
    Mend: a new position for the new block.
    """


@rule
def private_copy_target() -> None:
    """A copy fills a block that no other branch sees, unless its owners agree on the copied slots, and, where it names
    its branch, a block that branch holds, covering every slot that branch sees in the source.

    Source: PagedAttention (SOSP'23) section 4.4; vllm-ascend#16013 (a copy of the wrong bytes).
    Catches: a copy into a shared block, a copy of too few slots.
    Except: a copy into a free block, the lint `dead_copy`.
    Deviates: a copy that names no branch is taken to be for the branch that mapped its target last.
    Mend: a fresh block for the copy, and every slot that the branch sees in the source.
    """


@rule
def pins_balanced() -> None:
    """An unpin matches a pin of the same holder; at `quiescent` only pins of kind `cache` remain.

    Source: LMCache#2954 (unpinned twice), LMCache#3884 and sglang#20049 (never released).
    Catches: another holder's pin consumed, a hold that outlives its work.
    Except: none.
    Deviates: none.
    Mend: one unpin for each pin, by its own holder.
    """


@rule
def no_leak() -> None:
    """At `quiescent`, a block with no owner and no pin is free.

    Source: vllm#11562; TensorRT-LLM#12933.
    Catches: a pool that shrinks with every failed or cancelled request.
    Except: the end of a log, which is not quiescent unless it says so.
    Deviates: none.
    Mend: a free of the block when its last owner or pin went.
    """


@rule
def rollback_exact() -> None:
    """After an accept the branch has exactly the kept tokens; rolled-back slots, and for a child of a branch that
    speculates the proposed ones, are neither read nor sealed before they are rewritten; lookahead blocks, where the
    discipline returns them, are back by the branch's next launch or `quiescent`.

    Source: vLLM speculative decoding; vllm#47728 (rejection moves the boundary back).
    Catches: a rollback that keeps blocks or drops too many, a rejected draft that is read or cached, a fork that takes
        drafts for tokens.
    Except: disciplines that keep lookahead blocks.
    Deviates: a rolled-back slot whose token the branch has again may be sealed ahead of its rewrite, as any other.
    Mend: a rollback to just the kept tokens, before the branch goes on.
    """


@rule
def reservation_covers() -> None:
    """An admission's promise covers what its branch then takes from the free queue; what a failing call took is given
    back by its branch's next event.

    Source: vllm#6849 and vllm#8824 (swap-in admitted, then out of blocks), vllm#11562.
    Catches: an admission check that forgets transient copies, revived hits or lookahead slots.
    Except: branches without a promise.
    Deviates: a promise stands until its branch ends or is promised anew.
    Mend: a larger promise, or the return of what the failed call took.
    """


@rule
def events_match_cache() -> None:
    """The published KV stream equals the identities that stand (due at `quiescent`); removing a hash never stored, or
    one that another block still carries, is wrong at once.

    Source: vllm#55092 (removed per physical copy), sglang#24568, llm-d-kv-cache#680.
    Catches: a router whose mirror loses a resident prefix or keeps a dead one.
    Except: none.
    Deviates: the stream is a set per medium: storing twice is storing once.
    Mend: the published event that the cache's change calls for, once.
    """


@step_rule
def survivors_unharmed() -> None:
    """Ending one branch changes no other branch's entries or contents.

    Source: ours; PagedAttention's promise to a pruned beam's siblings.
    Catches: a cancel that frees or rewrites shared blocks.
    Except: none.
    Deviates: a property of a step, judged where steps are explored; in a log the harm shows as `free_once`.
    """


@ghost_rule
def view_intact() -> None:
    """Each branch reads what an isolated recomputation would give.

    Source: ours.
    Catches: an incomplete discipline: it must never fail before another rule does.
    Except: none.
    Deviates: judged on ghost contents, which only the explorer has.
    """


@order_rule
def no_reuse_in_flight() -> None:
    """An access to a block is ordered after every conflicting access of its former lives.

    Source: vllm#32255, vllm#29870, sglang#35049.
    Catches: a block handed out again while a transfer still reads or writes it.
    Except: none.
    Deviates: none.
    Mend: an event, a wait or a `done` between the two accesses, and the block pinned until then.
    """


@order_rule
def copy_precedes_use() -> None:
    """Uses of a copied block are ordered after the copy.

    Source: TensorRT-LLM#8813.
    Catches: attention over a private tail whose copy has not run.
    Except: none.
    Deviates: none.
    Mend: an event and a wait, or a `done`, between the copy and the use.
    """


@order_rule
def source_stable() -> None:
    """Copied slots of the source are not overwritten before the copy is ordered.

    Source: vLLM 0.6.2's chained copies of one launch; TensorRT-LLM#15546.
    Catches: a source freed and rewritten under its copy.
    Except: none.
    Deviates: none.
    Mend: an event and a wait, or a `done`, between the copy and the write; for copies of one launch, two launches.
    """


@order_rule
def read_is_initialised() -> None:
    """What a branch reads was written, in this life, and ordered before the read.

    Source: vllm#49250 (a sharer reads blocks that are still being recomputed).
    Catches: attention over slots that hold another life's contents.
    Except: null entries and positions below the window.
    Deviates: a read is judged by the latest write to each slot, though an earlier one may have been ordered.
    Mend: the write, ordered before the read, or the entry that names the block.
    """


@order_rule
def accesses_ordered() -> None:
    """Any other two conflicting accesses are ordered.

    Source: sglang#18744 (block tables rewritten under a running forward).
    Catches: the races that no narrower rule names.
    Except: none.
    Deviates: none.
    Mend: an event and a wait, or a `done`, between the two accesses.
    """


@lint
def needless_copy() -> None:
    """A sole owner need not copy before it writes.

    Source: PagedAttention (SOSP'23) section 4.4: the last owner appends in place.
    Catches: a copy-on-write test that counts the branch itself.
    Except: a tail that is sealed or frozen; a copy into another pool.
    Deviates: none.
    """


@lint
def dead_copy() -> None:
    """A copy fills a block that is free: nobody will read it.

    Source: vLLM V0, whose deduplication frees the target of a copy that is still queued.
    Catches: bandwidth spent for nothing.
    Except: a free block that carries an identity: the copy fills it for later hits (vLLM 0.32.0).
    Deviates: none.
    """


@lint
def duplicate_full_block() -> None:
    """The same identity is registered on a second block.

    Source: vLLM V1, where it is legal.
    Catches: memory spent twice for one prefix.
    Except: none.
    Deviates: none.
    """


@lint
def late_release() -> None:
    """A block without owner or pin stayed out of the free queue while an allocation failed.

    Source: ours; LMCache#1130, dynamo#3730.
    Catches: shortages that an earlier release would have avoided.
    Except: none.
    Deviates: none.
    """


@lint
def recomputed_sealed() -> None:
    """A sealed, written slot was computed again by a branch that holds it by its identity.

    Source: vLLM V0 with prefix caching recomputes the last token of a full hit.
    Catches: work spent twice, and a write where readers expect none.
    Except: none.
    Deviates: none.
    """


@lint
def sealed_twice() -> None:
    """A block was sealed again under an identity that it already carries.

    Source: vllm#14073.
    Catches: a cache index that counts one block twice.
    Except: none.
    Deviates: none.
    """


@lint
def full_block_unsealed() -> None:
    """A branch ends with a full, written block that nobody sealed.

    Source: vllm#11186 (a block missed by the hash chain).
    Catches: prefix hits lost without any wrong output.
    Except: logs that seal nothing.
    Deviates: none.
    """
