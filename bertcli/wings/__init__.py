"""The wings: each stands on the house, and can go without it. Nothing outside this folder imports one."""
