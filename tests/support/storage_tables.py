"""[storage] tables of experiments: a loop device and an emulated disk, stored in memory."""

MEMORY = '[storage.memory]\nkind = "tmpfs"\nsize = "2GiB"\n'
_LOOP = '[storage.s]\nkind = "loop"\nsize = "{size}"\nfilesystem = "{filesystem}"\non = "memory"\n' + MEMORY
_SIZES = {"ext4": "64MiB", "xfs": "320MiB", "btrfs": "128MiB"}
_EMULATED = '[storage.s]\nkind = "emulated"\nprofile = "{profile}"\nsize = "64MiB"\non = "memory"\n{further}\n' + MEMORY


def loop(filesystem: str = "ext4", **keys: str) -> str:
    further = "".join(f"{key} = {value}\n" for key, value in keys.items())
    return _LOOP.format(size=_SIZES[filesystem], filesystem=filesystem).replace("on =", further + "on =")


def emulated(profile: str = "ideal", further: str = "") -> str:
    return _EMULATED.format(profile=profile, further=further)
