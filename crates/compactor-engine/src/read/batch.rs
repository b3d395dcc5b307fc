//! Batches of events, passed to another thread or buffered until their range is next in order.

/// Events in order, each with some bytes.
#[derive(Debug)]
pub struct Batch<T> {
    /// Bytes of the events, consecutively.
    bytes: Vec<u8>,
    /// Each with the length of its bytes.
    events: Vec<(usize, T)>,
}

impl<T> Default for Batch<T> {
    fn default() -> Batch<T> {
        Batch {
            bytes: Vec::new(),
            events: Vec::new(),
        }
    }
}

impl<T> Batch<T> {
    /// Memory that the batch occupies, bytes.
    pub(crate) fn occupied_bytes(&self) -> usize {
        self.bytes.len() + size_of_val(&self.events[..])
    }

    /// Whether there are no events.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Adds an event with these bytes, one after the other.
    #[inline]
    pub(crate) fn add<const N: usize>(&mut self, bytes: [&[u8]; N], event: T) {
        let before = self.bytes.len();
        for bytes in bytes {
            self.bytes.extend_from_slice(bytes);
        }
        self.events.push((self.bytes.len() - before, event));
    }

    /// Takes the batch, and leaves an empty one of the same capacity.
    pub(crate) fn take(&mut self) -> Batch<T> {
        let next = Batch {
            bytes: Vec::with_capacity(self.bytes.len()),
            events: Vec::with_capacity(self.events.len()),
        };
        std::mem::replace(self, next)
    }

    /// The event with this number.
    #[inline]
    pub(crate) fn event(&self, number: usize) -> Option<&T> {
        self.events.get(number).map(|(_, event)| event)
    }

    /// Removes the first `count` events, and returns them.
    pub(crate) fn take_first(&mut self, count: usize) -> Batch<T> {
        let events: Vec<_> = self.events.drain(..count.min(self.events.len())).collect();
        let len: usize = events.iter().map(|(len, _)| len).sum();
        let bytes = self.bytes.drain(..len).collect();
        Batch { bytes, events }
    }

    /// The events, in order, each with its bytes.
    pub fn events(&self) -> impl Iterator<Item = (&[u8], &T)> {
        let mut bytes = &self.bytes[..];
        self.events.iter().map(move |(len, event)| {
            let (taken, rest) = bytes.split_at((*len).min(bytes.len()));
            bytes = rest;
            (taken, event)
        })
    }
}
