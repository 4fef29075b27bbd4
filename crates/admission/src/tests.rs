mod example;

use std::num::NonZeroU32;

use serde_json::{Value, json};
use sparkgate_access::Access;

use crate::{AdmissionError, GatewayAccount, Object, missing, object::TENANT, objects, to_yaml};

const EXAMPLE: &str = include_str!("tests/access.yaml");

fn generated(access: &str) -> Result<Vec<Object>, AdmissionError> {
    let access = Access::parse(access).unwrap();
    objects(&access, &GatewayAccount::default(), NonZeroU32::new(10).unwrap())
}

/// Returns the objects of one tenant with this section of the access file.
fn of_tenant(tenant: &Value) -> Vec<Object> {
    let access = json!({ "authentication": { "apiKeys": { "enabled": true } }, "tenants": { "team": tenant } });
    generated(&access.to_string()).unwrap()
}

fn find<'a>(objects: &'a [Object], kind: &str, name: &str) -> Option<&'a Value> {
    objects.iter().find(|object| object.kind() == kind && object.name() == name).map(|object| &object.manifest)
}

/// Returns all expressions of an admission policy.
fn expressions(policy: &Value) -> Vec<&str> {
    let spec = &policy["spec"];
    let entries = spec["variables"].as_array().into_iter().chain(spec["validations"].as_array()).flatten();
    entries.flat_map(|entry| [&entry["expression"], &entry["messageExpression"]]).filter_map(Value::as_str).collect()
}

#[test]
fn the_objects_of_a_cluster_that_has_applied_them_are_complete() {
    let objects = generated(EXAMPLE).unwrap();
    let find = |kind: &str, namespace: Option<&str>, name: &str| {
        let is = |object: &&Object| (object.kind(), object.namespace(), object.name()) == (kind, namespace, name);
        objects.iter().find(is).map(|object| object.manifest.clone())
    };
    assert_eq!(missing(&objects, find), Vec::<String>::new());
    assert_eq!(missing(&objects, |_, _, _| None).len(), objects.len());
    let places: std::collections::BTreeSet<_> =
        objects.iter().map(|object| (object.kind(), object.namespace(), object.name())).collect();
    assert_eq!(places.len(), objects.len(), "no object occurs twice");
}

#[test]
fn each_namespace_carries_its_tenant_and_its_level() {
    let level = |tenant: Value| {
        let objects = of_tenant(&tenant);
        let labels = find(&objects, "Namespace", "team-a").unwrap()["metadata"]["labels"].clone();
        assert_eq!(labels[TENANT], "team");
        labels["pod-security.kubernetes.io/enforce"].as_str().unwrap().to_owned()
    };
    assert_eq!(level(json!({ "namespaces": ["team-a"] })), "baseline");
    for name in ["privileged", "baseline", "restricted"] {
        assert_eq!(level(json!({ "namespaces": ["team-a"], "policy": { "podSecurity": name } })), name);
    }
}

#[test]
fn a_tenant_without_a_list_of_accounts_has_none_created_and_all_are_drivers() {
    let objects = of_tenant(&json!({ "namespaces": ["team-a"] }));
    assert!(objects.iter().all(|object| object.kind() != "ServiceAccount" && object.name() != "spark-driver"));
    let policy = find(&objects, "ValidatingAdmissionPolicy", "sparkgate.tenant.team").unwrap();
    let by_driver = &policy["spec"]["variables"][0];
    assert_eq!(by_driver["name"], "byDriver");
    assert!(by_driver["expression"].as_str().unwrap().contains("'system:serviceaccount:' + request.namespace + ':'"));
    assert!(expressions(policy).iter().all(|text| !text.contains("serviceAccountName") && !text.contains("Images")));
}

#[test]
fn node_directories_are_permitted_as_the_policy_lists_them() {
    let policy = json!({
        "podSecurity": "privileged", "volumes": ["hostPath", "emptyDir"], "hostPaths": ["/data//x/", "/mnt/it's"]
    });
    let objects = of_tenant(&json!({ "namespaces": ["team-a"], "policy": policy }));
    let policy = find(&objects, "ValidatingAdmissionPolicy", "sparkgate.tenant.team").unwrap();
    let text = expressions(policy).join("\n");
    assert!(
        text.contains("volume.hostPath.path == '/data/x' || volume.hostPath.path.startsWith('/data/x/')"),
        "{text}"
    );
    assert!(text.contains(r"startsWith('/mnt/it\'s/')") && !text.contains("!has(volume.emptyDir)"), "{text}");
    assert!(text.contains("!has(volume.nfs)") && !text.contains("privileged.orValue") && !text.contains("hostPID"));
}

#[test]
fn what_the_policy_does_not_bound_has_no_quota() {
    let quota = |limits: Value| {
        let objects = of_tenant(&json!({ "namespaces": ["team-a"], "policy": { "limits": limits } }));
        find(&objects, "ResourceQuota", "sparkgate").map(|quota| quota["spec"]["hard"].clone())
    };
    assert_eq!(quota(json!({})), None);
    assert_eq!(quota(json!({ "executors": 4 })), Some(json!({ "pods": "50" })));
    assert_eq!(quota(json!({ "storage": "1Ti" })), Some(json!({ "requests.storage": "10240Gi" })));
    let limits = json!({ "driver": { "cores": 1 }, "totalCores": "1500m" });
    assert_eq!(quota(limits), Some(json!({ "requests.cpu": "25" })));
}

#[test]
fn the_gateway_may_list_quotas_if_queues_learn_their_capacity_from_them() {
    let may_list = |capacity: Value| {
        let access = json!({
            "authentication": { "apiKeys": { "enabled": true } },
            "tenants": { "team": { "namespaces": ["team-a"] } },
            "queues": { "q": {} },
            "capacity": capacity,
        });
        let objects = generated(&access.to_string()).unwrap();
        let rules = find(&objects, "Role", "sparkgate").unwrap()["rules"].clone();
        rules
            .as_array()
            .unwrap()
            .contains(&json!({ "apiGroups": [""], "resources": ["resourcequotas"], "verbs": ["list"] }))
    };
    assert!(may_list(json!({ "fromResourceQuotas": true })));
    assert!(!may_list(json!({ "cores": 4 })));
}

#[test]
fn drivers_of_a_tenant_without_claims_may_create_none() {
    let create = |volumes: Value| {
        let tenant = json!({ "namespaces": ["a"], "serviceAccounts": ["spark"], "policy": { "volumes": volumes } });
        let objects = of_tenant(&tenant);
        let policy =
            expressions(find(&objects, "ValidatingAdmissionPolicy", "sparkgate.claims.team").unwrap()).join("\n");
        let rules = find(&objects, "Role", "spark-driver").unwrap()["rules"].clone();
        let has = |list: &Value, word: &str| list.as_array().unwrap().iter().any(|own| own == word);
        let granted = rules
            .as_array()
            .unwrap()
            .iter()
            .any(|rule| has(&rule["resources"], "persistentvolumeclaims") && has(&rule["verbs"], "create"));
        (granted, policy.contains("!variables.isNew || (false)"))
    };
    assert_eq!(create(json!(["emptyDir", "persistentVolumeClaim"])), (true, false));
    assert_eq!(create(json!(["emptyDir"])), (false, true));
}

#[test]
fn an_access_file_that_gives_no_boundaries_is_refused() {
    let refused = |access: &Access, gateway: &str| {
        let refused = objects(access, &gateway.parse().unwrap(), NonZeroU32::MIN);
        refused.unwrap_err().to_string()
    };
    assert!(refused(&Access::open(), "sparkgate/sparkgate").contains("the tenant has all namespaces"));
    let example = Access::parse(EXAMPLE).unwrap();
    assert!(refused(&example, "reports/gateway").contains("reports/gateway is in a namespace of tenant reports"));
    let with_policy = |policy: Value| {
        let tenants = json!({ "a": { "namespaces": ["a"], "policy": policy } });
        let text = json!({ "authentication": { "apiKeys": { "enabled": true } }, "tenants": tenants }).to_string();
        Access::parse(&text).unwrap()
    };
    assert!(refused(&with_policy(json!({ "image": [] })), "g/g").contains("the policy of tenant a can't be read"));
    let faults = refused(&with_policy(json!({ "images": [""], "claims": ["a b"] })), "g/g");
    assert!(faults.contains("images[0]") && faults.contains("claims[0]"), "{faults}");
}

#[test]
fn the_rights_are_those_of_the_deployment() {
    let deployed: Vec<Value> = serde_saphyr::from_multiple(include_str!("../../../deploy/kubernetes.yaml")).unwrap();
    let objects = generated(EXAMPLE).unwrap();
    let rights = |object: &Value| {
        let texts = |value: &Value| -> Vec<String> {
            value.as_array().unwrap().iter().map(|text| text.as_str().unwrap().to_owned()).collect()
        };
        let mut rights = std::collections::BTreeSet::new();
        for rule in object["rules"].as_array().unwrap() {
            for (group, resource) in texts(&rule["apiGroups"])
                .iter()
                .flat_map(|group| texts(&rule["resources"]).into_iter().map(move |r| (group.clone(), r)))
            {
                rights.extend(texts(&rule["verbs"]).iter().map(|verb| format!("{verb} {group}/{resource}")));
            }
        }
        rights
    };
    let compare = |name: &str| {
        let is = |object: &&Value| object["metadata"]["name"] == name && object["metadata"]["namespace"] == "spark";
        let deployed = rights(deployed.iter().filter(|object| object["kind"] == "Role").find(is).unwrap());
        let own = rights(find(&objects, "Role", name).unwrap());
        let lacking: Vec<String> = deployed.difference(&own).cloned().collect();
        let added: Vec<String> = own.difference(&deployed).cloned().collect();
        (lacking, added)
    };
    assert_eq!(compare("spark-driver"), (Vec::new(), Vec::new()));
    let (lacking, added) = compare("sparkgate");
    // The example's capacity isn't learned, so it needs no lists of quotas.
    assert_eq!(lacking, ["list /resourcequotas"]);
    assert!(added.iter().all(|right| right.starts_with("get ")), "{added:?}");
}

/// Checks that brackets are closed in their order, and that each literal ends.
fn assert_balanced(expression: &str) {
    let (mut open, mut quoted) = (Vec::new(), false);
    let mut characters = expression.chars();
    while let Some(c) = characters.next() {
        match (quoted, c) {
            (true, '\\') => drop(characters.next()),
            (_, '\'') => quoted = !quoted,
            (true, _) => {}
            (false, '(' | '[' | '{') => open.push(c),
            (false, ')') => assert_eq!(open.pop(), Some('('), "{expression}"),
            (false, ']') => assert_eq!(open.pop(), Some('['), "{expression}"),
            (false, '}') => assert_eq!(open.pop(), Some('{'), "{expression}"),
            (false, '"' | ';' | '\\') => panic!("{c} in {expression}"),
            (false, _) => {}
        }
    }
    assert!(open.is_empty() && !quoted, "{expression}");
}

#[test]
fn expressions_are_balanced_whatever_the_names() {
    let policy = json!({ "images": ["it's/**", r"a\'b/*", "a.b/c{}[](:"], "volumes": ["emptyDir"] });
    for tenant in
        [json!({ "namespaces": ["a"], "policy": policy }), json!({ "namespaces": ["a"], "serviceAccounts": ["b.c"] })]
    {
        for object in of_tenant(&tenant).iter().filter(|object| object.kind() == "ValidatingAdmissionPolicy") {
            for expression in expressions(&object.manifest) {
                assert_balanced(expression);
            }
        }
    }
}

#[test]
fn the_yaml_reads_back_as_the_objects() {
    let objects = generated(EXAMPLE).unwrap();
    let read: Vec<Value> = serde_saphyr::from_multiple(&to_yaml(&objects)).unwrap();
    let manifests: Vec<Value> = objects.into_iter().map(|object| object.manifest).collect();
    assert_eq!(read, manifests);
}
