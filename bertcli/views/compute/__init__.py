"""The work of the views: what each measures, and its page."""
