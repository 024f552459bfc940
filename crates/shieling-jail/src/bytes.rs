//! Encodes paths by their bytes (`#[serde(with = "crate::bytes")]`), since names on Linux need not be UTF-8. Serde
//! itself refuses other paths, and knows no way to say so but an error.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::PathBuf;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A value that is encoded as bytes.
pub(crate) trait Bytes: Sized {
    /// What is encoded instead.
    type Encoded: Serialize + for<'de> Deserialize<'de>;
    /// The value as bytes.
    fn encoded(&self) -> Self::Encoded;
    /// The value of these bytes.
    fn decoded(encoded: Self::Encoded) -> Self;
}

impl Bytes for PathBuf {
    type Encoded = Vec<u8>;

    fn encoded(&self) -> Vec<u8> {
        self.as_os_str().as_bytes().to_vec()
    }

    fn decoded(encoded: Vec<u8>) -> Self {
        OsString::from_vec(encoded).into()
    }
}

impl<T: Bytes> Bytes for Vec<T> {
    type Encoded = Vec<T::Encoded>;

    fn encoded(&self) -> Self::Encoded {
        self.iter().map(T::encoded).collect()
    }

    fn decoded(encoded: Self::Encoded) -> Self {
        encoded.into_iter().map(T::decoded).collect()
    }
}

impl<T: Bytes> Bytes for Option<T> {
    type Encoded = Option<T::Encoded>;

    fn encoded(&self) -> Self::Encoded {
        self.as_ref().map(T::encoded)
    }

    fn decoded(encoded: Self::Encoded) -> Self {
        encoded.map(T::decoded)
    }
}

pub(crate) fn serialize<T: Bytes, S: Serializer>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    value.encoded().serialize(serializer)
}

pub(crate) fn deserialize<'de, T: Bytes, D: Deserializer<'de>>(deserializer: D) -> Result<T, D::Error> {
    T::Encoded::deserialize(deserializer).map(T::decoded)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{Hide, Missed, Update, decode, encode};

    #[test]
    fn a_path_that_is_no_text_arrives_as_it_was() {
        let path = PathBuf::decoded(b"/w/a \xff\n".to_vec());
        let update = Update {
            hide: vec![Hide {
                target: path.clone(),
                file: (1, 2),
            }],
            protect: vec![path.clone()],
            ..Update::default()
        };
        assert_eq!(decode::<Update>(&encode(&update)), Some(update));
        let missed = Missed { paths: vec![path] };
        assert_eq!(decode::<Missed>(&encode(&missed)), Some(missed));
    }
}
