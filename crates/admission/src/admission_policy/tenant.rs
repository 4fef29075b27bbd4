//! The policy of one tenant: what its drivers may create, change and delete, and what its Spark pods may be.

mod condition;
mod kueue;
pub(super) mod metadata;
mod references;
mod scheduling;
pub(super) mod sizes;

use sparkgate_policy::{IMAGE, PodSecurity, Policy};

use super::policy::{Concerned, LABELS, OWN_EXECUTOR, REQUESTING_POD, Validation, policy_and_binding};
use crate::{
    cel::{list, literal},
    gateway::{GatewayAccount, username},
    object::Object,
    tenant::TenantRules,
};

pub(super) fn name(tenant: &TenantRules<'_>, gateway: &GatewayAccount) -> String {
    format!("{}.tenant.{}", gateway.namespace, tenant.name)
}

/// Returns the policy of a tenant and its binding.
pub(crate) fn tenant(tenant: &TenantRules<'_>, gateway: &GatewayAccount) -> [Object; 2] {
    let purpose = format!(
        "The pods of tenant {}. With an account of its drivers, a pod creates executors that it owns, and changes and deletes only\n\
         these and itself. Pods with a spark-role have the accounts, images and volumes that the tenant's policy permits.\n\
         What a webhook adds to a pod is judged, too: list the images of injected containers in the policy.",
        tenant.name
    );
    let mut variables = variables(tenant);
    let mut validations = drivers(&tenant.policy);
    validations.extend(pods(tenant));
    validations.extend(images(tenant));
    let (of_references, mut rules) = references::rules(&tenant.policy);
    let (of_metadata, more) = metadata::rules(&tenant.policy);
    rules.extend(more);
    rules.extend(scheduling::rules(&tenant.policy));
    rules.extend(sizes::rules(&tenant.policy));
    rules.extend(kueue::rules(&tenant.policy));
    variables.extend(of_references.into_iter().chain(of_metadata));
    validations.extend(rules.into_iter().map(|Rule(validation)| validation));
    let concerned = Concerned { resource: "pods", operations: &["CREATE", "UPDATE", "DELETE"] };
    policy_and_binding(&name(tenant, gateway), &purpose, concerned, &variables, &validations, &[tenant.name])
}

/// A rule of the tenant's policy for the pods of Spark.
struct Rule(Validation);

impl Rule {
    /// Creates a rule for pods when they are created. What it concerns can't be changed later.
    fn for_new_pods(condition: impl AsRef<str>, message: &str) -> Self {
        Self(Validation::new(format!("!variables.isNewSparkPod || ({})", condition.as_ref()), message))
    }

    /// Creates a rule for pods of this role when they are created.
    fn for_new_role(role: &str, condition: impl AsRef<str>, message: &str) -> Self {
        let is_of_role = format!("variables.labels[?'spark-role'].orValue('') == {}", literal(role));
        Self::for_new_pods(format!("!({is_of_role}) || ({})", condition.as_ref()), message)
    }

    /// Creates a rule for pods when they are created, and when a driver changes them.
    fn for_new_and_changed_pods(condition: impl AsRef<str>, message: &str) -> Self {
        let concerned = "variables.isNewSparkPod || variables.isChangedByDriver";
        Self(Validation::new(format!("!({concerned}) || ({})", condition.as_ref()), message))
    }

    /// Creates a rule that a list of values must be empty; its message names them.
    fn naming(message: &str, values: &str) -> Self {
        Self(Validation::naming(format!("request.operation == 'DELETE' || {values}.size() == 0"), message, values))
    }
}

fn variables(tenant: &TenantRules<'_>) -> Vec<(&'static str, String)> {
    let text = |(name, expression): (&'static str, &str)| (name, expression.to_owned());
    let mut variables = vec![
        ("byDriver", by_driver(tenant)),
        text(REQUESTING_POD),
        text(LABELS),
        text(OWN_EXECUTOR),
        (
            "isOwnOldPod",
            "variables.requestingPod != '' && (oldObject.metadata.uid == variables.requestingPod ||\n\
             \x20 oldObject.metadata.?ownerReferences.orValue([]).exists(owner, owner.uid == variables.requestingPod))"
                .to_owned(),
        ),
        (
            "isNewSparkPod",
            "request.operation == 'CREATE' && variables.labels[?'spark-role'].orValue('') in ['driver', 'executor']"
                .to_owned(),
        ),
        ("isChangedByDriver", "variables.byDriver && request.operation == 'UPDATE'".to_owned()),
        ("volumes", volumes(tenant.policy.document().service_account_tokens.automount)),
    ];
    if let Some(permitted) = tenant.policy.images() {
        variables.extend(image_variables(permitted));
    }
    variables
}

/// Returns the volumes to judge: without the one that the API server adds for the token of the account (`ServiceAccount`, which the
/// policy judges as `automount`). It is known by what it has.
fn volumes(automount: bool) -> String {
    let all = "object.spec.?volumes.orValue([])";
    if !automount {
        return all.to_owned();
    }
    format!(
        "{all}.filter(v, !(v.name.startsWith('kube-api-access-') && has(v.projected) &&\n\
         \x20 v.projected.?sources.orValue([]).all(s,\n\
         \x20   (has(s.serviceAccountToken) && s.serviceAccountToken.?audience.orValue('') == '') ||\n\
         \x20   (has(s.configMap) && s.configMap.?name.orValue('') in ['kube-root-ca.crt', 'openshift-service-ca.crt']) ||\n\
         \x20   (has(s.downwardAPI) && s.downwardAPI.?items.orValue([]).all(item, item.path == 'namespace')))))"
    )
}

/// Returns whether the request is made by an account of the tenant's drivers. If the tenant lists none, each account of the
/// namespace may be one.
pub(super) fn by_driver(tenant: &TenantRules<'_>) -> String {
    if tenant.accounts.is_empty() {
        return "request.userInfo.username.startsWith('system:serviceaccount:' + request.namespace + ':')".to_owned();
    }
    let usernames = tenant
        .namespaces
        .iter()
        .flat_map(|namespace| tenant.accounts.iter().map(move |account| username(namespace, account)));
    format!("request.userInfo.username in {}", list(usernames))
}

/// Returns the rules for what a driver does.
fn drivers(policy: &Policy) -> Vec<Validation> {
    let finalizers = match policy.uses_kueue() {
        true => format!("object.metadata.?finalizers.orValue([]).all(name, {})", kueue::finalizer(policy)),
        false => "object.metadata.?finalizers.orValue([]).size() == 0".to_owned(),
    };
    let unheld = match policy.uses_kueue() {
        true => "an executor has no nodeName, and no finalizers but Kueue's",
        false => "an executor has no nodeName and no finalizers",
    };
    vec![
        Validation::new(
            "!variables.byDriver || request.operation != 'CREATE' || variables.isOwnExecutor",
            "an account of drivers creates only pods with the label spark-role=executor and the requesting pod as their only owner",
        ),
        Validation::new(
            format!(
                "!variables.byDriver || request.operation != 'CREATE' || (!has(object.spec.nodeName) &&\n\
                 \x20 {finalizers})"
            ),
            unheld,
        ),
        Validation::new(
            "!variables.byDriver || request.operation == 'CREATE' || variables.isOwnOldPod",
            "an account of drivers changes and deletes only the requesting pod and the executors that it owns",
        ),
        Validation::new(
            "!variables.byDriver || request.operation != 'UPDATE' ||\n\
             (object.metadata.?ownerReferences.orValue([]) == oldObject.metadata.?ownerReferences.orValue([]) &&\n\
             \x20 object.metadata.?finalizers.orValue([]) == oldObject.metadata.?finalizers.orValue([]))",
            "an account of drivers changes no owners and finalizers",
        ),
        // The garbage collector would take the owner from all that the pod owns, which then belongs to no submission.
        Validation::new(
            "!variables.byDriver || request.operation != 'DELETE' ||\n\
             (request.?options.?propagationPolicy.orValue('') != 'Orphan' &&\n\
             \x20 !request.?options.?orphanDependents.orValue(false))",
            "an account of drivers deletes a pod together with what the pod owns",
        ),
    ]
}

/// Returns the rules for accounts, privileges and volumes of Spark pods. The fields concerned can't be changed later.
fn pods(tenant: &TenantRules<'_>) -> Vec<Validation> {
    let mut validations = Vec::new();
    let mut for_spark = |expression: &str, message: &str| {
        validations.push(Validation::new(format!("!variables.isNewSparkPod || ({expression})"), message));
    };
    if !tenant.accounts.is_empty() {
        let accounts = format!("object.spec.?serviceAccountName.orValue('default') in {}", list(tenant.accounts));
        for_spark(&accounts, &format!("a Spark pod runs as one of these accounts: {}", tenant.accounts.join(", ")));
    }
    if tenant.policy.pod_security() != PodSecurity::Privileged {
        for_spark(
            "!object.spec.?hostNetwork.orValue(false) && !object.spec.?hostPID.orValue(false) &&\n\
             \x20 !object.spec.?hostIPC.orValue(false)",
            "a Spark pod uses no namespace of its node",
        );
        for_spark(
            "object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false)) &&\n\
             \x20 object.spec.?initContainers.orValue([]).all(c, !c.?securityContext.?privileged.orValue(false))",
            "a container of a Spark pod is not privileged",
        );
    }
    let forbidden: Vec<String> = tenant.policy.forbidden_volumes().map(|kind| format!("!has(volume.{kind})")).collect();
    let joined = forbidden.chunks(4).map(|kinds| kinds.join(" && ")).collect::<Vec<_>>().join(" &&\n    ");
    if !forbidden.is_empty() {
        for_spark(
            &format!("variables.volumes.all(volume,\n    {joined})"),
            "the policy of the tenant doesn't permit the type of a volume",
        );
    }
    if tenant.policy.forbidden_volumes().all(|kind| kind != "hostPath") {
        for_spark(
            &host_paths(tenant.policy.host_paths()),
            "the policy of the tenant doesn't permit the path of a hostPath volume",
        );
    }
    validations
}

/// Returns the rule for `hostPath` volumes. The API server refuses paths with `..`.
fn host_paths(directories: &[String]) -> String {
    let below = directories.iter().map(|directory| match directory.as_str() {
        "/" => "volume.hostPath.path.startsWith('/')".to_owned(),
        directory => format!(
            "volume.hostPath.path == {} || volume.hostPath.path.startsWith({})",
            literal(directory),
            literal(&format!("{directory}/"))
        ),
    });
    let alternatives: Vec<String> = ["!has(volume.hostPath)".to_owned()].into_iter().chain(below).collect();
    format!("variables.volumes.all(volume, {})", alternatives.join(" || "))
}

/// Returns the variables with which images are compared: each in its full form, as the policy compares them. A reference without a
/// registry is one of Docker Hub, one without tag and digest has the tag `latest`, and a tag beside a digest says nothing
/// (<https://pkg.go.dev/github.com/distribution/reference>).
fn image_variables(permitted: &str) -> [(&'static str, String); 5] {
    let images = |object: &str| {
        format!(
            "{object}.spec.containers.map(c, c.?image.orValue('')) +\n\
             {object}.spec.?initContainers.orValue([]).map(c, c.?image.orValue('')) +\n\
             {object}.spec.?volumes.orValue([]).filter(v, has(v.image)).map(v, v.image.?reference.orValue(''))"
        )
    };
    let hub = "variables.images\n\
               \x20 .map(i, i.matches('^[^/]*[.:][^/]*/') || i.startsWith('localhost/') ? i : 'docker.io/' + i)\n\
               \x20 .map(i, i.startsWith('index.docker.io/') ? 'docker.io/' + i.substring(16) : i)\n\
               \x20 .map(i, i.matches('^docker[.]io/[^/]*$') ? 'docker.io/library/' + i.substring(10) : i)\n\
               \x20 .map(i, i.contains('@') ? i.find('^[^/]*/[^:@]*') + i.substring(i.indexOf('@')) :\n\
               \x20   i.matches('^[^/]*/[^:]*:') ? i : i + ':latest')";
    let foreign = format!(
        "variables.images.filter(i, !i.matches({})) +\n  variables.fullImages.filter(i, !i.matches({}))",
        literal(IMAGE),
        literal(permitted)
    );
    let changed = format!(
        "variables.isNewSparkPod || (request.operation == 'UPDATE' &&\n\
         \x20 variables.labels[?'spark-role'].orValue('') in ['driver', 'executor'] && variables.images != (\n\
         {}))",
        images("oldObject")
    );
    [
        ("images", images("object")),
        ("fullImages", hub.to_owned()),
        ("foreignImages", foreign),
        ("imagesChanged", changed),
        ("imagesPermitted", "!variables.imagesChanged || variables.foreignImages.size() == 0".to_owned()),
    ]
}

/// Returns the rule for images of Spark pods. It judges changes only: a policy that is made stricter must not hold the pods that
/// run already.
fn images(tenant: &TenantRules<'_>) -> Option<Validation> {
    tenant.policy.images().map(|_| {
        let message = "the policy of the tenant doesn't permit these images";
        Validation::naming(
            "request.operation == 'DELETE' || variables.imagesPermitted",
            message,
            "variables.foreignImages",
        )
    })
}
