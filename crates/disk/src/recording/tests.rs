//! Recordings of disks at work: an image is what a cut of the power would have left, byte for byte.

use std::io::Write;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;

use super::format::{BASE, DATA, RECORD_BYTES, RECORDS};
use super::{ImageConfig, Recording, RecordingStatus};
use crate::backing::Backing;
use crate::disk::{Disk, Pending};
use crate::error::DiskError;
use crate::model::{
    CutMode, EioFault, Extent, FaultOperation, Lie, Overrides, SECTOR_BYTES, profile,
};

const SIZE_BYTES: u64 = 256 << 10;
const SECTORS: u64 = SIZE_BYTES / SECTOR_BYTES;

/// What may be asked of a disk. A request is answered by [`Request::Answer`], so that others are in flight with it.
#[derive(Debug, Clone)]
enum Request {
    Write {
        first: u64,
        count: u64,
        through: bool,
    },
    Discard {
        first: u64,
        count: u64,
    },
    Flush,
    /// The oldest request that waits is answered.
    Answer,
    Lie(Option<Lie>),
    Set(Box<Overrides>),
    FailNext(FaultOperation),
    FlushNow,
    Cut(CutMode, u64),
    PowerOn,
}

fn place() -> impl Strategy<Value = (u64, u64)> {
    (
        0..SECTORS,
        prop_oneof![4 => Just(24_u64), 1 => Just(SECTORS)],
    )
        .prop_flat_map(|(first, longest)| (Just(first), 1..=(SECTORS - first).min(longest)))
}

fn modes() -> impl Strategy<Value = CutMode> {
    prop_oneof![
        Just(CutMode::Drop),
        Just(CutMode::Subset),
        Just(CutMode::Prefix),
        Just(CutMode::Torn)
    ]
}

fn lies() -> impl Strategy<Value = Option<Lie>> {
    prop_oneof![
        Just(None),
        Just(Some(Lie::IgnoreFlush {})),
        Just(Some(Lie::LateFlush { flushes: 1 })),
        Just(Some(Lie::DropFraction { fraction: 0.4 })),
    ]
}

fn changes() -> impl Strategy<Value = Overrides> {
    let capacity = prop_oneof![Just(None), (8_u64 << 10..256 << 10).prop_map(Some)];
    let unit = prop_oneof![
        Just(None),
        Just(Some(512_u64)),
        Just(Some(4096)),
        Just(Some(16384))
    ];
    (capacity, unit).prop_map(|(cache_bytes, atomic_write_bytes)| Overrides {
        cache_bytes,
        atomic_write_bytes,
        ..Overrides::default()
    })
}

fn requests() -> impl Strategy<Value = Vec<Request>> {
    let request = prop_oneof![
        12 => (place(), any::<bool>())
            .prop_map(|((first, count), through)| Request::Write { first, count, through }),
        3 => place().prop_map(|(first, count)| Request::Discard { first, count }),
        3 => Just(Request::Flush),
        8 => Just(Request::Answer),
        1 => lies().prop_map(Request::Lie),
        1 => changes().prop_map(|changes| Request::Set(Box::new(changes))),
        1 => prop_oneof![Just(FaultOperation::Write), Just(FaultOperation::Flush)]
            .prop_map(Request::FailNext),
        1 => Just(Request::FlushNow),
        1 => (modes(), any::<u64>()).prop_map(|(mode, seed)| Request::Cut(mode, seed)),
        2 => Just(Request::PowerOn),
    ];
    prop::collection::vec(request, 0..40)
}

/// A disk without its FUSE, and the requests that wait for their answer.
struct Bench {
    folder: TempDir,
    disk: Disk,
    waiting: std::collections::VecDeque<Pending>,
    requests: u8,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let backing = Backing::open(&folder.path().join("backing"), SIZE_BYTES).unwrap();
        let physics = profile("ideal").unwrap().physics.clone();
        Self {
            folder,
            disk: Disk::new(backing, physics, 11).unwrap(),
            waiting: std::collections::VecDeque::new(),
            requests: 0,
        }
    }

    fn run(&mut self, requests: &[Request]) {
        for request in requests {
            self.obey(request);
        }
    }

    fn obey(&mut self, request: &Request) {
        let disk = &self.disk;
        self.requests = self.requests.wrapping_add(1);
        let extent = |first: u64, count: u64| Extent {
            offset: first * SECTOR_BYTES,
            length: count * SECTOR_BYTES,
        };
        let asked = match *request {
            Request::Write {
                first,
                count,
                through,
            } => {
                let extent = extent(first, count);
                let bytes: Vec<u8> = (0..count)
                    .flat_map(|sector| {
                        [self.requests.wrapping_mul(17) ^ sector as u8; SECTOR_BYTES as usize]
                    })
                    .collect();
                disk.write(extent.offset, &bytes, through)
            }
            Request::Discard { first, count } => disk.discard(extent(first, count)),
            Request::Flush => disk.flush(),
            ref other => return self.control(other),
        };
        // Without power a request is refused.
        self.waiting.extend(asked);
    }

    fn control(&mut self, request: &Request) {
        let disk = &self.disk;
        match request {
            Request::Answer => {
                if let Some(pending) = self.waiting.pop_front() {
                    disk.finish(&pending);
                }
            }
            Request::Lie(lie) => disk.set_lie(*lie).unwrap(),
            Request::Set(changes) => {
                disk.set_physics(changes).unwrap();
            }
            Request::FailNext(operation) => {
                let fault = serde_json::json!({ "operation": operation });
                disk.arm(serde_json::from_value::<EioFault>(fault).unwrap())
                    .unwrap();
            }
            Request::FlushNow => {
                disk.flush_now();
            }
            Request::Cut(mode, seed) => {
                disk.cut(*mode, *seed).unwrap();
            }
            Request::PowerOn => {
                disk.power_on();
            }
            other => panic!("{other:?} is none"),
        }
    }

    fn content(&self) -> Vec<u8> {
        std::fs::read(self.folder.path().join("backing")).unwrap()
    }

    fn recording(&self) -> std::path::PathBuf {
        self.folder.path().join("recording")
    }

    fn start(&self) {
        std::fs::create_dir(self.recording()).unwrap();
        self.disk.start_recording(&self.recording()).unwrap();
    }

    fn recorded(&self) -> RecordingStatus {
        let state = self.disk.state();
        state.recorder.as_ref().unwrap().status()
    }
}

/// The image that a cut leaves after `point` records.
fn after(point: u64, mode: CutMode, seed: u64) -> ImageConfig {
    ImageConfig {
        recording: PathBuf::new(),
        point,
        mode,
        seed,
        tear_bytes: 0,
    }
}

/// What an image holds, whose overlay is at `overlay`.
fn image(recording: &Path, overlay: &Path, point: u64, mode: CutMode, seed: u64) -> Backing {
    let image = Recording::open(recording)
        .unwrap()
        .image(&after(point, mode, seed))
        .unwrap();
    Backing::of_image(overlay, SIZE_BYTES, image).unwrap()
}

fn whole(backing: &Backing) -> Vec<u8> {
    let extent = Extent {
        offset: 0,
        length: SIZE_BYTES,
    };
    backing.read(extent).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn an_image_is_what_a_cut_would_have_left(
        before in requests(),
        recorded in requests(),
        at in any::<prop::sample::Index>(),
        mode in modes(),
        seed: u64,
    ) {
        let at = at.index(recorded.len() + 1);
        let mut bench = Bench::new();
        bench.run(&before);
        bench.disk.power_on();
        bench.start();
        bench.run(&recorded[..at]);
        let point = bench.recorded().records;
        bench.run(&recorded[at..]);
        prop_assert_eq!(bench.disk.stop_recording().unwrap().error, None);

        let mut live = Bench::new();
        live.run(&before);
        live.disk.power_on();
        live.disk.flush_now(); // as a recording does when it starts
        live.run(&recorded[..at]);
        let report = live.disk.cut(mode, seed).unwrap();

        let recording = Recording::open(&bench.recording()).unwrap();
        prop_assert!(recording.is_complete());
        recording.verify().unwrap();
        let found = recording.image(&after(point, mode, seed)).unwrap();
        if let Some(report) = report {
            prop_assert_eq!(found.report, report);
        }
        let overlay = bench.folder.path().join("overlay");
        let found = whole(&Backing::of_image(&overlay, SIZE_BYTES, found).unwrap());
        let expected = live.content();
        let differs = (0..expected.len()).find(|&byte| found[byte] != expected[byte]);
        prop_assert_eq!(differs, None);
    }

    #[test]
    fn an_image_behaves_as_a_disk_with_its_content(
        recorded in requests(),
        mut afterwards in requests(),
        mode in modes(),
        seed: u64,
    ) {
        let mut bench = Bench::new();
        bench.start();
        bench.run(&recorded);
        bench.disk.power_on();
        let point = bench.recorded().records;
        bench.disk.stop_recording().unwrap();
        let files = || [BASE, RECORDS, DATA].map(|name| std::fs::read(bench.recording().join(name)).unwrap());
        let recording = files();

        // How much a small cache holds depends on the holes of the file, in which the two differ.
        afterwards.retain(|request| !matches!(request, Request::Set(_)));
        // A disk whose content is that of the image, and the image, with the same requests.
        let mut plain = Bench::new();
        let overlay = bench.folder.path().join("overlay");
        let content = whole(&image(&bench.recording(), &overlay, point, mode, seed));
        let file = std::fs::File::options().write(true).open(plain.folder.path().join("backing")).unwrap();
        (&file).write_all(&content).unwrap();
        let physics = profile("ideal").unwrap().physics.clone();
        let reopen = |path: &Path| Backing::open(path, SIZE_BYTES).unwrap();
        let path = plain.folder.path().join("copy");
        std::fs::copy(plain.folder.path().join("backing"), &path).unwrap();
        plain.disk = Disk::new(reopen(&path), physics.clone(), 11).unwrap();
        std::fs::remove_file(&overlay).unwrap();
        let mut served = Bench::new();
        served.disk = Disk::new(image(&bench.recording(), &overlay, point, mode, seed), physics, 11).unwrap();
        plain.run(&afterwards);
        served.run(&afterwards);
        plain.disk.cut(CutMode::Subset, seed).unwrap();
        served.disk.cut(CutMode::Subset, seed).unwrap();
        plain.disk.power_on();
        served.disk.power_on();
        let all = Extent { offset: 0, length: SIZE_BYTES };
        let read = |disk: &Disk| {
            disk.disarm();
            disk.read(all).unwrap().0
        };
        prop_assert!(read(&plain.disk) == read(&served.disk));
        prop_assert!(files() == recording, "the recording is as it was");
    }
}

fn wrote(bench: &mut Bench, first: u64) {
    bench.obey(&Request::Write {
        first,
        count: 8,
        through: false,
    });
}

/// A recording of four writes and a flush, which is not stopped.
fn recorded() -> Bench {
    let mut bench = Bench::new();
    wrote(&mut bench, 0);
    bench.start();
    for first in [8, 16, 24, 32] {
        wrote(&mut bench, first);
    }
    bench.disk.stop_recording().unwrap();
    bench
}

fn shorten(path: &Path, bytes: u64) {
    let file = std::fs::File::options().write(true).open(path).unwrap();
    let length = file.metadata().unwrap().len();
    file.set_len(length - bytes).unwrap();
}

#[test]
fn a_recording_that_was_cut_short_is_read_up_to_its_last_whole_record() {
    let record = RECORD_BYTES as u64;
    for (file, bytes, points) in [
        (RECORDS, record, 4), // only its end is missing
        (RECORDS, record + 1, 3),
        (RECORDS, 3 * record, 2),
        (DATA, 1, 3),
        (DATA, 2 * 8 * SECTOR_BYTES, 2),
    ] {
        let bench = recorded();
        shorten(&bench.recording().join(file), bytes);
        let found = Recording::open(&bench.recording()).unwrap();
        assert_eq!(
            (found.points(), found.is_complete()),
            (points, false),
            "{file} less {bytes}"
        );
        let overlay = bench.folder.path().join("overlay");
        let backing = image(
            &bench.recording(),
            &overlay,
            points as u64,
            CutMode::Drop,
            0,
        );
        // What was there before the recording is durable, and nothing else.
        let content = whole(&backing);
        assert!(content[..4096].iter().any(|&byte| byte != 0));
        assert!(content[4096..].iter().all(|&byte| byte == 0));
    }
}

#[test]
fn what_is_damaged_or_something_else_is_refused() {
    let damage = |file: &str, offset: u64| {
        use std::os::unix::fs::FileExt;
        let bench = recorded();
        let path = bench.recording().join(file);
        let file = std::fs::File::options()
            .read(true)
            .write(true)
            .open(&path)
            .unwrap();
        let mut byte = [0];
        file.read_exact_at(&mut byte, offset).unwrap();
        file.write_all_at(&[!byte[0]], offset).unwrap();
        match Recording::open(&bench.recording()).and_then(|found| found.verify()) {
            Ok(_) => "nothing".to_owned(),
            Err(error) => {
                let folder = bench.recording().display().to_string();
                error.to_string().replace(&folder, "FOLDER")
            }
        }
    };
    let record = RECORD_BYTES as u64;
    assert_eq!(
        damage(RECORDS, record + 30),
        "the recording in FOLDER is damaged: record 0"
    );
    assert_eq!(
        damage(DATA, 5000),
        "the recording in FOLDER is damaged: the data of record 1"
    );
    assert_eq!(
        damage(RECORDS, 30),
        "the recording in FOLDER is damaged: its header"
    );
    assert_eq!(damage(RECORDS, 9), "FOLDER holds no recording of a disk");
    assert!(damage(RECORDS, 4).starts_with("the recording in FOLDER is of version 254;"));
}

#[test]
fn a_point_that_is_not_there_and_an_overlay_that_is_used_are_refused() {
    let bench = recorded();
    let recording = Recording::open(&bench.recording()).unwrap();
    let error = recording.image(&after(5, CutMode::Drop, 0)).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("has the points 0 to 4; there is no point 5"),
        "{error}"
    );
    let overlay = bench.folder.path().join("overlay");
    std::fs::write(&overlay, vec![1; SIZE_BYTES as usize]).unwrap();
    let image = recording.image(&after(4, CutMode::Drop, 0)).unwrap();
    let error = Backing::of_image(&overlay, SIZE_BYTES, image).unwrap_err();
    assert!(matches!(error, DiskError::OverlayUsed(_)), "{error}");
}

#[test]
fn a_disk_is_recorded_once_at_a_time_with_power_and_into_an_empty_place() {
    let bench = recorded();
    let folder = bench.recording();
    let error = bench.disk.start_recording(&folder).unwrap_err();
    assert!(error.to_string().contains("File exists"), "{error}");
    let other = bench.folder.path().join("other");
    std::fs::create_dir(&other).unwrap();
    bench.disk.start_recording(&other).unwrap();
    let begun = Recording::open(&other).unwrap();
    assert_eq!((begun.points(), begun.is_complete()), (0, false));
    let error = bench.disk.start_recording(&folder).unwrap_err();
    assert!(matches!(error, DiskError::RecordedAlready(_)), "{error}");
    bench.disk.stop_recording().unwrap();
    let error = bench.disk.stop_recording().unwrap_err();
    assert!(matches!(error, DiskError::NotRecorded), "{error}");
    bench.disk.cut(CutMode::Drop, 0).unwrap();
    let error = bench.disk.start_recording(&folder).unwrap_err();
    assert!(matches!(error, DiskError::NoPower), "{error}");
}

#[test]
fn times_go_forward_and_are_those_of_the_clock() {
    let before_ns = plinth_thread::monotonic_ns();
    let bench = recorded();
    let after_ns = plinth_thread::monotonic_ns();
    let recording = Recording::open(&bench.recording()).unwrap();
    let mut times: Vec<u64> = recording
        .times_and_kinds()
        .map(|(time_ns, _)| time_ns)
        .collect();
    times.insert(0, recording.began_ns());
    assert!(times.is_sorted());
    assert!(before_ns <= times[0] && times[4] <= after_ns);
}
