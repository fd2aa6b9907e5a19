"""The design review: one document that a sceptic can check line by line, as a page and as Markdown.

material  what is told: searches, proofs, mutants and budget of one design
content   the material as blocks of text, tables and diagrams: the summary, and what is not covered
subject   what the design is, and the rules that it is judged by; evidence: what was shown of it
words     what the design's source says in its own words
blocks    what a document is made of
markdown  blocks as Markdown
page      blocks as one HTML page that needs nothing else; `diagram` draws sequences in it

Both forms come from the same blocks, so neither says what the other does not. The same inputs give the same bytes, but
for one marked line of version, date and seconds.
"""
