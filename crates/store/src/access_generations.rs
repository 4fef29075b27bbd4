//! The order in which replicas read contents of the access file.

use super::{
    error::{Error, within},
    store::Store,
};

/// How often another replica may add a generation at the same moment.
const TRIES: u32 = 10;

impl Store {
    /// Returns the number of a content of the access file that was just read, by its digest: the newest generation, if that has this
    /// content, and otherwise a new one.
    pub async fn access_generation(&self, digest: &str) -> Result<i64, Error> {
        let action = "numbering the access file";
        for _ in 0..TRIES {
            let statement = sqlx::query_scalar(
                "WITH newest AS (
                     SELECT number, digest FROM access_generations ORDER BY number DESC LIMIT 1
                 ), added AS (
                     INSERT INTO access_generations (number, digest)
                     SELECT coalesce((SELECT number FROM newest), 0) + 1, $1
                     WHERE NOT EXISTS (SELECT FROM newest WHERE digest = $1)
                     ON CONFLICT DO NOTHING RETURNING number
                 )
                 SELECT number FROM added UNION ALL SELECT number FROM newest WHERE digest = $1",
            );
            let mut connection = self.connection(action).await?;
            let number = statement.bind(digest).fetch_optional(&mut *connection);
            if let Some(number) = within(action, number).await? {
                return Ok(number);
            }
        }
        Err(Error::row(digest, std::io::Error::other("other replicas added generations at the same moment")))
    }
}
