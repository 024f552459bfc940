//! The certificate authority of one gateway, and what makes programs in its sandbox trust it.

use std::path::PathBuf;

/// Where the files of a [`Trust`] stand inside of the sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustPaths {
    /// [`Trust::authority_pem`].
    pub authority: PathBuf,
    /// [`Trust::bundle_pem`].
    pub bundle: PathBuf,
    /// [`Trust::java_store`].
    pub java_store: PathBuf,
}

/// The certificate authority of one gateway. Its key exists in the gateway's memory alone, and its certificates are
/// for the hosts of secrets alone (name constraints).
///
/// The caller writes the files into the sandbox, sets [`Trust::variables`], and may put [`Trust::bundle_pem`] over the
/// system's own bundle (`/etc/ssl/certs/ca-certificates.crt`) in the sandbox's view.
#[derive(Debug)]
pub struct Trust {
    pub(crate) authority_pem: String,
    pub(crate) bundle_pem: String,
    pub(crate) java_store: Vec<u8>,
}

impl Trust {
    /// The certificate of the authority.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The host's trusted certificates, with the authority's.
    #[must_use]
    pub fn bundle_pem(&self) -> &str {
        &self.bundle_pem
    }

    /// The same certificates as a Java key store (JKS), whose password is `changeit`.
    #[must_use]
    pub fn java_store(&self) -> &[u8] {
        &self.java_store
    }

    /// Variables that make programs use these files: OpenSSL, curl, Python's `requests`, pip, Node, git, cargo, AWS,
    /// Deno, gRPC. Java reads its own store; `-Djavax.net.ssl.trustStore=` names another one (`JAVA_TOOL_OPTIONS`).
    #[must_use]
    pub fn variables(&self, paths: &TrustPaths) -> Vec<(String, String)> {
        let bundle = paths.bundle.display().to_string();
        let authority = paths.authority.display().to_string();
        let whole = [
            "SSL_CERT_FILE",
            "CURL_CA_BUNDLE",
            "REQUESTS_CA_BUNDLE",
            "PIP_CERT",
            "GIT_SSL_CAINFO",
            "CARGO_HTTP_CAINFO",
            "AWS_CA_BUNDLE",
            "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
        ];
        let mut variables: Vec<(String, String)> =
            whole.iter().map(|name| ((*name).to_owned(), bundle.clone())).collect();
        // These add to the program's own list.
        for name in ["NODE_EXTRA_CA_CERTS", "DENO_CERT"] {
            variables.push((name.to_owned(), authority.clone()));
        }
        let java = format!(
            "-Djavax.net.ssl.trustStore={} -Djavax.net.ssl.trustStorePassword=changeit",
            paths.java_store.display()
        );
        variables.push(("JAVA_TOOL_OPTIONS".to_owned(), java));
        variables
    }
}
