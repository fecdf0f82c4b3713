//! The API's description, OpenAPI 3.1, at `/openapi.json`.
//!
//! ```text
//! a file of handlers ─► Operation + handler ─► Routes ─┬─► the router
//!                        │ types: schemars              └─► the document
//!                        └ codes: [`problems`]
//! ```
//!
//! A route cannot be added without its [`Operation`], schemas are made of the types that handlers
//! answer, and examples of problems by the code that writes problems: what is left to go wrong is
//! held by a snapshot (`tests/golden/openapi.json`) and by a client that reads the document and
//! tries everything it says.

mod elsewhere;
mod operation;
pub(super) mod parameters;
mod problems;
mod routes;

use axum::http::HeaderValue;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

pub(super) use operation::Operation;
pub(super) use routes::Routes;

/// Definitions are collected here (OpenAPI 3.1 §4.8.7).
const DEFINITIONS: &str = "/components/schemas";

/// What no schema says.
const RULES: &str = "\
Files of agent evaluation trials. Every byte that is read is charged to the project's allowance of the day.

- A read reserves the whole size of the file, also if a range is asked for, and is charged what went out; the rest \
comes back when the answer ends.
- A condition or range is judged before anything is reserved: 304, 412, 416 and HEAD cost nothing.
- Retry 429 and 503 as Retry-After says; a 429 without one does not get better by waiting.
- A body that ends before Content-Length was cut; ask for the rest with Range and If-Range.
- Match on `code`; `detail` is for people. New members may come into answers at any time.";

/// Adds the description of `routes`, and of what is served beside them.
pub(super) fn described(routes: Routes) -> Routes {
    let document = Bytes::from(document(&operations_of(&routes)).to_string());
    routes.add(elsewhere::description(), async move || answer(document))
}

fn operations_of(routes: &Routes) -> Vec<Operation> {
    [routes.operations(), &[elsewhere::description()], &elsewhere::operations()].concat()
}

fn answer(document: Bytes) -> Response {
    let mut response = document.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

fn document(operations: &[Operation]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = DEFINITIONS.into();
        settings.meta_schema = None;
    });
    let mut written = settings.clone().for_serialize().into_generator();
    let mut read = settings.for_deserialize().into_generator();
    let mut paths = Map::new();
    for operation in operations {
        let described = operation.describe(&mut written, &mut read);
        let method = operation.method().as_str().to_ascii_lowercase();
        paths.entry(operation.path()).or_insert_with(|| json!({}))[method] = described;
    }
    let mut schemas = read.take_definitions(true);
    schemas.extend(written.take_definitions(true));
    schemas.insert("Problem".to_owned(), problems::schema());
    json!({
        "openapi": "3.1.1",
        "info": {
            "title": "artifactd",
            "version": env!("CARGO_PKG_VERSION"),
            "license": {"name": "Apache 2.0", "identifier": "Apache-2.0"},
            "description": RULES,
        },
        "servers": [{"url": "/"}],
        "tags": [
            {"name": "Artifacts", "description": "Trials, their files, and the bytes of them."},
            {"name": "Links", "description": "Signed links, for whoever has no key."},
            {"name": "Quota", "description": "What the project may download, and where it went."},
            {"name": "Operators", "description": "What operators change."},
            {"name": "Agents", "description": "The same for coding agents."},
            {"name": "Service", "description": "The key, and the service itself."},
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "headers": parameters::answer_headers(),
            "examples": problems::examples(),
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer", "description": "A key: epk_ and 64 hex digits."}},
        },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::http::routes;

    fn whole() -> Value {
        document(&operations_of(&routes()))
    }

    /// `UPDATE_GOLDEN=1 cargo test --lib openapi` keeps the present one.
    #[test]
    #[allow(clippy::disallowed_methods, reason = "a switch of these tests, no setting of the service")]
    fn the_document_is_as_kept() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/openapi.json");
        let now = format!("{:#}\n", whole());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(path, &now).expect("written");
        }
        let kept = std::fs::read_to_string(path).expect("a snapshot");
        assert!(now == kept, "the description is not as kept; review the change with UPDATE_GOLDEN=1");
    }

    #[test]
    fn every_operation_is_named_once_and_every_reference_leads_somewhere() {
        let document = whole();
        let mut ids = BTreeSet::new();
        let mut operations = 0;
        for (path, methods) in document["paths"].as_object().expect("paths") {
            for (method, operation) in methods.as_object().expect("methods") {
                operations += 1;
                assert!(ids.insert(operation["operationId"].as_str().expect("an id")), "{method} {path}");
                let named: BTreeSet<_> = path.split(['{', '}']).skip(1).step_by(2).collect();
                let described: BTreeSet<_> = operation["parameters"]
                    .as_array()
                    .expect("parameters")
                    .iter()
                    .filter(|parameter| parameter["in"] == "path")
                    .filter_map(|parameter| parameter["name"].as_str())
                    .collect();
                assert_eq!(named, described, "{method} {path}");
            }
        }
        assert_eq!(ids.len(), operations);
        let text = document.to_string();
        for reference in text.split("\"$ref\":\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
            assert!(document.pointer(reference).is_some(), "{reference}");
        }
    }
}
