use std::cell::RefCell;
use std::fmt;
use std::ops::Deref;
use std::thread::LocalKey;

use bytes::Bytes;
use serde::de::{Error as _, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

thread_local! {
    /// Slabs taken from the message that this thread is encoding.
    static OUTGOING: RefCell<Option<Vec<Bytes>>> = const { RefCell::new(None) };
    /// Slabs of the message that this thread is decoding.
    static INCOMING: RefCell<Option<Vec<Bytes>>> = const { RefCell::new(None) };
}

/// Bytes in a request or reply that are sent beside the message, not encoded in it.
///
/// Use it for vectors and file contents: they are copied unchanged, and large ones are sent in
/// shared memory. Each starts at a multiple of 16 bytes. Any serializer other than `isolate`'s
/// sees an ordinary byte string.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Bulk(Bytes);

impl Bulk {
    /// The bytes; cheap to clone and to slice.
    pub fn into_bytes(self) -> Bytes {
        self.0
    }
}

impl Deref for Bulk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.0
    }
}

impl From<Vec<u8>> for Bulk {
    fn from(bytes: Vec<u8>) -> Self {
        Self(bytes.into())
    }
}

impl From<Bytes> for Bulk {
    fn from(bytes: Bytes) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for Bulk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Bulk({} bytes)", self.0.len())
    }
}

impl Serialize for Bulk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let index = OUTGOING.with_borrow_mut(|slabs| {
            slabs.as_mut().map(|slabs| {
                slabs.push(self.0.clone());
                slabs.len() as u64 - 1
            })
        });
        match index {
            Some(index) => serializer.serialize_u64(index),
            None => serializer.serialize_bytes(&self.0),
        }
    }
}

impl<'de> Deserialize<'de> for Bulk {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if INCOMING.with_borrow(Option::is_none) {
            return deserializer.deserialize_byte_buf(BytesVisitor).map(Self);
        }
        let index = usize::try_from(u64::deserialize(deserializer)?).unwrap_or(usize::MAX);
        INCOMING
            .with_borrow(|slabs| slabs.as_ref()?.get(index).cloned())
            .map(Self)
            .ok_or_else(|| D::Error::custom("no such slab"))
    }
}

struct BytesVisitor;

impl<'de> Visitor<'de> for BytesVisitor {
    type Value = Bytes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("bytes")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<Bytes, E> {
        Ok(Bytes::copy_from_slice(bytes))
    }

    fn visit_byte_buf<E>(self, bytes: Vec<u8>) -> Result<Bytes, E> {
        Ok(bytes.into())
    }

    fn visit_seq<A: serde::de::SeqAccess<'de>>(self, mut items: A) -> Result<Bytes, A::Error> {
        let mut bytes = Vec::new();
        while let Some(byte) = items.next_element()? {
            bytes.push(byte);
        }
        Ok(bytes.into())
    }
}

/// Runs `encode` and returns its result with the slabs it produced.
pub fn collect_slabs<T>(encode: impl FnOnce() -> T) -> (T, Vec<Bytes>) {
    let scope = SlabScope::enter(&OUTGOING, Vec::new());
    let made = encode();
    (made, scope.leave())
}

/// Runs `decode` with access to `slabs`.
pub fn with_slabs<T>(slabs: Vec<Bytes>, decode: impl FnOnce() -> T) -> T {
    let _scope = SlabScope::enter(&INCOMING, slabs);
    decode()
}

type Slabs = LocalKey<RefCell<Option<Vec<Bytes>>>>;

/// Slabs that are set until the scope ends, even by a panic.
struct SlabScope {
    place: &'static Slabs,
    outer: Option<Vec<Bytes>>,
}

impl SlabScope {
    fn enter(place: &'static Slabs, slabs: Vec<Bytes>) -> Self {
        Self { place, outer: place.replace(Some(slabs)) }
    }

    fn leave(self) -> Vec<Bytes> {
        self.place.take().unwrap_or_default()
    }
}

impl Drop for SlabScope {
    fn drop(&mut self) {
        self.place.set(self.outer.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_while_encoding_leaves_no_slabs_behind() {
        let panicked = std::panic::catch_unwind(|| collect_slabs(|| panic!("on purpose")).0);
        assert!(panicked.is_err());
        assert_eq!(serde_json::to_string(&Bulk::from(vec![1, 2])).unwrap(), "[1,2]");
    }

    #[test]
    fn scopes_nest() {
        let bulk = Bulk::from(vec![1]);
        let (inner, outer) = collect_slabs(|| {
            postcard::to_allocvec(&bulk).unwrap();
            collect_slabs(|| postcard::to_allocvec(&bulk).unwrap()).1.len()
        });
        assert_eq!((inner, outer.len()), (1, 1));
    }
}
