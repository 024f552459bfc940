//! Moments as people write them, in UTC.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

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
        let (year, month, day) = date(days);
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

/// Year, month and day, of days since 1970.
fn date(days: i64) -> (i64, i64, i64) {
    // Years that begin in March, in spans of 400, have their odd day at the end.
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{Moment, date};

    #[test]
    fn days_are_dates() {
        let cases = [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_513, (2026, 3, 1)),
        ];
        for (days, expected) in cases {
            assert_eq!(date(days), expected, "{days}");
        }
        let before = UNIX_EPOCH - Duration::from_millis(500);
        assert_eq!(Moment::of(before).to_string(), "1969-12-31 23:59:59.500000000 +0000");
    }
}
