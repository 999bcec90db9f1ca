"""The wings: each stands on the core, and can go without it. Nothing outside this folder imports one."""
