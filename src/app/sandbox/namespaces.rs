//! The namespaces of an access file: a cluster has them from its operators, the sandbox from here.

use std::{fs, path::Path};

use anyhow::Context;
use kube::{
    Api, Client, Config,
    api::PostParams,
    config::{KubeConfigOptions, Kubeconfig},
    core::{ApiResource, DynamicObject, GroupVersionKind},
};

use sparkgate_access::{Access, Namespaces};

/// Creates the namespaces of the tenants in the sandbox, unless it has them.
///
/// # Errors
/// The file is no access file; the sandbox doesn't answer.
pub(in crate::app) async fn create(access_file: &Path, kubeconfig: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(access_file).with_context(|| format!("reading {}", access_file.display()))?;
    let access = Access::parse(&text).with_context(|| format!("{} is no access file", access_file.display()))?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Namespace"));
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(Kubeconfig::read_from(kubeconfig)?, &options).await?;
    let client = Client::try_from(config)?;
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
