//! Generated cases: the same seed gives the same cases on every machine.

mod families;
mod pool;

use serde_json::{Value, json};
use sparkgate_testing::SplitMix64;

use crate::case::{Case, Submitter, Written};
use pool::{INVALID, KEYS};

/// The seed of the recorded cases.
pub(crate) const SEED: u64 = 2026;

#[derive(Debug, Clone)]
pub(crate) struct Random(SplitMix64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.0.next() % end as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Returns `count` cases, named after their seed and number.
pub(crate) fn cases(seed: u64, count: usize) -> Vec<Case> {
    (0..count).map(|number| case(seed, number)).collect()
}

fn case(seed: u64, number: usize) -> Case {
    let name = format!("generated-{seed}-{number:04}");
    draw(&mut Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64))).case(&name)
}

fn draw(random: &mut Random) -> Written {
    let mut request = application(random);
    let mut submitter = Submitter::default();
    let mut properties = serde_json::Map::new();
    let wanted = 3 + random.below(13);
    while properties.len() < wanted {
        // Families have many keys each; a third of the draws is for them.
        let drawn = if random.percent(34) {
            families::draw(random, &mut submitter)
        } else {
            let (key, values) = random.pick(KEYS);
            vec![(key.to_owned(), random.pick(values).to_owned())]
        };
        properties.extend(drawn.into_iter().map(|(key, value)| (key, Value::from(value))));
    }
    if random.percent(12) {
        let (key, value) = random.pick(INVALID);
        properties.insert(key.to_owned(), value.into());
    }
    request.insert("sparkProperties".into(), properties.into());
    surroundings(random, &mut request, &mut submitter);
    Written { request, submitter, ..Written::default() }
}

fn application(random: &mut Random) -> serde_json::Map<String, Value> {
    let jar = ["local:///opt/spark/examples/jars/app.jar", "https://files.example/app.jar"];
    let python = ["local:///opt/app/main.py", "https://files.example/main.py"];
    let (resource, class) = match random.below(20) {
        0..=10 => (random.pick(&jar), random.pick(&["org.example.Main", "org.apache.spark.examples.SparkPi"])),
        11..=16 => (random.pick(&python), random.pick(&["", "", "org.example.Ignored"])),
        17..=18 => (random.pick(&["local:///opt/app/main.R", "local:///opt/app/main.r"]), ""),
        _ => ("spark-internal", "org.example.Internal"),
    };
    let pool = ["100", "--input", "s3a://bucket/in put", "a=b", "", "ünï", "--conf", "\"quoted\"", "$HOME", "-v"];
    let args: Vec<&str> = (0..random.below(4)).map(|_| random.pick(&pool)).collect();
    let request = json!({ "appResource": resource, "mainClass": class, "appArgs": args });
    request.as_object().cloned().unwrap_or_default()
}

fn surroundings(random: &mut Random, request: &mut serde_json::Map<String, Value>, submitter: &mut Submitter) {
    if random.percent(20) {
        let pool =
            ["SPARK_USER", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON", "SPARK_LOCAL_DIRS", "TEAM", "SPARK_LOCAL_IP"];
        let values = ["python3", "/scratch/a,/scratch/b", "etl", "/data"];
        let variables: serde_json::Map<String, Value> =
            (0..1 + random.below(2)).map(|_| (random.pick(&pool).to_owned(), random.pick(&values).into())).collect();
        request.insert("environmentVariables".into(), variables.into());
    }
    if random.percent(8) {
        request.insert("proxyUser".into(), random.pick(&["alice", "svc-etl"]).into());
    }
    if random.percent(8) {
        let files = [("log4j2.properties", "rootLogger.level = warn\n"), ("metrics.properties", "*.sink=x\n")];
        let count = 1 + random.below(2);
        submitter.conf_dir.extend(files[..count].iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
    }
    if random.percent(6) {
        let site = "<configuration><property><name>a</name><value>b</value></property></configuration>\n";
        submitter.hadoop_conf = Some([("core-site.xml".to_owned(), site.to_owned())].into());
    }
}

/// Returns the number of cases and a checksum that shows whether the generator still produces them (FNV-1a over all
/// requests).
pub(crate) fn fingerprint(cases: &[Case]) -> String {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for case in cases {
        let text = serde_json::to_string(&(&case.request, &case.submitter, &case.defaults)).unwrap_or_default();
        hash = text.bytes().fold(hash, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
    }
    format!("{} {hash:016x}\n", cases.len())
}
