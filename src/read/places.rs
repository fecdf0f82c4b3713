//! The reads that are open, and how many may be at once: of one project, so that it leaves room for
//! others, and of all, so that the process stays within its memory.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use slab::Slab;

use super::reservation::Hold;
use crate::access::{Crowd, crowd};
use crate::artifact::ProjectId;
use crate::error::{Error, Kind, Result};

/// The most reads that are open at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caps {
    /// Of one project.
    pub project: usize,
    /// Of all projects.
    pub process: usize,
}

impl Default for Caps {
    fn default() -> Self {
        Self { project: 1024, process: 4096 }
    }
}

/// The places that there are, and who has them.
pub(super) struct Places {
    most: usize,
    /// Nothing yet where the ledger is still being asked.
    reads: Mutex<Slab<Weak<Hold>>>,
    of_project: Crowd,
}

/// A place, given back when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    number: usize,
    _of_project: crowd::Place,
}

impl Places {
    pub(super) fn new(caps: Caps) -> Self {
        Self { most: caps.process, reads: Mutex::default(), of_project: Crowd::new(caps.project) }
    }

    /// Takes a place for a read of `project`.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` for the project's cap, `OVERLOADED` for that of all.
    pub(super) fn take(self: &Arc<Self>, project: &ProjectId) -> Result<Place> {
        let mut reads = self.reads();
        if reads.len() >= self.most {
            let message = "The service has as many open reads as it can carry; try again shortly.";
            return Err(Error::new(Kind::Overloaded, message));
        }
        let Some(of_project) = self.of_project.enter(project.as_str()) else {
            let message = "The project has as many open reads as it may; end some, or try again shortly.";
            return Err(Error::new(Kind::TooManyRequests, message));
        };
        let number = reads.insert(Weak::new());
        drop(reads);
        Ok(Place { places: Arc::clone(self), number, _of_project: of_project })
    }

    /// The reads that are open.
    pub(super) fn open(&self) -> Vec<Arc<Hold>> {
        self.reads().iter().filter_map(|(_, read)| read.upgrade()).collect()
    }

    fn reads(&self) -> MutexGuard<'_, Slab<Weak<Hold>>> {
        self.reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Says which read has it.
    pub(super) fn occupy(&self, read: &Arc<Hold>) {
        self.places.reads()[self.number] = Arc::downgrade(read);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.reads().remove(self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_bounded_and_given_back() {
        let places = Arc::new(Places::new(Caps { project: 2, process: 3 }));
        let take = |project: &str| places.take(&ProjectId::parse(project).expect("valid"));
        let refusal = |project: &str| take(project).err().map(|error| error.message().to_owned()).unwrap_or_default();
        let (first, second) = (take("p").expect("a place"), take("p").expect("a place"));
        assert!(refusal("p").starts_with("The project"));
        let third = take("q").expect("others have room");
        assert!(refusal("q").starts_with("The service") && refusal("p").starts_with("The service"));
        drop(second);
        let again = take("p").expect("given back");
        drop((first, third, again));
        assert!(places.reads().is_empty() && places.of_project.running() == 0);
    }
}
