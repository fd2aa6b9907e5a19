"""Reports: an outcome in, text out. Data and rendering are apart; the same outcome gives the same bytes.

view      what is shown of an outcome: all of it, or what is about one block or branch
places    the file and line of a log's line, through its segments
rulebook  the rules with their labels, for reports that document them
text      for people; `paint` adds color
json      for programs (the shape is part of the design, more fields may come)
sarif     SARIF 2.1.0, for code-scanning services
junit     JUnit XML, for test dashboards: one case a rule
html      one self-contained page
formats   the names above, and how a format is chosen
"""
