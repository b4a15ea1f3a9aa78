//! The shared bodies of texts, lists and maps. A body stores the size and depth of its value as
//! a tree, so that neither requires a traversal: values share parts, and a value of a few
//! kilobytes can be a tree with more nodes than any machine can visit.
//!
//! Live bodies are counted per thread, so that a [`crate::Budget`] knows the memory of its
//! query's values, wherever they are stored.

use std::cell::Cell;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use super::Value;

/// The maximum nesting of values, so that traversing them needs little stack, here or in a
/// client that reads them as JSON.
pub const MAX_DEPTH: u16 = 100;

/// Longer texts count themselves, shorter ones are counted by their container.
const LONG_TEXT: usize = 1 << 10;

/// The overhead of an allocation: the counts of an `Arc`, and the allocator's own.
const ALLOCATION: usize = 32;

thread_local! {
    static LIVE: Cell<usize> = const { Cell::new(0) };
}

/// The bytes of all bodies that this thread has created and not dropped. Only differences are
/// meaningful: a body dropped by another thread is subtracted there.
pub(crate) fn live() -> usize {
    LIVE.get()
}

/// Bytes that are counted until this is dropped.
struct Charge(usize);

impl Charge {
    fn new(bytes: usize) -> Self {
        LIVE.set(LIVE.get().wrapping_add(bytes));
        Charge(bytes)
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        LIVE.set(LIVE.get().wrapping_sub(self.0));
    }
}

/// The size and depth of a value as a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Extent {
    /// The approximate size in bytes.
    pub(crate) bytes: usize,
    /// The nesting depth of lists and maps.
    pub(crate) depth: u16,
}

impl Extent {
    pub(crate) const SCALAR: Extent = Extent { bytes: size_of::<Value>(), depth: 0 };

    /// The extent of a body with `own` bytes that contains `parts`.
    fn around<'a>(own: usize, parts: impl Iterator<Item = &'a Value>) -> Self {
        let (mut bytes, mut depth) = (own, 0);
        for part in parts {
            let extent = part.extent();
            bytes = bytes.saturating_add(extent.bytes);
            depth = depth.max(extent.depth);
        }
        Extent { bytes, depth: depth.saturating_add(1) }
    }
}

/// A string.
#[derive(PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text(Arc<str>);

impl Text {
    /// The bytes its container must count for it.
    pub(crate) fn held(&self) -> usize {
        if self.len() > LONG_TEXT { 0 } else { self.len() + ALLOCATION }
    }

    fn charged(text: Arc<str>) -> Self {
        if text.len() > LONG_TEXT {
            LIVE.set(LIVE.get().wrapping_add(text.len() + ALLOCATION));
        }
        Text(text)
    }
}

impl Clone for Text {
    fn clone(&self) -> Self {
        Text(Arc::clone(&self.0))
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        // The body of a long text is held by `Text`s only: see `From<Arc<str>>`.
        if self.0.len() > LONG_TEXT && Arc::strong_count(&self.0) == 1 {
            LIVE.set(LIVE.get().wrapping_sub(self.0.len() + ALLOCATION));
        }
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        Text::charged(text.into())
    }
}

impl From<String> for Text {
    fn from(text: String) -> Self {
        Text::charged(text.into())
    }
}

impl From<Arc<str>> for Text {
    /// Copies a long text, as others may still hold the original.
    fn from(text: Arc<str>) -> Self {
        if text.len() > LONG_TEXT { Text::from(&*text) } else { Text(text) }
    }
}

/// A list of values. Clones share it.
#[derive(Clone)]
pub struct List(Arc<ListBody>);

struct ListBody {
    items: Vec<Value>,
    extent: Extent,
    _charge: Charge,
}

impl List {
    /// Creates a list and computes its extent.
    pub fn new(items: Vec<Value>) -> Self {
        let extent = Extent::around(size_of::<Value>() + ALLOCATION, items.iter());
        let held: usize = items.iter().map(Value::held_beside).sum();
        let charge = items.capacity() * size_of::<Value>() + size_of::<ListBody>() + held;
        List(Arc::new(ListBody { items, extent, _charge: Charge::new(charge + ALLOCATION) }))
    }

    pub(super) fn extent(&self) -> Extent {
        self.0.extent
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Deref for List {
    type Target = [Value];

    fn deref(&self) -> &[Value] {
        &self.0.items
    }
}

impl fmt::Debug for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.items.fmt(f)
    }
}

/// A map from names to values. Clones share it.
#[derive(Clone)]
pub struct Map(Arc<MapBody>);

struct MapBody {
    /// Sorted by name, without duplicates.
    entries: Vec<(Arc<str>, Value)>,
    extent: Extent,
    _charge: Charge,
}

impl Map {
    /// Creates a map. Of two entries with the same name, the later one wins.
    pub fn new(mut entries: Vec<(Arc<str>, Value)>) -> Self {
        if !entries.is_sorted_by(|a, b| a.0 < b.0) {
            // A stable sort keeps the later of two equal names last; that one is kept.
            entries.sort_by(|a, b| a.0.cmp(&b.0));
            entries.dedup_by(|later, kept| {
                let same = later.0 == kept.0;
                if same {
                    std::mem::swap(later, kept);
                }
                same
            });
        }
        let names: usize = entries.iter().map(|(name, _)| name.len() + ALLOCATION).sum();
        let own = size_of::<Value>() + ALLOCATION + names;
        let extent = Extent::around(own, entries.iter().map(|(_, value)| value));
        let held: usize = entries.iter().map(|(_, value)| value.held_beside()).sum();
        let slots = entries.capacity() * size_of::<(Arc<str>, Value)>();
        let charge = slots + size_of::<MapBody>() + held + ALLOCATION;
        Map(Arc::new(MapBody { entries, extent, _charge: Charge::new(charge) }))
    }

    /// The value of a name, if it is in the map.
    pub fn get(&self, name: &str) -> Option<&Value> {
        let at = self.0.entries.binary_search_by(|(it, _)| (**it).cmp(name)).ok()?;
        Some(&self.0.entries[at].1)
    }

    /// All entries, sorted by name.
    pub fn entries(&self) -> &[(Arc<str>, Value)] {
        &self.0.entries
    }

    /// All names, sorted.
    pub fn keys(&self) -> impl ExactSizeIterator<Item = &Arc<str>> {
        self.0.entries.iter().map(|(name, _)| name)
    }

    /// All values, sorted by name.
    pub fn values(&self) -> impl ExactSizeIterator<Item = &Value> {
        self.0.entries.iter().map(|(_, value)| value)
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.0.entries.len()
    }

    /// Whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.0.entries.is_empty()
    }

    pub(super) fn extent(&self) -> Extent {
        self.0.extent
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Map {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.entries.iter().map(|(name, value)| (name, value))).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bodies_are_counted_while_they_live() {
        let before = live();
        let text = Value::text("x".repeat(10_000));
        assert!(live() - before >= 10_000);
        let list = Value::list(vec![text.clone(), text.clone(), text]);
        assert!(live() - before < 11_000, "a shared text is counted once");
        let copies = vec![list; 100];
        assert!(live() - before < 11_000);
        drop(copies);
        assert_eq!(live(), before);
        let name: Arc<str> = "n".repeat(5_000).into();
        let (one, other) = (Value::Text(name.clone().into()), Value::Text(name.into()));
        drop((one, other));
        assert_eq!(live(), before);
    }

    #[test]
    fn shared_parts_are_counted_as_a_tree() {
        let mut value = Value::from(1_i64);
        for depth in 1..=80 {
            value = Value::list(vec![value.clone(), value]);
            assert_eq!(value.extent().depth, depth);
        }
        assert_eq!(value.extent().bytes, usize::MAX);
    }

    #[test]
    fn maps_are_sorted_and_the_later_entry_wins() {
        let entry = |name: &str, value: i64| (Arc::<str>::from(name), Value::from(value));
        let map = Map::new(vec![entry("b", 1), entry("a", 2), entry("b", 3), entry("b", 4)]);
        assert_eq!(map.keys().map(|name| &**name).collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(map.get("b"), Some(&Value::from(4_i64)));
        assert_eq!(map.get("c"), None);
    }
}
