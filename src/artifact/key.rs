//! Identity ⇄ object key: the only place that knows the bucket's layout.

use super::{ArtifactName, Project, TrialId};

/// Where artifacts lie below a store's root: a template such as `{project}/{trial}/`.
///
/// `{workspace}`, `{project}` and `{trial}` stand for whole segments, in that order; other segments
/// are literal. `{project}` may be left out where one project is served alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    before_trial: Vec<Segment>,
    after_trial: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Segment {
    Literal(String),
    Workspace,
    Project,
}

/// Why a template is not a layout.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the layout {0}")]
pub struct InvalidLayout(&'static str);

impl Layout {
    /// Reads a template. `prefix` (the store URL's path) is put in front; `alone` says that one
    /// project is served, so that `{project}` need not occur.
    ///
    /// # Errors
    /// [`InvalidLayout`] says which rule the template breaks.
    pub fn parse(prefix: &str, template: &str, alone: bool) -> Result<Self, InvalidLayout> {
        let Some(body) = template.strip_suffix('/') else {
            return Err(InvalidLayout("ends in '/'"));
        };
        let mut layout = Self { before_trial: literals(prefix)?, after_trial: Vec::new() };
        let (mut workspace, mut project, mut trial) = (false, false, false);
        for segment in body.split('/') {
            match segment {
                "{workspace}" if !workspace && !project && !trial => {
                    workspace = true;
                    layout.before_trial.push(Segment::Workspace);
                }
                "{project}" if !project && !trial => {
                    project = true;
                    layout.before_trial.push(Segment::Project);
                }
                "{trial}" if !trial => trial = true,
                _ if segment.contains(['{', '}']) => {
                    return Err(InvalidLayout("has {workspace}, {project} and {trial}, each once, in this order"));
                }
                _ if ArtifactName::parse(segment).is_err() => {
                    return Err(InvalidLayout("has only segments that are valid in a name"));
                }
                _ if trial => layout.after_trial.push(segment.to_owned()),
                _ => layout.before_trial.push(Segment::Literal(segment.to_owned())),
            }
        }
        if !trial {
            return Err(InvalidLayout("has a {trial} segment"));
        }
        if !project && !alone {
            return Err(InvalidLayout("has a {project} segment, or one project is configured as single_project"));
        }
        Ok(layout)
    }

    /// Below which prefix a project's trials are folders. Empty, or ends in `/`.
    #[must_use]
    pub fn trials_prefix(&self, project: &Project) -> String {
        // Room for what most keys add to it.
        let mut prefix = String::with_capacity(128);
        for segment in &self.before_trial {
            prefix.push_str(match segment {
                Segment::Literal(text) => text,
                Segment::Workspace => project.workspace.as_str(),
                Segment::Project => project.id.as_str(),
            });
            prefix.push('/');
        }
        prefix
    }

    /// Below which prefix a trial's artifacts lie. Ends in `/`.
    #[must_use]
    pub fn trial_prefix(&self, project: &Project, trial: &TrialId) -> String {
        let mut prefix = self.trials_prefix(project);
        for segment in std::iter::once(trial.as_str()).chain(self.after_trial.iter().map(String::as_str)) {
            prefix.push_str(segment);
            prefix.push('/');
        }
        prefix
    }

    /// The object key of an artifact.
    #[must_use]
    pub fn object_key(&self, project: &Project, trial: &TrialId, name: &ArtifactName) -> String {
        self.trial_prefix(project, trial) + name.as_str()
    }
}

fn literals(prefix: &str) -> Result<Vec<Segment>, InvalidLayout> {
    let prefix = prefix.trim_matches('/');
    if prefix.is_empty() {
        return Ok(Vec::new());
    }
    if ArtifactName::parse(prefix).is_err() {
        return Err(InvalidLayout("begins with a store prefix whose segments are valid in a name"));
    }
    Ok(prefix.split('/').map(|segment| Segment::Literal(segment.to_owned())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::{ProjectId, WorkspaceId};

    fn project() -> Project {
        Project { workspace: WorkspaceId::parse("w").expect("valid"), id: ProjectId::parse("p:1").expect("valid") }
    }

    #[test]
    fn layouts_and_the_keys_they_make() {
        for (prefix, template, alone, trials, trial) in [
            ("", "{project}/{trial}/", false, "p:1/", "p:1/t/"),
            ("/a/b/", "{project}/{trial}/", false, "a/b/p:1/", "a/b/p:1/t/"),
            ("", "{workspace}/{project}/runs/{trial}/out/", false, "w/p:1/runs/", "w/p:1/runs/t/out/"),
            ("jobs", "{trial}/", true, "jobs/", "jobs/t/"),
            ("", "{trial}/", true, "", "t/"),
        ] {
            let layout = Layout::parse(prefix, template, alone).expect(template);
            let id = TrialId::parse("t").expect("valid");
            assert_eq!(layout.trials_prefix(&project()), trials);
            assert_eq!(layout.trial_prefix(&project(), &id), trial);
            let name = ArtifactName::parse("x/100%").expect("valid");
            assert_eq!(layout.object_key(&project(), &id, &name), format!("{trial}x/100%"));
        }
    }

    #[test]
    fn templates_that_are_refused() {
        for (template, alone) in [
            ("{project}/{trial}", false),
            ("{trial}/", false),
            ("{project}/", false),
            ("{trial}/{project}/", false),
            ("{project}/{project}/{trial}/", false),
            ("p-{project}/{trial}/", false),
            ("{project}//{trial}/", false),
            ("{project}/../{trial}/", false),
            ("{project}/{workspace}/{trial}/", false),
            ("/{project}/{trial}/", false),
            ("", true),
            ("{nope}/{project}/{trial}/", false),
        ] {
            assert!(Layout::parse("", template, alone).is_err(), "{template:?}");
        }
        assert!(Layout::parse("a/../b", "{project}/{trial}/", false).is_err());
    }
}
