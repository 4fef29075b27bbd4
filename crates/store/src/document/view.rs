//! What is read of a submission for its document.

use crate::usage::prices::Prices;

/// The view of a document, with costs at these prices.
#[derive(Debug, PartialEq)]
pub(crate) struct DocumentView(pub(super) Prices);
