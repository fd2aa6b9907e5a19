"""Logs: the trace format, version 1, and how it is read and written.

| to | use |
|---|---|
| know the events | `events` (a record for each kind), `header` (the first line), `fields` (the types of values) |
| read a log | `read.open_log`, `read.open_logs`; `log.Log` (header, batches), `problem` (what is wrong, as data) |
| record an engine | `record.Recorder` |
| write a whole log | `write.write_log`, `write.encode_log` |
| check a log elsewhere | `schema.json`, made by `schema` |
| see engines and logs | `engines`, `corpus` |

A log on its way in: `sources` (files and streams), `unpack` (gzip, zstd), `lines` (blocks of whole lines), `decode`
(records; `explain` says why not), `sequence` (gaps), `quick` and `judge` (what types cannot say), `log`. On its way
out: `record`, `writer` (one thread that writes), watched by `exits` (signals, exit, fork).

Chosen: the records refuse unknown fields, so that a misspelt optional field is an error and not a silence; the price is
a slower line where a recorder adds fields of its own. Refused: records made for each log, with its pools' bounds as
types, which decode faster still, and give every log its own classes. Refused too: telling compression by file name.
What would change our mind: a log in columns, where a field is checked once for all events.
"""
