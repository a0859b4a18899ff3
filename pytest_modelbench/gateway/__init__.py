"""The one process that talks to models: its server, its clients and what it makes of a reply.

Import from the modules: ``process`` (the controller's side), ``client`` (a worker's side),
``replies`` (what both speak of). Nothing here imports litellm, httpx or aiohttp at its top except
``server``, which only the gateway process loads.
"""
