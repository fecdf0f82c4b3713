//! How much of one key, or of one project, may run at once, so that it leaves room for others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Counts what runs, by the name of whose it is.
#[derive(Debug, Clone)]
pub struct Crowd {
    /// Only names that have something running.
    running: Arc<Mutex<HashMap<String, usize>>>,
    most: usize,
}

impl Crowd {
    /// At most `most` of one name, which is not 0.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { running: Arc::default(), most }
    }

    /// How much of one name may run.
    #[must_use]
    pub const fn most(&self) -> usize {
        self.most
    }

    /// A place for one more of this name; `None` if as many run as may.
    #[must_use]
    pub fn enter(&self, name: &str) -> Option<Place> {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(name) {
            Some(count) if *count >= self.most => return None,
            Some(count) => *count += 1,
            None => drop(running.insert(name.to_owned(), 1)),
        }
        Some(Place { running: Arc::clone(&self.running), name: name.to_owned() })
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
    name: String,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        match running.get_mut(&self.name) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(running.remove(&self.name)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_its_own_places_and_gives_them_back() {
        let crowd = Crowd::new(2);
        let (one, two) = (crowd.enter("k").expect("free"), crowd.enter("k").expect("free"));
        assert!(crowd.enter("k").is_none());
        let other = crowd.enter("other").expect("free");
        drop(one);
        let three = crowd.enter("k").expect("given back");
        drop((two, three, other));
        assert!(crowd.is_empty(), "nothing is kept of a name at rest");
    }
}
