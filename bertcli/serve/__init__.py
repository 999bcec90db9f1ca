"""`bertcli serve`, the models over HTTP: `app.py` answers, `stream.py` computes, `door.py` checks who asks."""
