//! How much of one key may run at once, so that it leaves room for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what runs, by key.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// Only keys that have something running.
    running: Arc<Mutex<HashMap<String, usize>>>,
    most: usize,
}

impl Crowd {
    /// At most `most` of one key, which is not 0.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { running: Arc::default(), most }
    }

    /// How much of one key may run.
    #[must_use]
    pub const fn most(&self) -> usize {
        self.most
    }

    /// A place for one more of this key; `None` if as many run as may.
    #[must_use]
    pub fn enter(&self, key_id: &str) -> Option<Place> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(key_id) {
            Some(count) if *count >= self.most => return None,
            Some(count) => *count += 1,
            None => drop(running.insert(key_id.to_owned(), 1)),
        }
        Some(Place { running: Arc::clone(&self.running), key_id: key_id.to_owned() })
    }

    /// Whether nothing runs, and so nothing is kept.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.running.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }
}

/// One place; given back on drop, so also when the client goes away.
#[derive(Debug)]
pub struct Place {
    running: Arc<Mutex<HashMap<String, usize>>>,
    key_id: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&self.key_id) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(running.remove(&self.key_id)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_its_own_places_and_gives_them_back() {
        let crowd = Crowd::new(2);
        let (one, two) = (crowd.enter("k").expect("free"), crowd.enter("k").expect("free"));
        assert!(crowd.enter("k").is_none());
        let other = crowd.enter("other").expect("free");
        drop(one);
        let three = crowd.enter("k").expect("given back");
        drop((two, three, other));
        assert!(crowd.is_empty(), "nothing is kept of a key at rest");
    }
}
