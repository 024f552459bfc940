//! Formatting of times. A calendar library is not worth its weight: logs need one format in one time zone.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Formats a time as RFC 3339 in UTC with milliseconds: `2026-11-21T07:07:54.123Z`.
///
/// A time before 1970 is shown as 1970: a wall clock may be set to anything, and the log must go on.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = since.as_secs().cast_signed();
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        second / 3_600,
        second / 60 % 60,
        second % 60,
        since.subsec_millis(),
    )
}

/// Formats a duration for people: `250 ms`, `1.5 s`, `120 s`.
pub fn spoken(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.0} ms", seconds * 1_000.0)
    } else if seconds < 10.0 && seconds.fract() >= 0.05 {
        format!("{seconds:.1} s")
    } else {
        format!("{seconds:.0} s")
    }
}

/// Returns the year, month and day of a day counted from 1970-01-01, which is day 0.
///
/// ```
/// assert_eq!(shieling::units::civil(-1), (1969, 12, 31));
/// ```
// Counts from 1 March, so that the leap day comes last, in eras of 400 years, after which the calendar repeats.
pub fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days.saturating_add(719_468);
    let (era, of_era) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year_of_era = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    (era * 400 + year_of_era + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_time_that_something_takes_has_as_many_digits_as_matter() {
        for (ms, expected) in [
            (0, "0 ms"),
            (250, "250 ms"),
            (1_000, "1 s"),
            (1_049, "1 s"),
            (1_500, "1.5 s"),
            (12_300, "12 s"),
            (120_000, "120 s"),
        ] {
            assert_eq!(spoken(Duration::from_millis(ms)), expected);
        }
    }

    #[test]
    fn days_are_dates_also_before_1970() {
        let cases = [
            (0, (1970, 1, 1)),
            (-1, (1969, 12, 31)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (20_513, (2026, 3, 1)),
        ];
        for (days, expected) in cases {
            assert_eq!(civil(days), expected, "{days}");
        }
    }

    #[test]
    fn times_are_shown_in_utc_with_leap_days_where_they_belong() {
        let cases = [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_999, "2024-02-29T23:59:59.999Z"),
            (1_709_251_200_000, "2024-03-01T00:00:00.000Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (1_767_225_599_001, "2025-12-31T23:59:59.001Z"),
        ];
        for (ms, expected) in cases {
            assert_eq!(rfc3339(UNIX_EPOCH + Duration::from_millis(ms)), expected, "{ms}");
        }
        assert_eq!(rfc3339(UNIX_EPOCH - Duration::from_secs(9)), "1970-01-01T00:00:00.000Z");
    }
}
