#[tokio::main]
async fn main() {
    tracing_subscriber::fmt().init();
    let listener = tokio::net::TcpListener::bind(std::env::args().nth(1).unwrap()).await.unwrap();
    sparkgate::sandbox::apiserver::serve(listener, Default::default()).await.unwrap();
}
