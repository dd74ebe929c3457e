"""btrfs over the devices of several storages (btrfs(5), mkfs.btrfs(8))."""

from pathlib import Path

from plinth.model.errors import RunError
from plinth.model.facts import StorageFacts
from plinth.model.storage import BtrfsStorage
from plinth.storage.actions import Action
from plinth.storage.filesystem import FILESYSTEM_REQUIREMENTS, FILESYSTEM_UNDO, Filesystem
from plinth.storage.folder import FolderStorage
from plinth.storage.inspect.block import filesystem_of, profiles_of
from plinth.storage.members import BLANK_MEMBERS, check_blank, sizes_of
from plinth.system.runner import Runner


class Btrfs(FolderStorage[BtrfsStorage]):
    """A btrfs file system on all members."""

    requirements = BLANK_MEMBERS.plus(FILESYSTEM_REQUIREMENTS["btrfs"])
    undo_handlers = FILESYSTEM_UNDO

    @property
    def filesystem(self) -> Filesystem:
        """The file system."""
        spec = self.spec
        metadata = ("-m", spec.metadata_profile) if spec.metadata_profile else ()
        options = ("-d", spec.data_profile, *metadata, *spec.mkfs_options)
        members = self.member_paths_of(spec.members)
        return Filesystem(
            self,
            "btrfs",
            options,
            spec.mount_options,
            members,
            held=self.members_held,
            destroys=self.members_destroy(),
        )

    def needs_from(self) -> None:
        """Return None: its members take the space."""

    def capacity_bytes(self) -> int | None:
        """Return the capacity of the members, half of it where all data is mirrored."""
        sizes = sizes_of(self, self.spec.members)
        if sizes is None:
            return None
        return sum(sizes) // (2 if self.spec.data_profile in ("raid1", "raid10") else 1)

    def member_paths(self) -> list[Path]:
        """Return None: it is no member."""
        return []

    def check(self, runner: Runner) -> None:
        """Check as every storage with a folder, and that its members are blank."""
        super().check(runner)
        check_blank(self, self.member_paths_of(self.spec.members), runner)

    def actions(self) -> list[Action]:
        """Make the file system over the members, which are there."""
        return [self.folder_action(), *self.filesystem.actions(), *self.member_queue_actions()]

    def confirm(self) -> None:
        """Raise RunError unless it has all members and the requested profile."""
        self.filesystem.confirm()
        asked = sorted(path.resolve().name for path in self.member_paths_of(self.spec.members))
        filesystem = filesystem_of(asked[0])
        found = sorted(link.name for link in (filesystem / "devices").iterdir()) if filesystem else []
        profiles = profiles_of(filesystem, "data") if filesystem else []
        if found != asked or self.spec.data_profile not in profiles:
            raise RunError(
                f"asked for {self.spec.data_profile} over {', '.join(asked)}; got {', '.join(profiles)} over {found}",
                where=str(self.mount_point),
            )
        self.confirm_member_queues()

    def failure(self) -> str | None:
        """Return the failure of its members, or of its file system."""
        return super().failure() or self.filesystem.failure()

    def facts(self, runner: Runner) -> StorageFacts:
        """Return the facts as every storage does, with its profiles and features."""
        return self.filesystem.with_features(super().facts(runner), runner)
