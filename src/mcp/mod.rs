//! stub
use std::sync::Arc;
pub struct Front;
impl Front { pub fn new(_: Arc<dyn crate::access::Authenticator>, _: Arc<crate::listing::Listing>, _: Arc<crate::read::Reads>, _: &crate::config::Config) -> Self { Self } }
pub fn router(_: Front) -> axum::Router { axum::Router::new() }
