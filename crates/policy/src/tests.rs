//! Whole drivers, built as Spark builds them, and judged.

mod application_size;
mod arbitrary;
mod causes;
mod executors;
mod limits;
mod metadata;
mod objects;
mod pod_security;
mod properties;
mod references;
mod resources;
mod scheduling;

use std::collections::BTreeMap;

use chrono::DateTime;
use serde_json::{Value, json};
use sparkgate_spark::{
    CreateSubmissionRequest, DriverNames, NameEntropy, NamedRequest, SparkVersion, SubmitContext, SubmitterFiles,
    build_driver, parse_properties,
};
use uuid::Uuid;

use crate::{Judged, Policy, PolicyDocument, Violation};

/// A driver to judge. Tests change it after it was built.
#[derive(Debug, Clone)]
struct Driver {
    objects: Vec<Value>,
    properties: BTreeMap<String, String>,
    origins: BTreeMap<String, String>,
    driver_template: Option<Value>,
    executor_template: Option<Value>,
    app_resource: String,
    of_operator: bool,
}

impl Driver {
    fn build(properties: &[(&str, &str)], driver_template: Option<Value>, executor_template: Option<Value>) -> Self {
        let mut spark_properties: BTreeMap<String, String> =
            [("spark.kubernetes.container.image".to_owned(), "registry.example.org/team/spark:4.1.0".to_owned())]
                .into();
        spark_properties.extend(properties.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
        let request = CreateSubmissionRequest {
            app_resource: "local:///opt/spark/examples/pi.jar".to_owned(),
            main_class: "org.example.Pi".to_owned(),
            spark_properties,
            driver_pod_template: driver_template.clone(),
            executor_pod_template: executor_template.clone(),
            ..Default::default()
        };
        let app_resource = request.app_resource.clone();
        let submitted_at = DateTime::from_timestamp_millis(1_767_323_045_678).unwrap();
        let entropy = NameEntropy::from_uuids(Uuid::nil(), Uuid::nil(), Uuid::nil(), Uuid::nil());
        let request = NamedRequest::new(request, SparkVersion::V4_3).unwrap();
        let names = DriverNames::for_request(&request, submitted_at.timestamp_millis(), &entropy);
        let submitter = SubmitterFiles::default();
        let context = SubmitContext {
            version: SparkVersion::V4_3,
            names: &names,
            submitted_at,
            user: "spark",
            submitter: &submitter,
            properties: &[],
        };
        let list = build_driver(&request, &context).unwrap().to_list().unwrap();
        let objects = list["items"].as_array().unwrap().clone();
        let text = objects.iter().find_map(|object| object["data"]["spark.properties"].as_str()).unwrap();
        let properties = parse_properties(text);
        Self {
            properties,
            objects,
            origins: BTreeMap::new(),
            driver_template,
            executor_template,
            app_resource,
            of_operator: false,
        }
    }

    fn new(properties: &[(&str, &str)]) -> Self {
        Self::build(properties, None, None)
    }

    /// Builds a driver with this spec in its pod template; the container is the driver's.
    fn with_spec(spec: Value) -> Self {
        Self::build(&[], Some(template(spec)), None)
    }

    /// Builds a driver with this spec in the executors' pod template.
    fn with_executor_spec(spec: Value) -> Self {
        Self::build(&[], None, Some(template(spec)))
    }

    fn object(&mut self, kind: &str) -> &mut Value {
        self.objects.iter_mut().find(|object| object["kind"] == kind).unwrap()
    }

    /// Sets a value of the pod after it was built, as a step that Spark doesn't have would.
    fn set(mut self, pointer: &str, value: Value) -> Self {
        let (parent, field) = pointer.rsplit_once('/').unwrap();
        let parent = self.object("Pod").pointer_mut(parent).unwrap_or_else(|| panic!("{pointer}"));
        match parent {
            Value::Array(list) => list[field.parse::<usize>().unwrap()] = value,
            parent => parent[field] = value,
        }
        self
    }

    fn judge(&self, policy: &Policy) -> Vec<Violation> {
        self.judged(|judged| policy.judge(judged))
    }

    fn judged<T>(&self, read: impl FnOnce(&Judged<'_>) -> T) -> T {
        read(&Judged {
            objects: &self.objects,
            properties: &self.properties,
            origins: &self.origins,
            driver_template: self.driver_template.as_ref(),
            executor_template: self.executor_template.as_ref(),
            resources: &[("appResource", &self.app_resource)],
            of_operator: self.of_operator,
        })
    }

    /// Returns `rule path` of each violation.
    fn violations(&self, document: Value) -> Vec<String> {
        let violations = self.judge(&policy(document));
        violations.iter().map(|violation| format!("{} {}", violation.rule, violation.path)).collect()
    }

    #[track_caller]
    fn passes(&self, document: Value) {
        let violations = self.judge(&policy(document.clone()));
        assert!(violations.is_empty(), "{document}: {violations:#?}");
    }

    /// Asserts that the driver breaks this rule.
    #[track_caller]
    fn breaks(&self, document: Value, rule: &str) {
        let violations = self.judge(&policy(document.clone()));
        assert!(violations.iter().any(|violation| violation.rule == rule), "{rule} {document}: {violations:#?}");
    }
}

/// Returns a pod template of a spec. A container is added where the spec has none.
fn template(mut spec: Value) -> Value {
    if spec.get("containers").is_none() {
        spec["containers"] = json!([{ "name": "main" }]);
    }
    json!({ "metadata": {}, "spec": spec })
}

fn policy_for(document: Value, accounts: &[&str]) -> Policy {
    let document: PolicyDocument = serde_json::from_value(document).unwrap();
    let accounts: Vec<String> = accounts.iter().map(|account| (*account).to_owned()).collect();
    Policy::compile(document, &accounts).unwrap()
}

fn policy(document: Value) -> Policy {
    policy_for(document, &[])
}

fn faults(document: Value) -> Vec<String> {
    let document: PolicyDocument = serde_json::from_value(document).unwrap();
    Policy::compile(document, &[]).unwrap_err().into_iter().map(|fault| fault.path).collect()
}

/// A policy with a rule of each subject that a usual driver meets.
fn usual() -> Value {
    json!({
        "images": ["registry.example.org/team/*"],
        "volumes": ["configMap", "emptyDir"],
        "secrets": [], "configMaps": [], "claims": [],
        "tolerations": ["team"],
        "priorityClasses": ["batch"],
        "limits": {
            "driver": { "cores": 2, "memory": "4Gi" }, "executor": { "cores": 2, "memory": "4Gi" },
            "executors": 10, "totalCores": 10, "totalMemory": "20Gi", "containers": 3, "emptyDir": "1Gi", "resources": {}
        },
        "labels": { "allow": ["team.example.org/*"] },
        "resources": ["local:///opt/spark/**"],
        "inlineSecrets": "forbid",
        "cel": [{
            "name": "restarts", "expression": "pod.spec.restartPolicy == 'Never'", "message": "drivers don't restart"
        }]
    })
}

#[test]
fn a_driver_as_spark_builds_it_passes() {
    Driver::new(&[]).passes(json!({}));
    let passes = Driver::new(&[]).judge(&policy_for(usual(), &["default"]));
    assert!(passes.is_empty(), "{passes:#?}");
}

#[test]
fn all_violations_are_reported_at_once_and_each_once() {
    let driver = Driver::new(&[("spark.kubernetes.container.image", "evil"), ("spark.executor.instances", "11")]);
    assert_eq!(
        driver.violations(usual()),
        [
            "images Pod/spec/containers/0/image",
            "images Executor/spec/containers/0/image",
            "limits sparkProperties[\"spark.executor.instances\"]",
            "limits sparkProperties[\"spark.executor.instances\"]",
        ]
    );
}

#[test]
fn a_policy_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + Clone>(_: &T) {}
    shared(&policy(usual()));
}

#[test]
fn all_faults_of_a_document_are_reported() {
    let document = json!({
        "images": [], "volumes": ["emptydir"], "hostPaths": ["/a/../b"], "claims": ["a b"],
        "limits": { "totalMemory": "64GiB", "driver": { "cores": -1.5 } },
        "resources": ["bucket/**"],
        "cel": [{ "name": "a b", "expression": "pod.", "message": "" }]
    });
    assert_eq!(
        faults(document),
        [
            "volumes[0]",
            "images",
            "hostPaths[0]",
            "claims[0]",
            "limits.driver.cores",
            "limits.totalMemory",
            "resources[0]",
            "cel[0].name",
            "cel[0].expression"
        ]
    );
    assert!(serde_json::from_value::<PolicyDocument>(json!({ "image": ["a"] })).is_err(), "unknown fields are refused");
}

#[test]
fn the_example_of_the_page_is_a_policy() {
    let page = include_str!("../../../docs/operate/policy.md");
    let example = page.split("```yaml\npolicy:\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    let document: PolicyDocument = serde_saphyr::from_str(example).unwrap();
    assert!(document.limits.executor.memory.is_some());
    Policy::compile(document, &[]).unwrap();
}

#[test]
fn the_page_names_each_field_of_a_document() {
    let page = include_str!("../../../docs/operate/policy.md");
    let Value::Object(document) = serde_json::to_value(PolicyDocument::default()).unwrap() else { panic!("an object") };
    let Value::Object(limits) = document["limits"].clone() else { panic!("an object") };
    for name in document.keys().chain(limits.keys()).filter(|name| !["cel", "limits"].contains(&name.as_str())) {
        assert!(page.contains(&format!("`{name}`")), "docs/operate/policy.md lacks `{name}`");
    }
}

#[test]
fn a_document_survives_a_round_trip() {
    for packages in [json!(true), json!(false), json!("repositories")] {
        let mut document = usual();
        document["packages"] = packages.clone();
        let document: PolicyDocument = serde_json::from_value(document).unwrap();
        let text = serde_json::to_value(&document).unwrap();
        assert_eq!(text["packages"], packages);
        assert_eq!(serde_json::from_value::<PolicyDocument>(text).unwrap(), document);
    }
    assert!(serde_json::from_value::<PolicyDocument>(json!({ "packages": "all" })).is_err());
}
