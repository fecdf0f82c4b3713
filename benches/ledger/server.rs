//! A Redis of our own, on the first processor.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, FromRedisValue, IntoConnectionInfo as _};

use crate::load::Ran;

pub(crate) struct Server {
    process: Child,
    port: u16,
    connection: MultiplexedConnection,
    _directory: tempfile::TempDir,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// One that is all of a Cluster.
    pub(crate) async fn start_cluster() -> Self {
        let server = Self::start_with(&["--cluster-enabled", "yes"]).await;
        let () = server.ask("CLUSTER ADDSLOTSRANGE 0 16383").await;
        while !server.ask::<String>("CLUSTER INFO").await.contains("cluster_state:ok") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        server
    }

    async fn start_with(settings: &[&str]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port();
        let mut process = Command::new("taskset")
            .args(["-c", "0", "redis-server"])
            .args(["--port", &port.to_string(), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir"])
            .arg(directory.path())
            .args(settings)
            .stdout(Stdio::null())
            .spawn()
            .expect("taskset is on the path");
        let info = format!("redis://127.0.0.1:{port}").into_connection_info().unwrap();
        let tcp = info.tcp_settings().clone().set_nodelay(true);
        let client = redis::Client::open(info.set_tcp_settings(tcp)).unwrap();
        // To empty a large server takes longer than the client would wait.
        let patient = AsyncConnectionConfig::new().set_response_timeout(Some(Duration::from_secs(60)));
        for _ in 0..100 {
            if let Ok(connection) = client.get_multiplexed_async_connection_with_config(&patient).await {
                return Self { process, port, connection, _directory: directory };
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        process.kill().expect("it runs");
        process.wait().expect("it ran");
        panic!("redis-server does not answer");
    }

    /// Where it is, by the protocol of that name.
    pub(crate) fn url(&self, protocol: &str) -> String {
        format!("{protocol}://127.0.0.1:{}", self.port)
    }

    pub(crate) fn connection(&self) -> MultiplexedConnection {
        self.connection.clone()
    }

    pub(crate) async fn ask<T: FromRedisValue>(&self, words: &str) -> T {
        let mut words = words.split(' ');
        let mut command = redis::cmd(words.next().unwrap());
        for word in words {
            command.arg(word);
        }
        command.query_async(&mut self.connection()).await.unwrap()
    }

    async fn info(&self, field: &str) -> f64 {
        let info: String = self.ask("INFO").await;
        info.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':')).unwrap().trim().parse().unwrap()
    }

    /// Runs a load; answers the server's processor time for each, too, in us.
    pub(crate) async fn timed(&self, load: impl Future<Output = Ran>) -> (Ran, f64) {
        let before = self.processor().await;
        let ran = load.await;
        let us = (self.processor().await - before) * 1e6 / ran.count();
        (ran, us)
    }

    /// In s, so far.
    async fn processor(&self) -> f64 {
        self.info("used_cpu_user").await + self.info("used_cpu_sys").await
    }

    /// Bytes in use.
    pub(crate) async fn memory(&self) -> f64 {
        self.info("used_memory").await
    }

    pub(crate) async fn append_only(&self, on: bool) {
        let () = self.ask(if on { "CONFIG SET appendonly yes" } else { "CONFIG SET appendonly no" }).await;
        while on && self.info("aof_rewrite_in_progress").await > 0.0 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    pub(crate) async fn script_that_answers_1(&self) -> String {
        redis::cmd("SCRIPT").arg("LOAD").arg("return 1").query_async(&mut self.connection()).await.unwrap()
    }

    /// Calls of that script per second as `redis-benchmark` counts them; `None` where there is none.
    pub(crate) fn benchmark(&self, pipeline: usize) -> Option<f64> {
        let sha = redis::Script::new("return 1");
        let output = Command::new("redis-benchmark")
            .args(["-p", &self.port.to_string(), "-c", "64", "-n", "200000", "-P", &pipeline.to_string(), "-q"])
            .args(["EVALSHA", sha.get_hash(), "1", "k"])
            .output()
            .ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let before = text.rsplit_once(" requests per second")?.0;
        before.rsplit([' ', ':']).next()?.parse().ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
