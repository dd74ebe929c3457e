"""The Python interface of the load engine: runs a load against a server and returns its results as arrays.

    from plinth.load import LoadConfig, LoadScript, connection, run

    outcome = run(LoadConfig(connection=connection("host=db1 dbname=bench"),
                             scripts=[LoadScript(name="one", source="SELECT 1;")], clients=8, duration_s=10))
    outcome.transactions("one").percentile_ns(0.99)

Times are nanoseconds (`_ns`) in results and seconds (`_s`) in configurations. docs/guides/load-api.md has the whole API.

driver.py    the interface of all drivers, and their registry
engine.py    the load engine, crates/load
drivers/     psycopg and SQLAlchemy, a process for each client
"""

from plinth.load.driver import LoadDriver, check_load, make_load
from plinth.load.engine import Latencies, Load, LoadInterrupted, LoadOutcome, builtin, run
from plinth.model.load_config import (
    AccountMix,
    CompiledTransaction,
    Keys,
    LoadConfig,
    LoadScript,
    LogFiles,
    Rate,
    Stage,
)
from plinth.system.conninfo import resolve as connection

__all__ = [
    "AccountMix",
    "CompiledTransaction",
    "Keys",
    "Latencies",
    "Load",
    "LoadConfig",
    "LoadDriver",
    "LoadInterrupted",
    "LoadOutcome",
    "LoadScript",
    "LogFiles",
    "Rate",
    "Stage",
    "builtin",
    "check_load",
    "connection",
    "make_load",
    "run",
]
