//! The proxy itself behaves as the other tests expect.

use std::time::Duration;

use sparkgate_testing::fault_proxy::{Fault, FaultProxy, Way};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

/// Starts a server that answers each byte with the same byte; returns its address and the bytes that it receives.
async fn echo() -> (std::net::SocketAddr, tokio::sync::mpsc::UnboundedReceiver<u8>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, received) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                while let Ok(byte) = stream.read_u8().await {
                    let _ = tell.send(byte);
                    stream.write_u8(byte).await.unwrap();
                }
            });
        }
    });
    (address, received)
}

async fn ask(stream: &mut TcpStream, byte: u8) -> std::io::Result<u8> {
    stream.write_u8(byte).await?;
    timeout(PATIENCE, stream.read_u8()).await.expect("no answer and no end")
}

#[tokio::test]
async fn the_proxy_passes_cuts_and_refuses() {
    let (server, _told) = echo().await;
    let proxy = FaultProxy::start(server).await;
    let mut one = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut one, 1).await.unwrap(), 1);
    proxy.set(Fault::Delay(Duration::from_millis(1)));
    assert_eq!(ask(&mut one, 2).await.unwrap(), 2);
    assert_eq!((proxy.connections(), proxy.live()), (1, 1));

    proxy.set(Fault::Refuse);
    assert_eq!(ask(&mut one, 3).await.unwrap(), 3, "an open connection stays");
    proxy.cut();
    assert_eq!(ask(&mut one, 4).await.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
    let mut refused = TcpStream::connect(proxy.address()).await.unwrap();
    ask(&mut refused, 5).await.unwrap_err();

    proxy.set(Fault::None);
    let mut again = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut again, 6).await.unwrap(), 6);
}

#[tokio::test]
async fn silence_lasts_for_the_connection_that_lost_bytes() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::start(server).await;
    let mut one = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut one, 1).await.unwrap(), 1);
    proxy.set(Fault::Silent(Way::ToClient));
    one.write_u8(2).await.unwrap();
    assert_eq!((received.recv().await, received.recv().await), (Some(1), Some(2)), "the server received both");
    let swallowed = async {
        while proxy.swallowed() == 0 {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, swallowed).await.expect("the answer is not dropped");
    proxy.set(Fault::None);
    let mut other = TcpStream::connect(proxy.address()).await.unwrap();
    assert_eq!(ask(&mut other, 4).await.unwrap(), 4);
    proxy.cut();
    assert_eq!(
        timeout(PATIENCE, one.read_u8()).await.unwrap().unwrap_err().kind(),
        std::io::ErrorKind::ConnectionReset
    );
}

#[tokio::test]
async fn a_lost_reply_is_one_to_a_request_that_was_delivered() {
    let (server, mut received) = echo().await;
    let proxy = FaultProxy::seeded(server, 7).await;
    proxy.lose_replies(0.5);
    let (mut answered, mut lost) = (0, 0);
    for byte in 0..20 {
        let mut stream = TcpStream::connect(proxy.address()).await.unwrap();
        match ask(&mut stream, byte).await {
            Ok(_) => answered += 1,
            Err(_) => lost += 1,
        }
        assert_eq!(received.recv().await, Some(byte));
    }
    assert_eq!(proxy.replies_lost(), lost);
    assert!(answered > 0 && lost > 0, "{answered} answered, {lost} lost");
}
