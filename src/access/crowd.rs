//! How much of one key, or of one project, may run at once, so that it leaves room for others.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// So many names are kept before those at rest are forgotten.
const FEW: usize = 64;

/// Counts what runs, by the name of whose it is.
#[derive(Debug, Clone)]
pub struct Crowd {
    names: Arc<Mutex<Names>>,
    most: usize,
}

#[derive(Debug)]
struct Names {
    running: HashMap<String, Arc<AtomicUsize>>,
    /// When it has so many, those of whom nothing runs are forgotten.
    room: usize,
}

impl Crowd {
    /// At most `most` of one name, which is not 0.
    #[must_use]
    pub fn new(most: usize) -> Self {
        Self { names: Arc::new(Mutex::new(Names { running: HashMap::new(), room: FEW })), most }
    }

    /// How much of one name may run.
    #[must_use]
    pub const fn most(&self) -> usize {
        self.most
    }

    /// A place for one more of this name; `None` if as many run as may.
    #[must_use]
    pub fn enter(&self, name: &str) -> Option<Place> {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        let running = match names.running.get(name) {
            Some(running) => Arc::clone(running),
            None => names.introduce(name),
        };
        // Counts rise under the lock alone.
        if running.load(Relaxed) >= self.most {
            return None;
        }
        running.fetch_add(1, Relaxed);
        Some(Place(running))
    }

    /// How much runs in all.
    #[cfg(test)]
    pub(crate) fn running(&self) -> usize {
        let names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        names.running.values().map(|running| running.load(Relaxed)).sum()
    }
}

impl Names {
    fn introduce(&mut self, name: &str) -> Arc<AtomicUsize> {
        if self.running.len() >= self.room {
            self.running.retain(|_, running| running.load(Relaxed) > 0);
            self.room = FEW.max(2 * self.running.len());
        }
        Arc::clone(self.running.entry(name.to_owned()).or_default())
    }
}

/// One place; given back on drop, so also when the client goes away.
#[derive(Debug)]
pub struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Relaxed);
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
        assert_eq!(crowd.running(), 0);
    }

    #[test]
    fn names_at_rest_are_forgotten_and_others_counted_on() {
        let crowd = Crowd::new(1);
        let held: Vec<_> = (0..100).map(|n| crowd.enter(&format!("held {n}")).expect("free")).collect();
        for n in 0..10_000 {
            assert!(crowd.enter(&format!("{n}")).is_some());
            assert!(crowd.names.lock().expect("not poisoned").running.len() <= 2 * held.len());
        }
        assert!((0..100).all(|n| crowd.enter(&format!("held {n}")).is_none()));
        assert_eq!(crowd.running(), held.len());
    }
}
