"""The storages of a run: made, monitored while they are used, and given up when they fail."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from plinth.model.errors import PlinthError, StorageBroken, UsageError
from plinth.model.facts import StorageFacts
from plinth.model.step import Step
from plinth.run.context import RunContext
from plinth.run.failures import Failures, reason_of
from plinth.run.listener import Listener
from plinth.run.provision.storage_watch import StorageWatch, Watched
from plinth.storage import Storage
from plinth.system import cancel
from plinth.system.journal import Journal, NotUndone
from plinth.system.runner import Runner


class Storages:
    """The storages that a run has made, in order. Those that fail are added to `failures`."""

    def __init__(
        self, context: RunContext, runner: Runner, journal: Journal, listener: Listener, failures: Failures
    ) -> None:
        self.hung: dict[str, StorageBroken] = {}
        """Beginnings of the ids of steps that cannot be undone, since that would hang."""
        self._context = context
        self._runner = runner
        self._journal = journal
        self._listener = listener
        self._failures = failures
        self._watches = {name: StorageWatch(host=host) for name, host in context.hosts.items()}
        self._made: dict[str, Storage] = {}

    def prepare(self, storage: Storage) -> StorageFacts | None:
        """Make one storage, when those below have been made; None when it fails, or when one below has failed.

        Raises UsageError, of which the user knows what to correct before anything is measured.
        """
        if below := self._failures.of_storages(self._names_below(storage)):
            self._failures.storages.setdefault(storage.name, below)
            return None
        made = Step(id=storage.step_id("made"), title=f"storage {storage.name} is there")
        is_there = self._journal.has(made.id)  # a run that was killed has made it
        self._listener.phase(f"{'resume with' if is_there else 'make'} storage {storage.name}")
        try:
            if is_there:
                storage.end_faults()
                facts = storage.facts(self._runner)
            else:
                facts = storage.prepare(self._runner, self._journal, report=self._listener.progress)
                if storage.stays_after_kill:
                    self._journal.record(made)
        except UsageError:
            raise
        except PlinthError as error:
            self.mark_failed(storage.name, error)
            return None
        self._made[storage.name] = storage
        force_detach = partial(storage.force_detach, self._runner)
        self._watch_of(storage).add(Watched(storage.name, storage.failure, facts.block_devices, force_detach))
        return facts

    def make_again(self, storages: Sequence[Storage]) -> None:
        """Undo storages and make them again, each after what it is built on. Raises what keeps one from being undone."""
        for storage in reversed(storages):
            self._watch_of(storage).remove(storage.name)
            self._made.pop(storage.name, None)
            storage.teardown(self._runner, self._journal)
        for storage in storages:
            self.prepare(storage)

    def mark_failed(self, name: str, error: PlinthError) -> None:
        """Record that storage `name` cannot be used, and say so."""
        self._failures.storages.setdefault(name, error)
        self._listener.note(f"storage {name} failed, and with it what is stored on it: {reason_of(error)}")

    @contextmanager
    def looked_after(self, names: Collection[str]) -> Iterator[None]:
        """Cancel what is done in it, with StorageBroken, when one of `names` fails."""
        with cancel.scope() as token, ExitStack() as watching:
            for watch in self._watches.values():
                watching.enter_context(watch.watching(names, token.cancel))
            yield

    def broken(self) -> StorageBroken | None:
        """Return one of those made that is known to have failed; nothing is tried."""
        return self._first_failure(self._made)

    def examined(self, storages: Sequence[Storage]) -> StorageBroken | None:
        """Return the first of `storages` that has failed: each that is mounted must take a small write."""
        made = [storage for storage in storages if storage.name in self._made]
        if broken := self._first_failure({storage.name for storage in made}):
            return broken
        for storage in made:
            if not storage.is_raw and (failure := storage.write_failure(self._runner)):
                return StorageBroken(storage.name, failure)
        return None

    def force_detach(self, broken: StorageBroken) -> list[Storage]:
        """Release a storage that has failed, and what is stored on it; any process that waits for them fails from now on.

        Returns them in the order in which they were made.
        """
        self.mark_failed(broken.storage, broken)
        failed = [storage for storage in self._made.values() if broken.storage in self._names_below(storage)]
        for storage in failed:
            self._failures.storages.setdefault(storage.name, broken)
            self._watch_of(storage).remove(storage.name)
            del self._made[storage.name]
            try:
                storage.force_detach(self._runner)
            except PlinthError as error:
                self._listener.note(f"{error.message} ({error.where})")
        return failed

    def undo(self, failed: Sequence[Storage]) -> list[NotUndone]:
        """Undo what `force_detach` returned, the last first; what still hangs is left alone."""
        kept: list[NotUndone] = []
        for storage in reversed(failed):
            if storage.step_id("") not in self.hung:
                kept += storage.undo(self._runner, self._journal)
        return kept

    def mark_hung(self, failed: Sequence[Storage], further_steps: Collection[str]) -> None:
        """Find out which of `failed` hang although they were detached by force: their steps, and `further_steps`, are left alone."""
        for storage in failed:
            if not storage.is_raw and storage.hangs(self._runner):
                error = StorageBroken(storage.name, "it hangs, so that undoing it would hang, too")
                self.hung |= dict.fromkeys((*(one.step_id("") for one in failed), *further_steps), error)

    def close(self) -> None:
        """Stop monitoring them."""
        for watch in self._watches.values():
            watch.close()

    def _watch_of(self, storage: Storage) -> StorageWatch:
        return self._watches[self._context.host_of(storage).name]

    def _first_failure(self, names: Collection[str]) -> StorageBroken | None:
        return next(filter(None, (watch.first_failure(names) for watch in self._watches.values())), None)

    def _names_below(self, storage: Storage) -> set[str]:
        """Return its own name, and those of all that it is built on."""
        return {one.name for one in self._context.closure([storage.name])}
