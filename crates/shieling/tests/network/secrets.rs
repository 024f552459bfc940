//! Secrets that commands use and never see.

use shieling::approval::Mode;
use shieling::network::{Roots, Secret, SecretSpec};

use crate::place::{Place, has};

const VALUE: &str = "ghp_r8Qx2LmN7vYt5KpW3sZd9JfB";

fn with_secret() -> Place {
    Place::built(&[], |builder| {
        let spec: SecretSpec = "API_TOKEN@api.example.org"
            .parse()
            .expect("a secret of ours is well formed");
        let secret = Secret::new(spec, VALUE).expect("a value of ours is long enough");
        builder.approval(Mode::Never).roots(Roots::Host).secret(secret)
    })
}

#[test]
fn the_variable_holds_a_placeholder_of_the_same_look() {
    let place = with_secret();
    let printed = place.prints("printf %s \"$API_TOKEN\"");
    assert_eq!(printed.len(), VALUE.len());
    assert_ne!(printed, VALUE);
    assert_eq!(
        place.prints("printf %s \"$API_TOKEN\""),
        printed,
        "as long as the sandbox lasts"
    );
    // It is in no place that a command can look at.
    let found = place.run(&format!(
        "grep -rlF {} /proc/*/environ /etc /tmp . 2>/dev/null",
        &VALUE[4..20]
    ));
    assert_eq!(found.stdout, "", "{found:?}");
}

#[test]
fn what_a_command_prints_of_it_is_the_placeholder() {
    let place = with_secret();
    let placeholder = place.prints("printf %s \"$API_TOKEN\"");
    // A file of the workspace may hold it.
    std::fs::write(place.workspace.path().join("env"), VALUE).expect("our own file");
    let outcome = place.run("cat env; cat env >&2; base64 -w0 env");
    for said in [&outcome.stdout, &outcome.stderr] {
        assert!(!said.contains(VALUE) && said.contains(&placeholder), "{outcome:?}");
    }
    let (half, rest) = VALUE.split_at(9);
    let halves = place.prints(&format!("printf %s {half}; sleep 0.2; printf %s {rest}"));
    assert_eq!(halves, placeholder, "in two parts");
}

#[test]
fn programs_trust_the_authority_of_the_gateway() {
    let place = with_secret();
    for variable in [
        "SSL_CERT_FILE",
        "REQUESTS_CA_BUNDLE",
        "GIT_SSL_CAINFO",
        "CARGO_HTTP_CAINFO",
        "NODE_EXTRA_CA_CERTS",
    ] {
        let printed = place.prints(&format!("grep -c 'BEGIN CERTIFICATE' \"${variable}\""));
        assert_ne!(printed, "0", "{variable}");
    }
    let bundle = std::path::Path::new("/etc/ssl/certs/ca-certificates.crt");
    if bundle.exists() {
        // The system's own has one more.
        assert_eq!(
            place.prints("cmp /etc/ssl/certs/ca-certificates.crt \"$SSL_CERT_FILE\" && echo same"),
            "same"
        );
        let own = std::fs::read_to_string(bundle).expect("it is public");
        let inside: usize = place
            .prints("grep -c 'BEGIN CERT' \"$SSL_CERT_FILE\"")
            .parse()
            .expect("a number");
        assert!(inside > own.matches("BEGIN CERT").count() / 2, "{inside}");
    }
    if has("openssl") {
        let printed =
            place.prints("openssl x509 -in \"$NODE_EXTRA_CA_CERTS\" -noout -text | grep -A2 'Name Constraints'");
        assert!(printed.contains("Name Constraints"), "{printed}");
    }
    if has("keytool") && std::path::Path::new("/etc/ssl/certs/java/cacerts").exists() {
        let printed = place
            .prints("keytool -list -keystore /etc/ssl/certs/java/cacerts -storepass changeit 2>/dev/null | head -5");
        assert!(printed.contains("entries"), "{printed}");
    }
}

#[test]
fn a_secret_opens_its_host_and_no_other() {
    let place = with_secret();
    assert_ne!(place.prints("getent hosts api.example.org"), "");
    let denied = place.fails("getent hosts example.org");
    assert!(denied.iter().any(|denied| denied.host == "example.org"), "{denied:?}");
}
