//! The extent of long tests: a share of their cases by default, which is the same each time and includes every class,
//! or all of them if `SHIELING_TESTS` is `full`, as `cargo xtask check --full` sets it. Quick tests are not affected.

use std::collections::BTreeMap;

/// The variable that requests all cases.
const EXTENT: &str = "SHIELING_TESTS";
/// The variable that selects another share and other random cases. A number; 0 by default.
const SEED: &str = "SHIELING_TESTS_SEED";

/// Returns whether all cases run.
///
/// # Panics
/// If the variable has an unknown value, since fewer cases would run than expected.
pub fn is_full() -> bool {
    match std::env::var(EXTENT) {
        Ok(value) if value == "full" => true,
        Ok(value) if !value.is_empty() => panic!("{EXTENT} is `full` or not set, not `{value}`"),
        _ => false,
    }
}

/// Returns the seed of the share and of random cases.
///
/// # Panics
/// If the variable is set to something other than a number.
pub fn seed() -> u64 {
    let number = |text: String| {
        text.parse()
            .unwrap_or_else(|_| panic!("{SEED} is a number, not `{text}`"))
    };
    std::env::var(SEED).map_or(0, number)
}

/// Returns a number of rounds: `ordinarily` by default, `fully` for all cases.
///
/// # Panics
/// As [`is_full`] does.
pub fn rounds<N: Ord>(ordinary: N, full: N) -> N {
    assert!(ordinary <= full, "the full tests do no less");
    if is_full() { full } else { ordinary }
}

/// Returns one of `every` cases of each class in order, and at least one of each; all of them for full tests.
///
/// # Panics
/// As [`is_full`] and [`seed`] do.
pub fn share<T, C: Ord>(all: Vec<T>, every: usize, class: impl Fn(&T) -> C) -> Vec<T> {
    if is_full() {
        return all;
    }
    share_by(all, every, usize::try_from(seed()).unwrap_or(0), class)
}

fn share_by<T, C: Ord>(all: Vec<T>, every: usize, seed: usize, class: impl Fn(&T) -> C) -> Vec<T> {
    let mut sizes: BTreeMap<C, usize> = BTreeMap::new();
    for one in &all {
        *sizes.entry(class(one)).or_default() += 1;
    }
    let mut seen: BTreeMap<C, usize> = BTreeMap::new();
    let mut chosen = |one: &T| {
        let size = sizes.get(&class(one)).copied().unwrap_or(1);
        let at = seen.entry(class(one)).or_default();
        *at += 1;
        (*at - 1) % every == seed % every.min(size)
    };
    all.into_iter().filter(|one| chosen(one)).collect()
}

#[cfg(test)]
mod tests {
    use super::share_by;

    #[test]
    fn a_share_has_something_of_each_class_whatever_the_seed() {
        let all: Vec<(char, usize)> = "aaaaaaaaaabcc".chars().zip(0..).collect();
        for seed in 0..9 {
            let share = share_by(all.clone(), 4, seed, |(class, _)| *class);
            for class in ['a', 'b', 'c'] {
                assert!(share.iter().any(|(of, _)| *of == class), "seed {seed}: no {class}");
            }
            assert!(share.len() <= 5, "seed {seed}: {share:?}");
            assert!(share.is_sorted_by_key(|(_, at)| *at), "seed {seed}: {share:?}");
        }
    }

    #[test]
    fn all_shares_together_are_everything_and_one_in_one_is_everything() {
        let all: Vec<usize> = (0..37).collect();
        let mut together: Vec<usize> = (0..5).flat_map(|seed| share_by(all.clone(), 5, seed, |_| ())).collect();
        together.sort_unstable();
        assert_eq!(together, all);
        assert_eq!(share_by(all.clone(), 1, 3, |_| ()), all);
    }
}
