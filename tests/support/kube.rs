pub struct KubeApiserver;
impl KubeApiserver {
    pub async fn start() -> Self { Self }
    pub async fn client(&self) -> kube::Client {
        let f = kube::config::Kubeconfig::read_from("/tmp/ka/kubeconfig").unwrap();
        let mut c = kube::Config::from_custom_kubeconfig(f, &Default::default()).await.unwrap();
        c.default_retry = false;
        kube::Client::try_from(c).unwrap()
    }
}
