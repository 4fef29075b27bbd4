//! Each operation of the API, for each role and each owner. The operations come from the `OpenAPI` document, so that a new one
//! without a row fails.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use sparkgate::access::Role;
use sqlx::PgPool;

use crate::{
    access::world::{TWO_TENANTS, World, job, session, spark_job},
    sessions::serving,
};

/// Whose submission a request concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Own,
    SameTenant,
    OtherTenant,
}

/// What a caller needs for an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    /// Nothing: not even credentials.
    Nothing,
    /// To be known.
    ToBeKnown,
    /// To see the submission.
    ToSee,
    /// The submission to be its own, or to be an operator of its tenant.
    ToKill,
    /// The same, and the submission to wait in a queue. No submission of the test does.
    ToRequeue,
    /// To be operator of all tenants.
    Everywhere,
    /// To see the submission, and to submit in its tenant.
    ToRerun,
    /// A role in some tenant.
    Somewhere(Role),
    /// A role in the tenant that the request names.
    There(Role),
}

/// Returns what each operation needs, and a request for it. `{id}` is the submission's id, `{namespace}` its namespace.
fn needs(operation: &str) -> Option<(Needs, Option<Value>)> {
    let needs = match operation {
        "livez" | "readyz" | "getLogin" => Needs::Nothing,
        "submissionsReadyz" | "getCaller" | "listSubmissions" | "listSparkVersions" | "followEvents" | "getUsage"
        | "listQueues" | "listSessions" | "listJobs" => Needs::ToBeKnown,
        "getSubmission"
        | "getOutcome"
        | "waitForSubmission"
        | "listAttempts"
        | "getManifest"
        | "getRequest"
        | "listExecutors"
        | "readLog"
        | "listSubmissionEvents"
        | "openSparkUi"
        | "getSession"
        | "getJob"
        | "submissionStatus" => Needs::ToSee,
        "killSubmissionResource" | "killSubmission" | "holdSubmission" | "releaseSubmission" | "endSession" => {
            Needs::ToKill
        }
        "requeueSubmission" => return Some((Needs::ToRequeue, Some(json!({"priority": 1})))),
        "setQueueState" => return Some((Needs::Everywhere, Some(json!({"state": "paused"})))),
        "changeQueuePlaces" => {
            let body = json!({"filter": {"namespace": "{namespace}"}, "action": "hold"});
            return Some((Needs::Somewhere(Role::Submitter), Some(body)));
        }
        "killAllSubmissions" | "clearSubmissions" => Needs::Somewhere(Role::Submitter),
        "uploadFile" | "downloadFile" | "continueUpload" | "listFiles" | "deleteFile" => {
            Needs::Somewhere(Role::Submitter)
        }
        // The signature in its path is the credential.
        "fetchFile" => Needs::Nothing,
        "listTokens" | "readAudit" => Needs::Somewhere(Role::Operator),
        "listWebhooks"
        | "getWebhook"
        | "deleteWebhook"
        | "rotateWebhookSecret"
        | "listWebhookDeliveries"
        | "replayWebhook"
        | "replayWebhookDelivery" => Needs::Somewhere(Role::Submitter),
        "createWebhook" => {
            let body = json!({"url": "https://hooks.example.org/x", "tenant": "{namespace}", "submissions": "tenant"});
            return Some((Needs::There(Role::Operator), Some(body)));
        }
        "revokeToken" => return Some((Needs::Somewhere(Role::Operator), None)),
        "createToken" => {
            let body = json!({"name": "new", "tenant": "{namespace}", "role": "viewer", "expiresInSeconds": 60});
            return Some((Needs::There(Role::Operator), Some(body)));
        }
        "rerunSubmission" => Needs::ToRerun,
        "submitApplication" => {
            let args = ["--class", "A", "--conf", "spark.kubernetes.namespace={namespace}", "local:///a.jar"];
            let body = json!({"submission_id": "{id}", "spark_submit_args": args});
            return Some((Needs::There(Role::Submitter), Some(body)));
        }
        "openSession" => return Some((Needs::There(Role::Submitter), Some(session("{namespace}")))),
        "createSubmissionResource" => return Some((Needs::There(Role::Submitter), Some(job("{namespace}")))),
        "createSubmission" => return Some((Needs::There(Role::Submitter), Some(spark_job("{namespace}")))),
        _ => return None,
    };
    Some((needs, None))
}

/// Returns the statuses that are right for a caller with `role` in the tenant red.
fn expected(operation: &str, needs: Needs, role: Option<Role>, owner: Owner) -> BTreeSet<u16> {
    // No path here is signed.
    if operation == "fetchFile" {
        return [404].into();
    }
    let Some(role) = role else {
        return if needs == Needs::Nothing { [200].into() } else { [401].into() };
    };
    let is_admin = role == Role::Admin;
    let is_foreign = owner == Owner::OtherTenant && !is_admin;
    let of_spark = matches!(operation, "submissionStatus" | "killSubmission");
    match needs {
        Needs::Nothing | Needs::ToBeKnown => [200].into(),
        Needs::ToSee if of_spark => [200].into(),
        // There is no outcome, and no log, of a submission that is queued.
        Needs::ToSee if is_foreign => [404].into(),
        Needs::ToSee => match operation {
            "getOutcome" | "readLog" => [404].into(),
            "openSparkUi" => [303].into(),
            _ => [200].into(),
        },
        Needs::ToRerun if is_foreign => [404].into(),
        Needs::ToRerun if role < Role::Submitter => [403].into(),
        Needs::ToRerun => [201].into(),
        Needs::ToKill if is_foreign && of_spark => [200].into(),
        Needs::ToKill | Needs::ToRequeue if is_foreign => [404].into(),
        Needs::ToKill | Needs::ToRequeue
            if role < Role::Submitter || (role < Role::Operator && owner != Owner::Own) =>
        {
            [403].into()
        }
        Needs::ToRequeue => [409].into(),
        // The access file has no queue.
        Needs::Everywhere => [if is_admin { 422 } else { 403 }].into(),
        Needs::ToKill => [200, 202].into(),
        Needs::Somewhere(least) if role < least => [403].into(),
        // This gateway keeps no files, and the request names no namespace that would select a tenant.
        Needs::Somewhere(_) if matches!(operation, "uploadFile" | "downloadFile" | "listFiles" | "deleteFile") => {
            [if is_admin { 400 } else { 404 }].into()
        }
        // The request is no part of an upload.
        Needs::Somewhere(_) if operation == "continueUpload" => [415].into(),
        // No key has the submission's id.
        Needs::Somewhere(_) if operation == "revokeToken" => [404].into(),
        // No webhook has it, either.
        Needs::Somewhere(_) if operation.contains("Webhook") && operation != "listWebhooks" => [404].into(),
        Needs::Somewhere(_) => [200].into(),
        // An unknown namespace of one's own is answered in the same way.
        Needs::There(least) if role < least => [403].into(),
        Needs::There(_) if is_foreign => {
            if ["createToken", "createWebhook"].contains(&operation) { [403] } else { [400] }.into()
        }
        Needs::There(_) => [200, 201].into(),
    }
}

#[sqlx::test]
async fn every_operation_answers_each_role_and_owner_as_it_should(pool: PgPool) {
    let mut world = World::new(pool, TWO_TENANTS).await;
    world.configure(serving).await;
    let admin = world.key(Role::Admin, None).await;
    let colleague = world.key(Role::Submitter, Some("red")).await;
    // Kubeflow's operator waits for the pods of its applications, which are the submissions with an id of their client.
    let launched = "CREATE FUNCTION launched() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
            NEW.state := 'PENDING'; NEW.pod_uid := 'uid'; RETURN NEW; END $$;
        CREATE TRIGGER launched BEFORE INSERT ON submissions FOR EACH ROW WHEN (NEW.client_id IS NOT NULL) EXECUTE FUNCTION launched()";
    sqlx::raw_sql(launched).execute(&world.pool).await.unwrap();
    let document = serde_json::to_value(sparkgate::api::openapi()).unwrap();
    let roles = [None, Some(Role::Viewer), Some(Role::Submitter), Some(Role::Operator), Some(Role::Admin)];
    let (mut wrong, mut asked, mut answered) = (Vec::new(), 0, BTreeSet::new());
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let documented = operation["responses"].as_object().unwrap();
            let operation = operation["operationId"].as_str().unwrap();
            let (needs, body) = needs(operation).unwrap_or_else(|| panic!("{operation} has no row in the matrix"));
            for role in roles {
                let key = match role {
                    None => None,
                    Some(Role::Admin) => Some(world.key(Role::Admin, None).await),
                    Some(role) => Some(world.key(role, Some("red")).await),
                };
                for owner in [Owner::Own, Owner::SameTenant, Owner::OtherTenant] {
                    let namespace = if owner == Owner::OtherTenant { "blue" } else { "red" };
                    // Callers that may not submit have no submission of their own.
                    let submitter = match (owner, &key, role) {
                        (Owner::Own, Some(key), Some(Role::Submitter | Role::Operator | Role::Admin)) => key,
                        (Owner::OtherTenant, ..) => &admin,
                        _ => &colleague,
                    };
                    let id = match operation {
                        "getSession" | "endSession" => world.open_session(submitter, namespace).await,
                        _ => world.submit(submitter, namespace).await,
                    };
                    let target = path.replace("{id}", &id).replace("{sha256}", &"0".repeat(64));
                    let body = body.as_ref().map(|body| {
                        let body = body.to_string().replace("{namespace}", namespace).replace("{id}", &id);
                        serde_json::from_str(&body).unwrap()
                    });
                    let target = match operation {
                        "waitForSubmission" => target + "?timeoutSeconds=0",
                        // Both tenants have a job of this name.
                        "getJob" => target.replace("{job}", "job") + "?tenant=" + namespace,
                        _ => target,
                    };
                    let answer = world.send(key.as_deref(), &method.to_uppercase(), &target, body.as_ref()).await;
                    asked += 1;
                    answered.insert((operation, answer.status.to_string()));
                    if !documented.contains_key(&answer.status.to_string()) {
                        wrong.push(format!("{operation} {role:?} {owner:?}: {} is not documented", answer.status));
                    }
                    let right = expected(operation, needs, role, owner);
                    if !right.contains(&answer.status) {
                        wrong.push(format!("{operation} {role:?} {owner:?}: {} {}", answer.status, answer.body));
                    }
                    if owner == Owner::OtherTenant && role.is_some_and(|role| role < Role::Admin) {
                        let leaks = answer.body.contains("blue") && !matches!(needs, Needs::There(_));
                        let is_known = operation == "submissionStatus" && answer.json()["success"] == true;
                        if leaks || is_known {
                            wrong.push(format!("{operation} {role:?} tells of a foreign submission: {}", answer.body));
                        }
                    }
                }
            }
            let refusals = documented.keys().filter(|status| ["401", "403"].contains(&status.as_str()));
            let never = refusals.filter(|status| !answered.contains(&(operation, (*status).clone())));
            wrong.extend(never.map(|status| format!("{operation}: {status} is documented and never answered")));
        }
    }
    assert!(wrong.is_empty(), "{asked} requests, wrong:\n{}", wrong.join("\n"));
    assert!(asked > 300, "{asked}");
}

#[sqlx::test]
async fn every_operation_counts_towards_the_limits_of_its_caller(pool: PgPool) {
    let world = World::new(pool, &TWO_TENANTS.replace("100000/s", "1/h")).await;
    let document = serde_json::to_value(sparkgate::api::openapi()).unwrap();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            let key = world.key(Role::Viewer, Some("red")).await;
            let (method, path) = (method.to_uppercase(), path.replace("{id}", "driver-20260101000000-0001"));
            let ask = async || world.send(Some(&key), &method, &path, None).await.status;
            let first = ask().await;
            let limited = match operation["operationId"].as_str() {
                // Kubeflow's operator tries again after this status.
                Some("submitApplication") => 503,
                _ if operation["responses"].get("429").is_some() => 429,
                _ => first,
            };
            assert_ne!(first, 429, "{method} {path}");
            assert_eq!(ask().await, limited, "{method} {path}");
        }
    }
}
