//! The Model Context Protocol's envelope: one JSON-RPC message in, one out, in two eras.
//!
//! - **legacy**, revisions 2024-11-05 to 2025-11-25: `initialize` negotiates a revision, and later
//!   requests may repeat it in `MCP-Protocol-Version`.
//! - **modern**, revision 2026-07-28: every request says in `params._meta` what it speaks, and
//!   headers repeat version, method and name, so that proxies need not read bodies.
//!
//! The era is the request's own: nothing is remembered between requests. All of this is pure.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::{Map, Value, json};

use super::json::{self, Invalid};

/// The revisions of the legacy era, oldest first.
pub(super) const LEGACY_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// The revision of the modern era.
pub(super) const MODERN_REVISION: &str = "2026-07-28";

/// JSON-RPC 2.0: the body is not JSON.
pub(super) const PARSE_ERROR: i64 = -32700;
/// JSON-RPC 2.0: the JSON is no request.
pub(super) const INVALID_REQUEST: i64 = -32600;
/// JSON-RPC 2.0: no such method.
pub(super) const METHOD_NOT_FOUND: i64 = -32601;
/// JSON-RPC 2.0: the parameters do not fit the method.
pub(super) const INVALID_PARAMS: i64 = -32602;
/// JSON-RPC 2.0: the server failed.
pub(super) const INTERNAL_ERROR: i64 = -32603;
/// MCP 2026-07-28: a header is missing, doubled or says otherwise than the body.
pub(super) const HEADER_MISMATCH: i64 = -32020;
/// MCP 2026-07-28: the revision is not served.
pub(super) const UNSUPPORTED_VERSION: i64 = -32022;

const VERSION_HEADER: &str = "mcp-protocol-version";
const METHOD_HEADER: &str = "mcp-method";
const NAME_HEADER: &str = "mcp-name";

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
const META_SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";

/// The longest id that is a string, in bytes.
const MAX_ID_BYTES: usize = 1024;
/// How long a client may keep what [`Reply::cacheable`] answers, ms.
const CACHE_MS: u64 = 300_000;

/// Which rules a request follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Era {
    /// Up to 2025-11-25.
    Legacy,
    /// From 2026-07-28.
    Modern,
}

/// One message of a client.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Message {
    /// Wants no answer.
    Notification,
    /// Wants one.
    Request(Request),
}

/// A request that obeys its era's rules.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Request {
    /// A string or a number.
    pub(super) id: Value,
    /// The rules it follows.
    pub(super) era: Era,
    /// What it wants.
    pub(super) method: Method,
}

/// What a request wants.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Method {
    /// `initialize` (legacy), with the revision to answer.
    Initialize(&'static str),
    /// `server/discover` (modern).
    Discover,
    /// `ping` (legacy).
    Ping,
    /// `tools/list`.
    ListTools,
    /// `tools/call`.
    CallTool {
        /// The tool.
        name: String,
        /// Its arguments; empty if the request has none.
        arguments: Map<String, Value>,
    },
}

/// A request that is answered by a JSON-RPC error.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fault {
    /// The HTTP status.
    pub(super) status: StatusCode,
    /// The request's id, if it could be read.
    pub(super) id: Option<Value>,
    /// One of the codes of this module, or an HTTP status where the request never became a message.
    pub(super) code: i64,
    /// What is wrong. Clients show this, and often nothing else.
    pub(super) message: String,
    /// More, for programs.
    pub(super) data: Option<Value>,
}

impl Fault {
    /// A fault of a message as such: HTTP 400, no id.
    pub(super) fn new(code: i64, message: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST, id: None, code, message: message.into(), data: None }
    }

    /// With another HTTP status.
    #[must_use]
    pub(super) fn with_status(mut self, status: StatusCode) -> Self {
        self.status = status;
        self
    }

    fn with_id(mut self, id: &Value) -> Self {
        self.id = Some(id.clone());
        self
    }

    fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// The message to send.
    #[must_use]
    pub(super) fn to_json(&self) -> Value {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        match &self.id {
            Some(id) => json!({"jsonrpc": "2.0", "id": id, "error": error}),
            None => json!({"jsonrpc": "2.0", "error": error}),
        }
    }
}

/// Reads one message.
///
/// # Errors
/// The [`Fault`] to answer.
pub(super) fn read(headers: &HeaderMap, body: &[u8]) -> Result<Message, Fault> {
    let value = json::parse(body).map_err(|invalid| match invalid {
        Invalid::Syntax => {
            Fault::new(PARSE_ERROR, "The body is not valid JSON (RFC 8259), or is nested deeper than 127 levels.")
        }
        Invalid::Repeated => Fault::new(INVALID_REQUEST, "An object in the body has two values of one name."),
    })?;
    let mut message = match value {
        Value::Object(message) => message,
        Value::Array(_) => return Err(Fault::new(INVALID_REQUEST, "Batches are not served: send one request a POST.")),
        _ => return Err(Fault::new(INVALID_REQUEST, "A JSON-RPC message is an object.")),
    };
    if message.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return Err(Fault::new(INVALID_REQUEST, "jsonrpc must be \"2.0\"."));
    }
    let id = message.remove("id");
    if !id.as_ref().is_none_or(can_be_repeated) {
        let rule = format!("id must be a string of at most {MAX_ID_BYTES} bytes, or a whole number of at most 2^53.");
        return Err(Fault::new(INVALID_REQUEST, rule));
    }
    let Some(Value::String(method)) = message.remove("method") else {
        return Err(Fault::new(INVALID_REQUEST, "method must be a string; responses are not expected."));
    };
    let Some(id) = id else {
        legacy_version(headers)?;
        if header(headers, VERSION_HEADER) == Ok(Some(MODERN_REVISION)) {
            must_repeat(headers, "Mcp-Method", METHOD_HEADER, &method)?;
        }
        return Ok(Message::Notification);
    };
    let params = match message.remove("params") {
        None => Map::new(),
        Some(Value::Object(params)) => params,
        Some(_) => return Err(Fault::new(INVALID_PARAMS, "params must be an object.").with_id(&id)),
    };
    let (era, method) = request(headers, &method, params).map_err(|fault| fault.with_id(&id))?;
    Ok(Message::Request(Request { id, era, method }))
}

/// Whether an answer can name the request by this id just as it was sent: it is a string of bounded
/// length, or a whole number that every JSON parser reads the same (RFC 8259 §6). Fractions are no ids
/// in MCP, and parsers differ in their last digit.
fn can_be_repeated(id: &Value) -> bool {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    match id {
        Value::String(id) => id.len() <= MAX_ID_BYTES,
        Value::Number(id) => id.as_f64().is_some_and(|id| id.fract() == 0.0 && id.abs() <= EXACT),
        _ => false,
    }
}

fn request(headers: &HeaderMap, method: &str, params: Map<String, Value>) -> Result<(Era, Method), Fault> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let says_version = meta.is_some_and(|meta| meta.contains_key(META_VERSION));
    let modern_only = method == "server/discover";
    let modern_header = method != "initialize" && header(headers, VERSION_HEADER) == Ok(Some(MODERN_REVISION));
    if says_version || modern_only || modern_header {
        check_modern(headers, method, &params)?;
        modern_method(method, params).map(|method| (Era::Modern, method))
    } else {
        legacy_version(headers)?;
        legacy_method(method, params).map(|method| (Era::Legacy, method))
    }
}

fn legacy_method(method: &str, params: Map<String, Value>) -> Result<Method, Fault> {
    match method {
        "initialize" => {
            let asked = params.get("protocolVersion").and_then(Value::as_str);
            let newest = LEGACY_REVISIONS[LEGACY_REVISIONS.len() - 1];
            Ok(Method::Initialize(LEGACY_REVISIONS.into_iter().find(|known| asked == Some(known)).unwrap_or(newest)))
        }
        "ping" => Ok(Method::Ping),
        "tools/list" => list_tools(&params),
        "tools/call" => call_tool(params).map_err(|fault| fault.with_status(StatusCode::OK)),
        _ => Err(no_such_method(method).with_status(StatusCode::OK)),
    }
}

fn modern_method(method: &str, params: Map<String, Value>) -> Result<Method, Fault> {
    match method {
        "server/discover" => Ok(Method::Discover),
        "tools/list" => list_tools(&params),
        "tools/call" => call_tool(params),
        _ => Err(no_such_method(method).with_status(StatusCode::NOT_FOUND)),
    }
}

fn no_such_method(method: &str) -> Fault {
    Fault::new(METHOD_NOT_FOUND, format!("This server has no method {:?}; it serves tools only.", shortened(method)))
}

/// So much of what a client sent as an answer repeats.
pub(super) fn shortened(text: &str) -> &str {
    text.char_indices().nth(64).map_or(text, |(end, _)| &text[..end])
}

fn list_tools(params: &Map<String, Value>) -> Result<Method, Fault> {
    match params.get("cursor") {
        None | Some(Value::Null) => Ok(Method::ListTools),
        // There is one page, so no answer ever handed out a cursor.
        Some(_) => Err(Fault::new(INVALID_PARAMS, "cursor is not one of this server's.").with_status(StatusCode::OK)),
    }
}

fn call_tool(mut params: Map<String, Value>) -> Result<Method, Fault> {
    let Some(Value::String(name)) = params.remove("name") else {
        return Err(Fault::new(INVALID_PARAMS, "params.name must be the name of a tool."));
    };
    match params.remove("arguments") {
        None | Some(Value::Null) => Ok(Method::CallTool { name, arguments: Map::new() }),
        Some(Value::Object(arguments)) => Ok(Method::CallTool { name, arguments }),
        Some(_) => Err(Fault::new(INVALID_PARAMS, "params.arguments must be an object.")),
    }
}

/// Checks the version header by the legacy rules: it may be missing, not unknown.
fn legacy_version(headers: &HeaderMap) -> Result<(), Fault> {
    match header(headers, VERSION_HEADER) {
        Err(Unreadable) => Err(Fault::new(INVALID_REQUEST, "MCP-Protocol-Version must be sent once, as plain text.")),
        Ok(None) => Ok(()),
        Ok(Some(version)) if version == MODERN_REVISION || LEGACY_REVISIONS.contains(&version) => Ok(()),
        Ok(Some(version)) => Err(unsupported(version)),
    }
}

/// Checks what a modern request must say of itself, and that its headers repeat it.
fn check_modern(headers: &HeaderMap, method: &str, params: &Map<String, Value>) -> Result<(), Fault> {
    let meta = params.get("_meta").and_then(Value::as_object);
    let field = |name: &str| meta.and_then(|meta| meta.get(name));
    let missing =
        |name: &str| Fault::new(INVALID_PARAMS, format!("params._meta[\"{name}\"] is missing or of the wrong type."));
    let version = field(META_VERSION).and_then(Value::as_str).ok_or_else(|| missing(META_VERSION))?;
    must_repeat(headers, "MCP-Protocol-Version", VERSION_HEADER, version)?;
    if version != MODERN_REVISION {
        return Err(unsupported(version));
    }
    field(META_CAPABILITIES).and_then(Value::as_object).ok_or_else(|| missing(META_CAPABILITIES))?;
    must_repeat(headers, "Mcp-Method", METHOD_HEADER, method)?;
    if method == "tools/call" {
        let name = params.get("name").and_then(Value::as_str);
        let name = name.ok_or_else(|| Fault::new(INVALID_PARAMS, "params.name must be the name of a tool."))?;
        must_repeat(headers, "Mcp-Name", NAME_HEADER, name)?;
    }
    Ok(())
}

/// All revisions that are served, oldest first.
#[must_use]
pub(super) fn supported_revisions() -> Vec<&'static str> {
    LEGACY_REVISIONS.into_iter().chain([MODERN_REVISION]).collect()
}

fn unsupported(version: &str) -> Fault {
    Fault::new(UNSUPPORTED_VERSION, "Unsupported protocol version")
        .with_data(json!({"supported": supported_revisions(), "requested": shortened(version)}))
}

fn must_repeat(headers: &HeaderMap, shown: &str, name: &'static str, body: &str) -> Result<(), Fault> {
    let said = header(headers, name).ok().flatten().and_then(|value| match encoded(value) {
        Some(encoded) => BASE64_STANDARD.decode(encoded).ok().and_then(|bytes| String::from_utf8(bytes).ok()),
        None => Some(value.to_owned()),
    });
    if said.as_deref() == Some(body) {
        return Ok(());
    }
    Err(Fault::new(HEADER_MISMATCH, format!("{shown} header must be sent once and say what the body says.")))
}

/// What `=?base64?…?=` holds.
fn encoded(value: &str) -> Option<&str> {
    value.strip_prefix("=?base64?")?.strip_suffix("?=")
}

/// A header that is sent twice, or is no plain text.
#[derive(Debug, PartialEq, Eq)]
struct Unreadable;

fn header<'a>(headers: &'a HeaderMap, name: &'static str) -> Result<Option<&'a str>, Unreadable> {
    let mut values = headers.get_all(name).iter();
    match (values.next(), values.next()) {
        (None, _) => Ok(None),
        (Some(value), None) => value.to_str().map(|text| Some(text.trim())).map_err(|_| Unreadable),
        _ => Err(Unreadable),
    }
}

/// A successful answer in the making.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Reply {
    result: Map<String, Value>,
    cacheable: bool,
}

impl Reply {
    /// An answer that holds for this request alone.
    #[must_use]
    pub(super) const fn once(result: Map<String, Value>) -> Self {
        Self { result, cacheable: false }
    }

    /// An answer that the client may keep for a while, for itself.
    #[must_use]
    pub(super) const fn cacheable(result: Map<String, Value>) -> Self {
        Self { result, cacheable: true }
    }

    /// The message to send, with what the request's era adds. `server` describes this server.
    #[must_use]
    pub(super) fn into_json(self, request: &Request, server: &Value) -> Value {
        let mut result = self.result;
        if request.era == Era::Modern {
            result.insert("resultType".into(), "complete".into());
            result.insert("_meta".into(), json!({META_SERVER_INFO: server}));
            if self.cacheable {
                result.insert("ttlMs".into(), CACHE_MS.into());
                result.insert("cacheScope".into(), "private".into());
            }
        }
        json!({"jsonrpc": "2.0", "id": request.id, "result": result})
    }
}

#[cfg(test)]
mod tests;
