//! The metered read: stat → reserve the whole size → open with the etag → stream that counts →
//! settle.
//!
//! ```text
//! find ──┬─► reserve ──► fetch … fetch ──► complete      an agent's read: a head, a window
//! recall ┘        └────► stream ──────────────────       HTTP: one range
//! ```
//!
//! What is recalled saves the stat, not the truth: it was the present version seconds ago, and opening it
//! finds out whether it still is.
//!
//! What was counted is what is charged: for a stream the bytes handed to the HTTP layer, for
//! fetches the distinct bytes taken from the store.

mod clock;
mod desk;
mod places;
mod reservation;
mod stream;

use std::ops::Range;
use std::sync::{Arc, Once};

use bytes::{Bytes, BytesMut};
use futures_util::StreamExt as _;
use tokio_util::task::TaskTracker;

use crate::access::{Downloader, Viewer};
use crate::archive::{self, Plan};
use crate::artifact::media::Content;
use crate::artifact::{ArtifactName, ProjectId, TrialId};
use crate::catalog::{Catalog, Found, Recalled, Seen, refuse};
use crate::error::{Error, Kind, Result};
use crate::ledger::{At, Channel, Context, Ledger, LinkId, Outcome, Standing, WarnAt};
use crate::quota::Warnings;
use crate::store::StoreError;
use crate::telemetry::request::{Phase, timing};

pub use desk::Timing;
pub use places::Caps;
pub use reservation::Reservation;
pub use stream::ByteStream;

/// Says how often a read begins anew because the file changed under it (twice), before that is the answer.
#[derive(Debug, Default)]
pub struct Attempts(usize);

impl Attempts {
    const CHANGES: usize = 2;

    /// Whether the read that ended in `error` is to begin anew. What was only remembered has not changed
    /// under it: that it is gone costs no attempt.
    ///
    /// # Errors
    /// `error`, if it is the answer.
    pub fn anew(&mut self, error: Error, remembered: bool) -> Result<()> {
        if *error.kind() != Kind::ArtifactChanged || (!remembered && self.0 == Self::CHANGES) {
            return Err(error);
        }
        self.0 += usize::from(!remembered);
        Ok(())
    }
}

/// The use case: every byte that leaves the service goes through it.
pub struct Reads {
    catalog: Arc<Catalog>,
    desk: Arc<desk::Desk>,
    warnings: Arc<Warnings>,
}

impl Reads {
    /// Reads from `catalog`, charging `ledger`. Whoever stops the service waits for `tracker`: it counts
    /// a read until it is settled.
    #[must_use]
    pub fn new(catalog: Arc<Catalog>, ledger: Arc<dyn Ledger>, tracker: TaskTracker, timing: Timing) -> Self {
        Self::with_caps(catalog, ledger, tracker, timing, Caps::default())
    }

    /// As [`new`](Self::new), with other bounds on open reads than the default.
    #[must_use]
    pub fn with_caps(
        catalog: Arc<Catalog>,
        ledger: Arc<dyn Ledger>,
        tracker: TaskTracker,
        timing: Timing,
        caps: Caps,
    ) -> Self {
        let places = Arc::new(places::Places::new(caps));
        let (clock, rounds) = (clock::LedgerClock::default(), Once::new());
        let desk = desk::Desk { ledger, clock, tracker, timing, places, rounds };
        Self { catalog, desk: Arc::new(desk), warnings: Arc::default() }
    }

    /// Tells `warnings` of every admission.
    #[must_use]
    pub fn with_warnings(self, warnings: Arc<Warnings>) -> Self {
        Self { warnings, ..self }
    }

    /// When people are warned.
    #[must_use]
    pub fn warn_at(&self) -> WarnAt {
        self.warnings.at()
    }

    /// Looks an artifact up, fresh from the store. Touches no ledger.
    ///
    /// # Errors
    /// As [`Catalog::find`].
    pub async fn find(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Result<Found> {
        self.catalog.find(who, trial, name).await
    }

    /// The artifact as it was seen a moment ago, if it was. Touches neither store nor ledger.
    #[must_use]
    pub fn recall(&self, who: &Viewer, trial: &TrialId, name: &ArtifactName) -> Option<Recalled> {
        self.catalog.recall(who, trial, name)
    }

    /// As [`Catalog::note_kind`].
    pub fn note_kind(&self, found: &Found, kind: Content) {
        self.catalog.note_kind(found, kind);
    }

    /// Reserves the whole size of what was seen.
    ///
    /// # Errors
    /// `DOWNLOAD_QUOTA_EXCEEDED`, `QUOTA_UNAVAILABLE`, `TOO_MANY_REQUESTS`, `OVERLOADED`; of what was
    /// recalled also `ARTIFACT_CHANGED`: find it anew.
    pub fn reserve(
        &self,
        who: &Downloader,
        seen: Seen,
        channel: Channel,
        request_id: &str,
    ) -> impl Future<Output = Result<MeteredRead>> {
        self.admit(who, seen, channel, None, request_id)
    }

    /// As [`reserve`](Self::reserve), for whoever followed a link.
    ///
    /// # Errors
    /// Also `LINK_REVOKED`.
    pub fn reserve_by_link(
        &self,
        who: &Downloader,
        seen: Seen,
        link: LinkId,
        request_id: &str,
    ) -> impl Future<Output = Result<MeteredRead>> {
        self.admit(who, seen, Channel::Link, Some(link), request_id)
    }

    /// Reserves the length of an archive and streams it.
    ///
    /// # Errors
    /// `DOWNLOAD_QUOTA_EXCEEDED`, `QUOTA_UNAVAILABLE`, `TOO_MANY_REQUESTS`, `OVERLOADED`.
    pub async fn archive(&self, who: &Downloader, plan: Plan, request_id: &str) -> Result<(ByteStream, At<Standing>)> {
        let context = Context {
            key_id: who.key_id().to_owned(),
            channel: Channel::Http,
            trial: plan.trial().clone(),
            artifact: plan.label(),
            request_id: request_id.to_owned(),
            link_id: None,
        };
        let length = plan.length();
        let (held, standing) = self.enter(&who.project().id, length, context).await?;
        let body = archive::bytes(plan, self.catalog.opener(&held));
        Ok((ByteStream::new(held, body, length), standing))
    }

    async fn enter(&self, project: &ProjectId, size: u64, context: Context) -> Result<(Reservation, At<Standing>)> {
        let timed = timing(Phase::Reserve);
        let (held, standing) = self.desk.admit(project, size, context).await?;
        drop(timed);
        let Standing { day, allowance, used, .. } = standing.reply;
        self.warnings.note(project, day, allowance, used);
        Ok((held, standing))
    }

    async fn admit(
        &self,
        who: &Downloader,
        seen: Seen,
        channel: Channel,
        link_id: Option<LinkId>,
        request_id: &str,
    ) -> Result<MeteredRead> {
        let context = Context {
            key_id: who.key_id().to_owned(),
            channel,
            trial: seen.trial().clone(),
            artifact: seen.name().clone(),
            request_id: request_id.to_owned(),
            link_id,
        };
        let admitted = self.enter(&seen.project().id, seen.size(), context).await;
        // A size that is not so any more refuses nobody.
        if let (Err(error), Seen::Recalled(recalled)) = (&admitted, &seen)
            && matches!(error.kind(), Kind::DownloadQuotaExceeded(_))
        {
            self.catalog.confirm(recalled).await?;
        }
        let (held, standing) = admitted?;
        Ok(MeteredRead { catalog: Arc::clone(&self.catalog), seen, held, standing, parts: Vec::new() })
    }
}

/// A reserved artifact being read. Dropping it settles what was read so far.
pub struct MeteredRead {
    catalog: Arc<Catalog>,
    seen: Seen,
    held: Reservation,
    standing: At<Standing>,
    /// What was fetched: disjoint spans by their first byte, sorted.
    parts: Vec<(u64, Bytes)>,
}

impl MeteredRead {
    /// The bytes reserved: the file's size.
    #[must_use]
    pub const fn size(&self) -> u64 {
        self.seen.size()
    }

    /// How the project's account stood at the admission.
    #[must_use]
    pub const fn standing(&self) -> At<Standing> {
        self.standing
    }

    /// The bytes of `range`, which lies within the file, and the version that they are of. Only those that
    /// this read has not fetched before are taken from the store and charged.
    ///
    /// # Errors
    /// `ARTIFACT_CHANGED`, `STORE_UNAVAILABLE` and the other errors of [`Catalog::open`];
    /// `QUOTA_UNAVAILABLE` if the lease was lost.
    pub async fn fetch(&mut self, range: Range<u64>) -> Result<(Found, Bytes)> {
        for gap in gaps(&self.parts, range.clone()) {
            let fetched = self.fetch_from_store(gap.clone()).await;
            let bytes = fetched.inspect_err(|_| self.held.end(Outcome::Failed))?;
            let at = self.parts.partition_point(|(start, _)| *start < gap.start);
            self.parts.insert(at, (gap.start, bytes));
        }
        Ok((self.confirmed().await?, joined(&self.parts, range)))
    }

    /// The version that is read. Where nothing was opened that would tell, a look does.
    async fn confirmed(&mut self) -> Result<Found> {
        let recalled = match &self.seen {
            Seen::Found(found) => return Ok(found.clone()),
            Seen::Recalled(recalled) => recalled,
        };
        let found = self.catalog.confirm(recalled).await.inspect_err(|_| self.held.end(Outcome::Failed))?;
        self.seen = found.clone().into();
        Ok(found)
    }

    async fn fetch_from_store(&mut self, range: Range<u64>) -> Result<Bytes> {
        let length = range.end - range.start;
        let (found, opened) = self.catalog.open(&self.held, self.seen.clone(), range).await?;
        self.seen = found.into();
        let _timing = timing(Phase::Store);
        let (mut body, mut bytes) = (opened.body, BytesMut::new());
        while let Some(chunk) = body.next().await {
            let chunk = chunk.map_err(refuse)?;
            self.held.take(chunk.len() as u64).await?;
            bytes.extend_from_slice(&chunk);
        }
        if bytes.len() as u64 == length { Ok(bytes.freeze()) } else { Err(wrong_length()) }
    }

    /// Ends the read as completed.
    pub fn complete(self) {
        self.held.end(Outcome::Completed);
    }

    /// Turns the read into a stream of exactly the bytes of `range`, which lies within the file, and the
    /// version that they are of. The stream completes the read with its last byte; an empty range
    /// completes it at once.
    ///
    /// # Errors
    /// As [`Catalog::open`]. `ARTIFACT_CHANGED` before the first byte means: find it anew.
    pub async fn stream(mut self, range: Range<u64>) -> Result<(Found, ByteStream)> {
        if range.is_empty() {
            return Ok((self.confirmed().await?, ByteStream::empty(self.held)));
        }
        match self.catalog.open(&self.held, self.seen, range.clone()).await {
            Ok((found, opened)) => Ok((found, ByteStream::new(self.held, opened.body, range.end - range.start))),
            Err(error) => {
                self.held.end(Outcome::Failed);
                Err(error)
            }
        }
    }
}

/// The spans of `range` that `parts` do not cover.
fn gaps(parts: &[(u64, Bytes)], range: Range<u64>) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut from = range.start;
    for (start, bytes) in parts {
        let (start, end) = (*start, start + bytes.len() as u64);
        if start >= range.end {
            break;
        }
        if from < start {
            gaps.push(from..start);
        }
        from = from.max(end);
    }
    if from < range.end {
        gaps.push(from..range.end);
    }
    gaps
}

/// The bytes of `range`, which `parts` cover.
fn joined(parts: &[(u64, Bytes)], range: Range<u64>) -> Bytes {
    let cut = |(start, bytes): &(u64, Bytes)| {
        let from = range.start.clamp(*start, start + bytes.len() as u64) - start;
        let to = range.end.clamp(*start, start + bytes.len() as u64) - start;
        let index = |n: u64| usize::try_from(n).expect("an offset into a buffer fits usize");
        bytes.slice(index(from)..index(to.max(from)))
    };
    let mut pieces = parts.iter().map(cut).filter(|piece| !piece.is_empty());
    let Some(first) = pieces.next() else { return Bytes::new() };
    let Some(second) = pieces.next() else { return first };
    let mut whole = BytesMut::from(&first[..]);
    whole.extend_from_slice(&second);
    pieces.for_each(|piece| whole.extend_from_slice(&piece));
    whole.freeze()
}

fn wrong_length() -> Error {
    Error::new(Kind::StoreUnavailable, "The object store sent another length than it said; try again shortly.")
        .with_source(StoreError::unavailable("wrong length"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of a file in which every byte is its own offset.
    fn bytes(span: &Range<u64>) -> Bytes {
        span.clone().map(|offset| u8::try_from(offset).expect("a short file")).collect()
    }

    fn parts(spans: &[Range<u64>]) -> Vec<(u64, Bytes)> {
        spans.iter().map(|span| (span.start, bytes(span))).collect()
    }

    #[test]
    fn a_read_begins_anew_a_few_times_and_once_more_for_what_was_remembered() {
        let changed = || Error::new(Kind::ArtifactChanged, "");
        let mut attempts = Attempts::default();
        assert!(attempts.anew(Error::internal("x"), true).is_err(), "nothing changed");
        assert!(attempts.anew(changed(), true).is_ok());
        for _ in 0..Attempts::CHANGES {
            assert!(attempts.anew(changed(), false).is_ok());
        }
        assert!(attempts.anew(changed(), false).is_err());
    }

    #[test]
    #[expect(clippy::single_range_in_vec_init, reason = "lists of spans, some of one")]
    fn only_gaps_are_fetched() {
        for (have, want, missing) in [
            (vec![], 0..10, vec![0..10]),
            (vec![0..10], 0..10, vec![]),
            (vec![0..10], 5..15, vec![10..15]),
            (vec![5..10], 0..15, vec![0..5, 10..15]),
            (vec![0..4, 8..12], 2..20, vec![4..8, 12..20]),
            (vec![0..4, 30..40], 10..20, vec![10..20]),
            (vec![0..4], 4..4, vec![]),
        ] {
            assert_eq!(gaps(&parts(&have), want.clone()), missing, "{have:?} {want:?}");
        }
    }

    #[test]
    fn covered_ranges_are_joined() {
        let parts = parts(&[0..4, 4..8, 8..12]);
        for want in [0..4, 1..3, 2..10, 0..12, 5..5, 11..12] {
            assert_eq!(joined(&parts, want.clone()), bytes(&want), "{want:?}");
        }
    }
}
