"""`plinth bench`: pgbench's command line on Plinth's load engine."""

from plinth.bench.main import run_bench

__all__ = ["run_bench"]
