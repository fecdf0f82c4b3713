//! The names of keys. All keys of a project carry its name in braces, which makes Redis Cluster keep
//! them on one node; the scripts make them from [`Names::base`]. The number is the version of the
//! layout: releases that store things differently use different numbers and do not see each other.

use crate::artifact::ProjectId;

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
        [&self.root, "{", project.as_str(), "}:"].concat()
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

/// A key that is never written, named by every call that changes more keys than it names. While a slot
/// moves from one node to another, its keys lie on both, and a node executes a call that names a key
/// which it lacks only if that is the call's one key: it would find half of the books. Two keys, one of
/// which nobody has, are executed by neither node until the slot has arrived.
pub(super) fn never_written(base: &str) -> String {
    format!("{base}never-written")
}
