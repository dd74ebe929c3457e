//! The built-in profiles of disks, with the source of each number.

use super::MAX_CHANNELS;
use super::physics::Physics;

/// A profile of a disk.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Profile {
    /// Its name.
    pub name: &'static str,
    /// The drive that it models.
    pub stands_for: &'static str,
    /// Its physics.
    pub physics: Physics,
    /// The sources of its numbers.
    pub sources: &'static [(&'static str, &'static str)],
}

/// The profile of that name.
pub fn profile(name: &str) -> Option<&'static Profile> {
    PROFILES.iter().find(|profile| profile.name == name)
}

const US: u64 = 1_000;
const MB: u64 = 1_000_000;
const MIB: u64 = 1 << 20;
const KIB: u64 = 1 << 10;
const MINUTE_S: u64 = 60;

const NO_HEAD: Physics = Physics {
    read_latency_ns: 0,
    write_latency_ns: 0,
    flush_latency_ns: 0,
    spread: 0.0,
    channels: MAX_CHANNELS,
    read_iops: 0,
    write_iops: 0,
    read_bytes_per_s: 0,
    write_bytes_per_s: 0,
    iops: 0,
    burst_iops: 0,
    iops_credits: 0,
    bytes_per_s: 0,
    burst_bytes_per_s: 0,
    bytes_credits: 0,
    credit_level: 1.0,
    request_bytes: 0,
    tail_share: 0.0,
    tail_shape: 2.0,
    cache_bytes: 0,
    drain_bytes_per_s: 0,
    cache_protected: false,
    atomic_write_bytes: 512,
    rpm: 0,
    track_seek_ns: 0,
    average_seek_ns: 0,
};

/// A network volume: copies hold what it has acknowledged, so that nothing is volatile.
const VOLUME: Physics = Physics {
    read_latency_ns: 500 * US,
    write_latency_ns: 600 * US,
    flush_latency_ns: 20 * US,
    spread: 0.25,
    channels: 256,
    tail_share: 0.01,
    tail_shape: 2.0,
    atomic_write_bytes: 4096,
    ..NO_HEAD
};

/// A Premium SSD of Azure of at most 512 GiB: each size bursts to the same rates, for 30 minutes.
const fn premium_ssd(iops: u64, bytes_per_s: u64) -> Physics {
    let (burst_iops, burst_bytes_per_s) = (3_500, 170 * MIB);
    Physics {
        iops,
        burst_iops,
        iops_credits: (burst_iops - iops) * 30 * MINUTE_S,
        bytes_per_s,
        burst_bytes_per_s,
        bytes_credits: (burst_bytes_per_s - bytes_per_s) * 30 * MINUTE_S,
        request_bytes: 256 * KIB,
        ..VOLUME
    }
}

/// An ESSD of Alibaba Cloud whose capacity is below that at which its performance level reaches its limits.
const fn essd(capacity_gib: u64) -> Physics {
    Physics {
        iops: 1_800 + 50 * capacity_gib,
        bytes_per_s: (120 + capacity_gib / 2) * MB,
        request_bytes: 256 * KIB,
        read_latency_ns: 200 * US,
        write_latency_ns: 200 * US,
        ..VOLUME
    }
}

const CHOSEN_OF_VOLUMES: (&str, &str) = (
    "latencies, spread, tail, channels, atomic_write_size",
    "chosen: no provider publishes distributions; sub-millisecond medians with one request in a hundred in a tail",
);

const CHOSEN_AS_OF_PL1: (&str, &str) = (
    "write_latency",
    "chosen: the 0.2 ms that are published of PL1",
);

const CHOSEN_REQUEST_SIZE: (&str, &str) = ("request_size", "chosen: as of other volumes");

/// All profiles, from slow to fast.
pub static PROFILES: &[Profile] = &[
    Profile {
        name: "hdd-7200",
        stands_for: "a SATA disk of 7,200 revolutions a minute, write cache on",
        physics: Physics {
            read_latency_ns: 200 * US,
            write_latency_ns: 200 * US,
            flush_latency_ns: 200 * US,
            spread: 0.1,
            channels: 1,
            read_bytes_per_s: 180 * MB,
            write_bytes_per_s: 180 * MB,
            cache_bytes: 64 * MIB,
            atomic_write_bytes: 4096,
            rpm: 7200,
            track_seek_ns: 280 * US,
            average_seek_ns: 7_800 * US,
            ..NO_HEAD
        },
        sources: &[
            (
                "rpm, seeks",
                "Western Digital, Ultrastar DC HC310 OEM specification, 4.5.1: average 7.4 ms (read), 8.2 ms (write); track 0.23 and 0.32 ms; the means",
            ),
            (
                "bandwidths, cache",
                "chosen: the better half of a disk of 3 TB of 2015, such as that of study S4",
            ),
            (
                "latencies, spread",
                "chosen: the command overhead of such disks",
            ),
            (
                "atomic_write_size",
                "chosen: the physical sector of disks of this class (512e)",
            ),
        ],
    },
    Profile {
        name: "hdd-10k-sas",
        stands_for: "a 2.5-inch SAS disk of 10,000 revolutions a minute, write cache off",
        physics: Physics {
            read_latency_ns: 200 * US,
            write_latency_ns: 200 * US,
            flush_latency_ns: 50 * US,
            spread: 0.1,
            channels: 1,
            read_bytes_per_s: 113 * MB,
            write_bytes_per_s: 113 * MB,
            rpm: 10_000,
            track_seek_ns: 430 * US,
            average_seek_ns: 4_100 * US,
            ..NO_HEAD
        },
        sources: &[
            (
                "rpm, seeks, latencies",
                "Seagate, Savvio 10K.4 SAS product manual, 4.2.1: average 3.8 ms (read), 4.4 ms (write); track 0.30 and 0.56 ms; the means; controller overhead 0.2 ms",
            ),
            (
                "bandwidths",
                "the same, 4.1: 677,557 bytes a track, 166.7 revolutions a second",
            ),
            ("cache", "study S1: drive write caches off"),
            (
                "flush_latency, spread",
                "chosen: a flush finds nothing to do",
            ),
            (
                "atomic_write_size",
                "the sector of disks of this class and age",
            ),
        ],
    },
    Profile {
        name: "sata-ssd",
        stands_for: "a consumer SATA SSD, write cache on, no capacitors",
        physics: Physics {
            read_latency_ns: 150 * US,
            write_latency_ns: 60 * US,
            flush_latency_ns: 900 * US,
            spread: 0.2,
            channels: 8,
            read_iops: 48_000,
            write_iops: 20_000,
            read_bytes_per_s: 540 * MB,
            write_bytes_per_s: 490 * MB,
            cache_bytes: 16 * MIB,
            drain_bytes_per_s: 250 * MB,
            atomic_write_bytes: 4096,
            ..NO_HEAD
        },
        sources: &[
            (
                "bandwidths",
                "Intel, SSD 530 Series product specification: 540 MB/s read, 490 MB/s write",
            ),
            (
                "read_iops",
                "chosen: what drives of this class do at depth 32",
            ),
            (
                "write_iops, drain_bandwidth",
                "chosen: a used drive and data that do not compress; new and compressible it is 80,000 by the specification",
            ),
            ("channels", "the SandForce SF-2281 has 8"),
            (
                "flush_latency",
                "chosen from study S3: 8,882 commits a second with 16 clients on the SSD",
            ),
            (
                "latencies, cache, spread",
                "chosen: a page read of MLC flash and the controller",
            ),
            (
                "atomic_write_size",
                "chosen: the unit in which such drives map their flash; ATA promises one sector only",
            ),
        ],
    },
    Profile {
        name: "pcie-ssd-2012",
        stands_for: "an early PCIe SSD (RevoDrive 3 class), write cache off",
        physics: Physics {
            read_latency_ns: 110 * US,
            write_latency_ns: 70 * US,
            flush_latency_ns: 100 * US,
            spread: 0.2,
            channels: 16,
            read_iops: 90_000,
            write_iops: 60_000,
            read_bytes_per_s: 1_000 * MB,
            write_bytes_per_s: 900 * MB,
            ..NO_HEAD
        },
        sources: &[
            (
                "bandwidths",
                "chosen: the round figures that such cards were sold with; no data sheet was at hand",
            ),
            ("channels", "two SandForce SF-2281 of 8 channels"),
            ("cache", "study S1: drive write caches off"),
            (
                "write_latency, flush_latency",
                "chosen from study S1: 14,451 commits a second with 8 clients, 0.55 ms each",
            ),
            (
                "read_latency, read_iops, write_iops, spread",
                "chosen: MLC flash of 2011",
            ),
            (
                "atomic_write_size",
                "chosen: one sector, which is all that such cards promised",
            ),
        ],
    },
    Profile {
        name: "cloud-volume",
        stands_for: "a replicated network volume (ESSD class)",
        physics: Physics {
            read_latency_ns: 200 * US,
            write_latency_ns: 110 * US,
            flush_latency_ns: 10 * US,
            spread: 0.2,
            channels: 128,
            read_iops: 112_000,
            write_iops: 60_600,
            read_bytes_per_s: 1_090 * MB,
            write_bytes_per_s: 585 * MB,
            cache_bytes: 0,
            atomic_write_bytes: 4096,
            ..NO_HEAD
        },
        sources: &[
            (
                "write_latency, flush_latency",
                "study S5: 8 kB open_datasync 119 us, fdatasync 130 us",
            ),
            (
                "read_iops, write_iops",
                "study S5: fio, 64 threads of depth 16, 8 kB, 65/35: 112k and 60.6k",
            ),
            (
                "bandwidths",
                "study S5: fio, sequential, 8 kB, 65/35: 133k and 71.4k requests a second",
            ),
            (
                "cache",
                "acknowledged when the copies have it, so nothing is volatile",
            ),
            (
                "read_latency, channels, spread",
                "chosen: a hop more than a write that ends in memory",
            ),
            (
                "atomic_write_size",
                "chosen: the block of such services; some promise 16 KiB",
            ),
        ],
    },
    Profile {
        name: "gp2-100",
        stands_for: "a gp2 volume of Amazon EBS of 100 GiB, its credits full",
        physics: Physics {
            iops: 300,
            burst_iops: 3_000,
            iops_credits: 5_400_000,
            bytes_per_s: 128 * MIB,
            request_bytes: 256 * KIB,
            ..VOLUME
        },
        sources: &[
            (
                "iops, burst_iops, iops_credits",
                "Amazon EBS User Guide, General Purpose SSD volumes, read 2026-11-28: 3 a GiB, at least 100; 3,000 below 1 TiB; 5.4 million credits in the beginning",
            ),
            (
                "bandwidth, request_size",
                "the same: 128 MiB/s up to 170 GiB; requests of up to 256 KiB count as one",
            ),
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "gp3",
        stands_for: "a gp3 volume of Amazon EBS as it comes: no credits, more when provisioned (iops, bandwidth)",
        physics: Physics {
            iops: 3_000,
            bytes_per_s: 125 * MIB,
            request_bytes: 256 * KIB,
            ..VOLUME
        },
        sources: &[
            (
                "iops, bandwidth, request_size",
                "Amazon EBS User Guide, General Purpose SSD volumes, read 2026-11-28: 3,000 and 125 MiB/s included",
            ),
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "io2-16k",
        stands_for: "an io2 volume of Amazon EBS with 16,000 provisioned IOPS",
        physics: Physics {
            iops: 16_000,
            bytes_per_s: 4_000 * MIB,
            request_bytes: 256 * KIB,
            read_latency_ns: 300 * US,
            write_latency_ns: 350 * US,
            tail_share: 0.001,
            ..VOLUME
        },
        sources: &[
            (
                "iops, bandwidth",
                "Amazon EBS User Guide, Provisioned IOPS SSD volumes, read 2026-11-28: 100 to 256,000 provisioned; at most 4,000 MiB/s",
            ),
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-p4",
        stands_for: "a Premium SSD of Azure of size P4 (32 GiB), its credits full",
        physics: premium_ssd(120, 25 * MIB),
        sources: &[
            (
                "iops, bandwidth, bursts",
                "Azure, Managed disk types, Premium SSD sizes, read 2026-11-28: P4 120 IOPS and 25 MB/s, burst 3,500 and 170 for 30 minutes",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-p6",
        stands_for: "a Premium SSD of Azure of size P6 (64 GiB), its credits full",
        physics: premium_ssd(240, 50 * MIB),
        sources: &[
            (
                "iops, bandwidth, bursts",
                "Azure, Managed disk types, Premium SSD sizes, read 2026-11-28: P6 240 IOPS and 50 MB/s, burst 3,500 and 170 for 30 minutes",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-p10",
        stands_for: "a Premium SSD of Azure of size P10 (128 GiB), its credits full",
        physics: premium_ssd(500, 100 * MIB),
        sources: &[
            (
                "iops, bandwidth, bursts",
                "Azure, Managed disk types, Premium SSD sizes, read 2026-11-28: P10 500 IOPS and 100 MB/s, burst 3,500 and 170 for 30 minutes",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-p15",
        stands_for: "a Premium SSD of Azure of size P15 (256 GiB), its credits full",
        physics: premium_ssd(1_100, 125 * MIB),
        sources: &[
            (
                "iops, bandwidth, bursts",
                "Azure, Managed disk types, Premium SSD sizes, read 2026-11-28: P15 1,100 IOPS and 125 MB/s, burst 3,500 and 170 for 30 minutes",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-p20",
        stands_for: "a Premium SSD of Azure of size P20 (512 GiB), its credits full",
        physics: premium_ssd(2_300, 150 * MIB),
        sources: &[
            (
                "iops, bandwidth, bursts",
                "Azure, Managed disk types, Premium SSD sizes, read 2026-11-28: P20 2,300 IOPS and 150 MB/s, burst 3,500 and 170 for 30 minutes",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "azure-premium-v2",
        stands_for: "a Premium SSD v2 of Azure as it comes: no credits, more when provisioned",
        physics: Physics {
            iops: 3_000,
            bytes_per_s: 125 * MB,
            request_bytes: 256 * KIB,
            ..VOLUME
        },
        sources: &[
            (
                "iops, bandwidth",
                "Azure, Managed disk types, Premium SSD v2, read 2026-11-28: 3,000 IOPS and 125 MB/s included",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "hyperdisk-balanced",
        stands_for: "a Hyperdisk Balanced of Google Cloud as it comes: no credits, more when provisioned",
        physics: Physics {
            iops: 3_000,
            bytes_per_s: 140 * MIB,
            request_bytes: 256 * KIB,
            ..VOLUME
        },
        sources: &[
            (
                "iops, bandwidth",
                "Google Cloud, About Hyperdisk Balanced, Baseline performance, read 2026-11-28: 3,000 IOPS and 140 MiB/s included",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "essd-pl1-100",
        stands_for: "an ESSD of Alibaba Cloud of performance level 1 of 100 GiB",
        physics: essd(100),
        sources: &[
            (
                "iops, bandwidth, write_latency",
                "Alibaba Cloud, ESSD AutoPL disks, baseline as of PL1, read 2026-11-28: min(1,800 + 50 a GiB, 50,000); min(120 + 0.5 a GiB, 350) MB/s; 0.2 ms",
            ),
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "essd-pl2-500",
        stands_for: "an ESSD of Alibaba Cloud of performance level 2 of 500 GiB",
        physics: essd(500),
        sources: &[
            (
                "iops, bandwidth",
                "Alibaba Cloud, ESSDs, read 2026-11-28: PL2 min(1,800 + 50 a GiB, 100,000); min(120 + 0.5 a GiB, 750) MB/s",
            ),
            CHOSEN_AS_OF_PL1,
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "essd-pl3-1300",
        stands_for: "an ESSD of Alibaba Cloud of performance level 3 of 1,300 GiB",
        physics: essd(1_300),
        sources: &[
            (
                "iops, bandwidth",
                "Alibaba Cloud, ESSDs, read 2026-11-28: PL3 min(1,800 + 50 a GiB, 1,000,000); min(120 + 0.5 a GiB, 4,000) MB/s",
            ),
            CHOSEN_AS_OF_PL1,
            CHOSEN_REQUEST_SIZE,
            CHOSEN_OF_VOLUMES,
        ],
    },
    Profile {
        name: "nvme",
        stands_for: "a data-centre NVMe drive with capacitors",
        physics: Physics {
            read_latency_ns: 85 * US,
            write_latency_ns: 20 * US,
            flush_latency_ns: 3 * US,
            spread: 0.15,
            channels: 64,
            read_iops: 460_000,
            write_iops: 175_000,
            read_bytes_per_s: 2_800 * MB,
            write_bytes_per_s: 2_000 * MB,
            cache_bytes: 64 * MIB,
            drain_bytes_per_s: 2_000 * MB,
            cache_protected: true,
            atomic_write_bytes: 4096,
            ..NO_HEAD
        },
        sources: &[
            (
                "write_latency, flush_latency",
                "study S5: 8 kB open_datasync 22 us, fdatasync 25 us on local drives",
            ),
            (
                "read_iops, write_iops, bandwidths",
                "Intel, SSD DC P3700 product specification 330566-005: up to 460,000 and 175,000 random accesses of 4 kB a second; 2,800 and 2,000 MB/s",
            ),
            (
                "read_latency, channels, cache, spread",
                "chosen: a page read of MLC flash",
            ),
            (
                "atomic_write_size",
                "chosen: one logical block formatted with 4 KiB; what a drive promises is its AWUPF",
            ),
        ],
    },
    Profile {
        name: "ideal",
        stands_for: "no physics: as fast as the machine, with a volatile cache for faults",
        physics: Physics {
            cache_bytes: 256 * MIB,
            ..NO_HEAD
        },
        sources: &[
            ("all", "none: the disk adds nothing of its own"),
            (
                "atomic_write_size",
                "the smallest: a test that passes with it passes with every other",
            ),
        ],
    },
];
