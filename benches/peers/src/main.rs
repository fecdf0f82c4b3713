//! Two servers that answer every `tools/call` with one text, and do nothing for it:
//! `artifactd-peers bare|rmcp PORT FILE`. The file holds the text.
//!
//! `bare` is an axum handler that takes the body and gives back bytes made beforehand: the floor.
//! `rmcp` is the official SDK as a stateless server that answers in plain JSON.

use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::routing::post;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::json;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, kind, port, file] = arguments.as_slice() else { panic!("artifactd-peers bare|rmcp PORT FILE") };
    let text = std::fs::read_to_string(file).expect("FILE can be read");
    let router = match kind.as_str() {
        "bare" => bare(&text),
        "rmcp" => rmcp(text),
        _ => panic!("bare or rmcp"),
    };
    let port = port.parse().expect("PORT is a number");
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", port)).await.expect("a free port");
    axum::serve(listener, router).await.expect("it serves");
}

fn bare(text: &str) -> Router {
    let result = json!({"content": [{"type": "text", "text": text}], "isError": false});
    let answer = Bytes::from(json!({"id": 1, "jsonrpc": "2.0", "result": result}).to_string());
    let handler = move |_: Bytes| {
        let answer = answer.clone();
        async move { ([(CONTENT_TYPE, "application/json")], answer) }
    };
    Router::new().route("/v1/mcp", post(handler))
}

fn rmcp(text: String) -> Router {
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(false).with_json_response(true);
    let server = OneText(Arc::new(text));
    let sessions = Arc::new(NeverSessionManager::default());
    let service = StreamableHttpService::new(move || Ok(server.clone()), sessions, config);
    Router::new().route_service("/v1/mcp", service)
}

/// A server of one tool, by hand: the macros build their table anew for each call.
#[derive(Clone)]
struct OneText(Arc<String>);

impl ServerHandler for OneText {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let named = |argument| request.arguments.as_ref().is_some_and(|arguments| arguments.contains_key(argument));
        if !named("trial_id") || !named("name") {
            return Err(ErrorData::invalid_params("trial_id and name are missing", None));
        }
        Ok(CallToolResult::success(vec![ContentBlock::text(self.0.as_str())]).into())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let schema = json!({"type": "object"}).as_object().expect("an object").clone();
        let tools = vec![Tool::new("envloop_trial_artifact_read", "Reads a file.", schema)];
        Ok(ListToolsResult::with_all_items(tools))
    }
}
