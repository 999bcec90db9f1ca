"""The routes, a file for each API. `routes.all_routes` finds the files; a new one needs to be named nowhere."""
