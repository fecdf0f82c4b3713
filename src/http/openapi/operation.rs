//! One method of one path: what it takes, answers and refuses.

use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::parameters;
use super::problems;

/// Makes the schema of a type, by reference to its definition.
type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What every operation can answer.
const ALWAYS: [&str; 3] = ["OVERLOADED", "SHUTTING_DOWN", "INTERNAL_ERROR"];
/// What every operation that needs a key can.
const KEYED: [&str; 5] =
    ["UNAUTHENTICATED", "PROJECT_ACCESS_DENIED", "INVALID_REQUEST", "TOO_MANY_REQUESTS", "ACCESS_UNAVAILABLE"];
/// What every operation that needs a capability can.
const CAPABLE: [&str; 2] = ["PROJECT_REQUIRED", "ACCESS_DENIED"];

/// What every operation that hands out bytes of artifacts can.
const READING: [&str; 11] = [
    "INVALID_NAME",
    "INVALID_REQUEST",
    "TRIAL_NOT_FOUND",
    "ARTIFACT_NOT_FOUND",
    "ARTIFACT_CHANGED",
    "ARTIFACT_NOT_READY",
    "ARTIFACT_ENCODED",
    "DOWNLOAD_QUOTA_EXCEEDED",
    "TOO_MANY_REQUESTS",
    "QUOTA_UNAVAILABLE",
    "STORE_UNAVAILABLE",
];

/// A description, and the route that it is of.
#[derive(Clone)]
pub(in crate::http) struct Operation {
    method: Method,
    path: &'static str,
    id: String,
    tag: &'static str,
    summary: &'static str,
    description: &'static str,
    keyed: bool,
    /// Refusals are described as answers, and not as problems.
    without_problems: bool,
    capabilities: &'static [&'static str],
    parameters: Vec<Value>,
    body: Option<Value>,
    /// The schema of the body, of a type that is read.
    read: Option<Shape>,
    answers: Vec<Answer>,
    problems: Vec<&'static str>,
}

#[derive(Clone)]
struct Answer {
    status: u16,
    description: &'static str,
    headers: &'static [&'static str],
    content: Vec<Content>,
    links: Map<String, Value>,
}

#[derive(Clone)]
struct Content {
    media_type: &'static str,
    schema: Contents,
    example: Option<Value>,
}

#[derive(Clone)]
enum Contents {
    Typed(Vec<Shape>),
    Plain(Value),
}

impl Operation {
    fn new(method: Method, path: &'static str, id: &'static str, tag: &'static str) -> Self {
        Self {
            method,
            path,
            id: id.to_owned(),
            tag,
            summary: "",
            description: "",
            keyed: true,
            without_problems: false,
            capabilities: &[],
            parameters: Vec::new(),
            body: None,
            read: None,
            answers: Vec::new(),
            problems: Vec::new(),
        }
    }

    pub(in crate::http) fn get(path: &'static str, id: &'static str, tag: &'static str) -> Self {
        Self::new(Method::GET, path, id, tag)
    }

    pub(in crate::http) fn post(path: &'static str, id: &'static str, tag: &'static str) -> Self {
        Self::new(Method::POST, path, id, tag)
    }

    pub(in crate::http) fn put(path: &'static str, id: &'static str, tag: &'static str) -> Self {
        Self::new(Method::PUT, path, id, tag)
    }

    pub(in crate::http) fn delete(path: &'static str, id: &'static str, tag: &'static str) -> Self {
        Self::new(Method::DELETE, path, id, tag)
    }

    /// The same of HEAD: no content, no range of it, nothing charged.
    pub(in crate::http) fn headed(&self) -> Self {
        let mut head = self.clone();
        head.method = Method::HEAD;
        head.id = format!("{}Head", self.id);
        head.answers.retain(|answer| answer.status != 206);
        for answer in &mut head.answers {
            answer.content.clear();
            answer.headers = without_charge(answer.headers);
        }
        head.problems.retain(|code| !problems::of_bytes(code));
        head
    }

    pub(in crate::http) const fn says(mut self, summary: &'static str, description: &'static str) -> Self {
        (self.summary, self.description) = (summary, description);
        self
    }

    /// Needs no key.
    pub(in crate::http) const fn open(mut self) -> Self {
        self.keyed = false;
        self
    }

    /// Answers no problems: what it refuses it says as [`answers_plain`](Self::answers_plain).
    pub(super) const fn speaks_json_rpc(mut self) -> Self {
        self.without_problems = true;
        self
    }

    /// Needs a key with these capabilities.
    pub(in crate::http) const fn needs(mut self, capabilities: &'static [&'static str]) -> Self {
        self.capabilities = capabilities;
        self
    }

    pub(in crate::http) fn takes(mut self, parameter: Value) -> Self {
        self.parameters.push(parameter);
        self
    }

    /// Reads a body of JSON such as `example`.
    pub(in crate::http) fn reads<T: JsonSchema>(mut self, required: bool, example: &str) -> Self {
        let example: Value = serde_json::from_str(example).expect("examples are JSON");
        self.body = Some(json!({"required": required, "content": {"application/json": {"example": example}}}));
        self.read = Some(SchemaGenerator::subschema_for::<T>);
        self
    }

    /// Reads a body of JSON that is no type of this front's.
    pub(super) fn reads_plain(mut self, schema: &Value, example: &Value) -> Self {
        self.body = Some(json!({
            "required": true,
            "content": {"application/json": {"schema": schema, "example": example}},
        }));
        self
    }

    /// Answers JSON of this type.
    pub(in crate::http) fn answers<T: JsonSchema>(
        self,
        status: u16,
        description: &'static str,
        example: Value,
    ) -> Self {
        self.json(status, description, Contents::Typed(vec![SchemaGenerator::subschema_for::<T>]), example)
    }

    /// Answers JSON of one of two types.
    pub(in crate::http) fn answers_either<A: JsonSchema, B: JsonSchema>(
        self,
        status: u16,
        description: &'static str,
        example: Value,
    ) -> Self {
        let either: Vec<Shape> = vec![SchemaGenerator::subschema_for::<A>, SchemaGenerator::subschema_for::<B>];
        self.json(status, description, Contents::Typed(either), example)
    }

    /// Answers JSON that has no type of its own.
    pub(in crate::http) fn answers_plain(
        self,
        status: u16,
        description: &'static str,
        schema: Value,
        example: Value,
    ) -> Self {
        self.json(status, description, Contents::Plain(schema), example)
    }

    fn json(mut self, status: u16, description: &'static str, schema: Contents, example: Value) -> Self {
        let content = vec![Content { media_type: "application/json", schema, example: Some(example) }];
        self.answers.push(Answer { status, description, headers: &[], content, links: Map::new() });
        self
    }

    /// The last answer also comes as this type.
    pub(in crate::http) fn also(mut self, media_type: &'static str, description: &'static str) -> Self {
        let schema = Contents::Plain(json!({"type": "string", "description": description}));
        if let Some(answer) = self.answers.last_mut() {
            answer.content.push(Content { media_type, schema, example: None });
        }
        self
    }

    /// Answers 204.
    pub(in crate::http) fn done(self, description: &'static str) -> Self {
        self.bare(204, description, &[])
    }

    /// Answers without content, with these headers.
    pub(in crate::http) fn bare(
        mut self,
        status: u16,
        description: &'static str,
        headers: &'static [&'static str],
    ) -> Self {
        self.answers.push(Answer { status, description, headers, content: Vec::new(), links: Map::new() });
        self
    }

    /// Answers bytes of a type, with these headers.
    pub(in crate::http) fn bytes(
        mut self,
        status: u16,
        media_type: &'static str,
        description: &'static str,
        headers: &'static [&'static str],
    ) -> Self {
        // Raw content needs no schema (OpenAPI 3.1 §4.8.14.3).
        let content = vec![Content { media_type, schema: Contents::Plain(json!({})), example: None }];
        self.answers.push(Answer { status, description, headers, content, links: Map::new() });
        self
    }

    /// What the last answer says serves as parameters of another operation.
    pub(in crate::http) fn leads_to(mut self, operation: &'static str, parameters: &[(&str, &str)]) -> Self {
        if let Some(answer) = self.answers.last_mut() {
            let parameters: Map<_, _> =
                parameters.iter().map(|(name, from)| ((*name).to_owned(), json!(from))).collect();
            answer.links.insert(operation.to_owned(), json!({"operationId": operation, "parameters": parameters}));
        }
        self
    }

    /// Answers problems with these codes, beside those that every such operation can answer.
    pub(in crate::http) fn refuses(mut self, codes: &[&'static str]) -> Self {
        self.problems.extend(codes);
        self
    }

    /// Answers the problems of reading artifacts, and these.
    pub(in crate::http) fn reads_or_refuses(self, codes: &[&'static str]) -> Self {
        self.refuses(&READING).refuses(codes)
    }

    pub(super) const fn method(&self) -> &Method {
        &self.method
    }

    pub(super) const fn path(&self) -> &'static str {
        self.path
    }

    pub(super) const fn is_keyed(&self) -> bool {
        self.keyed
    }

    /// The Operation Object (OpenAPI 3.1 §4.8.10), with definitions left in the generators: one of
    /// what is written, one of what is read.
    pub(super) fn describe(&self, written: &mut SchemaGenerator, read: &mut SchemaGenerator) -> Value {
        let mut described = json!({"operationId": self.id, "tags": [self.tag], "summary": self.summary});
        let mut text = self.description.to_owned();
        if !self.capabilities.is_empty() {
            let names: Vec<_> = self.capabilities.iter().map(|name| format!("`{name}`")).collect();
            text = format!("{text}\n\nNeeds {}.", names.join(" and ")).trim().to_owned();
        }
        if !text.is_empty() {
            described["description"] = json!(text);
        }
        let mut parameters = self.parameters.clone();
        if self.keyed {
            described["security"] = json!([{"key": []}]);
            parameters.extend([parameters::workspace_header(), parameters::project_header()]);
        }
        parameters.push(parameters::request_id_header());
        described["parameters"] = json!(parameters);
        if let Some(body) = &self.body {
            let mut body = body.clone();
            if let Some(shape) = self.read {
                body["content"]["application/json"]["schema"] = shape(read).to_value();
            }
            described["requestBody"] = body;
        }
        let mut responses = Map::new();
        for answer in &self.answers {
            responses.insert(answer.status.to_string(), answer.describe(written));
        }
        let bodiless = self.method == Method::HEAD;
        for (status, response) in problems::responses(&self.codes(), bodiless) {
            responses.insert(status, response);
        }
        described["responses"] = Value::Object(responses);
        described
    }

    fn codes(&self) -> Vec<&'static str> {
        if self.without_problems {
            return Vec::new();
        }
        let mut codes = self.problems.clone();
        codes.extend(ALWAYS);
        if self.keyed {
            codes.extend(KEYED);
        }
        if !self.capabilities.is_empty() {
            codes.extend(CAPABLE);
        }
        codes.sort_unstable();
        codes.dedup();
        codes
    }
}

/// What a metered answer has beside the headers of the same answer to HEAD.
fn without_charge(headers: &'static [&'static str]) -> &'static [&'static str] {
    match headers {
        [rest @ .., "RateLimit", "RateLimit-Policy"] => rest,
        all => all,
    }
}

impl Answer {
    fn describe(&self, written: &mut SchemaGenerator) -> Value {
        let mut described = json!({"description": self.description});
        let mut headers = Map::new();
        for name in self.headers.iter().chain(&["X-Request-Id"]) {
            headers.insert((*name).to_owned(), json!({"$ref": format!("#/components/headers/{name}")}));
        }
        described["headers"] = Value::Object(headers);
        let mut content = Map::new();
        for Content { media_type, schema, example } in &self.content {
            let schema = match schema {
                Contents::Plain(schema) => schema.clone(),
                Contents::Typed(shapes) => {
                    let mut schemas: Vec<_> = shapes.iter().map(|shape| shape(written).to_value()).collect();
                    if schemas.len() == 1 { schemas.remove(0) } else { json!({"anyOf": schemas}) }
                }
            };
            let mut media = json!({"schema": schema});
            if let Some(example) = example {
                media["example"] = example.clone();
            }
            content.insert((*media_type).to_owned(), media);
        }
        if !content.is_empty() {
            described["content"] = Value::Object(content);
        }
        if !self.links.is_empty() {
            described["links"] = Value::Object(self.links.clone());
        }
        described
    }
}
