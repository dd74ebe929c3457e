"""The text of an experiment that compares a disk with memory, with which tests of experiment files and of reports begin."""


def ramdisk_text(
    *,
    name: str = "ramdisk",
    question: str = "Which is faster?",
    scale: int = 3,
    workload: str = "",
    matrix: str = "",
    rest: str = "",
) -> str:
    """`workload` and `matrix` are further keys of these tables, and `rest` are the tables after them; each ends with its line."""
    return f"""\
spec = 1
name = "{name}"
question = "{question}"

[storage.disk]
kind = "directory"
[storage.memory]
kind = "tmpfs"
size = "2GiB"

[dataset]
kind = "tpcb"
scale = {scale}

[workload]
builtin = "tpcb-like"
{workload}
[matrix]
storage = ["disk", "memory"]
{matrix}
{rest}"""


VALID = ramdisk_text(matrix='"workload.clients" = [1, 16]\n', rest='[measure]\nwarmup = "500ms"\nduration = "1min"\n')
"""Complete and without a mistake, for tests that change one thing in it."""
