//! Reads what a status reply shows of a submission.

pub(super) mod row;

use self::row::RecordView;
use super::{error::Error, scoped::Scoped};
pub use row::Record;
use sparkgate_submission::SubmissionId;

impl Scoped {
    /// Returns a submission, or `None` if none has this id.
    pub async fn find(&self, id: &SubmissionId) -> Result<Option<Record>, Error> {
        let row = self.store.groups.records.read(self, id, RecordView).await?;
        row.map(Record::try_from).transpose()
    }
}
