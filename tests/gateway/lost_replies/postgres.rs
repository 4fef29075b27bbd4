//! A proxy in front of Postgres that follows its protocol and loses the reply to one statement: the statement is carried out and
//! committed, and then the connection breaks.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWriteExt},
    net::{
        TcpListener, TcpStream,
        tcp::{ReadHalf, WriteHalf},
    },
    task::JoinSet,
};
use tokio_util::task::AbortOnDropHandle;

use crate::lost_replies::calls::Calls;

/// The code of a request for TLS, which has no type either.
const TLS: i32 = 80_877_103;
/// The longest message that a test sends.
const LONGEST: usize = 64 << 20;

pub(crate) struct Proxy {
    pub(crate) address: SocketAddr,
    _accepts: AbortOnDropHandle<()>,
}

impl Proxy {
    pub(crate) async fn start(upstream: SocketAddr, calls: Arc<Calls>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepts = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let Ok((client, _)) = listener.accept().await else { continue };
                let calls = calls.clone();
                connections.spawn(async move {
                    // The gateway sees why: its connection is closed.
                    let _ = carry(client, upstream, &calls).await;
                });
                while connections.try_join_next().is_some() {}
            }
        });
        Self { address, _accepts: AbortOnDropHandle::new(accepts) }
    }
}

async fn carry(mut client: TcpStream, upstream: SocketAddr, calls: &Calls) -> io::Result<()> {
    let mut server = TcpStream::connect(upstream).await?;
    let _ = (client.set_nodelay(true), server.set_nodelay(true));
    loop {
        let first = untyped(&mut client).await?;
        server.write_all(&first).await?;
        if first.len() != 8 || number(&first[4..]) != TLS {
            break;
        }
        let mut answer = [0];
        server.read_exact(&mut answer).await?;
        client.write_all(&answer).await?;
    }
    let losing = AtomicBool::new(false);
    let (client_reads, client_writes) = client.split();
    let (server_reads, server_writes) = server.split();
    tokio::try_join!(
        requests(client_reads, server_writes, calls, &losing),
        replies(server_reads, client_writes, &losing)
    )?;
    Ok(())
}

/// Forwards the client's messages, and notices which statement each one executes.
async fn requests(
    mut client: ReadHalf<'_>,
    mut server: WriteHalf<'_>,
    calls: &Calls,
    losing: &AtomicBool,
) -> io::Result<()> {
    let (mut statements, mut portals) = (HashMap::new(), HashMap::new());
    loop {
        let (kind, message) = typed(&mut client).await?;
        let mut texts = message[5..].split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned());
        let (first, second) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        let executed = match kind {
            b'P' => {
                statements.insert(first, second);
                None
            }
            b'B' => {
                portals.insert(first, statements.get(&second).cloned().unwrap_or_default());
                None
            }
            b'E' => portals.get(&first).cloned(),
            b'Q' => Some(first),
            _ => None,
        };
        if let Some(sql) = executed
            && calls.made(&sql.split_whitespace().collect::<Vec<_>>().join(" "))
        {
            losing.store(true, SeqCst);
        }
        server.write_all(&message).await?;
    }
}

/// Forwards the server's messages. If they get lost, ends the connection once the server is ready for the next statement.
async fn replies(mut server: ReadHalf<'_>, mut client: WriteHalf<'_>, losing: &AtomicBool) -> io::Result<()> {
    loop {
        let (kind, message) = typed(&mut server).await?;
        match (losing.load(SeqCst), kind) {
            (false, _) => client.write_all(&message).await?,
            (true, b'Z') => return Err(io::ErrorKind::ConnectionReset.into()),
            (true, _) => {}
        }
    }
}

async fn untyped(from: &mut (impl AsyncRead + Unpin)) -> io::Result<Vec<u8>> {
    let mut message = vec![0; 4];
    from.read_exact(&mut message).await?;
    message.resize(length(&message)?, 0);
    from.read_exact(&mut message[4..]).await?;
    Ok(message)
}

async fn typed(from: &mut (impl AsyncRead + Unpin)) -> io::Result<(u8, Vec<u8>)> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await?;
    message.resize(length(&message[1..])? + 1, 0);
    from.read_exact(&mut message[5..]).await?;
    Ok((message[0], message))
}

fn length(bytes: &[u8]) -> io::Result<usize> {
    let length = usize::try_from(number(bytes)).ok().filter(|length| (4..LONGEST).contains(length));
    length.ok_or_else(|| io::ErrorKind::InvalidData.into())
}

fn number(bytes: &[u8]) -> i32 {
    i32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}
