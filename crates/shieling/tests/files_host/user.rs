//! All of it again, for whom root runs the tests: as somebody with no power at all.

#[test]
fn and_as_an_ordinary_user_too() {
    shieling_testkit::again_as_user(&["--skip", "user::"]);
}
