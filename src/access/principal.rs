//! A principal: an authenticated key, the project it speaks for, and its capabilities.
//!
//! Use cases do not take a [`Principal`]. They take a proof that one was asked for what the use
//! case needs ([`Viewer`], [`Downloader`], [`QuotaReader`], [`QuotaManager`]), which only the principal hands out:
//! a handler that forgets to authorise does not compile.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

use crate::artifact::{Project, ProjectId};
use crate::error::{Error, Kind, Result};

/// What a request brought along to say who asks. Never logged.
#[derive(Clone, Default)]
pub struct Credentials {
    /// The key, from `Authorization: Bearer`.
    pub key: Option<String>,
    /// `X-Workspace-ID`.
    pub workspace: Option<String>,
    /// `X-Project-ID`.
    pub project: Option<String>,
}

/// One thing that a key may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub enum Capability {
    /// List datasets.
    #[serde(rename = "datasets.read")]
    DatasetsRead,
    /// See jobs, trials and the names of artifacts.
    #[serde(rename = "jobs.read")]
    JobsRead,
    /// Start jobs.
    #[serde(rename = "jobs.run")]
    JobsRun,
    /// Stop jobs.
    #[serde(rename = "jobs.stop")]
    JobsStop,
    /// Read the bytes of artifacts.
    #[serde(rename = "artifacts.download")]
    ArtifactsDownload,
    /// See where the allowance went.
    #[serde(rename = "quota.read")]
    QuotaRead,
    /// Change allowances.
    #[serde(rename = "quota.manage")]
    QuotaManage,
}

impl Capability {
    /// Every capability, in the order of the documentation.
    pub const ALL: [Self; 7] = [
        Self::DatasetsRead,
        Self::JobsRead,
        Self::JobsRun,
        Self::JobsStop,
        Self::ArtifactsDownload,
        Self::QuotaRead,
        Self::QuotaManage,
    ];

    /// The name in key files and answers.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DatasetsRead => "datasets.read",
            Self::JobsRead => "jobs.read",
            Self::JobsRun => "jobs.run",
            Self::JobsStop => "jobs.stop",
            Self::ArtifactsDownload => "artifacts.download",
            Self::QuotaRead => "quota.read",
            Self::QuotaManage => "quota.manage",
        }
    }
}

impl fmt::Display for Capability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A set of capabilities.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Capabilities(u8);

impl Capabilities {
    /// How many there are.
    #[must_use]
    pub const fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Whether `capability` is one of them.
    #[must_use]
    pub const fn contains(self, capability: Capability) -> bool {
        self.0 & (1 << capability as u8) != 0
    }

    /// All of them, in the order of the documentation.
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.into_iter().filter(move |capability| self.contains(*capability))
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(capabilities: I) -> Self {
        Self(capabilities.into_iter().fold(0, |set, capability| set | 1 << capability as u8))
    }
}

impl<const N: usize> From<[Capability; N]> for Capabilities {
    fn from(capabilities: [Capability; N]) -> Self {
        capabilities.into_iter().collect()
    }
}

impl Serialize for Capabilities {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl fmt::Debug for Capabilities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// A named set of capabilities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Everything but `quota.manage`.
    ProjectAutomation,
    /// Everything that only reads.
    ReadOnly,
}

impl Preset {
    /// The name in key files and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProjectAutomation => "project-automation",
            Self::ReadOnly => "read-only",
        }
    }

    /// What the preset allows.
    #[must_use]
    pub fn capabilities(self) -> Capabilities {
        use Capability as C;
        match self {
            Self::ProjectAutomation => C::ALL.into_iter().filter(|c| *c != C::QuotaManage).collect(),
            Self::ReadOnly => [C::DatasetsRead, C::JobsRead, C::ArtifactsDownload, C::QuotaRead].into(),
        }
    }
}

/// What sort of key it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Carries its project.
    Project,
    /// A person's: names one of its projects by headers.
    Personal,
    /// `quota.read` and `quota.manage` over every project, named by `X-Project-ID`; nothing else.
    Operator,
}

impl KeyKind {
    /// The name in key files, answers and on the command line.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Project => "project",
            Self::Personal => "personal",
            Self::Operator => "operator",
        }
    }
}

/// An authenticated key and what it may do in this request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The key's public id, in logs and the audit.
    pub key_id: String,
    /// The key's kind.
    pub kind: KeyKind,
    /// The project that the request speaks of; `None` if it named none.
    pub project: Option<Project>,
    /// What the key may do in that project.
    pub capabilities: Capabilities,
}

/// Proof: may see the trials of a project and the names of their artifacts (`jobs.read`).
#[derive(Debug, Clone)]
pub struct Viewer {
    project: Project,
}

/// Proof: may also read their bytes (`jobs.read` and `artifacts.download`).
#[derive(Debug, Clone)]
pub struct Downloader {
    viewer: Viewer,
    key_id: String,
}

/// Proof: may see the account books of a project (`quota.read`).
#[derive(Debug, Clone)]
pub struct QuotaReader {
    project: ProjectId,
}

/// Proof: may change the account books of a project (`quota.manage`).
#[derive(Debug, Clone)]
pub struct QuotaManager {
    project: ProjectId,
    key_id: String,
}

impl Principal {
    /// The project that the request speaks of.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED` if it named none.
    pub fn project(&self) -> Result<&Project> {
        self.project.as_ref().ok_or_else(|| {
            let headers = match self.kind {
                KeyKind::Operator => "X-Project-ID",
                KeyKind::Project | KeyKind::Personal => "X-Workspace-ID and X-Project-ID",
            };
            Error::new(Kind::ProjectRequired, format!("This key speaks for no project by itself: send {headers}."))
        })
    }

    /// Asks for `jobs.read`.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `ACCESS_DENIED`.
    pub fn viewer(&self) -> Result<Viewer> {
        let project = self.project()?.clone();
        self.require(Capability::JobsRead)?;
        Ok(Viewer { project })
    }

    /// Asks for `jobs.read` and `artifacts.download`.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `ACCESS_DENIED`.
    pub fn downloader(&self) -> Result<Downloader> {
        let viewer = self.viewer()?;
        self.require(Capability::ArtifactsDownload)?;
        Ok(Downloader { viewer, key_id: self.key_id.clone() })
    }

    /// Asks for `quota.read`.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `ACCESS_DENIED`.
    pub fn quota_reader(&self) -> Result<QuotaReader> {
        let project = self.project()?.id.clone();
        self.quota_reader_of(&project)
    }

    /// Asks for `quota.read` of the project that the request's path names.
    ///
    /// # Errors
    /// As [`quota_manager_of`](Self::quota_manager_of).
    pub fn quota_reader_of(&self, project: &ProjectId) -> Result<QuotaReader> {
        self.speaks_for(project)?;
        self.require(Capability::QuotaRead)?;
        Ok(QuotaReader { project: project.clone() })
    }

    /// Asks for `quota.manage` of the project that the request's path names.
    ///
    /// # Errors
    /// `PROJECT_REQUIRED`, `PROJECT_ACCESS_DENIED`, `ACCESS_DENIED`.
    pub fn quota_manager_of(&self, project: &ProjectId) -> Result<QuotaManager> {
        self.speaks_for(project)?;
        self.require(Capability::QuotaManage)?;
        Ok(QuotaManager { project: project.clone(), key_id: self.key_id.clone() })
    }

    /// Whether the key speaks for the project that the request's path names. An operator needs no
    /// other name for it; a project that the key carries or a header names must be the same.
    fn speaks_for(&self, project: &ProjectId) -> Result<()> {
        let by_path_alone = self.kind == KeyKind::Operator && self.project.is_none();
        if by_path_alone || self.project()?.id == *project {
            return Ok(());
        }
        let other = "This request speaks for another project than its path: by its key, or by X-Project-ID.";
        Err(Error::new(Kind::ProjectAccessDenied, other))
    }

    fn require(&self, capability: Capability) -> Result<()> {
        if self.capabilities.contains(capability) {
            return Ok(());
        }
        Err(Error::new(
            Kind::AccessDenied(capability),
            format!("This key lacks the capability {capability}; ask the project's owner for a key that has it."),
        ))
    }
}

impl Viewer {
    /// The project that may be seen.
    #[must_use]
    pub const fn project(&self) -> &Project {
        &self.project
    }
}

impl Downloader {
    /// Downloading includes seeing.
    #[must_use]
    pub const fn viewer(&self) -> &Viewer {
        &self.viewer
    }

    /// The project that may be read.
    #[must_use]
    pub const fn project(&self) -> &Project {
        &self.viewer.project
    }

    /// The key that is charged.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }
}

impl QuotaManager {
    /// The project whose books may be changed.
    #[must_use]
    pub const fn project(&self) -> &ProjectId {
        &self.project
    }

    /// The key that changes them.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }
}

impl QuotaReader {
    /// The project whose books may be seen.
    #[must_use]
    pub const fn project(&self) -> &ProjectId {
        &self.project
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{ProjectId, WorkspaceId};

    fn principal(kind: KeyKind, project: bool, capabilities: &[Capability]) -> Principal {
        let project = project.then(|| Project {
            workspace: WorkspaceId::parse("w").expect("valid"),
            id: ProjectId::parse("p").expect("valid"),
        });
        Principal { key_id: "k".into(), kind, project, capabilities: capabilities.iter().copied().collect() }
    }

    #[test]
    fn every_refusal_names_what_is_missing() {
        use Capability as C;
        let code = |r: Result<()>| r.map_err(|e| (e.kind().code(), e.message().to_owned()));
        for (who, want) in [
            (principal(KeyKind::Personal, false, &C::ALL), ("PROJECT_REQUIRED", "X-Workspace-ID and X-Project-ID")),
            (principal(KeyKind::Operator, false, &C::ALL), ("PROJECT_REQUIRED", "X-Project-ID")),
            (principal(KeyKind::Project, true, &[]), ("ACCESS_DENIED", "jobs.read")),
            (principal(KeyKind::Project, true, &[C::JobsRead]), ("ACCESS_DENIED", "artifacts.download")),
            (principal(KeyKind::Project, true, &[C::ArtifactsDownload]), ("ACCESS_DENIED", "jobs.read")),
        ] {
            let (got, message) = code(who.downloader().map(|_| ())).expect_err("refused");
            assert_eq!(got, want.0);
            assert!(message.contains(want.1), "{message}");
        }
        let both = principal(KeyKind::Project, true, &[C::JobsRead, C::ArtifactsDownload]);
        assert!(both.downloader().is_ok());
        assert_eq!(both.quota_reader().expect_err("refused").kind(), &Kind::AccessDenied(C::QuotaRead));
    }

    #[test]
    fn who_may_manage_the_project_in_the_path() {
        use Capability as C;
        let id = |name| ProjectId::parse(name).expect("valid");
        for (kind, named, capabilities, path, want) in [
            (KeyKind::Operator, false, &[C::QuotaManage][..], "p", Ok(())),
            (KeyKind::Operator, true, &[C::QuotaManage], "p", Ok(())),
            (KeyKind::Operator, true, &[C::QuotaManage], "q", Err("PROJECT_ACCESS_DENIED")),
            (KeyKind::Project, true, &[C::QuotaManage], "p", Ok(())),
            (KeyKind::Project, true, &[C::QuotaManage], "q", Err("PROJECT_ACCESS_DENIED")),
            (KeyKind::Project, true, &[C::QuotaRead], "p", Err("ACCESS_DENIED")),
            (KeyKind::Project, true, &[C::QuotaRead], "q", Err("PROJECT_ACCESS_DENIED")),
            (KeyKind::Personal, false, &[], "p", Err("PROJECT_REQUIRED")),
        ] {
            let got = principal(kind, named, capabilities).quota_manager_of(&id(path));
            let got = got.map(|manager| assert_eq!(manager.project(), &id(path))).map_err(|error| error.kind().code());
            assert_eq!(got, want, "{kind:?} {named} {capabilities:?} {path}");
        }
    }

    #[test]
    fn presets_hold_what_the_documentation_says() {
        use Capability as C;
        let but_manage: Vec<_> = C::ALL.into_iter().filter(|capability| *capability != C::QuotaManage).collect();
        assert_eq!(Preset::ProjectAutomation.capabilities().iter().collect::<Vec<_>>(), but_manage);
        assert_eq!(
            Preset::ReadOnly.capabilities(),
            [C::DatasetsRead, C::JobsRead, C::ArtifactsDownload, C::QuotaRead].into()
        );
    }
}
