"""Happens-before between host threads and streams, from what a log shows of them; a timestamp is no order.

A timeline (a thread, or a stream) counts what happens on it, and knows of each other timeline up to which count it
comes after it. An access at count n of timeline t comes before whatever knows t up to n, and before what is later on t.
Everything put on a stream (a launch, a record, a wait) counts, so that who knows a count knows all that it knew.
"""

from __future__ import annotations

from collections.abc import Hashable

from .timeline import Here, Known, Op, Point, Timeline

KEPT_OPS = 4096

APART = "no stream"
"""The name of a timeline for ops that are on no stream."""


class Clocks:
    """The timelines of one log. `launch` sets `here`, where the accesses of an event happen.

    fresh: where the launch of an op is (by op, stream and thread, as events name them), as long as no thread has
    learned anything of a stream: until then the id names that launch, whatever threads tell each other. waited: stream,
    thread and their timelines of the latest launch, where the thread waited for it and did nothing else since. legacy:
    the stream that joins all others, CUDA's legacy default, where there is one. one_thread: the log names no other.
    mixed: events of some launch had accesses of others between them. spread: something may have been ordered behind a
    launch before the log had shown all of it. doubtful: ids of ops that were running where events are missing: what
    they name may be more of such an op, or a new one. elsewhere: an await of a channel that nobody has signalled hears
    of all that was signalled, for another rank may have passed it on.
    """

    def __init__(self, legacy: Hashable | None = None, one_thread: bool = False) -> None:
        self.legacy = legacy
        self.timelines: list[Timeline] = []
        self.threads: dict[Hashable, Timeline] = {}
        self.streams: dict[Hashable, Timeline] = {}
        self.nameless: list[Timeline] = []
        self.ops: dict[Hashable, Op] = {}
        self.kept = 0
        self.forgotten: Known = {}
        self.events: dict[Hashable, Point] = {}
        self.channels: dict[Hashable, list[Point]] = {}
        self.handed: dict[int, Point] = {}
        self.fresh: dict[Hashable, Here] = {}
        self.waited: tuple[Hashable, Hashable, Timeline, Timeline] | None = None
        self.only = self.thread(None) if one_thread else None
        self.here: Here = (0, 0, {})
        self.mixed = self.spread = False
        self.doubtful: frozenset[Hashable] = frozenset()
        self.elsewhere = False

    # --- timelines ----------------------------------------------------------------------------------------------------

    def _new(self, name: str) -> Timeline:
        timeline = Timeline(len(self.timelines), name)
        self.timelines.append(timeline)
        return timeline

    def thread(self, name: Hashable | None) -> Timeline:
        known = self.threads.get("main" if name is None else name)
        if known is None:
            name = "main" if name is None else name
            known = self.threads[name] = self._new(f"thread {name}")
        return known

    def settled(self, number: int, count: int) -> bool:
        """Everything from here on comes after that place: the only thread knows it."""
        only = self.only
        return only is not None and (only.known.get(number, 0) >= count or number == only.number)

    def stream(self, name: Hashable) -> Timeline:
        known = self.streams.get(name)
        if known is None:
            known = self.streams[name] = self._new(f"stream {name}")
        return known

    def _apart(self, host: Timeline) -> Timeline:
        """The timeline of an op without a stream: one whose last op this thread knows complete will do again."""
        for lane in self.nameless:
            if host.known.get(lane.number, 0) >= lane.count:
                return lane
        lane = self._new(APART)
        self.nameless.append(lane)
        return lane

    def _enqueue(self, lane: Timeline, host: Timeline) -> None:
        """Something is put on a stream by a thread: it comes after all that the thread has done and knows."""
        self.waited = None
        heard = (host.number, host.version, host.count)
        if lane.heard != heard:
            lane.learn(host.number, host.count, host.known)
            lane.heard = heard
        if self.legacy is not None and lane.name != APART:
            self._join_legacy(lane)
        lane.count += 1

    def _join_legacy(self, lane: Timeline) -> None:
        legacy = self.streams.get(self.legacy)
        if lane is legacy:
            for other in self.streams.values():
                if lane.known.get(other.number, 0) < other.count:
                    lane.learn(other.number, other.count, other.known)
        elif legacy is not None and lane.known.get(legacy.number, 0) < legacy.count:
            lane.learn(legacy.number, legacy.count, legacy.known)

    def _hear(self, host: Timeline, number: int, count: int, known: Known) -> None:
        """A thread learns that a stream has got so far."""
        self.fresh.clear()
        self.waited = None
        if host.known.get(number, 0) < count:
            host.learn(number, count, known)

    # --- launches -----------------------------------------------------------------------------------------------------

    def launch(self, thread: Hashable | None, op: Hashable | None, stream: Hashable | None) -> None:
        """Accesses happen: on a stream, or, without op and stream, on the thread itself.

        An op without an id is waited for at once. An id that is still running is the same launch.
        """
        waited = self.waited
        if waited is not None and op is None and stream == waited[0] and thread == waited[1]:
            _, _, lane, host = waited
            lane.count += 1
            host.known[lane.number] = lane.count
            self.here = (lane.number, lane.count, lane.known)
            return
        host = self.thread(thread)
        if op is None:
            if stream is None:
                self.waited = None
                if self.only is not None:
                    self.fresh.clear()  # what it does itself, it knows at once
                host.count += 1
                self.here = (host.number, host.count, host.known)
                return
            lane = self.stream(stream)
            self._enqueue(lane, host)
            self.fresh.clear()
            self.here = (lane.number, lane.count, lane.known)
            lane.shared = True
            if self.legacy is None and host.known.get(lane.number, 0) == lane.count - 1:
                self._follow(host, lane)
                self.waited = (stream, thread, lane, host)
            else:
                host.learn(lane.number, lane.count, lane.known)
                lane.heard = (host.number, host.version, host.count)  # and knows itself the rest of what the host knows
            return
        running, name = self.ops.get(op), (op, stream, thread)
        if running is None or running.done or host.known.get(running.point.number, 0) >= running.point.upto:
            lane = self._apart(host) if stream is None else self.stream(stream)
            self._enqueue(lane, host)
            lane.shared = True
            running = self._keep(op, Op(Point(lane.number, lane.count, lane.known), stream))
            self.fresh[name] = self.here = (lane.number, lane.count, lane.known)
            if op in self.doubtful:
                self.spread = True
        elif name in self.fresh:
            self.go_on(self.fresh[name])
        else:  # since then a thread has learned something, or the event names another thread or stream
            number, upto, known = running.point
            self.fresh[name] = self.here = (number, upto, known)
            self.spread = True

    def go_on(self, point: Here) -> None:
        """More of a launch, whose place is among the fresh ones.

        What comes after it is what was put on its timeline since then, or on the legacy stream, and what came after
        that: no thread has learned anything.
        """
        if point is not self.here:
            self.here, self.mixed = point, True
            if self.legacy is not None or self.timelines[point[0]].count != point[1]:
                self.spread = True

    def _follow(self, host: Timeline, lane: Timeline) -> None:
        """The thread waited for the launch that it alone put behind what it knew: it learns one count, no more."""
        if host.shared:
            host.known, host.shared = dict(host.known), False
        host.known[lane.number] = lane.count
        host.version += 1
        lane.heard = (host.number, host.version, host.count)

    def _keep(self, op: Hashable, running: Op) -> Op:
        self.ops[op] = running
        if len(self.ops) > max(KEPT_OPS, 2 * self.kept):
            self._sweep()
        return running

    def _sweep(self) -> None:
        """Forget the ops that every thread knows complete. Who hears of one later still learns all that it knew."""
        hosts = list(self.threads.values())
        for op, running in list(self.ops.items()):
            number, count, known = running.point
            if running.done or all(host.known.get(number, 0) >= count for host in hosts):
                del self.ops[op]
                for timeline, seen in ((number, count), *known.items()):
                    self.forgotten[timeline] = max(seen, self.forgotten.get(timeline, 0))
        self.kept = len(self.ops)

    def running(self) -> frozenset[Hashable]:
        """The ids of ops that some thread does not know complete."""
        self._sweep()
        return self.doubtful.union(self.ops)

    # --- what orders --------------------------------------------------------------------------------------------------

    def done(self, thread: Hashable | None, op: Hashable) -> None:
        """The thread has learned that the op is complete."""
        running, host = self.ops.get(op), self.thread(thread)
        if op in self.doubtful:
            self.doubtful -= {op}
        if running is not None:
            self._hear(host, *running.point)
            running.done = True
        elif self.forgotten:
            self.waited = None
            host.learn(-1, 0, self.forgotten)

    def record(self, thread: Hashable | None, event: Hashable, stream: Hashable) -> None:
        """The event captures what the stream holds; an earlier record of it is forgotten."""
        lane = self.stream(stream)
        self._enqueue(lane, self.thread(thread))
        lane.shared = True
        self.events[event] = Point(lane.number, lane.count, lane.known)

    def wait(self, thread: Hashable | None, event: Hashable, stream: Hashable) -> None:
        """What the stream does from here on comes after the event's latest record; without one, after nothing new."""
        lane, recorded = self.stream(stream), self.events.get(event)
        self._enqueue(lane, self.thread(thread))
        if recorded is not None and lane.known.get(recorded.number, 0) < recorded.upto:
            lane.learn(*recorded)

    def sync_stream(self, thread: Hashable | None, stream: Hashable) -> None:
        """The thread waits for a stream; where there is a legacy stream, for that too, and with it for every other.

        CUDA's cudaStreamSynchronize and cudaStreamQuery use "standard default stream semantics": the legacy stream
        first waits on all blocking streams, and they wait on what it holds. HIP's hipStreamSynchronize says it in
        words: the null stream makes it "wait for other streams on the same device". It puts nothing on a stream.
        """
        if stream == self.legacy:
            self.sync_device(thread)
            return
        for name in (stream, self.legacy):
            self._sync(self.thread(thread), self.streams.get(name))

    def _sync(self, host: Timeline, lane: Timeline | None) -> None:
        if lane is not None:
            lane.shared = True
            self._hear(host, lane.number, lane.count, lane.known)

    def sync_event(self, thread: Hashable | None, event: Hashable) -> None:
        recorded = self.events.get(event)
        if recorded is not None:
            self._hear(self.thread(thread), *recorded)

    def sync_device(self, thread: Hashable | None) -> None:
        for lane in self.streams.values():
            self._sync(self.thread(thread), lane)

    def signal(self, thread: Hashable | None, channel: Hashable) -> None:
        """What the thread has done comes before the channel's later awaits."""
        point = self._point(self.thread(thread))
        points = self.channels.setdefault(channel, [])
        points[:] = [p for p in points if p.number != point.number]
        points.append(point)

    def await_(self, thread: Hashable | None, channel: Hashable) -> None:
        host = self.thread(thread)
        self.waited = None
        heard = self.channels.get(channel)
        if heard is None and self.elsewhere:
            heard = [point for points in self.channels.values() for point in points]
        for point in heard or ():
            host.learn(*point)

    def hand_over(self, thread: Hashable | None, block: int) -> None:
        """An alloc or free of the block: it comes after the block's former one, whoever did that."""
        if self.only is not None:
            return
        host, former = self.thread(thread), self.handed.get(block)
        if former is not None and former.number != host.number:
            host.learn(*former)
        self.handed[block] = self._point(host)

    def _point(self, host: Timeline) -> Point:
        self.waited = None
        host.shared = True
        return Point(host.number, host.count, host.known)
