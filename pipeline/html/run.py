"""x"""


def render_run(folder): ...
