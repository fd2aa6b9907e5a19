"""The order analysis: what a log's synchronisation allows besides what happened.

clocks     happens-before between host threads and streams, on `timeline`s
history    the accesses of each block that may still race
attention  what branches read, without touching each block at each step
judge      what an access meets: a race, or slots nobody wrote
analysis   the events of a log, heard beside its replay
telling    breaches as root causes, in words
witness    a log in which a race goes wrong
reordered  what can be there when the later access comes first
said       what replays say of that
minimal    fewer events that show it
schedule   where in it each launch happens
spread     launches whose events are spread over the log
placed     the analysis of such a log

What we chose: happens-before by vector clocks over timelines, judged at each launch against the accesses that still
matter. A launch is judged as its events come; only where something was ordered behind it meanwhile, the log is read
again, and what comes late is judged where the launch begins. Refused: enumerating interleavings (the tests do, on small
logs), and reading anything from timestamps.
"""
