"""The plugins that info and doctor list: each is looked at whole, as no other command does."""

from bertcli import extensions


def plugin_list() -> list[str]:
    """The plugins with their versions, for people; of one that cannot be used also why."""
    from bertcli.models.registry import families
    from bertcli.tasks.registry import specs

    if extensions.plugins() or extensions.problems():
        # What they look at and cannot use they remember as a problem.
        list(families())
        specs()
    problems = extensions.problems()
    titles = dict.fromkeys([*(plugin.title for plugin in extensions.plugins()), *problems])
    return [f"{title} (cannot be used: {problems[title]})" if title in problems else title for title in titles]
