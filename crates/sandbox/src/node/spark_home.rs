//! The Spark of this machine, which is used for every image.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use tokio::process::Command;

/// A Spark distribution and the Python that goes with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spark {
    /// The directory with `bin/spark-submit` and `jars`.
    pub home: PathBuf,
    /// The interpreter for `PySpark`, unless a pod names one.
    pub python: PathBuf,
}

const PYSPARK: &str = "import importlib.util, os, sys
spec = importlib.util.find_spec('pyspark')
print(sys.executable, os.path.dirname(spec.origin) if spec and spec.origin else '', sep='\\n')";

impl Spark {
    /// Finds Spark: the given directory, else `SPARK_HOME`, else a pyspark that `python3` can import. `None` if there is none.
    ///
    /// # Errors
    /// The given directory, or that in `SPARK_HOME`, has no `bin/spark-submit`.
    pub async fn find(given: Option<&Path>) -> anyhow::Result<Option<Self>> {
        let named = given.map(Path::to_owned).or_else(|| std::env::var_os("SPARK_HOME").map(PathBuf::from));
        if let Some(home) = named.filter(|home| !home.as_os_str().is_empty()) {
            return Self::at(&home).map(Some);
        }
        let Ok(output) = Command::new("python3").args(["-c", PYSPARK]).output().await else { return Ok(None) };
        let text = String::from_utf8_lossy(&output.stdout);
        let mut lines = text.lines();
        let (Some(python), Some(home)) = (lines.next(), lines.next().filter(|home| !home.is_empty())) else {
            return Ok(None);
        };
        Ok(Self::at(Path::new(home)).ok().map(|spark| Self { python: PathBuf::from(python), ..spark }))
    }

    fn at(home: &Path) -> anyhow::Result<Self> {
        let home = std::path::absolute(home).with_context(|| format!("cannot resolve {}", home.display()))?;
        if !home.join("bin/spark-submit").is_file() {
            bail!(
                "{} is not a Spark distribution: it has no bin/spark-submit. Set SPARK_HOME to one, or unset it",
                home.display()
            );
        }
        let python = python_beside(&home).unwrap_or_else(|| PathBuf::from("python3"));
        Ok(Self { home, python })
    }
}

/// Returns the interpreter of the environment, for a pyspark in `<environment>/lib/python3.x/site-packages`.
fn python_beside(home: &Path) -> Option<PathBuf> {
    let python = home.ancestors().nth(4)?.join("bin/python3");
    (home.parent()?.ends_with("site-packages") && python.is_file()).then_some(python)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_named_directory_must_be_a_spark_distribution() {
        let dir = tempfile::tempdir().unwrap();
        let error = Spark::find(Some(dir.path())).await.unwrap_err();
        assert!(error.to_string().contains("bin/spark-submit"), "{error}");
    }

    #[tokio::test]
    async fn pyspark_uses_the_python_of_its_environment() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("lib/python3.11/site-packages/pyspark");
        std::fs::create_dir_all(home.join("bin")).unwrap();
        std::fs::create_dir_all(dir.path().join("bin")).unwrap();
        std::fs::write(home.join("bin/spark-submit"), "").unwrap();
        let spark = Spark::find(Some(&home)).await.unwrap().unwrap();
        assert_eq!(spark.python, Path::new("python3"));
        std::fs::write(dir.path().join("bin/python3"), "").unwrap();
        let spark = Spark::find(Some(&home)).await.unwrap().unwrap();
        assert_eq!(spark.python, dir.path().join("bin/python3"));
    }
}
