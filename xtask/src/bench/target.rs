//! Tables of starts: what each row costs over the floor, and whether that is what was aimed at.

use std::fmt::Write as _;
use std::time::Duration;

use super::measure::{Measured, cell, shown};

/// What a row's median is to be.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Target {
    /// Only compared.
    None,
    /// Not even that: it is another kind of time.
    Apart,
    /// At most this much more than the floor's.
    Over(Duration),
    /// At most this.
    InAll(Duration),
    /// At most this many times the floor's.
    Ratio(f64),
}

impl Target {
    /// What is aimed at, and whether it is reached.
    pub(crate) fn told(self, median: Duration, floor: Duration) -> String {
        let (text, held) = match self {
            Self::None | Self::Apart => return String::new(),
            Self::Over(most) => (format!("over ≤ {}", shown(most)), median <= floor + most),
            Self::InAll(most) => (format!("median ≤ {}", shown(most)), median <= most),
            Self::Ratio(most) => (format!("ratio ≤ {most:.2}"), median <= floor.mul_f64(most)),
        };
        format!("{text}, {}", if held { "held" } else { "**missed**" })
    }
}

/// A table in Markdown; the first row is the floor.
pub(crate) fn table(rows: &[(Measured, Target)]) -> String {
    let mut text = String::from("| row | n | min | median | p99 | over bare | ratio | target |\n|-|-|-|-|-|-|-|-|\n");
    let floor = rows.first().map_or(Duration::ZERO, |(row, _)| row.median());
    for (index, (row, target)) in rows.iter().enumerate() {
        let median = row.median();
        let name = match index {
            0 => format!("**{}**", cell(&row.name)),
            _ => cell(&row.name),
        };
        let compared = match (index, target) {
            (_, Target::Apart) => " | ".to_owned(),
            (0, _) => " | 1.00".to_owned(),
            _ => format!(
                "{} | {:.2}",
                over(median, floor),
                median.as_secs_f64() / floor.as_secs_f64()
            ),
        };
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {name} | {} | {} | {} | {} | {compared} | {} |",
            row.len(),
            shown(row.quantile(0.0)),
            shown(median),
            shown(row.quantile(0.99)),
            target.told(median, floor),
        );
    }
    text
}

/// The difference of two durations, with its sign if it is less.
pub(crate) fn over(median: Duration, floor: Duration) -> String {
    match median.checked_sub(floor) {
        Some(over) => shown(over),
        None => format!("−{}", shown(floor - median)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_says_whether_it_is_held() {
        let ms = Duration::from_millis;
        for (target, median, told) in [
            (Target::None, 9, ""),
            (Target::Over(ms(2)), 3, "over ≤ 2.00 ms, held"),
            (Target::Over(ms(2)), 4, "over ≤ 2.00 ms, **missed**"),
            (Target::InAll(ms(6)), 6, "median ≤ 6.00 ms, held"),
            (Target::InAll(ms(6)), 7, "median ≤ 6.00 ms, **missed**"),
            (Target::Ratio(2.0), 2, "ratio ≤ 2.00, held"),
            (Target::Ratio(2.0), 3, "ratio ≤ 2.00, **missed**"),
        ] {
            assert_eq!(target.told(ms(median), ms(1)), told);
        }
    }

    #[test]
    fn rows_are_compared_with_the_first() {
        let row = |name, ms| Measured::new(name, vec![Duration::from_millis(ms)]);
        let rows = [
            (row("floor", 2), Target::None),
            (row("more", 3), Target::Over(Duration::from_millis(1))),
            (row("less", 1), Target::None),
            (row("other", 1), Target::Apart),
        ];
        assert_eq!(
            table(&rows),
            "| row | n | min | median | p99 | over bare | ratio | target |\n|-|-|-|-|-|-|-|-|\n\
             | **floor** | 1 | 2.00 ms | 2.00 ms | 2.00 ms |  | 1.00 |  |\n\
             | more | 1 | 3.00 ms | 3.00 ms | 3.00 ms | 1.00 ms | 1.50 | over ≤ 1.00 ms, held |\n\
             | less | 1 | 1.00 ms | 1.00 ms | 1.00 ms | −1.00 ms | 0.50 |  |\n\
             | other | 1 | 1.00 ms | 1.00 ms | 1.00 ms |  |  |  |\n"
        );
    }
}
