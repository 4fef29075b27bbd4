//! One connection: both directions are forwarded until both have ended, or one fails.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{ReadHalf, WriteHalf};
use tokio::time::{Instant, sleep, timeout_at};

use super::{Controls, Fault, Way};
use crate::mix;

/// The first bytes of a reply may only acknowledge the request; it is carried out some time after that.
const UNTIL_DONE: Duration = Duration::from_millis(20);

/// The state that both directions of a connection share.
struct Turns {
    /// The next bytes of the client begin a request.
    request_next: AtomicBool,
    /// The next reply will be dropped.
    lose_next: AtomicBool,
    /// Bytes were dropped.
    silent: AtomicBool,
    random: AtomicU64,
}

/// # Errors
/// The connection broke, or is to be broken.
pub(super) async fn carry(
    client: &mut TcpStream,
    server: &mut TcpStream,
    controls: &Controls,
    number: u64,
) -> io::Result<()> {
    let turns = Turns {
        request_next: AtomicBool::new(true),
        lose_next: AtomicBool::new(false),
        silent: AtomicBool::new(false),
        random: AtomicU64::new(mix(controls.seed ^ mix(number))),
    };
    let ((client_reads, client_writes), (server_reads, server_writes)) = (client.split(), server.split());
    tokio::try_join!(
        pump(client_reads, server_writes, Way::ToServer, controls, &turns),
        pump(server_reads, client_writes, Way::ToClient, controls, &turns),
    )?;
    Ok(())
}

async fn pump(
    mut from: ReadHalf<'_>,
    mut to: WriteHalf<'_>,
    way: Way,
    controls: &Controls,
    turns: &Turns,
) -> io::Result<()> {
    let mut buffer = vec![0; 64 * 1024];
    let mut silent = false;
    loop {
        let count = from.read(&mut buffer).await?;
        let fault = *controls.fault.borrow();
        if fault.swallows(way) {
            silent = true;
            turns.silent.store(true, SeqCst);
        }
        match (count, way) {
            // The client doesn't notice the server's end either.
            (0, Way::ToClient) if silent => std::future::pending().await,
            // The client has given up.
            (0, Way::ToServer) if turns.silent.load(SeqCst) => return Err(io::ErrorKind::ConnectionReset.into()),
            (0, _) => return to.shutdown().await,
            _ if silent => {
                controls.swallowed.fetch_add(count, SeqCst);
                continue;
            }
            (_, Way::ToServer) => turns.client_sends(controls),
            _ => turns.server_sends(&mut from, &mut buffer, controls).await?,
        }
        if let Fault::Delay(pause) = fault {
            sleep(pause).await;
        }
        to.write_all(&buffer[..count]).await?;
    }
}

impl Turns {
    fn client_sends(&self, controls: &Controls) {
        if self.request_next.swap(false, SeqCst) {
            let next = self.random.fetch_add(0x9E37_79B9_7F4A_7C15, SeqCst);
            // An f64 has 53 bits of precision.
            let fraction = (mix(next) >> 11) as f64 / (1_u64 << 53) as f64;
            self.lose_next.store(fraction < f64::from_bits(controls.loss.load(SeqCst)), SeqCst);
        }
    }

    /// # Errors
    /// This reply is dropped, and the connection has to be reset.
    async fn server_sends(&self, server: &mut ReadHalf<'_>, buffer: &mut [u8], controls: &Controls) -> io::Result<()> {
        if self.lose_next.load(SeqCst) {
            controls.lost.fetch_add(1, SeqCst);
            let done = Instant::now() + UNTIL_DONE;
            while let Ok(Ok(1..)) = timeout_at(done, server.read(buffer)).await {}
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        self.request_next.store(true, SeqCst);
        Ok(())
    }
}
