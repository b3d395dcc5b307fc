//! Iteration order of a Java `HashMap<Long, V>`. If an SSTable fits several buckets of size-tiered
//! compaction, the first in this order gets it.
//!
//! Source: `java.util.HashMap`, reduced to what determines the order. In Java a list of more than eight
//! entries becomes a tree once the table is large; the order of trees is not reproduced. It would take nine
//! averages of SSTable sizes with equal lower hash bits.

/// Number of slots of a new map.
const INITIAL_CAPACITY: usize = 16;
/// Number of entries in a slot from which the map converts the list to a tree, or grows while it is small.
const TREEIFY_THRESHOLD: usize = 8;
/// Number of slots below which it grows instead.
const MIN_TREEIFY_CAPACITY: usize = 64;

/// A map from `long` with Java's iteration order.
#[derive(Clone, Debug)]
pub struct JavaHashMap<V> {
    slots: Vec<Vec<(i64, V)>>,
    len: usize,
}

impl<V> Default for JavaHashMap<V> {
    fn default() -> JavaHashMap<V> {
        JavaHashMap::new()
    }
}

impl<V> JavaHashMap<V> {
    /// Creates an empty map, as `new HashMap<>()` does.
    pub fn new() -> JavaHashMap<V> {
        JavaHashMap {
            slots: (0..INITIAL_CAPACITY).map(|_| Vec::new()).collect(),
            len: 0,
        }
    }

    /// Inserts a value. An existing value under this key is replaced in its position.
    pub fn put(&mut self, key: i64, value: V) {
        let slot = self.slot(key);
        let entries = &mut self.slots[slot];
        if let Some(entry) = entries.iter_mut().find(|(k, _)| *k == key) {
            entry.1 = value;
            return;
        }
        let before = entries.len();
        entries.push((key, value));
        if before >= TREEIFY_THRESHOLD && self.slots.len() < MIN_TREEIFY_CAPACITY {
            self.grow();
        }
        self.len += 1;
        if self.len > self.slots.len() / 4 * 3 {
            self.grow();
        }
    }

    /// Removes a value.
    pub fn remove(&mut self, key: i64) -> Option<V> {
        let slot = self.slot(key);
        let entries = &mut self.slots[slot];
        let place = entries.iter().position(|(k, _)| *k == key)?;
        self.len -= 1;
        Some(entries.remove(place).1)
    }

    /// Keys and values in Java's order.
    pub fn iter(&self) -> impl Iterator<Item = (i64, &V)> {
        self.slots
            .iter()
            .flatten()
            .map(|(key, value)| (*key, value))
    }

    /// Values in Java's order.
    pub fn into_values(self) -> impl Iterator<Item = V> {
        self.slots.into_iter().flatten().map(|(_, value)| value)
    }

    fn slot(&self, key: i64) -> usize {
        let key = key as u64;
        let hash = (key ^ (key >> 32)) as u32;
        let spread = hash ^ (hash >> 16);
        spread as usize & (self.slots.len() - 1)
    }

    /// Doubles the slots. Entries of one slot keep their order.
    fn grow(&mut self) {
        let capacity = self.slots.len() * 2;
        let old = std::mem::take(&mut self.slots);
        self.slots = (0..capacity).map(|_| Vec::new()).collect();
        for (key, value) in old.into_iter().flatten() {
            let slot = self.slot(key);
            self.slots[slot].push((key, value));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(map: &JavaHashMap<&str>) -> Vec<i64> {
        map.iter().map(|(key, _)| key).collect()
    }

    /// `java.util.HashMap` returned the keys in this order.
    #[test]
    fn iterates_as_java_does() {
        let mut map = JavaHashMap::new();
        for key in [420, 280, 137, 16, 0, 32, 1 << 40, -1] {
            map.put(key, "");
        }
        // Slots of 16: 0 -> 16, 0, 32, -1; 4 -> 420; 8 -> 280, 1 << 40 (256 ^ 0); 9 -> 137.
        assert_eq!(keys(&map), [16, 0, 32, 1 << 40, -1, 420, 280, 137]);
    }

    #[test]
    fn growing_splits_slots_in_order() {
        let mut map = JavaHashMap::new();
        for n in 0..12 {
            map.put(n * 16, "");
        }
        // The ninth entry in one slot made it grow to 32 slots.
        let mut expected: Vec<i64> = (0..12).map(|n| n * 16).collect();
        expected.sort_by_key(|key| key & 31);
        assert_eq!(keys(&map), expected);
    }

    #[test]
    fn a_key_that_is_put_again_keeps_its_position() {
        let mut map = JavaHashMap::new();
        map.put(1, "a");
        map.put(17, "b");
        map.put(1, "c");
        assert_eq!(map.iter().collect::<Vec<_>>(), [(1, &"c"), (17, &"b")]);
        assert_eq!(map.remove(1), Some("c"));
        assert_eq!(map.remove(1), None);
        map.put(1, "d");
        assert_eq!(keys(&map), [17, 1]);
    }
}
