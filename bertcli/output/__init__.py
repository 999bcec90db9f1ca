"""Where results go: standard output or a file that is written beside its place and renamed when whole."""
