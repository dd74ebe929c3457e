//! The head of a mechanical disk: its position, and the time that it takes to reach another one.
//!
//! A track is what passes under the head in one revolution. Within a track the delay is rotational: a request for the
//! next sector that arrives too late waits for it to come round again, and rewriting a sector takes nearly a whole
//! revolution. To other tracks, it is a seek, whose time grows with the square root of the distance, and then a
//! uniformly distributed rotational delay.

use super::extent::Extent;
use super::physics::Physics;
use super::rng::DiskRng;

/// The mean of the square root of the distance between two random positions on a disk of length 1.
const MEAN_ROOT_DISTANCE: f64 = 8.0 / 15.0;

/// How much shorter the delay becomes for each doubling of the requests among which a disk can choose. With native
/// command queueing, a disk of 7200 revolutions per minute goes from about 75 random reads per second at queue depth 1
/// to about 170 at 32.
const GAIN_OF_DOUBLING: f64 = 0.25;

/// The position of the head.
#[derive(Debug, Clone, Default)]
pub(crate) struct Head {
    /// The byte that was under the head at `at_ns`.
    position: u64,
    at_ns: u64,
    reads: bool,
}

impl Head {
    /// When a read of `extent` ends that the head can begin at `start_ns`. Sequential reads profit from reading ahead.
    pub(crate) fn read(
        &mut self,
        start_ns: u64,
        extent: Extent,
        waiting: usize,
        disk: &Rotating<'_>,
        rng: &mut DiskRng,
    ) -> u64 {
        let transfer_ns = transfer_ns(extent.length, disk.physics.read_bytes_per_s);
        if self.reads && extent.offset == self.position {
            // Since the last request, the disk has read ahead into its buffer, up to one track.
            let ahead_ns = self.at_ns.max(start_ns.saturating_sub(disk.revolution_ns));
            let read_ns = self.arrive(ahead_ns + transfer_ns, extent.end(), true);
            return start_ns.max(read_ns);
        }
        let way_ns = self.way_ns(start_ns, extent.offset, waiting, disk, rng);
        self.arrive(start_ns + way_ns + transfer_ns, extent.end(), true)
    }

    /// When a write of `extent` ends that the head can begin at `start_ns`.
    pub(crate) fn write(
        &mut self,
        start_ns: u64,
        extent: Extent,
        waiting: usize,
        disk: &Rotating<'_>,
        rng: &mut DiskRng,
    ) -> u64 {
        let transfer_ns = transfer_ns(extent.length, disk.physics.write_bytes_per_s);
        let way_ns = self.way_ns(start_ns, extent.offset, waiting, disk, rng);
        self.arrive(start_ns + way_ns + transfer_ns, extent.end(), false)
    }

    fn arrive(&mut self, at_ns: u64, position: u64, reads: bool) -> u64 {
        *self = Self {
            position,
            at_ns,
            reads,
        };
        at_ns
    }

    /// The time until the head reaches `target`, while `waiting` further requests are queued.
    fn way_ns(
        &self,
        start_ns: u64,
        target: u64,
        waiting: usize,
        disk: &Rotating<'_>,
        rng: &mut DiskRng,
    ) -> u64 {
        let distance = target.abs_diff(self.position);
        if distance < disk.track_bytes() {
            return self.angle_ns(start_ns, target, disk);
        }
        let physics = disk.physics;
        let root = (distance as f64 / disk.size_bytes as f64).sqrt();
        let longer_ns = (physics.average_seek_ns - physics.track_seek_ns) as f64;
        let seek_ns = physics.track_seek_ns as f64 + longer_ns * root / MEAN_ROOT_DISTANCE;
        let wait_ns = rng.below(disk.revolution_ns) as f64;
        let gain = 1.0 + GAIN_OF_DOUBLING * ((waiting + 1) as f64).log2();
        ((seek_ns + wait_ns) / gain) as u64
    }

    /// The rotational delay until `target`, on the same track.
    fn angle_ns(&self, start_ns: u64, target: u64, disk: &Rotating<'_>) -> u64 {
        let revolution_ns = i128::from(disk.revolution_ns);
        let ahead = i128::from(target) - i128::from(self.position);
        let ahead_ns = ahead * revolution_ns / i128::from(disk.track_bytes());
        let passed_ns = i128::from(start_ns) - i128::from(self.at_ns);
        (ahead_ns - passed_ns).rem_euclid(revolution_ns) as u64
    }
}

/// The geometry of the disk.
pub(crate) struct Rotating<'a> {
    pub(crate) physics: &'a Physics,
    pub(crate) revolution_ns: u64,
    pub(crate) size_bytes: u64,
}

impl Rotating<'_> {
    fn track_bytes(&self) -> u64 {
        let bytes = u128::from(self.physics.read_bytes_per_s) * u128::from(self.revolution_ns)
            / 1_000_000_000;
        (bytes as u64).max(1)
    }
}

fn transfer_ns(length: u64, bytes_per_s: u64) -> u64 {
    (u128::from(length) * 1_000_000_000 / u128::from(bytes_per_s.max(1))) as u64
}

#[cfg(test)]
mod tests {
    use super::super::profiles::profile;
    use super::*;

    const GIB: u64 = 1 << 30;
    const PAGE: u64 = 8192;

    fn disk() -> Rotating<'static> {
        let physics = &profile("hdd-10k-sas").unwrap().physics;
        Rotating {
            physics,
            revolution_ns: physics.revolution_ns().unwrap(),
            size_bytes: 4 * GIB,
        }
    }

    fn page(number: u64) -> Extent {
        Extent {
            offset: number * PAGE,
            length: PAGE,
        }
    }

    #[test]
    fn a_stream_of_reads_and_of_prompt_writes_runs_at_the_rate_of_the_medium() {
        for reading in [true, false] {
            let (disk, mut rng, mut head) = (disk(), DiskRng::new(1, 1), Head::default());
            let mut now_ns = 0;
            for number in 0..5000 {
                now_ns = if reading {
                    // The host is a little late each time, which reading ahead compensates.
                    head.read(now_ns + 20_000, page(number), 0, &disk, &mut rng)
                } else {
                    head.write(now_ns, page(number), 0, &disk, &mut rng)
                };
            }
            let rate = (5000 * PAGE) as f64 / (now_ns as f64 / 1e9);
            let medium = disk.physics.read_bytes_per_s as f64;
            assert!((0.97..1.03).contains(&(rate / medium)), "{rate} {medium}");
        }
    }

    #[test]
    fn a_log_that_is_written_late_or_over_and_over_waits_for_a_revolution_each_time() {
        for step in [1, 0] {
            let (disk, mut rng, mut head) = (disk(), DiskRng::new(1, 1), Head::default());
            let mut now_ns = 0;
            for number in 0..200 {
                now_ns = head.write(now_ns + 50_000, page(number * step), 0, &disk, &mut rng);
            }
            let each_ns = now_ns / 200;
            let revolution_ns = disk.revolution_ns;
            assert!(
                (revolution_ns - 100_000..revolution_ns + 200_000).contains(&each_ns),
                "{each_ns}"
            );
        }
    }

    #[test]
    fn random_reads_take_the_mean_seek_and_half_a_revolution_and_a_queue_shortens_them() {
        let disk = disk();
        let mean_ns = |waiting| {
            let (mut rng, mut places) = (DiskRng::new(2, 1), DiskRng::new(3, 1));
            let mut head = Head::default();
            let mut now_ns = 0;
            for _ in 0..20_000 {
                let place = page(places.below(4 * GIB / PAGE));
                now_ns = head.read(now_ns, place, waiting, &disk, &mut rng);
            }
            now_ns / 20_000
        };
        let physics = disk.physics;
        let expected_ns = physics.average_seek_ns + disk.revolution_ns / 2;
        let ratio = mean_ns(0) as f64 / expected_ns as f64;
        assert!((0.98..1.03).contains(&ratio), "{ratio}");
        let gain = mean_ns(0) as f64 / mean_ns(31) as f64;
        assert!((2.0..2.5).contains(&gain), "{gain}");
    }
}
