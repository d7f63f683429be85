"""What is installed: every package of the tree, nothing at the top level but `consilience`, light imports."""

import importlib.metadata
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
MAPPED = {"models", "inference", "evaluation"}


def settings():
    return tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]


def test_packages_listed_are_the_folders_with_an_init():
    folders = [ROOT / "consilience", *(ROOT / name for name in MAPPED)]
    found = set()
    for folder in folders:
        for init in folder.rglob("__init__.py"):
            inside = init.parent.relative_to(ROOT).parts
            if folder.name == "consilience" and len(inside) > 1 and inside[1] in MAPPED:
                continue  # the links for static tools
            found.add(".".join(inside if inside[0] == "consilience" else ("consilience", *inside)))
    folders_of_files = {"consilience.data.examples", "consilience.data.examples.sample", "consilience.templates"}
    assert found | folders_of_files == set(settings()["packages"])


def test_links_for_static_tools_point_to_the_mapped_folders():
    for name in MAPPED:
        link = ROOT / "consilience" / name
        # A checkout without symbolic links holds a text file there instead.
        target = link.readlink() if link.is_symlink() else Path(link.read_text())
        assert target == Path("..") / name


def test_nothing_but_consilience_is_installed_at_the_top_level():
    tops = {file.parts[0] for file in importlib.metadata.distribution("consilience").files if file.parts[0] != ".."}
    allowed = {"consilience", "__pycache__"}
    assert {top for top in tops if not top.startswith(("consilience-", "__editable__")) and top not in allowed} == set()


def test_templates_and_examples_are_installed():
    import importlib.resources

    for folder, pattern in {"templates": ".html", "data/examples": ".csv", "data": "litbank.txt"}.items():
        files = importlib.resources.files("consilience").joinpath(folder).iterdir()
        assert any(file.name.endswith(pattern) for file in files)


def test_the_front_door_imports_nothing_heavy():
    code = "import sys, consilience, consilience.data, consilience.models, consilience.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"jax", "numpyro", "pandas", "scipy", "matplotlib", "arviz"} & set(loaded)


def test_jaxtyping_is_for_tests_only():
    code = "import sys; sys.modules['jaxtyping'] = None; import consilience as cs; [getattr(cs, n) for n in cs.__all__]"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_public_name_exists():
    import consilience

    for name in consilience.__all__:
        assert getattr(consilience, name) is not None
    assert set(consilience.__all__) <= set(dir(consilience))


def test_the_types_of_the_front_door_are_current():
    script = ROOT / ".ci" / "stubs"
    found = subprocess.run([sys.executable, str(script), "--check"], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
