"""The rows that an agent sends: its part of a dataset, by the bulk loader."""

import json

from plinth.fleet.protocol import Copied
from plinth.fleet.starting import Starting
from plinth.model.bulk import BulkProgress, BulkResult
from plinth.model.shown import bytes_shown_in_json
from plinth.system.framed_tls import ProtocolError
from plinth.workload.bulk import bulk_loader, loader_errors

_END_TIMEOUT_S = 2.0


class AgentCopy:
    """One bulk load; begins at once, and connects while the agent answers. Raises ProtocolError, RunError."""

    def __init__(self, config_json: str) -> None:
        try:
            config = json.loads(config_json)
        except ValueError:  # whose message cites the document, which holds secrets
            raise ProtocolError("the configuration of the bulk loader is no JSON") from None
        self._loader = bulk_loader(config)
        self._starting = Starting(self._start)

    def state(self) -> Copied:
        """Return how far it is."""
        if self._starting.failure is not None:
            return Copied(state="failed", failure=self._starting.failure)
        progress = BulkProgress.model_validate_json(self._loader.progress())
        if not self._starting.is_done:
            return Copied(state="connecting", progress=progress)
        if not self._loader.wait(0):
            return Copied(state="running", progress=progress)
        with loader_errors():
            result = BulkResult.model_validate_json(bytes_shown_in_json(self._loader.result()))
        return Copied(state="ended", progress=progress, result=result)

    def stop(self) -> None:
        """Have the streams withdraw what they are sending."""
        self._loader.stop()

    def end(self) -> None:
        """Stop, and wait until the connections are closed."""
        self._loader.stop()
        self._loader.wait(_END_TIMEOUT_S)

    def _start(self) -> None:
        with loader_errors():
            self._loader.start()
