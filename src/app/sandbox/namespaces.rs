//! The namespaces of an access file: a cluster has them from its operators, the sandbox from here.

use std::path::Path;

use anyhow::Context;
use kube::{
    Api, Client,
    api::PostParams,
    core::{ApiResource, DynamicObject, GroupVersionKind},
};

use crate::app::admission::read_access;
use sparkgate_access::Namespaces;

/// Creates the namespaces of the tenants in the sandbox, unless it has them.
///
/// # Errors
/// The file is no access file; the sandbox doesn't answer.
pub(in crate::app) async fn create(access_file: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let access = read_access(access_file)?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    let client = Client::try_from(super::config_of(kubeconfig).await?)?;
    let namespaces: Api<DynamicObject> = Api::all_with(client, &kind);
    let named = access.tenants().flat_map(|tenant| match &tenant.namespaces {
        Namespaces::All => &[][..],
        Namespaces::Listed(names) => names,
    });
    for name in named {
        match namespaces.create(&PostParams::default(), &DynamicObject::new(name, &kind)).await {
            Ok(_) => {}
            Err(kube::Error::Api(status)) if status.is_already_exists() => {}
            Err(error) => return Err(error).with_context(|| format!("creating the namespace {name} in the sandbox")),
        }
    }
    Ok(())
}
