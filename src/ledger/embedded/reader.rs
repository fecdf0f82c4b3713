//! The second connection, which only reads: what looks through a whole day does not keep the writer,
//! and with it admissions, waiting. One such question is answered at a time.

use std::path::PathBuf;
use std::sync::Arc;

use rusqlite::Connection;
use tokio::sync::Mutex;

use super::schema::Identity;
use super::sql_book::SqlBook;
use super::{OpenError, schema};
use crate::ledger::Unavailable;

type Open = (Connection, Identity);

pub(super) struct Reader {
    path: PathBuf,
    open: Arc<Mutex<Option<Open>>>,
}

impl Reader {
    pub(super) fn new(path: PathBuf) -> Self {
        Self { path, open: Arc::default() }
    }

    /// Answers `question` from the books as they are at one moment. A question that writes fails.
    pub(super) async fn ask<T, F>(&self, question: F) -> Result<T, Unavailable>
    where
        T: Send + 'static,
        F: FnOnce(&mut SqlBook<'_>) -> rusqlite::Result<T> + Send + 'static,
    {
        let mut open = Arc::clone(&self.open).lock_owned().await;
        let path = self.path.clone();
        let answer = tokio::task::spawn_blocking(move || {
            let now = Identity::of(&path).map_err(|_| OpenError::Removed)?;
            // After a failure, or where the writer has another file, it is opened anew.
            let connection = match open.take() {
                Some((connection, identity)) if identity == now => connection,
                _ => schema::open_to_read(&path)?,
            };
            let answer = at_one_moment(&connection, question)?;
            *open = Some((connection, now));
            Ok(answer)
        });
        answer.await.map_err(|error| Unavailable(error.into()))?.map_err(|error: OpenError| Unavailable(error.into()))
    }
}

fn at_one_moment<T>(
    connection: &Connection,
    question: impl FnOnce(&mut SqlBook<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    connection.prepare_cached("BEGIN")?.execute([])?;
    let answer = question(&mut SqlBook::new(connection))?;
    connection.prepare_cached("COMMIT")?.execute([])?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::super::Embedded;
    use crate::artifact::ProjectId;
    use crate::ledger::book::Book;
    use crate::ledger::{Allowance, Ledger, Policy, ResetZone, Rules, SystemClock};

    fn ledger(path: &std::path::Path) -> Embedded {
        let policy = Policy { rules: Rules::default(), allowance: Allowance::Unlimited, zone: ResetZone::UTC };
        Embedded::open(path, policy, SystemClock).expect("opens")
    }

    #[tokio::test]
    async fn a_long_question_keeps_no_call_waiting_and_sees_one_moment() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = ledger(&directory.path().join("ledger.db"));
        let project = ProjectId::parse("p").expect("valid");
        let (asked, go_on) = (mpsc::channel(), mpsc::channel::<()>());
        let of = project.clone();
        let reader = ledger.reader.as_ref().expect("open");
        let question = reader.ask(move |book| {
            let before = book.exception(&of)?;
            asked.0.send(()).expect("awaited");
            go_on.1.recv().expect("told");
            Ok((before, book.exception(&of)?))
        });
        let set = crate::ledger::Override {
            allowance: Allowance::Bytes(5),
            until: None,
            by: "op".to_owned(),
            reason: String::new(),
        };
        let writes = async {
            let begun = tokio::task::spawn_blocking(move || asked.1.recv());
            begun.await.expect("joined").expect("asked");
            ledger.set_allowance(&project, Some(&set)).await.expect("written while the question is open");
            assert_eq!(ledger.allowance(&project).await.expect("read").reply, Some(set));
            go_on.0.send(()).expect("still there");
        };
        let (seen, ()) = tokio::join!(question, writes);
        assert_eq!(seen.expect("answered"), (None, None));
        let seen = reader.ask({
            let project = project.clone();
            move |book| book.exception(&project)
        });
        assert!(seen.await.expect("answered").is_some(), "the next question sees what was written");
    }

    #[tokio::test]
    async fn a_question_that_writes_fails_and_the_next_is_answered() {
        let directory = tempfile::tempdir().expect("a directory");
        let ledger = ledger(&directory.path().join("ledger.db"));
        let reader = ledger.reader.as_ref().expect("open");
        let project = ProjectId::parse("p").expect("valid");
        let of = project.clone();
        reader.ask(move |book| book.put_exception(&of, None)).await.expect_err("read-only");
        assert!(reader.ask(move |book| book.exception(&project)).await.expect("answered").is_none());
    }
}
