//! `sparkgate mcp`.

use std::net::SocketAddr;

use clap::Args;

use super::Outcome;
use crate::{
    error::Error,
    mcp::{self, Allowed, HttpSettings},
    options::Gateway,
};

#[derive(Debug, Args)]
#[command(
    after_help = "Without --listen, the client starts this command and talks to it by its standard input and output."
)]
pub struct Mcp {
    #[command(flatten)]
    gateway: Gateway,
    /// Offer the tools that submit, rerun and kill, too. Without it, nothing is changed.
    #[arg(long)]
    allow_write: bool,
    /// Offer the tool that runs one SQL query in a live session of Spark Connect of the caller. It only reads.
    #[arg(long)]
    allow_sql: bool,
    /// Serve HTTP on this address, such as 127.0.0.1:6068, below /mcp. Each request brings the token of its caller, which is passed on
    /// to the gateway; this command has none.
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<SocketAddr>,
    /// A name under which clients reach the address, besides localhost; may be repeated.
    #[arg(long = "allowed-host", value_name = "NAME", requires = "listen")]
    allowed_hosts: Vec<String>,
}

impl Mcp {
    pub(super) async fn run(self) -> Outcome {
        let allowed = Allowed { write: self.allow_write, sql: self.allow_sql };
        match self.listen {
            Some(_) if self.gateway.token.is_some() => Err(Error::Here(
                "with --listen, every request brings the token of its caller: leave out --token, --token-file and their variables, \
                 which would give this token to all callers"
                    .to_owned(),
            )),
            Some(address) => {
                let settings = HttpSettings { address, allowed_hosts: self.allowed_hosts };
                mcp::serve_http(&self.gateway, allowed, settings).await?;
                Ok(0)
            }
            None => {
                mcp::serve_stdio(&self.gateway, allowed).await?;
                Ok(0)
            }
        }
    }
}
