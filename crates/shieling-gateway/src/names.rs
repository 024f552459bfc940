//! The addresses that stand for names inside of one sandbox.
//!
//! An address is given to a name once and never to another one, so that a program which kept an address cannot reach
//! a different host by it. Bounded; when the bound is reached, further names have no address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::{Arc, Mutex};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use tokio::sync::OnceCell;

use crate::name::HostName;

/// The first addresses of a pool are not given to names: the network's own, and the DNS server's.
const RESERVED: u32 = 16;

/// A name that has an address.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) name: HostName,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Option<Ipv6Addr>,
    /// Set once sockets listen at the addresses.
    pub(crate) listening: OnceCell<()>,
}

/// The names of one sandbox.
#[derive(Debug)]
pub(crate) struct Names {
    v4: Ipv4Net,
    v6: Option<Ipv6Net>,
    names_max: usize,
    unknown_max: usize,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    entries: Vec<Arc<Entry>>,
    by_name: HashMap<HostName, Arc<Entry>>,
    unknown: usize,
}

impl Names {
    /// A table without names.
    ///
    /// # Errors
    /// If a pool has fewer addresses than there may be names.
    pub(crate) fn new(v4: Ipv4Net, v6: Option<Ipv6Net>, names_max: usize, unknown_max: usize) -> Result<Self, IpNet> {
        let enough = |host_bits: u8| (1_u128 << host_bits.min(32)) > names_max as u128 + u128::from(RESERVED);
        if !enough(32 - v4.prefix_len()) {
            return Err(IpNet::V4(v4));
        }
        if let Some(v6) = v6
            && !enough(128 - v6.prefix_len())
        {
            return Err(IpNet::V6(v6));
        }
        Ok(Self {
            v4,
            v6,
            names_max,
            unknown_max,
            table: Mutex::default(),
        })
    }

    /// The entry of a name, made if there is none; `None` if the bound is reached. `unknown` names are those that no
    /// rule names; they have a bound of their own, so that they cannot use up the addresses of the others.
    pub(crate) fn entry(&self, name: &HostName, unknown: bool) -> Option<Arc<Entry>> {
        let mut table = self.table.lock().expect("no panic while held");
        if let Some(entry) = table.by_name.get(name) {
            return Some(Arc::clone(entry));
        }
        if table.entries.len() >= self.names_max || (unknown && table.unknown >= self.unknown_max) {
            return None;
        }
        let offset = u32::try_from(table.entries.len()).ok()? + RESERVED;
        let entry = Arc::new(Entry {
            name: name.clone(),
            v4: Ipv4Addr::from(u32::from(self.v4.network()) + offset),
            v6: self
                .v6
                .map(|net| Ipv6Addr::from(u128::from(net.network()) + u128::from(offset))),
            listening: OnceCell::new(),
        });
        table.unknown += usize::from(unknown);
        table.entries.push(Arc::clone(&entry));
        table.by_name.insert(name.clone(), Arc::clone(&entry));
        Some(entry)
    }

    /// The name that an address stands for.
    pub(crate) fn at(&self, address: IpAddr) -> Option<HostName> {
        let offset = match address {
            IpAddr::V4(v4) => u32::from(v4).checked_sub(u32::from(self.v4.network()))?,
            IpAddr::V6(v6) => u32::try_from(u128::from(v6).checked_sub(u128::from(self.v6?.network()))?).ok()?,
        };
        let index = usize::try_from(offset.checked_sub(RESERVED)?).ok()?;
        let table = self.table.lock().expect("no panic while held");
        table.entries.get(index).map(|entry| entry.name.clone())
    }

    /// Whether an address is of a pool.
    pub(crate) fn has(&self, address: IpAddr) -> bool {
        match address {
            IpAddr::V4(v4) => self.v4.contains(&v4),
            IpAddr::V6(v6) => self.v6.is_some_and(|net| net.contains(&v6)),
        }
    }

    /// The pools.
    pub(crate) fn pools(&self) -> impl Iterator<Item = IpNet> {
        std::iter::once(IpNet::V4(self.v4)).chain(self.v6.map(IpNet::V6))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(names_max: usize, unknown_max: usize) -> Names {
        let v6 = "fd00:5ee1::/64".parse().unwrap();
        Names::new("198.18.0.0/15".parse().unwrap(), Some(v6), names_max, unknown_max).unwrap()
    }

    fn name(number: usize) -> HostName {
        HostName::parse(&format!("h{number}.example")).unwrap()
    }

    #[test]
    fn an_address_leads_back_to_its_name_and_to_no_other() {
        let names = names(10, 5);
        let entry = names.entry(&name(1), false).unwrap();
        assert_eq!(names.entry(&name(1), false).unwrap().v4, entry.v4);
        assert_ne!(names.entry(&name(2), false).unwrap().v4, entry.v4);
        assert_eq!(names.at(entry.v4.into()), Some(name(1)));
        assert_eq!(names.at(entry.v6.unwrap().into()), Some(name(1)));
        for address in [
            "198.18.0.0",
            "198.18.0.1",
            "198.18.0.18",
            "198.17.255.255",
            "fd00:5ee1::1",
            "::",
            "10.0.0.1",
        ] {
            assert_eq!(names.at(address.parse().unwrap()), None, "{address}");
        }
    }

    #[test]
    fn unknown_names_do_not_use_up_the_addresses_of_known_ones() {
        let names = names(10, 3);
        let given = (0..100)
            .filter(|number| names.entry(&name(*number), true).is_some())
            .count();
        assert_eq!(given, 3);
        let given = (100..200)
            .filter(|number| names.entry(&name(*number), false).is_some())
            .count();
        assert_eq!(given, 7);
        assert!(
            names.entry(&name(0), false).is_some(),
            "a name keeps its address when the bound is reached"
        );
    }

    #[test]
    fn a_pool_that_is_too_small_is_refused() {
        assert!(Names::new("198.18.0.0/24".parse().unwrap(), None, 300, 3).is_err());
        assert!(
            Names::new(
                "198.18.0.0/15".parse().unwrap(),
                Some("fd00::/120".parse().unwrap()),
                300,
                3
            )
            .is_err()
        );
    }

    proptest! {
        #[test]
        fn any_address_is_looked_up_without_overflow(v4 in any::<u32>(), v6 in any::<u128>()) {
            let names = names(10, 5);
            let entry = names.entry(&name(1), false).unwrap();
            prop_assert_eq!(names.at(Ipv4Addr::from(v4).into()).is_some(), entry.v4 == Ipv4Addr::from(v4));
            prop_assert_eq!(names.at(Ipv6Addr::from(v6).into()).is_some(), entry.v6 == Some(Ipv6Addr::from(v6)));
        }
    }
}
