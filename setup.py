"""What pyproject.toml cannot say: `conf/`, at the top of a checkout, is installed as the data of `pipeline.conf`."""

from setuptools import find_namespace_packages, find_packages, setup

OURS = ("mechanisms", "synthesis", "evaluation", "pipeline")
DATA = ["py.typed", *(f"**/*.{kind}" for kind in ("css", "j2", "json", "svg", "yaml"))]
CONF = ["pipeline.conf", *(f"pipeline.conf.{name}" for name in find_namespace_packages("conf"))]

setup(
    packages=[*find_packages(include=[*OURS, *(f"{name}.*" for name in OURS)]), *CONF],
    package_dir={"pipeline.conf": "conf"},
    package_data={**dict.fromkeys(OURS, DATA), **{name: ["*.yaml"] for name in CONF}},
    py_modules=["dp_synthesis_pipeline"],
)
