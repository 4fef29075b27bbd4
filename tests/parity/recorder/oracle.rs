//! The JVM that runs one release's spark-submit.

use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    time::SystemTime,
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tempfile::TempDir;

use super::command;

/// The packages that spark-submit's own launcher opens, as far as they are needed here.
const OPENS: [&str; 9] = [
    "java.base/java.io",
    "java.base/java.lang",
    "java.base/java.lang.reflect",
    "java.base/java.net",
    "java.base/java.nio",
    "java.base/java.util",
    "java.base/java.util.concurrent",
    "java.base/sun.nio.ch",
    "java.security.jgss/sun.security.krb5",
];

/// An answer of the oracle, and the parts of its environment that may occur in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Raw {
    pub(crate) answer: Value,
    pub(crate) address: String,
    pub(crate) here: String,
    /// The time at which the JVM generated its names, in milliseconds since the epoch.
    pub(crate) at_ms: u64,
}

pub(crate) struct Oracle {
    pub(crate) home: PathBuf,
    pub(crate) version: String,
    jvm: Jvm,
}

struct Jvm {
    process: Child,
    questions: ChildStdin,
    answers: BufReader<ChildStdout>,
    directory: TempDir,
    address: String,
}

impl Oracle {
    pub(crate) fn start(version: &str, home: Option<&Path>) -> Result<Self> {
        if let Some(home) = home {
            let home = home.to_owned();
            return Ok(Self { jvm: Jvm::start(&home, version)?, home, version: version.to_owned() });
        }
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/spark");
        let found = Command::new(script).arg(version).stderr(Stdio::inherit()).output()?;
        ensure!(found.status.success(), "scripts/spark {version} failed");
        let home = PathBuf::from(String::from_utf8(found.stdout)?.trim());
        Ok(Self { jvm: Jvm::start(&home, version)?, home, version: version.to_owned() })
    }

    /// Runs spark-submit once. If the run hangs, its JVM is killed and the result is an error.
    pub(crate) fn submit(&mut self, command: &command::Command) -> Result<Raw> {
        let question = command.question(&self.jvm.address, &self.here());
        let answer = self.ask(&question)?;
        let raw = Raw { answer, address: self.jvm.address.clone(), here: self.here(), at_ms: now_ms() };
        if raw.answer.get("timeout").is_some() {
            self.jvm = Jvm::start(&self.home, &self.version)?;
            bail!("Spark {} hangs: {:?}", self.version, command.args);
        }
        Ok(raw)
    }

    pub(crate) fn ask(&mut self, question: &Value) -> Result<Value> {
        writeln!(self.jvm.questions, "{question}").context("the oracle has ended: see its standard error")?;
        let mut line = String::new();
        self.jvm.answers.read_line(&mut line)?;
        serde_json::from_str(&line)
            .with_context(|| format!("the oracle of Spark {} failed on {question}", self.version))
    }

    /// Returns the submitter's directory.
    pub(crate) fn here(&self) -> String {
        self.jvm.directory.path().to_string_lossy().into_owned()
    }

    pub(crate) fn address(&self) -> &str {
        &self.jvm.address
    }
}

impl Jvm {
    fn start(home: &Path, version: &str) -> Result<Self> {
        let jars = home.join("jars/*");
        let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/parity");
        let classes = target.join(format!("classes-{version}"));
        compile(&jars, &classes)?;
        let directory = tempfile::Builder::new().prefix("sparkgate-parity-").tempdir()?;
        let here = directory.path();
        let log = fs::File::create(target.join(format!("spark-{version}.log")))?;
        let mut process = Command::new("java")
            .args(OPENS.map(|package| format!("--add-opens={package}=ALL-UNNAMED")))
            // Reduces the warm-up; and without Nagle's delay each exchange is 40 ms faster.
            .args(["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xmx1g", "-Dsun.net.httpserver.nodelay=true"])
            .arg(format!("-Duser.home={}/home", here.display()))
            .arg("-cp")
            .arg(format!("{}:{}", classes.display(), jars.display()))
            .arg("Oracle")
            .current_dir(here)
            .env_clear()
            .envs(environment(home, here))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("java can't be started")?;
        let questions = process.stdin.take().context("no standard input")?;
        let mut answers = BufReader::new(process.stdout.take().context("no standard output")?);
        let mut hello = String::new();
        answers.read_line(&mut hello)?;
        let hello: Value = serde_json::from_str(&hello).context("the oracle doesn't start: see target/parity")?;
        let address = format!("127.0.0.1:{}", hello["port"]);
        Ok(Self { process, questions, answers, directory, address })
    }
}

impl Drop for Jvm {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the submitter's variables, except those of a case.
pub(crate) fn environment(home: &Path, here: &Path) -> Vec<(&'static str, String)> {
    let path = |path: &Path| path.to_string_lossy().into_owned();
    vec![
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("JAVA_HOME", std::env::var("JAVA_HOME").unwrap_or_default()),
        ("SPARK_HOME", path(home)),
        ("SPARK_CONF_DIR", path(&here.join("conf"))),
        ("HOME", path(&here.join("home"))),
        ("SPARK_SCALA_VERSION", "2.13".to_owned()), // so that the launcher doesn't look for a source tree
        ("LC_ALL", "C.UTF-8".to_owned()),
        ("TZ", "UTC".to_owned()),
        ("KUBECONFIG", "/dev/null".to_owned()),
        ("HADOOP_USER_NAME", crate::ours::USER.to_owned()),
    ]
    .into_iter()
    .filter(|(_, value)| !value.is_empty())
    .collect()
}

fn compile(jars: &Path, classes: &Path) -> Result<()> {
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/oracle");
    let sources = ["Oracle.java", "Vectors.java"].map(|name| sources.join(name));
    let written = |path: &Path| fs::metadata(path).and_then(|file| file.modified()).unwrap_or(SystemTime::UNIX_EPOCH);
    if sources.iter().all(|source| written(source) < written(&classes.join("Oracle.class"))) {
        return Ok(());
    }
    fs::create_dir_all(classes)?;
    let compiler =
        Command::new("javac").arg("-nowarn").arg("-cp").arg(jars).arg("-d").arg(classes).args(sources).status();
    let status = compiler.context("javac can't be started: the recorder needs a full JDK 17")?;
    ensure!(status.success(), "javac failed");
    Ok(())
}

pub(crate) fn now_ms() -> u64 {
    SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(0, |age| age.as_millis() as u64)
}
