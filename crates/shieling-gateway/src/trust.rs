//! The certificate authority of one gateway, and what makes programs in its sandbox trust it.
//!
//! The authority's key never leaves this process. Its certificate is limited to the hosts of secrets (name
//! constraints), so that it is worth nothing for another host even where it is trusted.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, NameConstraints,
};
use ring::digest::{Context, SHA1_FOR_LEGACY_USE_ONLY};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use time::{Duration, OffsetDateTime};

use crate::name::HostName;
use crate::rule::Host;

/// How long certificates hold. Programs refuse longer ones than 398 days.
const VALID_DAYS: i64 = 90;

/// How far back certificates hold, for clocks that are not quite right.
const BACKDATED_DAYS: i64 = 1;

/// The most server configurations that are kept. A name beyond it has its certificate made anew.
const CONFIGS_MAX: usize = 256;

/// The password of the Java store, which Java's own has too. It keeps nothing secret.
const JAVA_PASSWORD: &str = "changeit";

/// Whose certificates the gateway trusts when it connects to the hosts of secrets.
#[derive(Debug, Clone, Default)]
pub enum Roots {
    /// The host's: the system's bundle, or the one that `SSL_CERT_FILE` and `SSL_CERT_DIR` name to all programs. Read
    /// once in a process.
    #[default]
    Host,
    /// These certificates alone, in PEM.
    Pem(String),
}

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

/// The public part of the certificate authority of one gateway.
///
/// The caller writes the files into the sandbox, sets [`Trust::variables`], and may put [`Trust::bundle_pem`] over the
/// system's own bundle (`/etc/ssl/certs/ca-certificates.crt`) in the sandbox's view.
#[derive(Debug)]
pub struct Trust {
    authority_pem: String,
    bundle_pem: String,
    java_store: Vec<u8>,
}

impl Trust {
    /// The certificate of the authority.
    #[must_use]
    pub fn authority_pem(&self) -> &str {
        &self.authority_pem
    }

    /// The trusted certificates of [`Roots`], with the authority's.
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
    /// Deno, gRPC, Java (which reports `JAVA_TOOL_OPTIONS` on stderr at each start).
    #[must_use]
    pub fn variables(&self, paths: &TrustPaths) -> Vec<(String, String)> {
        let bundle = paths.bundle.display().to_string();
        let authority = paths.authority.display().to_string();
        let mut variables: Vec<(String, String)> =
            WHOLE.iter().map(|name| ((*name).to_owned(), bundle.clone())).collect();
        for name in ADDED {
            variables.push((name.to_owned(), authority.clone()));
        }
        let store = paths.java_store.display();
        let java = format!("-Djavax.net.ssl.trustStore={store} -Djavax.net.ssl.trustStorePassword={JAVA_PASSWORD}");
        variables.push((JAVA.to_owned(), java));
        variables
    }
}

/// The variables that name all certificates.
const WHOLE: [&str; 11] = [
    "SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "AWS_CA_BUNDLE",
    "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH",
    "HTTPLIB2_CA_CERTS",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "NIX_SSL_CERT_FILE",
];

/// The variables that name one certificate, besides the program's own list.
const ADDED: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "DENO_CERT"];

const JAVA: &str = "JAVA_TOOL_OPTIONS";

/// Whether a variable is one of [`Trust::variables`].
pub(crate) fn sets(variable: &str) -> bool {
    WHOLE.contains(&variable) || ADDED.contains(&variable) || variable == JAVA
}

/// Server configurations by name and protocol.
type Configs = HashMap<(HostName, Vec<u8>), Arc<ServerConfig>>;

/// The certificate authority of one gateway with its key, and the client's side of TLS.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    /// One key for all hosts: making one takes longer than signing.
    leaf_key: KeyPair,
    configs: Mutex<Configs>,
    client: Arc<ClientConfig>,
    trust: Trust,
}

impl Authority {
    /// Makes an authority for the hosts of secrets.
    ///
    /// # Errors
    /// If no key can be made, or there are no trusted certificates.
    pub(crate) fn new<'a>(hosts: impl Iterator<Item = &'a Host>, roots: &Roots) -> Result<Self, String> {
        let trusted = Trusted::of(roots)?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(Arc::clone(&trusted.store))
            .with_no_client_auth();
        let failed = |error: rcgen::Error| error.to_string();
        let key = KeyPair::generate().map_err(failed)?;
        let params = authority_params(hosts);
        let certificate = params.self_signed(&key).map_err(failed)?;
        let ours = certificate.der();
        let trust = Trust {
            authority_pem: certificate.pem(),
            bundle_pem: format!("{}{}", trusted.pem, certificate.pem()),
            java_store: java_store(trusted.certificates.iter().chain([ours]).map(AsRef::as_ref)),
        };
        Ok(Self {
            issuer: Issuer::new(params, key),
            leaf_key: KeyPair::generate().map_err(failed)?,
            configs: Mutex::default(),
            client: Arc::new(client),
            trust,
        })
    }

    pub(crate) fn trust(&self) -> &Trust {
        &self.trust
    }

    /// The client's side, which verifies hosts by the trusted certificates.
    pub(crate) fn client(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.client)
    }

    /// The server's side for a name, which speaks one protocol (ALPN), or none if `protocol` is empty.
    pub(crate) fn server(&self, name: &HostName, protocol: &[u8]) -> Result<Arc<ServerConfig>, String> {
        let key = (name.clone(), protocol.to_vec());
        if let Some(config) = self.configs.lock().expect("no panic while held").get(&key) {
            return Ok(Arc::clone(config));
        }
        let mut params = CertificateParams::new([name.to_string()]).map_err(|error| error.to_string())?;
        (params.not_before, params.not_after) = validity();
        params
            .distinguished_name
            .push(DnType::CommonName, "Shieling gateway host");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.use_authority_key_identifier_extension = true;
        let certificate = params
            .signed_by(&self.leaf_key, &self.issuer)
            .map_err(|error| error.to_string())?;
        let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(self.leaf_key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .and_then(|builder| {
                builder
                    .with_no_client_auth()
                    .with_single_cert(vec![certificate.der().clone()], private)
            })
            .map_err(|error| error.to_string())?;
        if !protocol.is_empty() {
            config.alpn_protocols = vec![protocol.to_vec()];
        }
        let config = Arc::new(config);
        let mut configs = self.configs.lock().expect("no panic while held");
        if configs.len() < CONFIGS_MAX {
            configs.insert(key, Arc::clone(&config));
        }
        Ok(config)
    }
}

/// The authority's certificate, limited to the hosts.
fn authority_params<'a>(hosts: impl Iterator<Item = &'a Host>) -> CertificateParams {
    let mut params = CertificateParams::default();
    (params.not_before, params.not_after) = validity();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::CrlSign,
        KeyUsagePurpose::DigitalSignature,
    ];
    params
        .distinguished_name
        .push(DnType::CommonName, "Shieling gateway of one sandbox");
    let mut permitted_subtrees: Vec<GeneralSubtree> = Vec::new();
    for host in hosts {
        let (Host::Name(name) | Host::Under(name)) = host else {
            continue;
        };
        let subtree = GeneralSubtree::DnsName(name.to_string());
        if !permitted_subtrees.contains(&subtree) {
            permitted_subtrees.push(subtree);
        }
    }
    params.name_constraints = Some(NameConstraints {
        permitted_subtrees,
        excluded_subtrees: Vec::new(),
    });
    params
}

fn validity() -> (OffsetDateTime, OffsetDateTime) {
    let now = OffsetDateTime::now_utc();
    (now - Duration::days(BACKDATED_DAYS), now + Duration::days(VALID_DAYS))
}

/// Trusted certificates, in the forms that are needed.
struct Trusted {
    certificates: Vec<CertificateDer<'static>>,
    store: Arc<RootCertStore>,
    pem: String,
}

impl Trusted {
    /// The certificates of a configuration. The host's are read once in a process: that takes longer than all of the
    /// rest.
    fn of(roots: &Roots) -> Result<Arc<Self>, String> {
        static HOST: OnceLock<Arc<Trusted>> = OnceLock::new();
        match roots {
            Roots::Host => match HOST.get() {
                Some(host) => Ok(Arc::clone(host)),
                None => Ok(Arc::clone(HOST.get_or_init({
                    let host = Self::read_host()?;
                    || Arc::new(host)
                }))),
            },
            Roots::Pem(text) => {
                let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(text.as_bytes()).collect();
                let certificates = certificates.map_err(|error| format!("the trusted certificates: {error}"))?;
                Self::new(certificates).map(Arc::new)
            }
        }
    }

    fn read_host() -> Result<Self, String> {
        let found = rustls_native_certs::load_native_certs();
        match (found.certs.is_empty(), found.errors.first()) {
            (true, Some(error)) => Err(format!("the host's trusted certificates: {error}")),
            _ => Self::new(found.certs),
        }
    }

    fn new(certificates: Vec<CertificateDer<'static>>) -> Result<Self, String> {
        let mut store = RootCertStore::empty();
        let (added, _) = store.add_parsable_certificates(certificates.iter().cloned());
        if added == 0 {
            return Err("no trusted certificate was found".to_owned());
        }
        let pem = certificates.iter().map(|certificate| pem(certificate)).collect();
        Ok(Self {
            certificates,
            store: Arc::new(store),
            pem,
        })
    }
}

/// A certificate in PEM.
fn pem(certificate: &[u8]) -> String {
    let mut text = String::from("-----BEGIN CERTIFICATE-----\n");
    for line in STANDARD.encode(certificate).as_bytes().chunks(64) {
        text.push_str(&String::from_utf8_lossy(line));
        text.push('\n');
    }
    text.push_str("-----END CERTIFICATE-----\n");
    text
}

/// A Java key store (JKS, version 2) of trusted certificates. Java reads it whatever its default format is.
fn java_store<'a>(certificates: impl Iterator<Item = &'a [u8]>) -> Vec<u8> {
    const MAGIC: u32 = 0xfeed_feed;
    const VERSION: u32 = 2;
    const TRUSTED_CERTIFICATE: u32 = 2;
    fn text(store: &mut Vec<u8>, text: &str) {
        store.extend(u16::try_from(text.len()).unwrap_or_default().to_be_bytes());
        store.extend(text.as_bytes());
    }
    let mut entries = Vec::new();
    let mut count = 0_u32;
    for certificate in certificates {
        entries.extend(TRUSTED_CERTIFICATE.to_be_bytes());
        text(&mut entries, &format!("ca{count}"));
        entries.extend(0_u64.to_be_bytes()); // the entry's date, in milliseconds
        text(&mut entries, "X.509");
        entries.extend(u32::try_from(certificate.len()).unwrap_or_default().to_be_bytes());
        entries.extend(certificate);
        count += 1;
    }
    let mut store = Vec::new();
    for number in [MAGIC, VERSION, count] {
        store.extend(number.to_be_bytes());
    }
    store.extend(entries);
    let mut digest = Context::new(&SHA1_FOR_LEGACY_USE_ONLY);
    for unit in JAVA_PASSWORD.encode_utf16() {
        digest.update(&unit.to_be_bytes());
    }
    // The format's own constant.
    digest.update(b"Mighty Aphrodite");
    digest.update(&store);
    store.extend(digest.finish().as_ref());
    store
}

#[cfg(test)]
mod tests {
    use rustls::client::danger::ServerCertVerifier as _;
    use rustls::pki_types::{ServerName, UnixTime};

    use super::*;

    fn authority(host: &str) -> Authority {
        let host = Host::Name(HostName::parse(host).unwrap());
        let root = CertificateParams::new(Vec::new()).unwrap();
        let root = root.self_signed(&KeyPair::generate().unwrap()).unwrap();
        Authority::new([&host].into_iter(), &Roots::Pem(root.pem())).unwrap()
    }

    /// Whether a client that trusts `trusted` accepts a certificate of `signer` for `name`.
    fn accepts(trusted: &Authority, signer: &Authority, name: &str) -> bool {
        let mut params = CertificateParams::new([name.to_owned()]).unwrap();
        (params.not_before, params.not_after) = validity();
        let certificate = params.signed_by(&signer.leaf_key, &signer.issuer).unwrap();
        let mut store = RootCertStore::empty();
        store
            .add(CertificateDer::from_pem_slice(trusted.trust.authority_pem.as_bytes()).unwrap())
            .unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = rustls::client::WebPkiServerVerifier::builder_with_provider(Arc::new(store), provider)
            .build()
            .unwrap();
        let server = ServerName::try_from(name.to_owned()).unwrap();
        verifier
            .verify_server_cert(certificate.der(), &[], &server, &[], UnixTime::now())
            .is_ok()
    }

    #[test]
    fn an_authority_vouches_for_the_hosts_of_secrets_and_for_its_own_sandbox_alone() {
        let (ours, theirs) = (authority("api.example.org"), authority("api.example.org"));
        assert!(accepts(&ours, &ours, "api.example.org"));
        assert!(!accepts(&ours, &ours, "pypi.org"), "the name constraints hold");
        assert!(
            !accepts(&ours, &theirs, "api.example.org"),
            "another sandbox's authority"
        );
    }

    #[test]
    fn the_bundle_has_the_roots_and_the_authority_and_the_configurations_are_kept() {
        let authority = authority("api.example.org");
        let trust = authority.trust();
        assert!(trust.bundle_pem().ends_with(trust.authority_pem()));
        assert_eq!(trust.bundle_pem().matches("BEGIN CERTIFICATE").count(), 2);
        let name = HostName::parse("api.example.org").unwrap();
        let first = authority.server(&name, b"h2").unwrap();
        assert!(Arc::ptr_eq(&first, &authority.server(&name, b"h2").unwrap()));
        assert_eq!(first.alpn_protocols, [b"h2".to_vec()]);
        let paths = TrustPaths {
            authority: "/a.pem".into(),
            bundle: "/b.pem".into(),
            java_store: "/j".into(),
        };
        let variables = trust.variables(&paths);
        assert!(variables.contains(&("NODE_EXTRA_CA_CERTS".to_owned(), "/a.pem".to_owned())));
        assert!(variables.contains(&("SSL_CERT_FILE".to_owned(), "/b.pem".to_owned())));
    }

    #[test]
    fn no_trusted_certificate_is_an_error() {
        let host = Host::Name(HostName::parse("a.org").unwrap());
        assert!(Authority::new([&host].into_iter(), &Roots::Pem(String::new())).is_err());
    }
}
