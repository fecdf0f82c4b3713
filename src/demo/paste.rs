//! The lines that the demo prints, ready to be pasted into a terminal.

use std::fmt::Write;

use percent_encoding::utf8_percent_encode;
use serde_json::json;

use super::DemoKeys;
use crate::artifact::{ArtifactName, TrialId};
use crate::encoding::SEGMENT;

/// What the lines speak of.
#[derive(Debug)]
pub struct Paste<'a> {
    /// Where the service listens, such as `http://127.0.0.1:8080`.
    pub url: &'a str,
    /// The demo's keys; the lines use the one that only reads.
    pub keys: &'a DemoKeys,
    /// A trial to look at.
    pub trial: &'a TrialId,
    /// One of its files, if it has any.
    pub name: Option<&'a ArtifactName>,
}

impl Paste<'_> {
    /// The lines, each command with a word on what it shows.
    #[must_use]
    pub fn lines(&self) -> String {
        let Self { url, keys, trial, .. } = self;
        let key = keys.read_only.expose();
        let mut out = format!(
            "Keys\n  read-only           {key}\n  project-automation  {}\n  operator            {}\n",
            keys.project_automation.expose(),
            keys.operator.expose(),
        );
        let mut section = |title: &str, body: String| {
            // Writing to a String cannot fail.
            let _ = write!(out, "\n# {title}\n{body}\n");
        };
        let auth = format!("-H 'Authorization: Bearer {key}'");
        let env = format!("ENVLOOP_BASE_URL={url} ENVLOOP_API_KEY={key} ENVLOOP_HOME=$(mktemp -d)");
        section("The files of a trial, with curl", format!("curl {auth} '{url}/v1/trials/{trial}/artifacts'"));
        if let Some(name) = self.name {
            let id = name.artifact_id();
            let id = utf8_percent_encode(&id, SEGMENT);
            section("One file", format!("curl {auth} '{url}/v1/trials/{trial}/artifacts/{id}/content'"));
            section(
                "A link to it that needs no key, for 15 minutes",
                format!("curl -X POST {auth} '{url}/v1/trials/{trial}/artifacts/{id}/links'"),
            );
        }
        section(
            "The same with el (pip install envloop-cli==1.7.0)",
            format!("export {env}\nel trail artifact list {trial}\nel trail artifact download {trial} ./{trial}"),
        );
        section(
            "Claude Code",
            format!("claude mcp add --transport http envloop {url}/v1/mcp --header 'Authorization: Bearer {key}'"),
        );
        section(
            "Codex: into ~/.codex/config.toml",
            format!(
                "[mcp_servers.envloop]\nurl = \"{url}/v1/mcp\"\n\
                 http_headers = {{ Authorization = \"Bearer {key}\" }}"
            ),
        );
        section("What an agent does, with curl", self.call(&auth));
        section("What it cost", format!("curl {auth} '{url}/v1/quota'"));
        out
    }

    /// A `tools/call` that reads a file, or lists what there is.
    fn call(&self, auth: &str) -> String {
        let (tool, arguments) = match self.name {
            Some(name) => ("envloop_trial_artifact_read", json!({"trial_id": self.trial, "name": name})),
            None => ("envloop_trial_artifacts_list", json!({"trial_id": self.trial})),
        };
        let request = json!({
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": tool, "arguments": arguments},
        });
        // Inside single quotes a shell changes nothing but the quote itself.
        let body = request.to_string().replace('\'', "'\\''");
        format!("curl {auth} -H 'Content-Type: application/json' '{}/v1/mcp' \\\n  -d '{body}'", self.url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::keys::Secret;

    fn keys() -> DemoKeys {
        let key = |digit: &str| Secret::parse(&format!("epk_{}", digit.repeat(64))).expect("well formed");
        DemoKeys { read_only: key("1"), project_automation: key("2"), operator: key("3") }
    }

    #[test]
    fn every_line_has_its_address_key_trial_and_name() {
        let (keys, trial) = (keys(), TrialId::parse("t__1").expect("valid"));
        let name = ArtifactName::parse("verifier/it's 100%.txt").expect("valid");
        let paste = Paste { url: "http://127.0.0.1:9", keys: &keys, trial: &trial, name: Some(&name) };
        let lines = paste.lines();
        let one = format!("epk_{}", "1".repeat(64));
        for want in [
            format!("read-only           {one}\n"),
            format!("project-automation  epk_{}\n", "2".repeat(64)),
            format!("operator            epk_{}\n", "3".repeat(64)),
            format!("curl -H 'Authorization: Bearer {one}' 'http://127.0.0.1:9/v1/trials/t__1/artifacts'\n"),
            "'http://127.0.0.1:9/v1/trials/t__1/artifacts/verifier~1it%27s%20100%25.txt/content'\n".into(),
            format!("export ENVLOOP_BASE_URL=http://127.0.0.1:9 ENVLOOP_API_KEY={one} ENVLOOP_HOME=$(mktemp -d)\n"),
            "el trail artifact list t__1\nel trail artifact download t__1 ./t__1\n".into(),
            format!(
                "claude mcp add --transport http envloop http://127.0.0.1:9/v1/mcp --header 'Authorization: Bearer {one}'\n"
            ),
            format!("url = \"http://127.0.0.1:9/v1/mcp\"\nhttp_headers = {{ Authorization = \"Bearer {one}\" }}\n"),
            "\"name\":\"verifier/it'\\''s 100%.txt\"".into(),
        ] {
            assert!(lines.contains(&want), "{want}\nis not in\n{lines}");
        }
    }

    #[test]
    fn the_codex_lines_are_toml_and_the_call_is_json() {
        let (keys, trial) = (keys(), TrialId::parse("t").expect("valid"));
        let lines = Paste { url: "http://127.0.0.1:9", keys: &keys, trial: &trial, name: None }.lines();
        let toml = lines.split("config.toml\n").nth(1).and_then(|rest| rest.split("\n\n").next()).expect("a section");
        let table: toml::Table = toml.parse().expect("TOML");
        assert_eq!(table["mcp_servers"]["envloop"]["url"].as_str(), Some("http://127.0.0.1:9/v1/mcp"));
        let json = lines.split("-d '").nth(1).and_then(|rest| rest.split("'\n").next()).expect("a body");
        let body: serde_json::Value = serde_json::from_str(json).expect("JSON");
        assert_eq!(body["params"]["name"], "envloop_trial_artifacts_list");
        assert_eq!(body["params"]["arguments"], json!({"trial_id": "t"}));
    }
}
