//! Predicts the latencies of a disk by simulating it.

use serde::Serialize;

use super::extent::Extent;
use super::physics::Physics;
use super::rng::DiskRng;
use super::timing::{Operation, Timing};

const SIZE_BYTES: u64 = 4 << 30;
const PAGE_BYTES: u64 = 8192;
const REQUESTS: usize = 2001;
/// The host's time per request, which delays each write of a log on a disk with a head.
const HOST_NS: u64 = 50_000;

/// Median latencies of 8 KiB requests at queue depth 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct DepthOne {
    /// The latency of a read at a random position.
    pub random_read_ns: u64,
    /// The latency of a write at a random position.
    pub random_write_ns: u64,
    /// The latency of a page of a log: a sequential write and a flush.
    pub log_write_ns: u64,
}

impl DepthOne {
    /// The latencies of a disk with these physics.
    pub fn of(physics: &Physics) -> Self {
        let mut places = DiskRng::new(1, 0);
        let mut random = |_| Extent {
            offset: places.below(SIZE_BYTES / PAGE_BYTES) * PAGE_BYTES,
            length: PAGE_BYTES,
        };
        let in_a_row = |number: usize| Extent {
            offset: number as u64 * PAGE_BYTES,
            length: PAGE_BYTES,
        };
        let write = Operation::Write { through: false };
        Self {
            random_read_ns: median_ns(physics, &[Operation::Read], &mut random),
            random_write_ns: median_ns(physics, &[write], &mut random),
            log_write_ns: median_ns(physics, &[write, Operation::Flush], &mut { in_a_row }),
        }
    }
}

fn median_ns(
    physics: &Physics,
    operations: &[Operation],
    place: &mut dyn FnMut(usize) -> Extent,
) -> u64 {
    let mut timing = Timing::new(physics.clone(), SIZE_BYTES, 1);
    let mut now_ns = 0;
    let mut taken_ns: Vec<u64> = (0..REQUESTS)
        .map(|number| {
            let began_ns = now_ns;
            let extent = place(number);
            for &operation in operations {
                now_ns = timing.admit(now_ns, operation, extent);
            }
            let taken_ns = now_ns - began_ns;
            now_ns += HOST_NS;
            taken_ns
        })
        .collect();
    taken_ns.sort_unstable();
    taken_ns[REQUESTS / 2]
}

#[cfg(test)]
mod tests {
    use super::super::profiles::profile;
    use super::*;

    #[test]
    fn a_log_on_a_write_through_disk_costs_a_revolution_and_elsewhere_the_latencies_add_up() {
        let of = |name| DepthOne::of(&profile(name).unwrap().physics);
        let disk = of("hdd-10k-sas");
        assert!(
            (5_900_000..6_300_000).contains(&disk.log_write_ns),
            "{disk:?}"
        );
        assert!(
            (6_900_000..7_800_000).contains(&disk.random_read_ns),
            "{disk:?}"
        );
        let cloud = of("cloud-volume");
        assert!(
            (115_000..130_000).contains(&cloud.log_write_ns),
            "{cloud:?}"
        );
        assert_eq!(of("ideal").log_write_ns, 0);
    }
}
