//! Links: making, listing and revoking them, and finding out what a follower may read.
//!
//! A link lives until it expires, is revoked, its signing key is taken out, or the key that asked
//! for it may no longer download; and it shows one version of one artifact.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use jiff::Timestamp;
use percent_encoding::utf8_percent_encode;
use schemars::JsonSchema;
use serde::Serialize;
use url::Url;

use crate::access::{Authenticator, Downloader};
use crate::artifact::{ArtifactName, TrialId};
use crate::catalog::{Catalog, Found};
use crate::cursor;
use crate::encoding::SEGMENT;
use crate::error::{Error, Kind, Result};
use crate::ledger::{Clock, Ledger, LedgerTime, Link, LinkId, Unavailable};
use crate::link::{Claims, DEFAULT_LIFE_SECONDS, MIN_LIFE_SECONDS, SigningKeys};
use crate::listing::{ListQuery, page_limit};
use crate::store::ETag;

/// The use case.
pub struct Links {
    access: Arc<dyn Authenticator>,
    catalog: Arc<Catalog>,
    ledger: Arc<dyn Ledger>,
    clock: Arc<dyn Clock>,
    keys: ArcSwapOption<SigningKeys>,
    /// What links begin with, without a slash at its end.
    base: Option<String>,
}

/// A link as its maker gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Minted {
    /// To be followed by whoever has it.
    pub url: String,
    /// The last second at which a download may begin.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub expires_at: Timestamp,
    /// Names the link, to revoke it and in the audit.
    pub link_id: LinkId,
}

/// A link as listings show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkItem {
    /// The link.
    pub link_id: LinkId,
    /// The trial.
    pub trial_id: TrialId,
    /// The artifact.
    pub name: ArtifactName,
    /// The key that asked for it.
    pub key_id: String,
    /// The last second at which a download may begin.
    #[schemars(with = "String", extend("format" = "date-time"))]
    pub expires_at: Timestamp,
}

/// A page of links.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct LinkPage {
    /// The oldest first.
    pub items: Vec<LinkItem>,
    /// Ask for the next page with this.
    pub next_cursor: Option<String>,
}

/// A good link, and what its follower may read.
#[derive(Debug)]
pub struct Followed {
    who: Downloader,
    claims: Claims,
}

impl Followed {
    /// What the key that asked for the link may do.
    #[must_use]
    pub const fn who(&self) -> &Downloader {
        &self.who
    }

    /// The trial.
    #[must_use]
    pub const fn trial(&self) -> &TrialId {
        &self.claims.trial
    }

    /// The artifact.
    #[must_use]
    pub const fn name(&self) -> &ArtifactName {
        &self.claims.name
    }

    /// The link.
    #[must_use]
    pub const fn link(&self) -> LinkId {
        self.claims.link
    }

    /// Answers `LINK_STALE` unless `etag` is the version that the link was made for.
    ///
    /// # Errors
    /// `LINK_STALE`.
    pub fn require_version(&self, etag: &ETag) -> Result<()> {
        // A validator that was weak when the link was made may have become strong.
        if ETag::parse(&self.claims.etag).is_some_and(|made_for| made_for.weak_eq(etag)) {
            Ok(())
        } else {
            Err(stale())
        }
    }
}

/// What a link leads to is no longer what it was made for.
#[must_use]
pub fn stale() -> Error {
    Error::new(Kind::LinkStale, "The file that this link was made for was replaced or removed; ask for a new link.")
}

impl Links {
    /// Links to what is in `catalog`, recorded in `ledger`, signed by `keys`, beginning with
    /// `public_url`. Without both of these none are made.
    #[must_use]
    pub fn new(
        access: Arc<dyn Authenticator>,
        catalog: Arc<Catalog>,
        ledger: Arc<dyn Ledger>,
        clock: Arc<dyn Clock>,
        keys: Option<SigningKeys>,
        public_url: Option<&Url>,
    ) -> Self {
        let base = public_url.map(|url| url.as_str().trim_end_matches('/').to_owned());
        Self { access, catalog, ledger, clock, keys: ArcSwapOption::new(keys.map(Arc::new)), base }
    }

    /// Takes other signing keys from now on; answers whether they are others than before.
    pub fn set_keys(&self, keys: Option<SigningKeys>) -> bool {
        let keys = keys.map(Arc::new);
        let before = self.keys.swap(keys.clone());
        before.as_deref() != keys.as_deref()
    }

    /// Whether links are made here.
    #[must_use]
    pub fn enabled(&self) -> bool {
        self.keys.load().is_some() && self.base.is_some()
    }

    /// Makes a link to the present version of an artifact that lives `seconds`
    /// ([`MIN_LIFE_SECONDS`] to what [`link_life_seconds`](Authenticator::link_life_seconds) says, default
    /// [`DEFAULT_LIFE_SECONDS`]).
    ///
    /// # Errors
    /// `LINKS_DISABLED`, `INVALID_REQUEST`, `QUOTA_UNAVAILABLE`, and those of [`Catalog::find`].
    pub async fn mint(
        &self,
        who: &Downloader,
        trial: &TrialId,
        name: &ArtifactName,
        seconds: Option<u64>,
    ) -> Result<Minted> {
        if !self.enabled() {
            return Err(disabled());
        }
        let seconds = seconds.unwrap_or(DEFAULT_LIFE_SECONDS);
        let most = self.access.link_life_seconds();
        if !(MIN_LIFE_SECONDS..=most).contains(&seconds) {
            let rule = format!("expires_in_seconds is from {MIN_LIFE_SECONDS} to {most}.");
            return Err(Error::new(Kind::InvalidRequest, rule));
        }
        let found = self.catalog.find(who.viewer(), trial, name).await?;
        self.mint_for(who, &found, seconds).await
    }

    /// Makes a link to a version that was just found.
    ///
    /// # Errors
    /// `LINKS_DISABLED`, `QUOTA_UNAVAILABLE`.
    pub async fn mint_for(&self, who: &Downloader, found: &Found, seconds: u64) -> Result<Minted> {
        let (Some(keys), Some(base)) = (self.keys.load_full(), &self.base) else { return Err(disabled()) };
        let claims = Claims {
            project: who.project().clone(),
            trial: found.trial().clone(),
            name: found.name().clone(),
            etag: found.stat().etag.to_string(),
            expires: self.clock.now_ms() / 1000 + seconds,
            link: LinkId::new(),
            issuer: who.key_id().to_owned(),
        };
        let link = Link {
            id: claims.link,
            key_id: claims.issuer.clone(),
            trial: claims.trial.clone(),
            artifact: claims.name.clone(),
            expires: LedgerTime(claims.expires * 1000 + 999),
        };
        // It is handed out only when the ledger has it, so that it can be revoked.
        self.ledger.record_link(&claims.project.id, &link).await.map_err(unavailable)?;
        let file_name = utf8_percent_encode(claims.name.file_name(), SEGMENT);
        let url = format!("{base}/v1/download/{}/{file_name}", keys.sign(&claims));
        Ok(Minted { url, expires_at: second(link.expires), link_id: link.id })
    }

    /// A page of the project's links that are neither revoked nor expired, the oldest first.
    ///
    /// # Errors
    /// `INVALID_LIMIT`, `INVALID_CURSOR`, `QUOTA_UNAVAILABLE`.
    pub async fn list(&self, who: &Downloader, query: &ListQuery) -> Result<LinkPage> {
        let limit = page_limit(query.limit)?;
        let listing = format!("links {}", who.project().id);
        let after = query.cursor.as_deref().map(|cursor| cursor::read(&listing, cursor)).transpose()?;
        let after = after.as_deref().and_then(LinkId::parse);
        let answer = self.ledger.links(&who.project().id, after, limit + 1).await;
        let mut links = answer.map_err(unavailable)?.reply;
        let more = links.len() > limit;
        links.truncate(limit);
        let last = links.last().filter(|_| more);
        let next_cursor = last.map(|last| cursor::write(&listing, &last.id.to_string()));
        let items = links.into_iter().map(|link| LinkItem {
            link_id: link.id,
            trial_id: link.trial,
            name: link.artifact,
            key_id: link.key_id,
            expires_at: second(link.expires),
        });
        Ok(LinkPage { items: items.collect(), next_cursor })
    }

    /// Revokes a link of the project.
    ///
    /// # Errors
    /// `LINK_NOT_FOUND` if the ledger knows no such link, `QUOTA_UNAVAILABLE`.
    pub async fn revoke(&self, who: &Downloader, id: &str) -> Result<()> {
        let unknown =
            || Error::new(Kind::LinkNotFound, "This project has no such link; GET /v1/links lists those it has.");
        let id = LinkId::parse(id).ok_or_else(unknown)?;
        let known = self.ledger.revoke_link(&who.project().id, id).await.map_err(unavailable)?.reply;
        if known { Ok(()) } else { Err(unknown()) }
    }

    /// Judges a token, as it stands in the URL. Whether the link was revoked is for the ledger to
    /// say, at the admission.
    ///
    /// # Errors
    /// `LINK_INVALID`, `LINK_EXPIRED`; `LINK_REVOKED` if its issuer may no longer download, or it lives
    /// longer than links now may; `ACCESS_UNAVAILABLE`, `INTERNAL_ERROR` while keys cannot be checked.
    pub async fn follow(&self, token: &str) -> Result<Followed> {
        let claims = self.keys.load().as_ref().and_then(|keys| keys.verify(token).ok()).ok_or_else(|| {
            Error::new(
                Kind::LinkInvalid,
                "This link is not valid: it was cut or changed on its way, or its signing key was withdrawn. Ask for a new one.",
            )
        })?;
        let now = self.clock.now_ms() / 1000;
        if now > claims.expires {
            return Err(Error::new(Kind::LinkExpired, "This link has expired; ask for a new one."));
        }
        // It was made while keys were known for longer than they are now.
        if claims.expires - now > self.access.link_life_seconds() {
            let rule = "Links that live so long are not made here any more; ask for a new link.";
            return Err(Error::new(Kind::LinkRevoked, rule));
        }
        let issuer = self.access.still(&claims.issuer, &claims.project).await;
        match issuer.and_then(|issuer| issuer.downloader()) {
            Ok(who) => Ok(Followed { who, claims }),
            Err(error) => Err(match error.kind() {
                Kind::InternalError | Kind::AccessUnavailable => error,
                _ => Error::new(
                    Kind::LinkRevoked,
                    "The key that made this link may no longer download; ask for a new link.",
                )
                .with_source(error),
            }),
        }
    }
}

/// A moment of the ledger, as answers write it: whole seconds.
fn second(time: LedgerTime) -> Timestamp {
    let seconds = i64::try_from(time.0 / 1000).ok();
    seconds.and_then(|seconds| Timestamp::from_second(seconds).ok()).unwrap_or(Timestamp::MAX)
}

fn disabled() -> Error {
    Error::new(
        Kind::LinksDisabled,
        "This service makes no links: its operator has to set public_url and [links] keys. Download with a key instead.",
    )
}

fn unavailable(error: Unavailable) -> Error {
    Error::new(Kind::QuotaUnavailable, "The download ledger does not answer; try again shortly.").with_source(error)
}
