//! Lines of the audit as they are stored: `at charged size outcome count id subject`.
//!
//! A read's subject is two JSON arrays with a tab between them, which JSON never contains: the first,
//! key and channel, is what a rolled-up line keeps; the second has a fourth element, the link's id,
//! if the read was by a link. An adjustment's subject is an object.

use serde::{Deserialize, Serialize};

use super::reply;
use crate::artifact::{ArtifactName, TrialId};
use crate::ledger::{Adjust, AuditFilter, Context, Entry, LedgerTime, LinkId, Subject};

#[derive(Serialize, Deserialize)]
struct Correction {
    id: String,
    by: String,
    reason: String,
}

/// As JSON, which has no tab and no line break.
pub(super) fn json(value: impl Serialize) -> String {
    serde_json::to_string(&value).expect("strings are JSON")
}

fn put_json(to: &mut Vec<u8>, value: impl Serialize) {
    serde_json::to_writer(to, &value).expect("strings are JSON");
}

/// The subject of a read.
pub(super) fn context(context: &Context) -> String {
    let Context { key_id, channel, trial, artifact, request_id, link_id } = context;
    let (trial, artifact) = (trial.as_str(), artifact.as_str());
    let escaped_and_all = 64 + 2 * (key_id.len() + trial.len() + artifact.len() + request_id.len());
    let mut text = Vec::with_capacity(escaped_and_all);
    put_json(&mut text, (channel.as_str(), key_id));
    text.push(b'\t');
    match link_id {
        None => put_json(&mut text, (trial, artifact, request_id)),
        Some(link) => put_json(&mut text, (trial, artifact, request_id, link)),
    }
    String::from_utf8(text).expect("JSON of strings is text")
}

/// The subject of an adjustment.
pub(super) fn correction(call: &Adjust) -> String {
    json(Correction { id: call.id.clone(), by: call.by.clone(), reason: call.reason.clone() })
}

/// Texts that every line contains which `filter` admits. Others may contain them too.
pub(super) fn hints(filter: &AuditFilter) -> Vec<String> {
    let mut hints = Vec::new();
    hints.extend(filter.key_id.as_ref().map(json));
    hints.extend(filter.trial.as_ref().map(|trial| format!("\t[{}", json(trial.as_str()))));
    hints.extend(filter.channel.map(|channel| format!(" [{}", json(channel.as_str()))));
    hints.extend(filter.outcome.map(|outcome| format!(" {} ", outcome.as_str())));
    hints
}

/// Reads a line; `None` if it is none.
pub(super) fn read(line: &str) -> Option<Entry> {
    let mut words = line.splitn(7, ' ');
    let at = LedgerTime(words.next()?.parse().ok()?);
    let charged = words.next()?.parse().ok()?;
    let size = words.next()?.parse().ok()?;
    let outcome = reply::outcome(words.next()?)?;
    let count = words.next()?.parse().ok()?;
    let (id, subject) = (words.next()?, words.next()?);
    let entry = |id: String, subject| Entry { at, id, subject, size, charged, outcome, count };
    if subject.starts_with('{') {
        let Correction { id, by, reason } = serde_json::from_str(subject).ok()?;
        return Some(entry(id, Subject::Adjustment { by, reason }));
    }
    let (head, rest) = subject.split_once('\t').map_or((subject, None), |(head, rest)| (head, Some(rest)));
    let (channel, key_id): (String, String) = serde_json::from_str(head).ok()?;
    let channel = reply::channel(&channel)?;
    let Some(rest) = rest else {
        return Some(entry(String::new(), Subject::RolledUp { key_id, channel }));
    };
    let mut rest = serde_json::from_str::<Vec<String>>(rest).ok()?.into_iter();
    let (trial, artifact, request_id) = (rest.next()?, rest.next()?, rest.next()?);
    let link_id = match rest.next() {
        None => None,
        Some(id) => Some(LinkId::parse(&id)?),
    };
    let (trial, artifact) = (TrialId::parse(&trial).ok()?, ArtifactName::parse(&artifact).ok()?);
    Some(entry(id.to_owned(), Subject::Read(Context { key_id, channel, trial, artifact, request_id, link_id })))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::{Channel, Outcome};

    fn odd() -> Context {
        Context {
            key_id: "k\t\"][ \u{0}\n".to_owned(),
            channel: Channel::Link,
            trial: TrialId::parse("t").unwrap(),
            artifact: ArtifactName::parse("日本/a b\"").unwrap(),
            request_id: "\t".to_owned(),
            link_id: Some(LinkId(uuid::Uuid::from_u128(7))),
        }
    }

    #[test]
    fn what_is_written_is_read_and_found() {
        let subject = context(&odd());
        assert_eq!(subject.matches('\t').count(), 1);
        let line = format!("7 -3 9 corrected 1 id {subject}");
        let entry = read(&line).unwrap();
        assert_eq!(entry.subject, Subject::Read(odd()));
        assert_eq!((entry.at, entry.charged, entry.size, entry.outcome), (LedgerTime(7), -3, 9, Outcome::Corrected));
        let filter = AuditFilter {
            trial: Some(odd().trial),
            key_id: Some(odd().key_id),
            channel: Some(Channel::Link),
            outcome: Some(Outcome::Corrected),
        };
        assert!(hints(&filter).iter().all(|hint| line.contains(hint)), "{line} {:?}", hints(&filter));
        let by_key = Context { link_id: None, ..odd() };
        let entry = read(&format!("7 3 9 completed 1 id {}", context(&by_key))).unwrap();
        assert_eq!(entry.subject, Subject::Read(by_key));
        let rolled = read(&format!("0 1 2 completed 5 - {}", subject.split('\t').next().unwrap())).unwrap();
        assert_eq!((rolled.key_id(), rolled.channel(), rolled.id.as_str()), (&*odd().key_id, Some(Channel::Link), ""));
        assert_eq!(read("1 2 3 completed 1 id [\"http\"]"), None);
    }
}
