//! Who may do what, and where.

use super::*;
use crate::principal::{Grant, Provider};

const FILE: &str = r"
authentication:
  oidc: [{name: corp, issuer: 'https://id.example.org', audience: sparkgate, groupsClaim: groups}]
tenants:
  one:
    namespaces: [one, one-batch]
    members:
      - {role: viewer, groups: ['corp:readers']}
      - {role: submitter, subjects: ['corp:sam'], groups: ['corp:both']}
      - {role: operator, subjects: ['corp:olga']}
  two:
    namespaces: [two]
    members:
      - {role: submitter, groups: ['corp:both']}
members:
  - {role: viewer, subjects: ['corp:auditor']}
  - {role: admin, groups: ['corp:platform']}
";

fn access() -> Access {
    Access::parse(FILE).unwrap()
}

fn user(name: &str, groups: &[&str]) -> Principal {
    Principal::new(Provider::Oidc("corp".to_owned()), name).unwrap().with_groups(groups.iter().copied())
}

fn key(grants: Vec<Grant>) -> Principal {
    Principal::new(Provider::ApiKey, "0123456789abcdef").unwrap().with_grants(grants)
}

#[test]
fn each_role_may_do_its_actions_in_its_tenants_only() {
    use Action::{
        ClearAny, ClearOwn, DryRun, KillAll, KillAny, KillOwn, ManageKeys, ManageOwnWebhooks, ManageWebhooks, Read,
        ReadAudit, Submit,
    };
    let viewer: &[Action] = &[Read];
    let submitter: &[Action] = &[Read, Submit, DryRun, KillOwn, ClearOwn, ManageOwnWebhooks];
    let operator: &[Action] = &[
        Read,
        Submit,
        DryRun,
        KillOwn,
        ClearOwn,
        KillAny,
        KillAll,
        ClearAny,
        ReadAudit,
        ManageKeys,
        ManageOwnWebhooks,
        ManageWebhooks,
    ];
    let nothing: &[Action] = &[];
    let access = access();
    // The actions in `one`, in `two`, and in a tenant that the file doesn't have.
    for (principal, one, two, gone) in [
        (user("stranger", &[]), nothing, nothing, nothing),
        (user("reader", &["readers"]), viewer, nothing, nothing),
        (user("sam", &[]), submitter, nothing, nothing),
        (user("sam", &["readers"]), submitter, nothing, nothing),
        (user("olga", &["both"]), operator, submitter, nothing),
        (user("bob", &["both"]), submitter, submitter, nothing),
        (user("auditor", &[]), viewer, viewer, viewer),
        (user("root", &["platform"]), operator, operator, operator),
        (key(vec![]), nothing, nothing, nothing),
        (key(vec![Grant::in_tenant(Role::Operator, "one").unwrap()]), operator, nothing, nothing),
        (key(vec![Grant::in_tenant(Role::Operator, "gone").unwrap()]), nothing, nothing, nothing),
        (key(vec![Grant::everywhere(Role::Submitter)]), submitter, submitter, submitter),
        (key(vec![Grant::everywhere(Role::Admin)]), operator, operator, operator),
        (Principal::anonymous(), nothing, nothing, nothing),
        // The same name at another provider.
        (Principal::new(Provider::Kubernetes, "olga").unwrap(), nothing, nothing, nothing),
        (Principal::new(Provider::Kubernetes, "x").unwrap().with_groups(["platform"]), nothing, nothing, nothing),
    ] {
        for (tenant, allowed) in [("one", one), ("two", two), ("gone", gone)] {
            for action in Action::ALL {
                let may = access.may(&principal, action, tenant);
                assert_eq!(may, allowed.contains(&action), "{principal}: {action:?} in {tenant}");
                let listed = access.tenants_for(&principal, action);
                assert_eq!(listed.contains(tenant), may, "{principal}: {action:?} in {tenant}");
            }
        }
    }
}

#[test]
fn a_submission_is_killed_by_its_submitter_or_an_operator() {
    let access = access();
    let (sam, bob) = (user("sam", &[]), user("bob", &["both"]));
    assert!(access.may_kill(&sam, "one", "corp:sam"));
    assert!(!access.may_kill(&bob, "one", "corp:sam"));
    assert!(access.may_kill(&user("olga", &[]), "one", "corp:sam"));
    assert!(!access.may_kill(&sam, "two", "corp:sam"), "no longer a submitter there");
    assert!(!access.may_kill(&user("auditor", &[]), "one", "corp:auditor"), "a viewer");
}

#[test]
fn only_admins_are_admins() {
    let access = access();
    assert!(access.is_admin(&user("root", &["platform"])));
    assert!(access.is_admin(&key(vec![Grant::everywhere(Role::Admin)])));
    for principal in [user("olga", &[]), user("auditor", &[]), key(vec![Grant::everywhere(Role::Operator)])] {
        assert!(!access.is_admin(&principal), "{principal}");
    }
}

#[test]
fn a_key_is_managed_by_operators_up_to_their_own_role() {
    let access = access();
    let (olga, root) = (user("olga", &["both"]), user("root", &["platform"]));
    for (role, tenant, by_olga) in [
        (Role::Viewer, Some("one"), true),
        (Role::Operator, Some("one"), true),
        (Role::Admin, Some("one"), false),
        (Role::Viewer, Some("two"), false),
        (Role::Viewer, None, false),
        (Role::Admin, None, false),
    ] {
        assert_eq!(access.may_manage_key(&olga, role, tenant), by_olga, "{role} in {tenant:?}");
        assert!(access.may_manage_key(&root, role, tenant), "{role} in {tenant:?}");
        assert!(!access.may_manage_key(&user("sam", &[]), role, tenant), "{role} in {tenant:?}");
    }
    assert!(!access.may_manage_key(&key(vec![Grant::everywhere(Role::Operator)]), Role::Viewer, None));
}

#[test]
fn visible_is_what_may_be_read() {
    let access = access();
    let visible = |principal: &Principal| access.visible(principal);
    let tenants = |names: &[&str]| Visible::Tenants(names.iter().map(|name| (*name).to_owned()).collect());
    assert_eq!(visible(&user("stranger", &[])), tenants(&[]));
    assert_eq!(visible(&user("reader", &["readers"])), tenants(&["one"]));
    assert_eq!(visible(&user("bob", &["both"])), tenants(&["one", "two"]));
    assert_eq!(visible(&user("auditor", &[])), Visible::All);
}

#[test]
fn a_submission_belongs_to_the_tenant_of_its_namespace() {
    let access = access();
    let name =
        |principal: &Principal, namespace| access.tenant_for(principal, namespace).map(|tenant| tenant.name.as_str());
    let (sam, bob, reader) = (user("sam", &[]), user("bob", &["both"]), user("reader", &["readers"]));
    assert_eq!(name(&sam, Some("one-batch")), Ok("one"));
    assert_eq!(name(&bob, Some("two")), Ok("two"));
    assert_eq!(name(&sam, None), Ok("one"));
    assert_eq!(access.tenant_for(&sam, None).unwrap().default_namespace(), Some("one"));
    let text = |principal: &Principal, namespace| name(principal, namespace).unwrap_err().to_string();
    assert_eq!(
        text(&bob, None),
        "you may submit to several tenants: set spark.kubernetes.namespace to one, one-batch or two"
    );
    assert_eq!(
        text(&reader, None),
        "corp:reader may not submit to any tenant: ask an operator of the gateway for the role submitter"
    );
}

#[test]
fn a_refusal_does_not_tell_whether_a_namespace_exists() {
    let access = access();
    let sam = user("sam", &[]);
    let text = |namespace| access.tenant_for(&sam, Some(namespace)).unwrap_err().to_string();
    assert_eq!(text("two"), "you may not submit to namespace `two`: use one or one-batch");
    assert_eq!(text("two").replace("two", "nowhere"), text("nowhere"));
    let reader = user("reader", &["readers"]);
    let error = |namespace| access.tenant_for(&reader, Some(namespace)).unwrap_err();
    assert_eq!(error("two"), error("nowhere"));
}

#[test]
fn a_namespace_has_one_tenant_or_none() {
    let access = access();
    let name = |namespace| access.tenant_of_namespace(namespace).map(|tenant| tenant.name.as_str());
    assert_eq!((name("one-batch"), name("two"), name("three")), (Some("one"), Some("two"), None));
}

#[test]
fn without_a_file_every_caller_may_do_everything() {
    let access = Access::open();
    let anonymous = Principal::anonymous();
    assert!(Action::ALL.into_iter().all(|action| access.may(&anonymous, action, "default")));
    assert!(access.is_admin(&anonymous));
    assert_eq!(access.visible(&anonymous), Visible::All);
    let tenant = access.tenant_for(&anonymous, Some("anything")).unwrap();
    assert_eq!((tenant.name.as_str(), tenant.default_namespace()), ("default", None));
    assert_eq!(access.tenant_for(&anonymous, None).unwrap().name, "default");
    assert_eq!(access.tenant_of_namespace("anything").unwrap().name, "default");
    assert!(access.authentication().is_none() && access.rates().is_none());
}
