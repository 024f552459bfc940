//! DNS messages: one query in, one reply out.
//!
//! Pure. What a name leads to is decided by the caller ([`Finding`]); nothing is forwarded anywhere.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::{A, AAAA, PTR, SOA};
use hickory_proto::rr::{DNSClass, Name, RData, Record, RecordType};

use crate::name::HostName;

/// How long programs may keep an answer, in seconds. An address stands for its name as long as the sandbox lives.
const TTL_SECONDS: u32 = 300;

/// How long programs may keep that there is nothing, in seconds: not at all, since an answer may allow a name.
const NEGATIVE_TTL_SECONDS: u32 = 0;

/// The longest query over UDP that is read, in bytes.
pub(crate) const QUERY_BYTES_MAX: usize = 4096;

/// The size of datagrams that replies announce (EDNS).
const PAYLOAD: u16 = 1232;

/// What a question asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The addresses or other records of a name.
    Name(HostName),
    /// The name of an address.
    Reverse(IpAddr),
    /// A name that no host has, in the escaped form of zone files, for the record.
    NoHost(String),
}

/// A well-formed query.
#[derive(Debug)]
pub(crate) struct Question {
    pub(crate) asked: Asked,
    /// Whether the type has addresses as its answer.
    pub(crate) for_address: bool,
    id: u16,
    recursion_desired: bool,
    edns: bool,
    query: Query,
}

/// What the answer to a question is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Finding {
    /// The addresses of the name.
    Addresses {
        /// The IPv4 address.
        v4: Ipv4Addr,
        /// The IPv6 address, if there is one.
        v6: Option<Ipv6Addr>,
    },
    /// The name of the address.
    Pointer(HostName),
    /// The name exists and has no record of this type.
    NoData,
    /// There is no such name.
    NoName,
    /// No address can be given now.
    Failure,
}

/// Reads a query. An error is the reply to send at once, or nothing where no reply is due.
pub(crate) fn read(bytes: &[u8]) -> Result<Question, Option<Vec<u8>>> {
    // A reply to what is no query at all could be used to have two servers talk to each other.
    let [high, low, flags, _, ..] = *bytes else {
        return Err(None);
    };
    if bytes.len() < 12 || flags & 0x80 != 0 {
        return Err(None);
    }
    let id = u16::from_be_bytes([high, low]);
    let error = |code| Err(Message::error_msg(id, OpCode::Query, code).to_vec().ok());
    let Ok(message) = Message::from_vec(bytes) else {
        return error(ResponseCode::FormErr);
    };
    if message.metadata.message_type != MessageType::Query {
        return Err(None);
    }
    if message.metadata.op_code != OpCode::Query {
        return error(ResponseCode::NotImp);
    }
    let [query] = message.queries.as_slice() else {
        return error(ResponseCode::FormErr);
    };
    if query.query_class() != DNSClass::IN {
        return error(ResponseCode::Refused);
    }
    if message.edns.as_ref().is_some_and(|edns| edns.version() != 0) {
        return error(ResponseCode::BADVERS);
    }
    let record_type = query.query_type();
    if matches!(record_type, RecordType::AXFR | RecordType::IXFR) {
        return error(ResponseCode::Refused);
    }
    Ok(Question {
        asked: asked(query.name()),
        for_address: matches!(record_type, RecordType::A | RecordType::AAAA | RecordType::ANY),
        id,
        recursion_desired: message.metadata.recursion_desired,
        edns: message.edns.is_some(),
        query: query.clone(),
    })
}

/// What a name in a question means.
fn asked(name: &Name) -> Asked {
    let labels: Option<Vec<&str>> = name.iter().map(|label| std::str::from_utf8(label).ok()).collect();
    let no_dots = |labels: &Vec<&str>| labels.iter().all(|label| !label.contains('.'));
    match labels
        .filter(no_dots)
        .and_then(|labels| HostName::parse(&labels.join(".")).ok())
    {
        Some(host) => match reverse(&host) {
            Some(address) => Asked::Reverse(address),
            None => Asked::Name(host),
        },
        None => Asked::NoHost(name.to_ascii()),
    }
}

/// The address whose reverse name this is.
fn reverse(host: &HostName) -> Option<IpAddr> {
    if let Some(labels) = host.as_str().strip_suffix(".in-addr.arpa") {
        let mut octets: Vec<&str> = labels.split('.').collect();
        octets.reverse();
        return octets.join(".").parse().ok().map(IpAddr::V4);
    }
    let labels: Vec<&str> = host.as_str().strip_suffix(".ip6.arpa")?.split('.').collect();
    let digit = |label: &&str| {
        if label.len() == 1 {
            u128::from_str_radix(label, 16).ok()
        } else {
            None
        }
    };
    let digits: Vec<u128> = labels.iter().map(digit).collect::<Option<_>>()?;
    let bits = digits.iter().rev().fold(0_u128, |bits, digit| (bits << 4) | digit);
    (digits.len() == 32).then(|| IpAddr::V6(bits.into()))
}

impl Question {
    /// Writes the reply.
    pub(crate) fn reply(&self, finding: &Finding) -> Option<Vec<u8>> {
        let mut message = Message::response(self.id, OpCode::Query);
        message.metadata.authoritative = true;
        message.metadata.recursion_desired = self.recursion_desired;
        message.metadata.recursion_available = true;
        message.add_query(self.query.clone());
        let name = self.query.name();
        let mut answer = |data| {
            message.add_answer(Record::from_rdata(name.clone(), TTL_SECONDS, data));
        };
        let wanted = self.query.query_type();
        let wants = |record_type| wanted == record_type || wanted == RecordType::ANY;
        match finding {
            Finding::Addresses { v4, v6 } => {
                if wants(RecordType::A) {
                    answer(RData::A(A(*v4)));
                }
                if let Some(v6) = v6
                    && wants(RecordType::AAAA)
                {
                    answer(RData::AAAA(AAAA(*v6)));
                }
            }
            Finding::Pointer(host) if wants(RecordType::PTR) => {
                answer(RData::PTR(PTR(Name::from_ascii(format!("{host}.")).ok()?)));
            }
            Finding::Pointer(_) | Finding::NoData => {}
            Finding::NoName => message.metadata.response_code = ResponseCode::NXDomain,
            Finding::Failure => message.metadata.response_code = ResponseCode::ServFail,
        }
        if message.answers.is_empty() && *finding != Finding::Failure {
            // Resolvers take a reply without records for final only with the zone's SOA (RFC 2308).
            let server = Name::from_ascii("gateway.invalid.").ok()?;
            let ttl = i32::try_from(TTL_SECONDS).ok()?;
            let soa = SOA::new(server.clone(), server, 1, ttl, ttl, ttl, NEGATIVE_TTL_SECONDS);
            message.add_authority(Record::from_rdata(Name::root(), NEGATIVE_TTL_SECONDS, RData::SOA(soa)));
        }
        if self.edns {
            let mut edns = Edns::new();
            edns.set_max_payload(PAYLOAD);
            message.set_edns(edns);
        }
        message.to_vec().ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn query(name: &str, record_type: RecordType) -> Message {
        let mut message = Message::new(7, MessageType::Query, OpCode::Query);
        message.metadata.recursion_desired = true;
        message.add_query(Query::query(Name::from_ascii(name).unwrap(), record_type));
        message
    }

    fn question(name: &str, record_type: RecordType) -> Question {
        read(&query(name, record_type).to_vec().unwrap()).unwrap()
    }

    fn code(reply: Result<Question, Option<Vec<u8>>>) -> ResponseCode {
        Message::from_vec(&reply.unwrap_err().unwrap())
            .unwrap()
            .metadata
            .response_code
    }

    #[test]
    fn a_question_is_answered_in_the_spelling_in_which_it_was_asked() {
        let asked = question("PyPi.oRg.", RecordType::A);
        assert_eq!(asked.asked, Asked::Name(HostName::parse("pypi.org").unwrap()));
        let finding = Finding::Addresses {
            v4: Ipv4Addr::new(198, 18, 0, 20),
            v6: None,
        };
        let reply = Message::from_vec(&asked.reply(&finding).unwrap()).unwrap();
        assert_eq!(reply.metadata.id, 7);
        assert_eq!(reply.queries[0].name().to_ascii(), "PyPi.oRg.");
        assert_eq!(reply.answers.len(), 1);
        assert_eq!(reply.answers[0].data, RData::A(A(Ipv4Addr::new(198, 18, 0, 20))));
        assert!(reply.metadata.recursion_available && reply.metadata.authoritative);
    }

    #[test]
    fn a_type_without_records_is_no_data_and_an_unknown_name_does_not_exist() {
        let finding = Finding::Addresses {
            v4: Ipv4Addr::LOCALHOST,
            v6: None,
        };
        for record_type in [RecordType::AAAA, RecordType::HTTPS, RecordType::MX, RecordType::TXT] {
            let reply = Message::from_vec(&question("pypi.org.", record_type).reply(&finding).unwrap()).unwrap();
            assert_eq!(
                (
                    reply.metadata.response_code,
                    reply.answers.len(),
                    reply.authorities.len()
                ),
                (ResponseCode::NoError, 0, 1)
            );
        }
        let reply = Message::from_vec(&question("evil.org.", RecordType::A).reply(&Finding::NoName).unwrap()).unwrap();
        assert_eq!(
            (reply.metadata.response_code, reply.authorities.len()),
            (ResponseCode::NXDomain, 1)
        );
    }

    #[test]
    fn labels_that_no_host_has_are_no_names() {
        let odd = |labels: &[&[u8]]| asked(&Name::from_labels(labels.iter().copied()).unwrap());
        assert!(
            matches!(odd(&[b"pypi.org"]), Asked::NoHost(_)),
            "a dot in a label is not a separator"
        );
        assert!(matches!(odd(&[b"pypi\0", b"org"]), Asked::NoHost(_)));
        assert!(matches!(odd(&[b"\xff\xfe", b"org"]), Asked::NoHost(_)));
        assert!(
            matches!(odd(&["pypі".as_bytes(), b"org"]), Asked::NoHost(_)),
            "a Cyrillic look-alike"
        );
        assert!(matches!(odd(&[b"127", b"0", b"0", b"1"]), Asked::NoHost(_)));
        assert!(matches!(odd(&[b"0x7f000001"]), Asked::NoHost(_)));
    }

    #[test]
    fn reverse_names_are_read_in_both_families() {
        assert_eq!(
            question("20.0.18.198.in-addr.arpa.", RecordType::PTR).asked,
            Asked::Reverse("198.18.0.20".parse().unwrap())
        );
        let six = "1.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.1.e.e.5.0.0.d.f.ip6.arpa.";
        assert_eq!(
            question(six, RecordType::PTR).asked,
            Asked::Reverse("fd00:5ee1::1".parse().unwrap())
        );
        assert!(matches!(
            question("x.in-addr.arpa.", RecordType::PTR).asked,
            Asked::Name(_)
        ));
    }

    #[test]
    fn what_is_no_query_gets_no_reply_and_what_is_a_wrong_one_an_error() {
        let mut response = query("pypi.org.", RecordType::A);
        response.metadata.message_type = MessageType::Response;
        assert!(matches!(read(&response.to_vec().unwrap()), Err(None)));
        assert!(matches!(read(b"short"), Err(None)));
        let mut two = query("pypi.org.", RecordType::A);
        two.add_query(Query::query(Name::from_ascii("b.org.").unwrap(), RecordType::A));
        assert_eq!(code(read(&two.to_vec().unwrap())), ResponseCode::FormErr);
        let mut update = query("pypi.org.", RecordType::A);
        update.metadata.op_code = OpCode::Update;
        assert_eq!(code(read(&update.to_vec().unwrap())), ResponseCode::NotImp);
        assert_eq!(
            code(read(&query("pypi.org.", RecordType::AXFR).to_vec().unwrap())),
            ResponseCode::Refused
        );
    }

    proptest! {
        #[test]
        fn no_bytes_panic_and_every_question_has_a_reply_of_its_id(mut bytes in proptest::collection::vec(any::<u8>(), 0..200), head in any::<bool>()) {
            if head && bytes.len() > 12 {
                bytes[2..12].copy_from_slice(&[1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
            }
            match read(&bytes) {
                Ok(question) => {
                    let reply = question.reply(&Finding::NoName).unwrap();
                    prop_assert_eq!(&reply[..2], &bytes[..2]);
                    prop_assert!(reply.len() <= 512);
                }
                Err(Some(reply)) => prop_assert_eq!(&reply[..2], &bytes[..2]),
                Err(None) => {}
            }
        }
    }
}
