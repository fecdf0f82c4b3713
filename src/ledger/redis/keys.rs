//! The names of keys. All keys of a project carry its name in braces, which makes Redis Cluster keep
//! them on one node; the scripts make them from [`Names::base`]. The number is the version of the
//! layout: releases that store things differently use different numbers and do not see each other.

use crate::artifact::ProjectId;
use crate::ledger::{LinkId, ReservationId};

/// The version of everything that is stored: keys, and what is in them.
const LAYOUT: u32 = 1;

/// Makes the names of keys.
#[derive(Debug)]
pub(super) struct Names {
    root: String,
}

impl Names {
    pub(super) fn new(namespace: &str) -> Self {
        Self { root: format!("{namespace}:{LAYOUT}:") }
    }

    /// What all keys of a project begin with.
    pub(super) fn base(&self, project: &ProjectId) -> String {
        format!("{}{{{project}}}:", self.root)
    }

    /// The sweeper's list of projects.
    pub(super) fn projects(&self) -> String {
        format!("{}projects", self.root)
    }

    /// The name of what the server holds. It lives for ever.
    pub(super) fn identity(&self) -> String {
        format!("{}identity", self.root)
    }
}

/// A key of the project with that base: what is remembered of an id.
pub(super) fn record(base: &str, id: ReservationId) -> String {
    format!("{base}id:{id}")
}

/// What is remembered of an adjustment.
pub(super) fn adjustment(base: &str, id: &str) -> String {
    format!("{base}adjustment:{id}")
}

/// The override.
pub(super) fn allowance(base: &str) -> String {
    format!("{base}allowance")
}

/// What is remembered of a link.
pub(super) fn link(base: &str, id: LinkId) -> String {
    format!("{base}link:{id}")
}

/// The ids of live links.
pub(super) fn links(base: &str) -> String {
    format!("{base}links")
}

/// The days that have open leases.
pub(super) fn days(base: &str) -> String {
    format!("{base}days")
}

/// The account of a day.
pub(super) fn account(base: &str, day: &str) -> String {
    format!("{base}{day}:account")
}

/// A key that is never written, named by every call that changes more keys than it names. While a slot
/// moves from one node to another, its keys lie on both, and a node executes a call that names a key
/// which it lacks only if that is the call's one key: it would find half of the books. Two keys, one of
/// which nobody has, are executed by neither node until the slot has arrived.
pub(super) fn never_written(base: &str) -> String {
    format!("{base}never-written")
}
