//! Classes of addresses: which ones a public name must not lead to.
//!
//! A table of the special-purpose registries of IANA, with the metadata services of clouds. Knows no rules: whether
//! the user named an address is decided in `permit`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};

/// The class of an address that is not a public unicast one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// This machine itself, including the unspecified address, which connects to it.
    Loopback,
    /// Networks of an organisation, a provider's customers, or unique local addresses.
    Private,
    /// Addresses of one link.
    LinkLocal,
    /// The metadata service of a cloud, which hands out credentials.
    Metadata,
    /// Multicast and broadcast.
    Multicast,
    /// Reserved: for benchmarks (the gateway's own addresses), or of a transition mechanism.
    Reserved,
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Loopback => "loopback",
            Self::Private => "private",
            Self::LinkLocal => "link-local",
            Self::Metadata => "cloud metadata",
            Self::Multicast => "multicast",
            Self::Reserved => "reserved",
        })
    }
}

const fn v4(a: u8, b: u8, c: u8, d: u8, bits: u8) -> Ipv4Net {
    Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, d), bits)
}

const fn v6(segments: [u16; 8], bits: u8) -> Ipv6Net {
    let [a, b, c, d, e, f, g, h] = segments;
    Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, d, e, f, g, h), bits)
}

// The networks for documentation (192.0.2.0/24, 198.51.100.0/24, 203.0.113.0/24, 2001:db8::/32, 3fff::/20) are not listed:
// nothing private is there, and resolvers of closed networks give such addresses to public names, for their mirrors.

/// IPv4: the first entry that contains an address is its class.
const V4: &[(Ipv4Net, AddressClass)] = &[
    // AWS, Google, Azure, Oracle, OpenStack; Alibaba; Azure's wire server; Oracle.
    (v4(169, 254, 169, 254, 32), AddressClass::Metadata),
    // AWS: credentials of ECS tasks and EKS pods.
    (v4(169, 254, 170, 0, 24), AddressClass::Metadata),
    (v4(100, 100, 100, 200, 32), AddressClass::Metadata),
    (v4(168, 63, 129, 16, 32), AddressClass::Metadata),
    (v4(192, 0, 0, 192, 32), AddressClass::Metadata),
    (v4(0, 0, 0, 0, 8), AddressClass::Loopback),
    (v4(127, 0, 0, 0, 8), AddressClass::Loopback),
    (v4(10, 0, 0, 0, 8), AddressClass::Private),
    (v4(172, 16, 0, 0, 12), AddressClass::Private),
    (v4(192, 168, 0, 0, 16), AddressClass::Private),
    (v4(100, 64, 0, 0, 10), AddressClass::Private),
    (v4(169, 254, 0, 0, 16), AddressClass::LinkLocal),
    (v4(192, 0, 0, 0, 24), AddressClass::Reserved),
    (v4(192, 88, 99, 0, 24), AddressClass::Reserved),
    (v4(198, 18, 0, 0, 15), AddressClass::Reserved),
    (v4(224, 0, 0, 0, 4), AddressClass::Multicast),
    (v4(255, 255, 255, 255, 32), AddressClass::Multicast),
    (v4(240, 0, 0, 0, 4), AddressClass::Reserved),
];

/// IPv6, likewise. Addresses that carry an IPv4 address are judged by that first.
const V6: &[(Ipv6Net, AddressClass)] = &[
    (v6([0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254], 128), AddressClass::Metadata),
    (v6([0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254], 128), AddressClass::Metadata),
    (v6([0, 0, 0, 0, 0, 0, 0, 0], 127), AddressClass::Loopback),
    (v6([0xfc00, 0, 0, 0, 0, 0, 0, 0], 7), AddressClass::Private),
    (v6([0xfec0, 0, 0, 0, 0, 0, 0, 0], 10), AddressClass::Private),
    (v6([0xfe80, 0, 0, 0, 0, 0, 0, 0], 10), AddressClass::LinkLocal),
    (v6([0xff00, 0, 0, 0, 0, 0, 0, 0], 8), AddressClass::Multicast),
    // Teredo, ORCHID, benchmarks.
    (v6([0x2001, 0, 0, 0, 0, 0, 0, 0], 23), AddressClass::Reserved),
];

/// The only block from which public IPv6 addresses are given out.
const V6_PUBLIC: Ipv6Net = v6([0x2000, 0, 0, 0, 0, 0, 0, 0], 3);

/// The IPv4 address that an IPv6 address stands for: mapped, compatible, NAT64, 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = address.segments();
    let from = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match s {
        // `::` and `::1` are IPv6 addresses of their own.
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xffff, high, low]
        | [0, 0, 0, 0, 0xffff, 0, high, low]
        | [0x64, 0xff9b, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => Some(from(high, low)),
        _ => None,
    }
}

/// The address that a connection to `address` reaches: the IPv4 one for a mapped address.
#[must_use]
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// The class of an address; `None` if it is a public unicast address.
#[must_use]
pub(crate) fn class(address: IpAddr) -> Option<AddressClass> {
    match canonical(address) {
        IpAddr::V4(address) => V4
            .iter()
            .find(|(net, _)| net.contains(&address))
            .map(|(_, class)| *class),
        IpAddr::V6(address) => {
            if let Some(inner) = embedded(address) {
                return Some(class(IpAddr::V4(inner)).unwrap_or(AddressClass::Reserved));
            }
            let listed = V6
                .iter()
                .find(|(net, _)| net.contains(&address))
                .map(|(_, class)| *class);
            listed.or_else(|| (!V6_PUBLIC.contains(&address)).then_some(AddressClass::Reserved))
        }
    }
}

/// Whether a network that the user named opens a non-public address in it: only if the network lies as a whole in the
/// special block of the address. `0.0.0.0/0` names the public addresses, and neither it nor `169.254.0.0/16` the
/// metadata service.
#[must_use]
pub(crate) fn names_special(network: &IpNet, address: IpAddr) -> bool {
    let address = canonical(address);
    if !network.contains(&address) {
        return false;
    }
    let inside = |block: IpNet| block.contains(network);
    // The whole of link-local does not name the metadata service in it.
    let metadata = class(address) == Some(AddressClass::Metadata);
    let counts = |class: AddressClass| !metadata || class == AddressClass::Metadata;
    match address {
        IpAddr::V4(v4) => {
            let blocks = V4.iter().filter(|(net, class)| net.contains(&v4) && counts(*class));
            blocks.map(|(net, _)| IpNet::V4(*net)).any(inside)
        }
        IpAddr::V6(v6) => {
            let blocks = V6.iter().filter(|(net, class)| net.contains(&v6) && counts(*class));
            blocks.map(|(net, _)| IpNet::V6(*net)).any(inside) || network.prefix_len() == 128
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn of(text: &str) -> Option<AddressClass> {
        class(text.parse().unwrap())
    }

    #[test]
    fn public_addresses_pass_and_special_ones_have_a_class() {
        for public in [
            "1.1.1.1",
            "151.101.0.223",
            "172.15.0.1",
            "203.0.113.80",
            "172.32.0.1",
            "2606:4700::1111",
            "2a04:4e42::223",
        ] {
            assert_eq!(of(public), None, "{public}");
        }
        let table = [
            ("127.0.0.1", AddressClass::Loopback),
            ("127.255.255.254", AddressClass::Loopback),
            ("0.0.0.0", AddressClass::Loopback),
            ("0.1.2.3", AddressClass::Loopback),
            ("::1", AddressClass::Loopback),
            ("::", AddressClass::Loopback),
            ("::ffff:127.0.0.1", AddressClass::Loopback),
            ("::127.0.0.1", AddressClass::Loopback),
            ("::ffff:0:127.0.0.1", AddressClass::Loopback),
            ("10.1.2.3", AddressClass::Private),
            ("172.31.255.255", AddressClass::Private),
            ("192.168.0.1", AddressClass::Private),
            ("100.64.0.1", AddressClass::Private),
            ("::ffff:192.168.0.1", AddressClass::Private),
            ("64:ff9b::10.0.0.1", AddressClass::Private),
            ("2002:a00:1::", AddressClass::Private),
            ("fd12::1", AddressClass::Private),
            ("fec0::1", AddressClass::Private),
            ("169.254.1.1", AddressClass::LinkLocal),
            ("fe80::1", AddressClass::LinkLocal),
            ("169.254.169.254", AddressClass::Metadata),
            ("169.254.170.2", AddressClass::Metadata),
            ("100.100.100.200", AddressClass::Metadata),
            ("168.63.129.16", AddressClass::Metadata),
            ("fd00:ec2::254", AddressClass::Metadata),
            ("::ffff:169.254.169.254", AddressClass::Metadata),
            ("224.0.0.1", AddressClass::Multicast),
            ("255.255.255.255", AddressClass::Multicast),
            ("ff02::1", AddressClass::Multicast),
            ("198.18.0.1", AddressClass::Reserved),
            ("240.0.0.1", AddressClass::Reserved),
            ("2001::1", AddressClass::Reserved),
            ("64:ff9b::1.1.1.1", AddressClass::Reserved),
            ("100::1", AddressClass::Reserved),
            ("5f00::1", AddressClass::Reserved),
        ];
        for (text, expected) in table {
            assert_eq!(of(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn a_wide_network_does_not_name_the_special_blocks_in_it() {
        let names = |net: &str, address: &str| names_special(&net.parse().unwrap(), address.parse().unwrap());
        assert!(names("10.0.0.5/32", "10.0.0.5"));
        assert!(names("10.0.0.0/8", "10.0.0.5"));
        assert!(names("10.0.0.0/8", "::ffff:10.0.0.5"));
        assert!(names("169.254.169.254/32", "169.254.169.254"));
        assert!(names("169.254.170.0/24", "169.254.170.2"));
        assert!(names("169.254.0.0/16", "169.254.1.1"));
        assert!(!names("169.254.0.0/16", "169.254.169.254"), "it has to be named itself");
        assert!(!names("fd00::/8", "fd00:ec2::254"));
        assert!(names("fd00::/8", "fd00::1"));
        assert!(!names("0.0.0.0/0", "10.0.0.5"));
        assert!(!names("0.0.0.0/0", "169.254.169.254"));
        assert!(!names("::/0", "fd00::1"));
        assert!(!names("10.0.0.0/8", "11.0.0.1"));
    }

    proptest! {
        #[test]
        fn a_mapped_address_has_the_class_of_the_address_in_it(bits in any::<u32>()) {
            let address = Ipv4Addr::from(bits);
            prop_assert_eq!(class(IpAddr::V4(address)), class(IpAddr::V6(address.to_ipv6_mapped())));
        }
    }
}
