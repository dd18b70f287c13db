"""The load generator as one file that a bare Python 3.9 runs: an archive of the `generator` folder."""

import io
import zipfile
from functools import cache
from importlib.resources import files

PACKAGE = "moeagent/tools/load/generator"
ENTRY = "from moeagent.tools.load.generator.__main__ import main\nimport sys\nsys.exit(main())\n"
EPOCH = (1980, 1, 1, 0, 0, 0)
"""A fixed date, so that equal sources make equal archives."""


@cache
def loadgen_archive() -> bytes:
    """Bytes of loadgen.pyz."""
    parents = PACKAGE.split("/")[:-1]
    members = {"/".join((*parents[: n + 1], "__init__.py")): "" for n in range(len(parents))}
    members["__main__.py"] = ENTRY
    for source in files("moeagent.tools.load.generator").iterdir():
        if source.name.endswith(".py"):
            members[f"{PACKAGE}/{source.name}"] = source.read_text(encoding="utf-8")
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(members):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), members[name])
    return buffer.getvalue()
