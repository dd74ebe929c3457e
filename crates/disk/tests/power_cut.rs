//! What a power cut leaves, against a reference that replays whole histories.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use plinth_disk::model::{
    Cut, CutMode, CutReport, Event, Extent, Old, Omission, Replay, SECTOR_BYTES, Settings, Source,
    Volatile, left_out,
};
use proptest::prelude::*;

const SECTORS: u64 = 96;
const ROOMY: u64 = 1 << 30;

/// A request; writes fill their sectors with a byte of their own.
#[derive(Debug, Clone, Copy)]
enum Request {
    Write {
        first: u64,
        count: u64,
    },
    Through {
        first: u64,
        count: u64,
    },
    Discard {
        first: u64,
        count: u64,
    },
    Flush,
    /// One that leaves out half of the changes.
    FalseFlush,
}

/// A change as the reference remembers it.
#[derive(Debug, Clone)]
struct Change {
    sectors: std::ops::Range<u64>,
    byte: u8,
    discard: bool,
    durable: bool,
}

/// How a flush lies.
const OMISSION: Omission = Omission {
    seed: 5,
    fraction: 0.5,
};

/// The disk under test, medium and all; what a recording has of it; and the reference's memory of what was done to it.
struct Bench {
    volatile: Volatile,
    medium: Vec<u8>,
    replay: Replay,
    /// The bytes of all writes.
    data: Vec<u8>,
    history: Vec<Change>,
}

impl Bench {
    fn new(capacity_bytes: u64) -> Self {
        Self {
            volatile: Volatile::new(capacity_bytes),
            medium: vec![0; (SECTORS * SECTOR_BYTES) as usize],
            replay: Replay::new(
                SECTORS * SECTOR_BYTES,
                Settings {
                    capacity_bytes,
                    atomic_write_bytes: SECTOR_BYTES,
                },
                0,
            ),
            data: Vec::new(),
            history: Vec::new(),
        }
    }

    fn run(capacity_bytes: u64, requests: &[Request]) -> Self {
        let mut bench = Self::new(capacity_bytes);
        for (index, request) in requests.iter().enumerate() {
            bench.obey(*request, index as u8 + 1);
        }
        bench
    }

    fn obey(&mut self, request: Request, byte: u8) {
        match request {
            Request::Write { first, count } => self.change(first, count, byte, false, false),
            Request::Through { first, count } => self.change(first, count, byte, false, true),
            Request::Discard { first, count } => self.change(first, count, 0, true, false),
            Request::Flush => {
                self.flush(None);
                self.history
                    .iter_mut()
                    .for_each(|change| change.durable = true);
            }
            Request::FalseFlush => {
                self.flush(Some(OMISSION));
                let Omission { seed, fraction } = OMISSION;
                for (sequence, change) in self.history.iter_mut().enumerate() {
                    change.durable |= !left_out(seed, sequence as u64, fraction);
                }
            }
        }
    }

    fn flush(&mut self, omission: Option<Omission>) {
        let end = self.volatile.next();
        self.happens(Event::Flush { end, omission }, Vec::new());
    }

    fn happens(&mut self, event: Event, old: Vec<Old>) {
        self.volatile.apply(&event, old);
        self.replay.apply(&event, self.data.len() as u64);
    }

    fn change(&mut self, first: u64, count: u64, byte: u8, discard: bool, durable: bool) {
        let extent = Extent {
            offset: first * SECTOR_BYTES,
            length: count * SECTOR_BYTES,
        };
        let place = extent.offset as usize..extent.end() as usize;
        let old = if self.medium[place.clone()].iter().all(|&byte| byte == 0) {
            Old::Zeros(extent)
        } else {
            Old::Bytes {
                offset: extent.offset,
                bytes: self.medium[place.clone()].into(),
            }
        };
        let sequence = self.volatile.next();
        let old_bytes = old.bytes();
        let event = if discard {
            Event::Discard { extent, old_bytes }
        } else {
            Event::Write { extent, old_bytes }
        };
        self.happens(event, vec![old]);
        if !discard {
            self.data.extend(vec![byte; extent.length as usize]);
        }
        self.medium[place].fill(byte);
        if durable {
            self.happens(Event::Durable { sequence }, Vec::new());
        }
        self.history.push(Change {
            sectors: first..first + count,
            byte,
            discard,
            durable,
        });
    }

    fn cut(&mut self, mode: CutMode, seed: u64) -> (Vec<u8>, CutReport) {
        self.cut_in_units(mode, seed, SECTOR_BYTES)
    }

    fn cut_in_units(
        &mut self,
        mode: CutMode,
        seed: u64,
        atomic_write_bytes: u64,
    ) -> (Vec<u8>, CutReport) {
        let (image, image_report) = self.image(mode, seed, atomic_write_bytes);
        let cut = Event::Cut(Cut {
            mode,
            seed,
            atomic_write_bytes,
        });
        self.replay.apply(&cut, 0);
        let (restores, report) = self.volatile.apply(&cut, Vec::new()).unwrap();
        for restore in restores {
            match restore {
                Old::Bytes { offset, bytes } => {
                    self.medium[offset as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                Old::Zeros(extent) => {
                    self.medium[extent.offset as usize..extent.end() as usize].fill(0);
                }
            }
        }
        assert_eq!(image, self.medium, "the image is what the cut leaves");
        assert_eq!(image_report, report);
        let sectors = self.medium.chunks(SECTOR_BYTES as usize);
        (sectors.map(|sector| sector[0]).collect(), report)
    }

    /// What a recording says that a cut would leave.
    fn image(&self, mode: CutMode, seed: u64, atomic_write_bytes: u64) -> (Vec<u8>, CutReport) {
        let mut replay = self.replay.clone();
        // The greater of the disk's unit and the image's counts.
        let (of_disk, of_image) = match seed % 2 {
            0 => (atomic_write_bytes, SECTOR_BYTES),
            _ => (SECTOR_BYTES, atomic_write_bytes),
        };
        let settings = Settings {
            capacity_bytes: self.volatile.capacity_bytes(),
            atomic_write_bytes: of_disk,
        };
        replay.apply(&Event::Settings(settings), 0);
        let (content, report) = replay.cut(mode, seed, of_image);
        let mut image = Vec::new();
        for (range, source) in content {
            assert_eq!(
                range.start,
                image.len() as u64,
                "there is a source for every byte"
            );
            match source {
                Source::Base | Source::Zeros => image.resize(range.end as usize, 0),
                Source::Written(shift) => {
                    let start = range.start.wrapping_add(shift) as usize;
                    let length = (range.end - range.start) as usize;
                    image.extend_from_slice(&self.data[start..start + length]);
                }
            }
        }
        (image, report)
    }

    /// The sectors after a replay of what is durable and of those volatile changes, counted from 0, that `left` says:
    /// how many of each one's sectors.
    fn replay(&self, left: impl Fn(usize, &Change) -> u64) -> Vec<u8> {
        let mut sectors = vec![0; SECTORS as usize];
        let mut volatile = 0;
        for change in &self.history {
            let whole = change.sectors.end - change.sectors.start;
            let count = if change.durable {
                whole
            } else {
                volatile += 1;
                left(volatile - 1, change).min(whole)
            };
            let first = change.sectors.start as usize;
            sectors[first..first + count as usize].fill(change.byte);
        }
        sectors
    }

    fn volatile_changes(&self) -> Vec<&Change> {
        self.history
            .iter()
            .filter(|change| !change.durable)
            .collect()
    }

    /// The sectors with the volatile changes before the one numbered `last`, and with `of_last` sectors of this one.
    fn up_to(&self, last: usize, of_last: u64) -> Vec<u8> {
        self.replay(|index, _| match index {
            _ if index < last => u64::MAX,
            _ if index == last => of_last,
            _ => 0,
        })
    }

    /// Whether some choice that the mode allows, with atomic units of `unit` sectors, explains what is there.
    fn explains(&self, mode: CutMode, unit: u64, found: &[u8]) -> bool {
        let volatile = self.volatile_changes();
        let count = volatile.len();
        let up_to = |last, of_last| self.up_to(last, of_last);
        match mode {
            CutMode::Drop => self.replay(|_, _| 0) == found,
            CutMode::Prefix => (0..=count).any(|last| up_to(last, 0) == found),
            CutMode::Subset => (0_u64..1 << count)
                .any(|set| self.replay(|index, _| (set >> index & 1) * u64::MAX) == found),
            CutMode::Torn => {
                let mut torn = (0..count)
                    .flat_map(|last| {
                        let change = volatile[last];
                        let boundaries = (change.sectors.start + 1..change.sectors.end)
                            .filter(|sector| !change.discard && sector.is_multiple_of(unit));
                        boundaries.map(move |sector| (last, sector - change.sectors.start))
                    })
                    .peekable();
                if torn.peek().is_some() {
                    torn.any(|(last, of_last)| up_to(last, of_last) == found)
                } else {
                    self.replay(|_, _| 0) == found
                }
            }
        }
    }
}

fn place() -> impl Strategy<Value = (u64, u64)> {
    (
        0..SECTORS,
        prop_oneof![3 => Just(8_u64), 1 => Just(SECTORS)],
    )
        .prop_flat_map(|(first, longest)| (Just(first), 1..=(SECTORS - first).min(longest)))
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = prop_oneof![
        6 => place().prop_map(|(first, count)| Request::Write { first, count }),
        2 => place().prop_map(|(first, count)| Request::Through { first, count }),
        2 => place().prop_map(|(first, count)| Request::Discard { first, count }),
        1 => Just(Request::Flush),
        1 => Just(Request::FalseFlush),
    ];
    prop::collection::vec(request, 0..20)
}

fn modes() -> impl Strategy<Value = CutMode> {
    prop_oneof![
        Just(CutMode::Drop),
        Just(CutMode::Subset),
        Just(CutMode::Prefix),
        Just(CutMode::Torn)
    ]
}

/// Atomic units of 512 to 16384 bytes, in sectors.
fn units() -> impl Strategy<Value = u64> {
    prop_oneof![Just(1_u64), Just(8), Just(16), Just(32)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn what_is_left_is_what_the_mode_allows(requests in requests(), mode in modes(), unit in units(), seed: u64) {
        let mut bench = Bench::run(ROOMY, &requests);
        prop_assume!(bench.volatile_changes().len() <= 12);
        let writes = bench.volatile_changes().iter().filter(|change| !change.discard).count() as u64;
        let dirty_bytes = bench.volatile.dirty_bytes();
        let (found, report) = bench.cut_in_units(mode, seed, unit * SECTOR_BYTES);
        prop_assert!(bench.explains(mode, unit, &found), "{mode:?} left {found:?} of {:?}", bench.history);
        prop_assert_eq!(report.writes_dropped + report.writes_kept + report.writes_torn, writes);
        prop_assert_eq!(report.bytes_dropped + report.bytes_kept, dirty_bytes);
        prop_assert_eq!((report.sectors_dropped + report.sectors_kept) * SECTOR_BYTES, dirty_bytes);
        prop_assert!(report.writes_torn <= 1);
        prop_assert_eq!(bench.volatile.dirty_bytes(), 0);
    }

    #[test]
    fn after_a_torn_cut_every_atomic_unit_is_whole(requests in requests(), unit in units(), seed: u64) {
        let mut bench = Bench::run(ROOMY, &requests);
        let (found, _) = bench.cut_in_units(CutMode::Torn, seed, unit * SECTOR_BYTES);
        let in_units = |sectors: &[u8]| -> Vec<Vec<u8>> {
            sectors.chunks(unit as usize).map(<[u8]>::to_vec).collect()
        };
        let found = in_units(&found);
        let old_or_new = |torn: usize| {
            let (old, new) = (in_units(&bench.up_to(torn, 0)), in_units(&bench.up_to(torn + 1, 0)));
            found.iter().zip(old.iter().zip(&new)).all(|(found, (old, new))| found == old || found == new)
        };
        prop_assert!((0..=bench.volatile_changes().len()).any(old_or_new), "{found:?} of {:?}", bench.history);
    }

    #[test]
    fn the_same_requests_and_seed_leave_the_same(requests in requests(), mode in modes(), seed: u64) {
        let outcome = || Bench::run(ROOMY, &requests).cut(mode, seed);
        prop_assert_eq!(outcome(), outcome());
    }

    #[test]
    fn a_full_cache_lets_its_oldest_go_and_never_holds_more(
        places in prop::collection::vec(place(), 1..60),
        capacity_bytes in 0_u64..20_000,
    ) {
        let requests: Vec<_> = places.iter().map(|&(first, count)| Request::Write { first, count }).collect();
        let mut bench = Bench::run(capacity_bytes, &requests);
        let (found, _) = bench.cut(CutMode::Drop, 0);
        prop_assert!(bench.explains(CutMode::Prefix, 1, &found), "{found:?}");
    }

    #[test]
    fn after_a_cut_the_disk_works_on(before in requests(), after in requests(), mode in modes(), seed: u64) {
        let mut bench = Bench::run(ROOMY, &before);
        let (left, _) = bench.cut(mode, seed);
        // What is left is what a disk begins with: one durable change a sector.
        bench.history = (0..SECTORS)
            .map(|sector| Change {
                sectors: sector..sector + 1,
                byte: left[sector as usize],
                discard: false,
                durable: true,
            })
            .collect();
        for (index, request) in after.iter().enumerate() {
            // False flushes go by sequence, which the reference's history does not share any more.
            let request = if matches!(request, Request::FalseFlush) { Request::Flush } else { *request };
            bench.obey(request, 100 + index as u8);
        }
        let (found, _) = bench.cut(CutMode::Drop, 0);
        prop_assert!(bench.explains(CutMode::Drop, 1, &found));
    }
}

#[test]
fn each_mode_does_what_its_name_says() {
    let writes: Vec<_> = (0..8)
        .map(|index| Request::Write {
            first: index * 3,
            count: 3,
        })
        .collect();
    let reports = |mode| -> Vec<CutReport> {
        let cut = |seed| Bench::run(ROOMY, &writes).cut(mode, seed).1;
        (0..200).map(cut).collect()
    };
    assert!(
        reports(CutMode::Drop)
            .iter()
            .all(|report| report.writes_dropped == 8)
    );
    let kept: std::collections::BTreeSet<_> = reports(CutMode::Prefix)
        .iter()
        .map(|report| report.writes_kept)
        .collect();
    assert_eq!(kept, (0..=8).collect());
    assert!(
        reports(CutMode::Torn)
            .iter()
            .all(|report| report.writes_torn == 1)
    );
    let mean = reports(CutMode::Subset)
        .iter()
        .map(|report| report.writes_kept)
        .sum::<u64>() as f64
        / 200.0;
    assert!((3.5..4.5).contains(&mean), "{mean}");
}

#[test]
fn a_torn_write_is_torn_between_its_units_and_one_within_a_unit_is_not() {
    // Pages of 8 KiB, of which the file system has placed the first on a boundary of 8 KiB and the second next to one.
    for (first, unit_bytes, torn_at) in [
        (16, 512, (1..16).collect::<Vec<_>>()),
        (16, 4096, vec![8]),
        (16, 8192, vec![]),
        (24, 8192, vec![8]),
        (24, 16384, vec![8]),
        (16, 16384, vec![]),
    ] {
        let write = [Request::Write { first, count: 16 }];
        let kept: std::collections::BTreeSet<u64> = (0..200)
            .filter_map(|seed| {
                let report = Bench::run(ROOMY, &write)
                    .cut_in_units(CutMode::Torn, seed, unit_bytes)
                    .1;
                report.torn_write.map(|torn| {
                    let sectors = |bytes| bytes / SECTOR_BYTES;
                    assert_eq!(report.writes_torn, 1);
                    assert_eq!((sectors(torn.offset), sectors(torn.length)), (first, 16));
                    assert_eq!(sectors(torn.kept), report.sectors_kept);
                    report.sectors_kept
                })
            })
            .collect();
        assert_eq!(
            kept,
            torn_at.into_iter().collect(),
            "{unit_bytes} bytes, sector {first}"
        );
    }
}
