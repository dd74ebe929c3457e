"""What file systems, arrays and partition tables leave on a disk, byte by byte, for those whose tools are not installed.

Only what makes them recognisable: magic numbers, versions and sums. The source of each format is named with it.
"""

import struct
import zlib
from collections.abc import Callable
from typing import NamedTuple

SECTOR_BYTES = 512


class Written(NamedTuple):
    """Bytes and where on the disk they are."""

    at: int
    data: bytes


def mbr(first_sector: int, sectors: int, kind: int = 0x83) -> bytes:
    """The partition table of a master boot record, from byte 446 on: one partition, then the boot signature."""
    entry = struct.pack("<B3sB3sII", 0, bytes(3), kind, bytes(3), first_sector, sectors)
    return entry + bytes(3 * 16) + b"\x55\xaa"


def dos(disk_bytes: int) -> list[Written]:
    """A master boot record with one partition."""
    return [Written(446, mbr(2048, 4096))]


def gpt(disk_bytes: int) -> list[Written]:
    """Both tables, with a protective master boot record: UEFI specification 2.10, 5.2 and 5.3."""
    sectors = disk_bytes // SECTOR_BYTES
    return [Written(446, mbr(1, sectors - 1, 0xEE)), *_gpt_table(sectors, 1), *gpt_at_the_end(disk_bytes)]


def gpt_at_the_end(disk_bytes: int) -> list[Written]:
    """Only the second table, as is left when the beginning of a disk is wiped."""
    return _gpt_table(disk_bytes // SECTOR_BYTES, disk_bytes // SECTOR_BYTES - 1)


def _gpt_table(sectors: int, own: int) -> list[Written]:
    last = sectors - 1
    entries_at = 2 if own == 1 else last - 32
    linux = bytes.fromhex("af3dc60f838472478e793d69d8477de4")
    entries = struct.pack("<16s16sQQQ72s", linux, b"p" * 16, 2048, 4095, 0, b"").ljust(128 * 128, b"\0")

    def header(crc: int) -> bytes:
        other = last if own == 1 else 1
        fields = (0x10000, 92, crc, 0, own, other, 34, last - 33, b"d" * 16, entries_at, 128, 128)
        return struct.pack("<8sIIIIQQQQ16sQIII", b"EFI PART", *fields, zlib.crc32(entries))

    return [
        Written(own * SECTOR_BYTES, header(zlib.crc32(header(0)))),
        Written(entries_at * SECTOR_BYTES, entries),
    ]


def md_0_90(disk_bytes: int) -> list[Written]:
    """linux/raid/md_p.h: in the last whole 64 KiB but one; magic, major, minor."""
    return [Written((disk_bytes & ~0xFFFF) - 0x10000, struct.pack("<III", 0xA92B4EFC, 0, 90).ljust(4096, b"\0"))]


def md_1(disk_bytes: int, at: int) -> list[Written]:
    """struct mdp_superblock_1 of linux/raid/md_p.h; its sum is the one of calc_sb_1_csum in drivers/md/md.c."""
    block = bytearray(256)
    struct.pack_into("<IIII16s32s", block, 0, 0xA92B4EFC, 1, 0, 0, b"u" * 16, b"host:data")
    struct.pack_into("<Q", block, 144, at // SECTOR_BYTES)
    total = sum(struct.unpack("<64I", block))
    struct.pack_into("<I", block, 216, (total & 0xFFFFFFFF) + (total >> 32))
    return [Written(at, bytes(block))]


def md_1_0(disk_bytes: int) -> list[Written]:
    """At the end: at least 8 KiB before it, on a multiple of 4 KiB."""
    return md_1(disk_bytes, (disk_bytes // SECTOR_BYTES - 16 & ~7) * SECTOR_BYTES)


def md_1_1(disk_bytes: int) -> list[Written]:
    """At the beginning."""
    return md_1(disk_bytes, 0)


def md_1_2(disk_bytes: int) -> list[Written]:
    """4 KiB from the beginning."""
    return md_1(disk_bytes, 4096)


def zfs_label(number: int) -> Callable[[int], list[Written]]:
    """Uberblocks of one of the four labels, two at each end: OpenZFS, include/sys/vdev_impl.h and uberblock_impl.h."""

    def label(disk_bytes: int) -> list[Written]:
        label_bytes = 256 * 1024
        start = number * label_bytes if number < 2 else disk_bytes - (4 - number) * label_bytes
        uberblock = struct.pack("<QQQQ", 0x00BAB10C, 5000, 7, 1)
        return [Written(start + 128 * 1024 + slot * 1024, uberblock) for slot in range(8)]

    label.__name__ = f"zfs_label_{number}"
    return label


def luks1(disk_bytes: int) -> list[Written]:
    """LUKS1 on-disk format specification 1.2.3, figure 1."""
    return [Written(0, b"LUKS\xba\xbe" + struct.pack(">H", 1))]


def luks2(disk_bytes: int) -> list[Written]:
    """LUKS2 on-disk format specification 1.1.1, 2.1: the first binary header."""
    return [Written(0, b"LUKS\xba\xbe" + struct.pack(">H", 2))]


def luks2_second_header(disk_bytes: int) -> list[Written]:
    """As luks2, but only the second header, of the smallest offset."""
    return [Written(0x4000, b"SKUL\xba\xbe" + struct.pack(">HQQ", 2, 0x4000, 1))]


def bcache(disk_bytes: int) -> list[Written]:
    """struct cache_sb of the kernel's drivers/md/bcache/bcache_ondisk.h, 4 KiB from the beginning."""
    return [Written(4096, struct.pack("<QQQ", 0, 8, 1) + bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81"))]


def f2fs(disk_bytes: int) -> list[Written]:
    """struct f2fs_super_block of linux/f2fs_fs.h."""
    return [Written(1024, struct.pack("<IHH", 0xF2F52010, 1, 15))]


def iso9660(disk_bytes: int) -> list[Written]:
    """ECMA-119 8.4: the primary volume descriptor in sector 16 of 2048 bytes."""
    return [Written(16 * 2048, b"\x01CD001\x01")]


ALL: dict[Callable[[int], list[Written]], str] = {
    dos: "dos",
    gpt: "gpt",
    gpt_at_the_end: "gpt",
    md_0_90: "linux_raid_member",
    md_1_0: "linux_raid_member",
    md_1_1: "linux_raid_member",
    md_1_2: "linux_raid_member",
    **{zfs_label(number): "zfs_member" for number in range(4)},
    luks1: "crypto_LUKS",
    luks2: "crypto_LUKS",
    luks2_second_header: "crypto_LUKS",
    bcache: "bcache",
    f2fs: "f2fs",
    iso9660: "iso9660",
}
"""Each way to write a signature, and what it is called."""
