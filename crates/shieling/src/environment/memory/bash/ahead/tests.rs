use super::{Place, first};

fn refused(text: &str) -> Option<String> {
    first(text, &Place::new(None, false))
}

/// These run, and as in bash: `tests/memory/shared.rs` compares them.
const ALLOWED: &str = include_str!("../../../../../tests/memory/shared/alike.txt");
const REFUSED: &str = include_str!("../../../../../tests/memory/shared/refused.txt");

#[test]
fn what_shares_an_input_rightly_runs() {
    let mut seen = 0;
    for text in ALLOWED.lines().filter(|line| !line.is_empty()) {
        assert_eq!(refused(text), None, "{text}");
        seen += 1;
    }
    assert!(seen >= 25, "{seen}");
}

#[test]
fn what_would_read_again_or_pass_over_readonly_is_refused() {
    let mut seen = 0;
    for text in REFUSED.lines().filter(|line| !line.is_empty()) {
        assert!(refused(text).is_some(), "{text}");
        seen += 1;
    }
    assert!(seen >= 25, "{seen}");
}

#[test]
fn a_refusal_says_who_and_what_to_write_instead() {
    let shared = refused("{ head -n1; cat; } < f").unwrap_or_default();
    assert!(
        shared.contains("`cat` would get again what `head` has read"),
        "{shared}"
    );
    assert!(shared.contains("`< FILE`"), "{shared}");
    let looped = refused("while read l; do cat; done < f").unwrap_or_default();
    assert!(looped.contains("`cat` in a loop"), "{looped}");
    let fixed = refused("readonly a; (( a = 1 ))").unwrap_or_default();
    assert!(
        fixed.contains("`a` is readonly") && fixed.contains("use another name"),
        "{fixed}"
    );
}

#[test]
fn all_of_a_text_shares_an_input_that_bashkit_holds() {
    let fed = Place::new(None, true);
    assert!(first("head -n1; cat", &fed).is_some());
    assert!(first("f() { read x; }; f; f", &fed).is_some());
    assert_eq!(first("read x; read y; cat", &fed), None);
    assert_eq!(first("cat f; cat f; sort", &fed), None);
}

#[test]
fn long_and_deep_texts_take_no_long_time() {
    let began = std::time::Instant::now();
    let mut calls = String::new();
    for at in 0..60 {
        calls += &format!(
            "f{at}() {{ f{0}; local -r v{at}; f{0}; readonly w{at}; f{0}; }}\n",
            at + 1
        );
    }
    calls += "f60() { read x; }\n{ f0; } < f\n";
    calls += &"{ read a; cat; } < f\n(( a[b[c[1]]] = 2 ))\n".repeat(5_000);
    calls += &format!("(( {} ))\n", "a[".repeat(20_000) + &"]".repeat(20_000));
    assert_eq!(refused(&calls), None);
    assert!(
        began.elapsed() < std::time::Duration::from_secs(20),
        "{:?}",
        began.elapsed()
    );
}
