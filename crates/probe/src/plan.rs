//! Selects the cases to measure. Pure functions.

use serde::Deserialize;

use crate::WAL_BLOCK_BYTES;
use crate::case::{Case, Descriptor, Group, Method, Place, Sharing};

const LADDER_BYTES: u32 = 16 << 10;
const SIZES: [u32; 5] = [4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10];

/// The selection of cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Methods that are compared. Block sizes and many writers are measured by fdatasync if it is among them, else by the
    /// first.
    pub methods: Vec<Method>,
    /// Questions to ask.
    pub groups: Vec<Group>,
    /// The numbers of concurrent writers.
    pub writers: Vec<u32>,
    /// Whether the cases beyond those of `pg_test_fsync` write past the page cache.
    pub direct: bool,
    /// Length of one write, where a case is not about another length: PostgreSQL's `XLOG_BLCKSZ`.
    pub block_bytes: u32,
}

/// The cases, in the order in which they are reported.
pub fn plan(options: &Options) -> Vec<Case> {
    options
        .groups
        .iter()
        .flat_map(|&group| cases(group, options))
        .collect()
}

fn cases(group: Group, options: &Options) -> Vec<Case> {
    let methods = options.methods.iter().copied();
    let block = |method| Case {
        block_bytes: options.block_bytes,
        ..by_method(group, method)
    };
    let onward = |method, block_bytes, place| Case {
        direct: options.direct,
        block_bytes,
        place,
        ..by_method(group, method)
    };
    match group {
        Group::OneBlock => methods.map(block).collect(),
        Group::TwoBlocks => methods
            .map(|method| Case {
                writes: 2,
                ..block(method)
            })
            .collect(),
        Group::Ladder if options.methods.contains(&Method::OpenSync) => {
            (0..5).map(|step| rung(LADDER_BYTES >> step)).collect()
        }
        Group::OtherDescriptor if options.methods.contains(&Method::Fsync) => vec![
            descriptor("write, fsync, close", Descriptor::Own, options),
            descriptor("write, close, fsync", Descriptor::Another, options),
        ],
        Group::Ladder | Group::OtherDescriptor => Vec::new(),
        Group::Unsynced => vec![Case {
            label: "write".to_owned(),
            ..block(Method::None)
        }],
        Group::Preallocated => methods
            .filter(|&method| method != Method::FsyncWritethrough)
            .map(|method| onward(method, options.block_bytes, Place::Onward))
            .collect(),
        Group::Extending => methods
            .filter(|&method| method != Method::FsyncWritethrough)
            .map(|method| onward(method, options.block_bytes, Place::BeyondEnd))
            .collect(),
        Group::Sizes => SIZES
            .map(|block_bytes| Case {
                label: format!("{} kB {}", block_bytes >> 10, usual(options).name()),
                ..onward(usual(options), block_bytes, Place::Onward)
            })
            .into(),
        Group::GroupCommit => many(Sharing::Group, options, group),
        Group::Independent => many(Sharing::Each, options, group),
    }
}

fn by_method(group: Group, method: Method) -> Case {
    Case {
        group,
        label: method.name().to_owned(),
        method,
        direct: method.is_of_open(),
        block_bytes: WAL_BLOCK_BYTES,
        writes: 1,
        place: Place::Beginning,
        descriptor: Descriptor::Kept,
        writers: 1,
        sharing: Sharing::Alone,
    }
}

fn rung(block_bytes: u32) -> Case {
    let writes = LADDER_BYTES / block_bytes;
    let plural = if writes == 1 { "" } else { "s" };
    Case {
        label: format!(
            "{writes} * {} kB open_sync write{plural}",
            block_bytes >> 10
        ),
        block_bytes,
        writes,
        ..by_method(Group::Ladder, Method::OpenSync)
    }
}

fn descriptor(label: &str, descriptor: Descriptor, options: &Options) -> Case {
    Case {
        label: label.to_owned(),
        descriptor,
        block_bytes: options.block_bytes,
        ..by_method(Group::OtherDescriptor, Method::Fsync)
    }
}

fn many(sharing: Sharing, options: &Options, group: Group) -> Vec<Case> {
    let of = |&writers: &u32| Case {
        label: format!(
            "{writers} writer{}, {}",
            if writers == 1 { "" } else { "s" },
            usual(options).name()
        ),
        direct: options.direct,
        place: Place::Onward,
        writers,
        sharing,
        ..by_method(group, usual(options))
    };
    options.writers.iter().map(of).collect()
}

fn usual(options: &Options) -> Method {
    let methods = &options.methods;
    if methods.contains(&Method::Fdatasync) {
        return Method::Fdatasync;
    }
    methods.first().copied().unwrap_or(Method::Fdatasync)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(methods: &[Method]) -> Options {
        Options {
            methods: methods.to_vec(),
            groups: Group::ALL.to_vec(),
            writers: vec![1, 64],
            direct: false,
            block_bytes: WAL_BLOCK_BYTES,
        }
    }

    #[test]
    fn each_case_is_identified_by_its_group_and_label() {
        let mut named: Vec<_> = plan(&all(&Method::ALL))
            .into_iter()
            .map(|case| (format!("{:?}", case.group), case.label))
            .collect();
        let count = named.len();
        named.sort();
        named.dedup();
        assert_eq!((named.len(), count), (35, 35));
    }

    #[test]
    fn the_ladder_writes_16_kb_whatever_the_step() {
        let cases = plan(&all(&Method::ALL));
        let ladder: Vec<_> = cases
            .iter()
            .filter(|case| case.group == Group::Ladder)
            .map(|case| (case.writes, case.block_bytes >> 10))
            .collect();
        assert_eq!(ladder, [(1, 16), (2, 8), (4, 4), (8, 2), (16, 1)]);
    }

    #[test]
    fn the_block_size_is_that_of_the_wal_where_a_case_has_none_of_its_own() {
        let of_64_kb = Options {
            block_bytes: 64 << 10,
            ..all(&Method::ALL)
        };
        for (case, usual) in plan(&of_64_kb).iter().zip(plan(&all(&Method::ALL))) {
            let of_its_own = matches!(
                case.group,
                Group::Ladder | Group::Sizes | Group::GroupCommit | Group::Independent
            );
            let expected = if of_its_own {
                usual.block_bytes
            } else {
                64 << 10
            };
            assert_eq!(case.block_bytes, expected, "{case:?}");
            assert_eq!((&case.label, case.writes), (&usual.label, usual.writes));
        }
    }

    #[test]
    fn methods_left_out_are_measured_nowhere() {
        for method in Method::ALL {
            let left: Vec<_> = Method::ALL
                .into_iter()
                .filter(|&one| one != method)
                .collect();
            let cases = plan(&all(&left));
            assert!(cases.iter().all(|case| case.method != method), "{method:?}");
        }
    }

    #[test]
    fn only_the_cases_of_pg_test_fsync_go_past_the_page_cache_unasked() {
        for case in plan(&all(&Method::ALL)) {
            let as_pg_test_fsync = case.place == Place::Beginning;
            assert_eq!(case.direct, as_pg_test_fsync && case.method.is_of_open());
        }
    }
}
