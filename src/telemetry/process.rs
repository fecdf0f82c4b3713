//! What the operating system says of the process, by the names that Prometheus' own libraries use, and
//! what the runtime says.

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

/// Read when it is asked for.
#[derive(Debug)]
pub(super) struct Process;

impl Collector for Process {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), std::fmt::Error> {
        let mut gauge = |name, help, unit: Option<&Unit>, value: Option<i64>| {
            let Some(value) = value else { return Ok(()) };
            let gauge = ConstGauge::new(value);
            let metric = encoder.encode_descriptor(name, help, unit, gauge.metric_type())?;
            gauge.encode(metric)
        };
        let bytes = Some(&Unit::Bytes);
        gauge("process_resident_memory", "Memory that the process holds", bytes, resident_bytes())?;
        gauge("process_open_fds", "Files and sockets that the process has open", None, open_files())?;
        gauge("process_max_fds", "Files and sockets that the process may have open", None, most_files())?;
        gauge("artifactd_tasks_alive", "Tasks of the runtime that have not ended", None, tasks())
    }
}

fn resident_bytes() -> Option<i64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.trim().strip_suffix(" kB")?.parse::<i64>().ok()?.checked_mul(1024)
}

fn open_files() -> Option<i64> {
    i64::try_from(std::fs::read_dir("/proc/self/fd").ok()?.count()).ok()
}

fn tasks() -> Option<i64> {
    let runtime = tokio::runtime::Handle::try_current().ok()?;
    i64::try_from(runtime.metrics().num_alive_tasks()).ok()
}

fn most_files() -> Option<i64> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    i64::try_from(limit.current?).ok()
}
