//! Moments as people write them, in UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::units::civil;

/// A moment, taken apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
    pub(super) hour: i64,
    pub(super) minute: i64,
    second: i64,
    nanosecond: i64,
    /// Whole seconds since 1970.
    pub(super) seconds: i64,
}

impl Moment {
    pub(super) fn of(time: SystemTime) -> Self {
        let nanoseconds = match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i128::try_from(after.as_nanos()).unwrap_or(i128::MAX),
            Err(before) => -i128::try_from(before.duration().as_nanos()).unwrap_or(i128::MAX),
        };
        let seconds = i64::try_from(nanoseconds.div_euclid(1_000_000_000)).unwrap_or(i64::MAX);
        let nanosecond = i64::try_from(nanoseconds.rem_euclid(1_000_000_000)).unwrap_or(0);
        let (days, of_day) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = civil(days);
        Self {
            year,
            month,
            day,
            hour: of_day / 3_600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            nanosecond,
            seconds,
        }
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            year,
            month,
            day,
            hour,
            minute,
            second,
            nanosecond,
            ..
        } = self;
        write!(
            f,
            "{year}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{nanosecond:09} +0000"
        )
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::Moment;

    #[test]
    fn a_moment_before_1970_has_its_day() {
        let before = UNIX_EPOCH - Duration::from_millis(500);
        assert_eq!(Moment::of(before).to_string(), "1969-12-31 23:59:59.500000000 +0000");
    }
}
