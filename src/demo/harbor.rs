//! The JSON files that the Harbor framework leaves in a trial's folder.

use serde_json::{Value, json};

use super::Sample;

/// What the JSON files of a trial are made of.
pub(super) struct Run {
    pub(super) trial: &'static str,
    pub(super) id: &'static str,
    pub(super) agent: &'static str,
    pub(super) model: &'static str,
    /// Minutes after 09:00 UTC when it began, at most 50, and how many it took, at most 9.
    pub(super) began: u32,
    pub(super) took: u32,
    pub(super) tokens: [u64; 3],
    pub(super) cost_usd: f64,
    pub(super) outcome: Outcome,
}

/// How a trial ended.
pub(super) enum Outcome {
    /// The verifier's reward.
    Reward(f64),
    /// Type, message and traceback of the exception that ended it.
    Exception(&'static str, &'static str, &'static str),
}

impl Run {
    fn task(&self) -> &'static str {
        self.trial.split("__").next().unwrap_or(self.trial)
    }

    fn config(&self) -> Value {
        json!({
            "task": {"path": format!("tasks/{}", self.task()), "source": DATASET, "git_url": null},
            "trial_name": self.trial,
            "trials_dir": "jobs/nightly",
            "timeout_multiplier": 1.0,
            "agent": {"name": self.agent, "model_name": format!("example/{}", self.model), "kwargs": {}},
            "environment": {"type": "docker", "force_build": false, "delete": true},
            "verifier": {"disable": false},
        })
    }

    /// `minute` minutes after the beginning.
    fn at(&self, minute: u32) -> String {
        format!("2026-11-28T09:{:02}:{:02}Z", self.began + minute, (self.began * 7 + minute * 13) % 60)
    }

    fn span(&self, from: u32, to: u32) -> Value {
        json!({"started_at": self.at(from), "finished_at": self.at(to)})
    }

    fn result(&self, step_results: &Value) -> Value {
        let [input, cache, output] = self.tokens;
        let (verifier_result, exception_info) = match self.outcome {
            Outcome::Reward(reward) => (json!({"rewards": {"reward": reward}}), Value::Null),
            Outcome::Exception(kind, message, traceback) => (
                Value::Null,
                json!({
                    "exception_type": kind,
                    "exception_message": message,
                    "exception_traceback": traceback,
                    "occurred_at": self.at(self.took),
                }),
            ),
        };
        json!({
            "schema_version": 1,
            "id": self.id,
            "task_name": self.task(),
            "trial_name": self.trial,
            "trial_uri": format!("file:///jobs/nightly/{}", self.trial),
            "task_id": {"path": format!("tasks/{}", self.task())},
            "source": DATASET,
            "task_checksum": format!("{:0>64}", self.id.replace('-', "")),
            "config": self.config(),
            "agent_info": {
                "name": self.agent,
                "version": "2.4.1",
                "model_info": {"name": self.model, "provider": "example"},
            },
            "agent_result": {
                "n_input_tokens": input,
                "n_cache_tokens": cache,
                "n_output_tokens": output,
                "cost_usd": self.cost_usd,
                "model_usage": null,
                "metadata": {"n_episodes": 3},
            },
            "verifier_result": verifier_result,
            "exception_info": exception_info,
            "started_at": self.at(0),
            "finished_at": self.at(self.took),
            "environment_setup": self.span(0, 0),
            "agent_setup": self.span(0, 1),
            "agent_execution": self.span(1, self.took),
            "verifier": if verifier_result.is_null() { Value::Null } else { self.span(self.took, self.took) },
            "step_results": step_results,
        })
    }

    /// config.json, lock.json, result.json, trial.log, and exception.txt where there was one.
    pub(super) fn files(&self, step_results: &Value) -> Vec<Sample> {
        let lock = json!({"schema_version": 1, "task": self.task(), "dataset": {"name": DATASET, "version": "1.2"}});
        let log = format!(
            "{} INFO harbor.trial: starting {}\n{} INFO harbor.environment: image ready\n\
             {} INFO harbor.agent: {} with example/{}\n{} {}\n",
            self.at(0),
            self.trial,
            self.at(0),
            self.at(1),
            self.agent,
            self.model,
            self.at(self.took),
            match self.outcome {
                Outcome::Reward(reward) => format!("INFO harbor.verifier: reward {reward}"),
                Outcome::Exception(kind, message, _) => format!("ERROR harbor.trial: {kind}: {message}"),
            }
        );
        let mut files = vec![
            Sample::new("config.json", pretty(&self.config())),
            Sample::new("lock.json", pretty(&lock)),
            Sample::new("result.json", pretty(&self.result(step_results))),
            Sample::new("trial.log", log),
        ];
        if let Outcome::Exception(_, _, traceback) = self.outcome {
            files.push(Sample::new("exception.txt", traceback));
        }
        files
    }
}

const DATASET: &str = "terminal-tasks";

/// `trajectory.json`: what the agent was told, said and did.
pub(super) fn trajectory(agent: &str, turns: &[(&str, &str)]) -> String {
    let steps: Vec<_> = turns
        .iter()
        .enumerate()
        .map(|(index, (source, message))| json!({"step_id": index + 1, "source": source, "message": message}))
        .collect();
    pretty(&json!({"schema_version": "ATIF-v1.4", "agent": {"name": agent, "version": "2.4.1"}, "steps": steps}))
}

/// `artifacts/manifest.json` of collected `(source, destination, status)`.
pub(super) fn manifest(entries: &[(&str, &str, &str)]) -> String {
    let entries: Vec<_> = entries
        .iter()
        .map(|(source, destination, status)| {
            let kind = if source.ends_with('/') { "directory" } else { "file" };
            json!({
                "source": source, "destination": destination, "type": kind, "status": status,
                "service": null, "exclude": [],
            })
        })
        .collect();
    pretty(&Value::from(entries))
}

/// `verifier/ctrf.json`: the outcome of each test.
pub(super) fn ctrf(tests: &[(&str, bool)]) -> String {
    let passed = tests.iter().filter(|(_, passed)| *passed).count();
    let rows: Vec<_> = tests
        .iter()
        .enumerate()
        .map(|(index, (name, passed))| {
            json!({"name": name, "status": if *passed { "passed" } else { "failed" }, "duration": 12 + 7 * index})
        })
        .collect();
    pretty(&json!({"results": {
        "tool": {"name": "pytest", "version": "8.4.1"},
        "summary": {"tests": tests.len(), "passed": passed, "failed": tests.len() - passed, "skipped": 0},
        "tests": rows,
    }}))
}

pub(super) fn pretty(value: &Value) -> String {
    format!("{value:#}\n")
}
