//! Commands that share an input, and names that are readonly: as in bash, or refused.

use shieling::process::End;

use super::same::Real;
use super::support::{memory, run};

const SEED: &str = "printf '1\\n2\\n3\\n4\\n' > f; ";
const ALIKE: &str = include_str!("shared/alike.txt");
const REFUSED: &str = include_str!("shared/refused.txt");

#[tokio::test]
async fn commands_that_share_an_input_read_what_they_read_in_bash() {
    let Some(real) = Real::new().await else { return };
    for line in ALIKE.lines() {
        let text = format!("{SEED}{line}");
        let (theirs, _) = real.run(&text).await;
        let ours = run(&memory(), &text).await;
        assert_eq!(
            (ours.end, ours.stdout.text(), ours.stderr.text()),
            (theirs.end, theirs.stdout.text(), theirs.stderr.text()),
            "{line}"
        );
    }
}

#[tokio::test]
async fn what_would_share_it_wrongly_is_refused_before_it_runs() {
    for line in REFUSED.lines() {
        let ran = run(&memory(), &format!("{SEED}{line}")).await;
        assert_eq!(ran.end, End::Exited(125), "{line}: {ran:?}");
        assert!(ran.stderr.text().starts_with("shieling: "), "{line}: {ran:?}");
        assert_eq!(ran.stdout.text(), "", "{line}");
    }
}

#[tokio::test]
async fn a_text_that_is_made_as_another_runs_is_refused_as_it_is_called() {
    for line in [
        "c='{ head -n1; cat; } < f'; eval \"$c\"",
        "c='{ head -n1; cat; } < f'; bash -c \"$c\"",
    ] {
        let ran = run(&memory(), &format!("{SEED}{line}")).await;
        assert_ne!(ran.end, End::Exited(0), "{line}: {ran:?}");
        assert!(
            ran.stderr.text().contains("shieling: `cat` would get again"),
            "{line}: {ran:?}"
        );
        assert_eq!(ran.stdout.text(), "", "{line}");
    }
}
