//! Seeds that are not given as a number.

use std::io;
use std::time::SystemTime;

use plinth_script::SeedOption;
use rustix::io::Errno;
use rustix::rand::{GetRandomFlags, getrandom};

/// The seed that `--random-seed` asks for: the number; the time in microseconds; or a random number of the system's.
///
/// # Errors
/// When the system has no random number to give.
pub fn seed(option: SeedOption) -> io::Result<u64> {
    match option {
        SeedOption::Number(seed) => Ok(seed),
        SeedOption::Time => {
            let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
            Ok(since_1970.map_or(0, |time| time.as_micros() as u64))
        }
        SeedOption::Random => {
            let mut bytes = [0; size_of::<u64>()];
            loop {
                match getrandom(&mut bytes, GetRandomFlags::empty()) {
                    // Requests as small as this one are answered whole.
                    Ok(_) => return Ok(u64::from_ne_bytes(bytes)),
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno.into()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_and_others_differ_from_time_to_time() {
        assert_eq!(seed(SeedOption::Number(7)).unwrap(), 7);
        let random = || seed(SeedOption::Random).unwrap();
        assert_ne!(random(), random());
        let time = seed(SeedOption::Time).unwrap();
        let later = seed(SeedOption::Time).unwrap();
        assert!((time..time + 60_000_000).contains(&later));
    }
}
