//! Numbers with a fixed number of decimal places, which add up without an error.

use std::cmp::Ordering;

/// The most places behind the point.
const MOST_PLACES: u32 = 30;

/// A decimal number.
#[derive(Debug, Clone, Copy)]
pub(super) struct Decimal {
    /// The number times ten to the power of its places.
    units: i128,
    /// How many digits stand behind the point.
    places: u32,
    /// How many characters stood before the point, the sign among them.
    width: usize,
}

impl Decimal {
    pub(super) const ONE: Self = Self {
        units: 1,
        places: 0,
        width: 1,
    };

    /// Reads a number: `1`, `-.5`, `1e3`, `0xff`. Nothing within for an infinite one.
    pub(super) fn read(text: &str) -> Option<Option<Self>> {
        let text = text.trim_start_matches([' ', '\t', '\n']);
        let text = text.strip_prefix('+').unwrap_or(text);
        let (negative, bare) = match text.strip_prefix('-') {
            Some(bare) => (true, bare),
            None => (false, text),
        };
        let lower = bare.to_ascii_lowercase();
        if lower == "inf" || lower == "infinity" {
            return Some(None);
        }
        let sign = if negative { -1 } else { 1 };
        if let Some(digits) = lower.strip_prefix("0x") {
            let good = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
            let units = i128::from_str_radix(digits, 16).ok().filter(|_| good)? * sign;
            return Some(Some(Self::whole(units)));
        }
        let (mantissa, exponent) = match lower.split_once('e') {
            Some((mantissa, exponent)) => (mantissa, Some(exponent.parse::<i32>().ok()?)),
            None => (&*lower, None),
        };
        let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let digits = format!("{before}{behind}");
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return None;
        }
        let mut units = digits.parse::<i128>().ok()? * sign;
        let mut places = i32::try_from(behind.len()).ok()?.checked_sub(exponent.unwrap_or(0))?;
        if places < 0 {
            units = units.checked_mul(10_i128.checked_pow(places.unsigned_abs())?)?;
            places = 0;
        }
        let places = u32::try_from(places).ok().filter(|places| *places <= MOST_PLACES)?;
        let width = match exponent {
            Some(_) => Self::whole(units / 10_i128.pow(places))
                .width
                .max(1 + usize::from(negative)),
            None => before.len().max(1) + usize::from(negative),
        };
        Some(Some(Self { units, places, width }))
    }

    fn whole(units: i128) -> Self {
        Self {
            units,
            places: 0,
            width: units.to_string().len(),
        }
    }

    pub(super) fn is_zero(self) -> bool {
        self.units == 0
    }

    pub(super) fn is_negative(self) -> bool {
        self.units < 0
    }

    pub(super) fn places(self) -> u32 {
        self.places
    }

    pub(super) fn width(self) -> usize {
        self.width
    }

    /// Whether it can be counted with so many places.
    pub(super) fn fits(self, places: u32) -> bool {
        self.scaled(places.max(self.places)).is_some()
    }

    /// Whether a machine's number holds each of its digits before the point.
    pub(super) fn is_exact_float(self) -> bool {
        self.units.unsigned_abs() / 10_u128.pow(self.places) <= 1 << 53
    }

    /// The sum, if it is not beyond all numbers.
    pub(super) fn plus(self, other: Self) -> Option<Self> {
        let places = self.places.max(other.places);
        let units = self.scaled(places)?.checked_add(other.scaled(places)?)?;
        Some(Self { units, places, ..self })
    }

    /// What comes before it, counting by `step`.
    pub(super) fn before(self, step: Self) -> Self {
        let back = Self {
            units: -step.units,
            ..step
        };
        self.plus(back).unwrap_or(self)
    }

    fn scaled(self, places: u32) -> Option<i128> {
        self.units.checked_mul(10_i128.checked_pow(places - self.places)?)
    }

    /// With so many digits behind the point, which are as many as it has or more, and so wide at least,
    /// with zeros.
    pub(super) fn write(self, places: u32, width: usize, into: &mut String) {
        let units = self
            .scaled(places.max(self.places))
            .unwrap_or(self.units)
            .unsigned_abs();
        let sign = if self.units < 0 { "-" } else { "" };
        let divisor = 10_u128.pow(places.max(self.places));
        let text = match places.max(self.places) {
            0 => units.to_string(),
            places => {
                let places = usize::try_from(places).unwrap_or(0);
                format!("{}.{:0places$}", units / divisor, units % divisor)
            }
        };
        let zeros = width.saturating_sub(sign.len() + text.len());
        into.push_str(sign);
        into.extend(std::iter::repeat_n('0', zeros));
        into.push_str(&text);
    }

    /// The nearest number that a machine has.
    pub(super) fn float(self) -> f64 {
        let mut text = String::new();
        self.write(self.places, 0, &mut text);
        // Digits with a point are a number.
        text.parse().unwrap_or(f64::NAN)
    }
}

impl PartialEq for Decimal {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Decimal {}

impl PartialOrd for Decimal {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Decimal {
    fn cmp(&self, other: &Self) -> Ordering {
        let places = self.places.max(other.places);
        match (self.scaled(places), other.scaled(places)) {
            (Some(one), Some(two)) => one.cmp(&two),
            // One that is beyond all numbers with these places is the larger one, whatever its sign.
            (None, _) => {
                if self.units < 0 {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            (Some(_), None) => {
                if other.units < 0 {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
        }
    }
}
