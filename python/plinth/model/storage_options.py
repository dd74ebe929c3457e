"""Options of mkfs, mount, zpool and zfs that an experiment may give: those that name no file, device or program."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_NUMBER = r"[0-9.]+[A-Za-z]{0,3}"
_WORDS = r"[A-Za-z0-9_^-]+(,[A-Za-z0-9_^-]+)*"
_WORD = r"[A-Za-z0-9_-]+"
_VALUE = r"[A-Za-z0-9_.:@+-]+"
_CALM = r"continue|remount-ro"
"""What a file system may do about an error: not panic the kernel."""


@dataclass(frozen=True)
class MkfsOptions:
    """Options of a mkfs that an experiment may give: those without a value, those with one and its pattern, and those whose value is
    a list of NAME or NAME=VALUE."""

    flags: frozenset[str]
    values: Mapping[str, str]
    lists: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return all of them, in the order of the alphabet."""
        return sorted((*self.flags, *self.values, *self.lists), key=lambda name: (name.lstrip("-").lower(), name))


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


MKFS: Mapping[str, MkfsOptions] = {
    "ext4": MkfsOptions(
        flags=_names("-D -j -v"),
        values={
            **dict.fromkeys(("-b", "-C", "-g", "-G", "-i", "-I", "-m", "-N", "-r"), _NUMBER),
            "-e": _CALM,
            "-O": _WORDS,
            "-t": _WORD,
            "-T": _WORDS,
        },
        lists={
            "-E": _names(
                "assume_storage_prezeroed desc_size desc-size discard encoding encoding_flags lazy_itable_init lazy_journal_init "
                "mmp_update_interval nodiscard num_backup_sb orphan_file_size packed_meta_blocks quotatype resize revision stride "
                "stripe_width stripe-width test_fs"
            ),
            "-J": _names("fast_commit_size location size"),
        },
    ),
    "xfs": MkfsOptions(
        flags=_names("-K"),
        values={},
        lists={
            "-b": _names("size"),
            "-d": _names(
                "agcount agsize concurrency cowextsize daxinherit extszinherit noalign sectsize size su sunit sw swidth"
            ),
            "-i": _names("align attr exchange maxpct nrext64 perblock projid32bit size sparse"),
            "-l": _names("agnum concurrency internal lazy-count sectsize size su sunit version"),
            "-m": _names("autofsck bigtime crc finobt inobtcount metadir reflink rmapbt"),
            "-n": _names("ftype parent size version"),
            "-s": _names("sectsize size"),
        },
    ),
    "btrfs": MkfsOptions(
        flags=_names("-K --nodiscard -M --mixed -v --verbose"),
        values={
            **dict.fromkeys(("-b", "--byte-count", "-n", "--nodesize", "-s", "--sectorsize"), _NUMBER),
            **dict.fromkeys(("-d", "--data", "-m", "--metadata", "--csum", "--checksum"), _WORD),
            **dict.fromkeys(("-O", "--features", "-R", "--runtime-features"), _WORDS),
        },
    ),
}
"""By file system."""

_OF_ALL = (
    "async atime defaults diratime dirsync iversion lazytime loud noatime nodev nodiratime noexec noiversion nolazytime norelatime "
    "nostrictatime nosuid nosymfollow relatime ro rw silent strictatime sync"
)
_OF_EXT4 = (
    "acl auto_da_alloc barrier bh block_validity bsddf bsdgroups bulk_read commit data data_err dax debug delalloc dioread_lock "
    "dioread_nolock discard errors grpid grpquota i_version init_itable inode_readahead_blks journal_async_commit journal_checksum "
    "journal_ioprio max_batch_time max_dir_size_kb mb_optimize_scan min_batch_time minixdf no_mbcache no_prefetch_block_bitmaps "
    "noacl noauto_da_alloc nobarrier nobh noblock_validity nodelalloc nodiscard nogrpid noinit_itable nojournal_checksum noload "
    "nombcache noquota norecovery nouser_xattr oldalloc orlov prefetch_block_bitmaps prjquota quota resgid resuid stripe "
    "sysvgroups user_xattr usrquota"
)
_OF_XFS = (
    "allocsize attr2 delaylog filestreams gqnoenforce gquota ikeep inode32 inode64 largeio lifetime logbsize logbufs "
    "max_atomic_write max_open_zones noalign noattr2 nodelaylog noikeep nolargeio nolifetime nouuid pqnoenforce pquota sunit "
    "swalloc swidth uqnoenforce uquota wsync"
)
_OF_BTRFS = (
    "autodefrag clear_cache compress compress-force datacow datasum degraded enospc_debug flushoncommit inode_cache max_inline "
    "metadata_ratio noautodefrag nodatacow nodatasum noenospc_debug noflushoncommit noinode_cache nologreplay nospace_cache nossd "
    "nossd_spread notreelog rescan_uuid_tree skip_balance space_cache ssd ssd_spread thread_pool treelog usebackuproot "
    "user_subvol_rm_allowed"
)
MOUNT = _names(f"{_OF_ALL} {_OF_EXT4} {_OF_XFS} {_OF_BTRFS}")
"""Of all file systems in one: none of them is harmful to another, whose kernel refuses it."""

POOL = _names(
    "ashift autoexpand autotrim comment dedup_table_quota dedupditto delegation failmode listsnapshots listsnaps multihost version"
)
DATASET = _names(
    "aclinherit aclmode acltype atime casesensitivity checksum compression copies dedup direct dnodesize logbias nbmand "
    "normalization prefetch primarycache quota recordsize redundant_metadata refquota refreservation relatime reservation "
    "secondarycache snapdir special_small_blocks sync utf8only version xattr"
)
_FEATURE = re.compile(r"feature@[A-Za-z0-9_:.]+")
_PATTERNS = {"errors": _CALM, "failmode": "wait|continue"}
_SHORT, _LONG = re.compile(r"-[A-Za-z]"), re.compile(r"--[a-z-]+")


def check_mkfs_options(filesystem: str, words: Sequence[str]) -> None:
    """Raise ValueError for an argument of mkfs.FILESYSTEM that is not in its list. Words are read as getopt(3) reads them."""
    program, allowed = f"mkfs.{filesystem}", MKFS[filesystem]
    for name, value in _options_of(program, allowed, words):
        if name in allowed.lists:
            for part in (value or "").split(","):
                key, equals, of_key = part.partition("=")
                if key not in allowed.lists[name] or (equals and not re.fullmatch(_VALUE, of_key)):
                    raise ValueError(
                        f"{name} {part!r}: not an option of {program} that may be given; {_REASON}; allowed of {name}: "
                        f"{', '.join(sorted(allowed.lists[name]))}"
                    )
        elif name in allowed.values and not re.fullmatch(allowed.values[name], value or ""):
            raise ValueError(f"{name} {value!r}: not a value of {program} that may be given; {_REASON}")


def check_mount_options(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the options. Raises ValueError for one that is not in the list. A word may hold several, with commas, as mount(8) reads them."""
    for option in (part for word in words for part in word.split(",")):
        name, equals, value = option.partition("=")
        pattern = _PATTERNS.get(name, _VALUE)
        if name not in MOUNT or (equals and not re.fullmatch(pattern, value)):
            raise ValueError(
                f"{option!r}: not a mount option that may be given; {_REASON}; docs/concepts/rights.md lists them"
            )
    return words


def check_properties(of: str, allowed: frozenset[str], properties: Mapping[str, str | int]) -> None:
    """Raise ValueError for a property that is not `allowed`; `of` is what has it, for people."""
    for name, value in properties.items():
        is_known = name in allowed or (allowed is POOL and _FEATURE.fullmatch(name))
        if not is_known or not re.fullmatch(_PATTERNS.get(name, _VALUE), str(value)):
            raise ValueError(
                f"{name} = {value!r}: not a property of a {of} that may be given; {_REASON}; allowed: {', '.join(sorted(allowed))}"
            )


_REASON = "only options that name no file, device or program are, since root gives them"


def _options_of(program: str, allowed: MkfsOptions, words: Sequence[str]) -> Iterator[tuple[str, str | None]]:
    """Return each option with its value, which may be in the same word, as in -m0 and --data=dup, or in the next."""
    left = list(words)
    while left:
        word = left.pop(0)
        if _LONG.match(word):
            name, equals, value = word.partition("=")
            flags, rest = [], value if equals else None
        elif _SHORT.match(word):
            flags, name, rest = _joined(word, allowed)
        else:
            raise ValueError(f"{word!r}: {program} would take it for a device; {_REASON}")
        yield from ((flag, None) for flag in flags)
        if name not in allowed.names():
            raise ValueError(
                f"{name!r}: not an option of {program} that may be given; {_REASON}; allowed: {', '.join(allowed.names())}"
            )
        if name in allowed.flags:
            if rest is not None:
                raise ValueError(f"{word!r}: {name} of {program} takes no value")
            yield name, None
        elif rest is None and not left:
            raise ValueError(f"{word!r}: {name} of {program} needs a value")
        else:
            yield name, left.pop(0) if rest is None else rest


def _joined(word: str, allowed: MkfsOptions) -> tuple[list[str], str, str | None]:
    """Return the options of a word such as -jm0: those without a value, then the last, and what follows that: its value, if it takes
    one."""
    flags = []
    for index, letter in enumerate(word[1:-1], start=2):
        if f"-{letter}" not in allowed.flags:
            return flags, f"-{letter}", word[index:]
        flags.append(f"-{letter}")
    return flags, f"-{word[-1]}", None
