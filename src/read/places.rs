//! The reads that are open, and how many may be at once: of one project, so that it leaves room for
//! others, and of all, so that the process stays within its memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use slab::Slab;

use super::reservation::Hold;
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
    caps: Caps,
    taken: Mutex<Taken>,
}

#[derive(Default)]
struct Taken {
    /// Nothing yet where the ledger is still being asked.
    reads: Slab<Weak<Hold>>,
    /// Only projects that have any.
    projects: HashMap<ProjectId, usize>,
}

/// A place, given back when it is dropped.
pub(super) struct Place {
    places: Arc<Places>,
    project: ProjectId,
    number: usize,
}

impl Places {
    pub(super) fn new(caps: Caps) -> Self {
        Self { caps, taken: Mutex::default() }
    }

    /// Takes a place for a read of `project`.
    ///
    /// # Errors
    /// `TOO_MANY_REQUESTS` for the project's cap, `OVERLOADED` for that of all.
    pub(super) fn take(self: &Arc<Self>, project: &ProjectId) -> Result<Place> {
        let mut taken = self.taken();
        if taken.reads.len() >= self.caps.process {
            let message = "The service has as many open reads as it can carry; try again shortly.";
            return Err(Error::new(Kind::Overloaded, message));
        }
        let own = taken.projects.get(project).copied().unwrap_or(0);
        if own >= self.caps.project {
            let message = "The project has as many open reads as it may; end some, or try again shortly.";
            return Err(Error::new(Kind::TooManyRequests, message));
        }
        let number = taken.reads.insert(Weak::new());
        taken.projects.insert(project.clone(), own + 1);
        drop(taken);
        Ok(Place { places: Arc::clone(self), project: project.clone(), number })
    }

    /// The reads that are open.
    pub(super) fn open(&self) -> Vec<Arc<Hold>> {
        self.taken().reads.iter().filter_map(|(_, read)| read.upgrade()).collect()
    }

    fn taken(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Place {
    /// Says which read has it.
    pub(super) fn occupy(&self, read: &Arc<Hold>) {
        self.places.taken().reads[self.number] = Arc::downgrade(read);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = self.places.taken();
        taken.reads.remove(self.number);
        if let Some(own) = taken.projects.get_mut(&self.project) {
            *own -= 1;
            if *own == 0 {
                taken.projects.remove(&self.project);
            }
        }
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
        let taken = places.taken();
        assert_eq!((taken.reads.len(), taken.projects.len()), (0, 0));
    }
}
