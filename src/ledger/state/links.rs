//! Links: recorded when they are made, revoked at most once, forgotten when they expire.
//!
//! A revoked link stays recorded, so that a late copy of the call that recorded it does not bring
//! it back. A link that the ledger does not know admits nothing: it has expired, or a failover lost
//! it and with it the means to revoke it.

use super::super::book::{Book, LinkRecord};
use super::super::{Link, LinkId, MAX_PAGE};
use super::Moment;
use crate::artifact::ProjectId;

/// Records a link. Once its id is known, or its time is over, nothing changes.
///
/// # Errors
/// The book's.
pub fn record_link<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId, link: &Link) -> Result<(), B::Error> {
    if link.expires < at.now || book.link(project, link.id)?.is_some() {
        return Ok(());
    }
    book.put_link(project, &LinkRecord { link: link.clone(), revoked: false })
}

/// At most `limit` (1 to [`MAX_PAGE`]) live links with an id above `after`, by id.
///
/// # Errors
/// The book's.
pub fn links<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    after: Option<LinkId>,
    limit: usize,
) -> Result<Vec<Link>, B::Error> {
    book.live_links(project, at.now, after, limit.clamp(1, MAX_PAGE))
}

/// Revokes a link; answers whether it is known. Again, it changes nothing.
///
/// # Errors
/// The book's.
pub fn revoke_link<B: Book>(book: &mut B, at: &Moment<'_>, project: &ProjectId, id: LinkId) -> Result<bool, B::Error> {
    let Some(record) = book.link(project, id)?.filter(|record| at.now <= record.link.expires) else {
        return Ok(false);
    };
    if !record.revoked {
        book.put_link(project, &LinkRecord { revoked: true, ..record })?;
    }
    Ok(true)
}

/// Whether reads by this link are admitted.
pub(super) fn is_live<B: Book>(
    book: &mut B,
    at: &Moment<'_>,
    project: &ProjectId,
    id: LinkId,
) -> Result<bool, B::Error> {
    Ok(book.link(project, id)?.is_some_and(|record| !record.revoked && at.now <= record.link.expires))
}
