"""`plinth serve`: shows the bundles below a directory in a browser on this machine, without changing them.

To read in this order: `server` (socket and life), `app` (the pages by address), `guard` (who may ask), `catalogue` (which
bundles there are), `pages` (their HTML), `live` (runs that go on).
"""
