"""A spec for each view: its options and help, what it reads; the work is in compute/."""
