//! Routes that cannot be added without a description.

use std::sync::Arc;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodFilter, get, on};
use http::Method;

use super::Operation;
use crate::http::Front;
use crate::http::guarded::Guarded;
use crate::telemetry::metrics::Route;

/// A router, and what the API's description says of each of its routes.
pub(in crate::http) struct Routes {
    router: Router<Arc<Front>>,
    operations: Vec<Operation>,
}

impl Routes {
    pub(in crate::http) fn new() -> Self {
        Self { router: Router::new(), operations: Vec::new() }
    }

    /// Leads what `operation` describes to `handler`: with a key, unless it says that none is needed.
    pub(in crate::http) fn add<H, T>(mut self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<Front>>,
        T: 'static,
    {
        let handler = Guarded { handler, route: Route::of(operation.path()), keyed: operation.is_keyed() };
        let method = if *operation.method() == Method::GET {
            get(handler)
        } else {
            let filter = MethodFilter::try_from(operation.method().clone()).expect("a method that routes know");
            on(filter, handler)
        };
        self.router = self.router.route(operation.path(), method);
        self.operations.push(operation);
        self
    }

    /// As [`add`](Self::add) for a GET whose HEAD is worth a description of its own. Every GET answers
    /// HEAD.
    pub(in crate::http) fn add_with_head<H, T>(self, operation: Operation, handler: H) -> Self
    where
        H: Handler<T, Arc<Front>>,
        T: 'static,
    {
        let head = operation.headed();
        let mut routes = self.add(operation, handler);
        routes.operations.push(head);
        routes
    }

    pub(in crate::http) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.operations.extend(other.operations);
        self
    }

    pub(in crate::http) fn into_router(self) -> Router<Arc<Front>> {
        self.router
    }

    /// What the routes so far are.
    pub(super) fn operations(&self) -> &[Operation] {
        &self.operations
    }
}
