//! What is served beside this front's handlers, and the description itself.

use serde_json::json;

use super::Operation;

/// The operations of other routers.
pub(super) fn operations() -> Vec<Operation> {
    vec![mcp(), metrics()]
}

/// MCP has a contract of its own; this says how it is reached.
fn mcp() -> Operation {
    let id = json!({"type": ["string", "number", "null"]});
    let request = json!({
        "type": "object",
        "required": ["jsonrpc", "method"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["string", "number"]},
            "method": {"type": "string"},
            "params": {"type": "object"},
        },
    });
    let reply = json!({
        "type": "object",
        "required": ["jsonrpc"],
        "properties": {
            "jsonrpc": {"const": "2.0"},
            "id": id,
            "result": {"type": "object"},
            "error": {
                "type": "object",
                "required": ["code", "message"],
                "properties": {"code": {"type": "integer"}, "message": {"type": "string"}, "data": {}},
            },
        },
        "oneOf": [{"required": ["result"]}, {"required": ["error"]}],
    });
    let fault = json!({"jsonrpc": "2.0", "id": null, "error": {"code": -32600, "message": "Send one request."}});
    let refused = "A JSON-RPC error; `error.data.code`, where it stands, is a code of this API.";
    let mut operation = Operation::post("/v1/mcp", "callMcp", "Agents")
        .says(
            "The Model Context Protocol: one JSON-RPC request, one JSON reply",
            "Stateless, without streams and sessions; revisions 2024-11-05 to 2026-07-28. Every answer is JSON-RPC, \
             refusals of the key included.",
        )
        .speaks_json_rpc()
        .reads_plain(&request, &json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}))
        .answers_plain(200, "The reply.", reply.clone(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}))
        .bare(202, "A notification was taken.", &[]);
    for status in [400, 401, 403, 404, 408, 413, 415, 500, 503] {
        operation = operation.answers_plain(status, refused, reply.clone(), fault.clone());
    }
    operation
}

fn metrics() -> Operation {
    Operation::get("/metrics", "getMetrics", "Service")
        .says("Metrics for Prometheus", "Not here if the operator gave them a listener of their own.")
        .open()
        .bytes(200, "text/plain", "The exposition.", &[])
}

/// The description of the API.
pub(super) fn description() -> Operation {
    let schema = json!({
        "type": "object",
        "required": ["openapi", "info", "paths"],
        "additionalProperties": true,
        "properties": {"openapi": {"type": "string", "pattern": "^3\\.1\\."}},
    });
    let example = json!({"openapi": "3.1.1", "info": {"title": "artifactd", "version": "1"}, "paths": {}});
    Operation::get("/openapi.json", "getDescription", "Service")
        .says("This description", "OpenAPI 3.1.")
        .open()
        .answers_plain(200, "The description.", schema, example)
}
