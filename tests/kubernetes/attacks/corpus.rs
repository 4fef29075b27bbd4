//! The corpus: requests to the gateway, and pods that a driver creates itself.

pub(crate) mod direct;
pub(crate) mod fields;
pub(crate) mod keys;
mod yaml;

use std::collections::BTreeMap;

use fields::{Carrier, Place};
use keys::Leads;
use serde_json::{Value, json};

/// The latest release of each line that the gateway supports.
pub(crate) const RELEASES: [&str; 5] = ["3.5.9", "4.0.5", "4.1.4", "4.2.1", "4.3.0"];
pub(crate) const MAIN_CLASS: &str = "org.example.Main";
pub(crate) const RESOURCE: &str = "local:///opt/app.jar";

/// Who must refuse a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Expected {
    /// The policy of the gateway, and without it the cluster.
    Refused,
    /// The policy of the gateway: the cluster doesn't see it.
    RefusedByPolicy,
    /// The same, and without a policy the request isn't sent: its objects need what the cluster doesn't have.
    RefusedByPolicyAlone,
    /// The gateway, whatever its policy is.
    RefusedByGateway,
    /// No one, and its pods exist.
    Passes,
    /// It has no effect on this release: whatever becomes of it is within the policy.
    Harmless,
}

/// A request to the gateway.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) name: String,
    /// The rule of the policy that it breaks or keeps.
    pub(crate) rule: &'static str,
    pub(crate) release: &'static str,
    pub(crate) request: Request,
    pub(crate) expected: Expected,
    /// Whether it gives a property as a property, or a template as JSON.
    pub(crate) is_plain: bool,
    /// The keys and fields that it sets: a refusal names one of them.
    pub(crate) sets: Vec<String>,
}

impl Case {
    /// Returns whether it is the one of its kind that is enough where neither spelling, format nor release matters.
    pub(crate) fn is_enough(&self) -> bool {
        self.is_plain && self.release == "4.3.0"
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) path: &'static str,
    pub(crate) body: Value,
}

/// Files of the operator: named defaults by their names, and templates.
#[derive(Debug, Default)]
pub(crate) struct Files {
    pub(crate) defaults: BTreeMap<String, String>,
    pub(crate) files: BTreeMap<String, String>,
}

/// How a request gives its properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spelling {
    Property,
    /// A command line in `appArgs`, by Spark's own protocol: `--conf`, or the dedicated option of a key.
    CommandLine,
    /// A `spark-defaults.conf` of the operator that the request selects.
    NamedDefaults,
}

/// How a request gives a template.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Yaml,
    /// A file of the operator that a property names.
    File,
}

/// Returns all cases, and the files that they need.
pub(crate) fn corpus() -> (Vec<Case>, Files) {
    let mut corpus = Corpus::default();
    corpus.keys();
    corpus.templates();
    (corpus.cases, corpus.files)
}

#[derive(Default)]
struct Corpus {
    cases: Vec<Case>,
    files: Files,
}

impl Corpus {
    /// Each attempt with a key: as a property of each release, and in the other spellings of one release.
    fn keys(&mut self) {
        for (at, (leads, properties)) in keys::ATTEMPTS.iter().enumerate() {
            for (line, release) in RELEASES.into_iter().enumerate() {
                for spelling in [Spelling::Property, Spelling::CommandLine, Spelling::NamedDefaults] {
                    if spelling != Spelling::Property && line != at % RELEASES.len() {
                        continue;
                    }
                    let file = format!("attempt-{at}");
                    if spelling == Spelling::NamedDefaults && !self.name_defaults(&file, properties) {
                        continue;
                    }
                    let number = self.cases.len().to_string();
                    let properties = properties.iter().map(|(key, value)| (*key, value.replace("{case}", &number)));
                    let request = spelled(spelling, &file, properties.collect());
                    let (key, value) = keys::ATTEMPTS[at].1.last().unwrap();
                    self.cases.push(Case {
                        name: format!("attempt {at}, {key}={value}, on Spark {release} by {spelling:?}"),
                        rule: rule(*leads),
                        release,
                        request,
                        expected: expected(*leads, keys::since(keys::ATTEMPTS[at].1) <= line_of(release), spelling),
                        is_plain: spelling == Spelling::Property,
                        sets: keys::ATTEMPTS[at].1.iter().map(|(key, _)| (*key).to_owned()).collect(),
                    });
                }
            }
        }
        self.files.files.extend(keys_files());
    }

    /// Writes named defaults, unless a file can't express them for any request: names of one pod, and the defaults themselves.
    fn name_defaults(&mut self, name: &str, properties: &[(&str, &str)]) -> bool {
        let unfit = |(key, value): &(&str, &str)| *key == "spark.sparkgate.defaults" || value.contains("{case}");
        if properties.iter().any(unfit) {
            return false;
        }
        let escaped = |text: &str| text.replace('\\', "\\\\").replace('\n', "\\n").replace(' ', "\\u0020");
        let line = |(key, value): &(&str, &str)| format!("{key}={}\n", escaped(value));
        self.files.defaults.insert(name.to_owned(), properties.iter().map(line).collect());
        true
    }

    /// Each field in the template of drivers and that of executors, in each format.
    fn templates(&mut self) {
        let refused = fields::REFUSED.iter().map(|field| (field, Expected::Refused));
        let permitted = fields::PERMITTED.iter().map(|field| (field, Expected::Passes));
        for (at, (field, expected)) in refused.chain(permitted).enumerate() {
            for carrier in field.1.carriers() {
                for role in ["driver", "executor"] {
                    // Each format has lines of its own: how a template is read hardly depends on the line.
                    let rotated = RELEASES[1 + (at + *carrier as usize) % 3];
                    for (format, release) in [(Format::Json, "4.3.0"), (Format::Yaml, "3.5.9"), (Format::File, rotated)]
                    {
                        self.template(at, field, *carrier, role, format, release, expected);
                    }
                }
            }
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the dimensions of the corpus")]
    fn template(
        &mut self,
        at: usize,
        (rule, place, field): &'static (&'static str, Place, &'static str),
        carrier: Carrier,
        role: &str,
        format: Format,
        release: &'static str,
        expected: Expected,
    ) {
        let mut template = json!({"metadata": {}, "spec": {"containers": [{"name": "main"}]}});
        fields::put(&mut template, *place, carrier, field);
        let mut body = json!({"appResource": RESOURCE, "mainClass": MAIN_CLASS, "sparkProperties": {}});
        let inline = format!("{role}PodTemplate");
        match format {
            Format::Json => body[inline] = template,
            Format::Yaml => body[inline] = yaml::block(&template).into(),
            Format::File => {
                let file = format!("{role}-{at}-{carrier:?}.yaml").to_lowercase();
                body["sparkProperties"][format!("spark.kubernetes.{role}.podTemplateFile")] = json!(file);
                self.files.files.insert(file, yaml::block(&template));
            }
        }
        self.cases.push(Case {
            name: format!(
                "field {at}, {field}, of {carrier:?} in the {role}'s template as {format:?} on Spark {release}"
            ),
            rule,
            release,
            request: Request { path: "/v1/submissions", body },
            expected: of_template(rule, field, role, carrier, expected),
            is_plain: format == Format::Json,
            sets: fields::names(field),
        });
    }
}

fn rule(leads: Leads) -> &'static str {
    match leads {
        Leads::ToPod(rule) | Leads::Beside(rule) => rule,
        Leads::Nowhere => "refused by Spark",
        Leads::ToPermitted => "permitted",
    }
}

fn expected(leads: Leads, is_known: bool, spelling: Spelling) -> Expected {
    match leads {
        Leads::ToPermitted if is_known => Expected::Passes,
        Leads::Nowhere if is_known && spelling != Spelling::NamedDefaults => Expected::RefusedByGateway,
        Leads::ToPod(_) if is_known => Expected::Refused,
        Leads::Beside("queues") => Expected::RefusedByPolicyAlone,
        // What an operator sets is the operator's decision.
        Leads::Beside(_) if is_known && spelling != Spelling::NamedDefaults => Expected::RefusedByPolicy,
        _ => Expected::Harmless,
    }
}

/// Returns what is expected of a template, since the gateway and Spark write over some of its fields.
fn of_template(rule: &str, field: &str, role: &str, carrier: Carrier, expected: Expected) -> Expected {
    let owners = field.contains("ownerReferences");
    match expected {
        // The gateway writes its own value, and the policy doesn't see that of the request, or sees more than the cluster.
        Expected::Refused if rule == fields::RESTARTS && role == "executor" => Expected::Harmless,
        Expected::Refused if field.contains("ephemeralContainers") => Expected::RefusedByPolicy,
        Expected::Refused if role == "executor" && owners => Expected::RefusedByPolicy,
        // The API server drops them unless a feature is on.
        Expected::Refused if is_optional(field) => Expected::RefusedByPolicy,
        // Spark's own container has another cause to be refused, or none: the API server doesn't permit probes of init containers.
        Expected::Passes if carrier == Carrier::Init && field.contains("Probe") => Expected::Harmless,
        _ if rule == "serviceAccounts" && role == "driver" => Expected::Harmless,
        expected => expected,
    }
}

/// Returns whether a field exists only if a feature of the API server is on, and is dropped otherwise.
fn is_optional(field: &str) -> bool {
    field.contains("clusterTrustBundle") || field.contains("podCertificate")
}

/// Returns the line of a release.
fn line_of(release: &str) -> (u32, u32) {
    let mut parts = release.split('.').map(|part| part.parse().unwrap());
    (parts.next().unwrap(), parts.next().unwrap())
}

fn spelled(spelling: Spelling, file: &str, properties: Vec<(&str, String)>) -> Request {
    let as_map = |properties: Vec<(&str, String)>| -> Value {
        Value::Object(properties.into_iter().map(|(key, value)| (key.to_owned(), value.into())).collect())
    };
    if spelling == Spelling::CommandLine {
        let options = properties.iter().flat_map(|(key, value)| match option(key) {
            Some(option) => [option.to_owned(), value.clone()],
            None => ["--conf".to_owned(), format!("{key}={value}")],
        });
        let mut line: Vec<String> = options.collect();
        line.extend(["--class", MAIN_CLASS, RESOURCE].map(str::to_owned));
        let body = json!({
            "action": "CreateSubmissionRequest", "clientSparkVersion": "4.3.0", "appResource": "spark-internal",
            "mainClass": "org.apache.spark.deploy.SparkSubmit", "appArgs": line, "environmentVariables": {},
            "sparkProperties": {"spark.app.name": "job"},
        });
        return Request { path: "/v1/submissions/create", body };
    }
    let properties = match spelling {
        Spelling::NamedDefaults => json!({"spark.sparkgate.defaults": file}),
        _ => as_map(properties),
    };
    let body = json!({"appResource": RESOURCE, "mainClass": MAIN_CLASS, "sparkProperties": properties});
    Request { path: "/v1/submissions", body }
}

/// Returns the option of spark-submit for a key.
fn option(key: &str) -> Option<&'static str> {
    Some(match key {
        "spark.archives" => "--archives",
        "spark.driver.extraClassPath" => "--driver-class-path",
        "spark.driver.cores" => "--driver-cores",
        "spark.driver.extraJavaOptions" => "--driver-java-options",
        "spark.driver.extraLibraryPath" => "--driver-library-path",
        "spark.driver.memory" => "--driver-memory",
        "spark.jars.excludes" => "--exclude-packages",
        "spark.executor.cores" => "--executor-cores",
        "spark.executor.memory" => "--executor-memory",
        "spark.files" => "--files",
        "spark.jars" => "--jars",
        "spark.kerberos.keytab" => "--keytab",
        "spark.master" => "--master",
        "spark.app.name" => "--name",
        "spark.executor.instances" => "--num-executors",
        "spark.jars.packages" => "--packages",
        "spark.kerberos.principal" => "--principal",
        "spark.submit.pyFiles" => "--py-files",
        "spark.jars.repositories" => "--repositories",
        _ => return None,
    })
}

/// Returns the files that attempts with keys name.
fn keys_files() -> impl Iterator<Item = (String, String)> {
    let file = |(name, text): (&str, &str)| (name.to_owned(), text.to_owned());
    [
        ("host-network.yaml", "spec:\n  hostNetwork: true\n  containers: [{name: main}]\n"),
        ("plain.yaml", "spec:\n  containers: [{name: main}]\n"),
        (
            "two-containers.yaml",
            "spec:\n  containers:\n  - name: first\n    image: registry.example.org/team/a:1\n    resources: {limits: {cpu: 1, memory: 64Mi}}\n  - name: second\n    securityContext: {privileged: true}\n",
        ),
        ("pod-group.yaml", "spec: {queue: root}\n"),
        ("krb5.conf", "[libdefaults]\n"),
    ]
    .map(file)
    .into_iter()
}
