"""`bertcli serve`, the models over HTTP: `app.py` answers, `stream.py` computes, `routes.py` says what is asked."""
