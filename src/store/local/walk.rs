//! Listing a directory in the order of whole keys, page by page, in constant memory.
//!
//! An object store sorts by the bytes of the whole key, so a folder `a` stands where `a/` sorts:
//! after `a.txt`, before `a0`. For each folder on the way only the smallest entries after the cursor
//! are kept, never the whole folder; a folder with more is read again from there.
//!
//! The files are an evaluated run's, which may want to hurt: the length of keys bounds the depth, and
//! a page that has examined very many entries ends early with a cursor.

use std::collections::{BinaryHeap, VecDeque};
use std::io;

use rustix::fs::{AtFlags, Dir, FileType};

use super::super::{Folders, Listed, MAX_PAGE, Page};
use super::root::{Denial, Root};
use crate::artifact::has_sound_segments;

/// The longest key, in bytes: the longest name, and as much again for what a layout puts before it.
const MAX_KEY_BYTES: usize = 2048;
/// After so many examined entries a page ends, rather than read a folder once more.
const MAX_EXAMINED: usize = 200_000;
/// After so many folders without objects a page of folders ends.
const MAX_EMPTY_FOLDERS: usize = 1000;

/// Ends a cursor that stands behind everything in a folder. No key has an empty segment.
const BEHIND: &str = "//";

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    /// The name as it sorts: a folder's ends in a slash. Not always UTF-8.
    sort: Vec<u8>,
    kind: EntryKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum EntryKind {
    File,
    Folder,
    /// A link, a special file, or a name that breaks the rules.
    Unfit,
}

/// The part of a folder that is worked through next.
struct Frame {
    /// The folder's key, empty or ending in a slash.
    folder: String,
    /// What names must begin with.
    base: String,
    batch: VecDeque<Entry>,
    /// Where to go on reading the folder when the batch is used up.
    resume: Option<Vec<u8>>,
}

/// What to keep when a folder is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Keep {
    All,
    Folders,
}

/// [`Store::list`](crate::store::Store::list).
pub(super) fn objects(root: &Root, prefix: &str, after: Option<&str>, limit: usize) -> io::Result<Page> {
    Walk::new(root).objects(prefix, after, limit)
}

/// [`Store::folders`](crate::store::Store::folders). A folder without any object is none, as in an
/// object store.
pub(super) fn folders(root: &Root, prefix: &str, after: Option<&str>, limit: usize) -> io::Result<Folders> {
    let limit = limit.clamp(1, MAX_PAGE);
    let mut page = Folders::default();
    if !is_folder(root, prefix)? {
        return Ok(page);
    }
    let mut walk = Walk::new(root);
    let mut frame = Frame::new(prefix.to_owned(), "");
    let mut empty = 0;
    frame.resume = Some(after.map_or_else(Vec::new, |name| format!("{name}{BEHIND}").into_bytes()));
    while let Some(floor) = frame.resume.take() {
        walk.refill(&mut frame, &floor, Keep::Folders)?;
        while let Some(entry) = frame.batch.pop_front() {
            let Some(key) = frame.key(&entry) else { continue };
            let name = &key[prefix.len()..key.len() - 1];
            match objects(root, &key, None, 1) {
                Ok(first) if !first.objects.is_empty() || first.next.is_some() => page.names.push(name.to_owned()),
                Ok(_) => empty += 1,
                Err(error) => walk.fault(error)?,
            }
            if page.names.len() >= limit || empty >= MAX_EMPTY_FOLDERS {
                if !frame.batch.is_empty() || frame.resume.is_some() {
                    page.next = Some(name.to_owned());
                }
                return Ok(page);
            }
        }
    }
    Ok(page)
}

/// Whether the folder of a prefix is there to be read. Trouble with it is trouble of the listing:
/// there is nothing else to show.
fn is_folder(root: &Root, folder: &str) -> io::Result<bool> {
    if !folder.is_empty() && !folder.strip_suffix('/').is_some_and(has_sound_segments) {
        return Ok(false);
    }
    match root.open_folder(folder) {
        Ok(_) => Ok(true),
        Err(Denial::Fault(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// The cursor seen from `folder`, in which all keys with `prefix` lie: `Some(None)` before its first
/// entry, `None` when nothing with the prefix comes after it.
#[expect(clippy::option_option, reason = "no cursor and nothing left are different answers")]
fn relative<'a>(folder: &str, prefix: &str, after: Option<&'a str>) -> Option<Option<&'a str>> {
    match after {
        None => Some(None),
        Some(after) => match after.strip_prefix(folder) {
            Some(rest) => Some(Some(rest)),
            None if after < prefix => Some(None),
            None => None,
        },
    }
}

/// Whether anything of an entry comes after the cursor `floor`.
fn comes_after(sort: &[u8], kind: EntryKind, floor: &[u8]) -> bool {
    match floor.strip_prefix(sort) {
        Some(inside) if kind == EntryKind::Folder => !inside.starts_with(b"/"),
        _ => sort > floor,
    }
}

struct Walk<'a> {
    root: &'a Root,
    batch: usize,
    max_examined: usize,
    examined: usize,
    skipped: u64,
}

impl<'a> Walk<'a> {
    /// Keeps as many entries as the longest page has, also for a shorter one: what they turn out to
    /// hold may be nothing.
    fn new(root: &'a Root) -> Self {
        Self { root, batch: MAX_PAGE + 1, max_examined: MAX_EXAMINED, examined: 0, skipped: 0 }
    }

    fn objects(mut self, prefix: &str, after: Option<&str>, limit: usize) -> io::Result<Page> {
        let limit = limit.clamp(1, MAX_PAGE);
        let mut page = Page::default();
        let (folder, base) = prefix.split_at(prefix.rfind('/').map_or(0, |slash| slash + 1));
        let Some(floor) = relative(folder, prefix, after) else {
            return Ok(page);
        };
        if !is_folder(self.root, folder)? {
            return Ok(page);
        }
        let mut stack = Vec::from_iter(self.enter(folder.to_owned(), base, floor)?);
        while let Some(frame) = stack.last_mut() {
            let Some(entry) = frame.batch.pop_front() else {
                match frame.resume.take() {
                    None => drop(stack.pop()),
                    Some(floor) => match frame.cursor(&floor) {
                        Some(cursor) if self.examined >= self.max_examined => {
                            page.next = Some(cursor);
                            break;
                        }
                        _ => self.refill(frame, &floor, Keep::All)?,
                    },
                }
                continue;
            };
            let (kind, Some(key)) = (entry.kind, frame.key(&entry)) else {
                self.skipped += 1;
                continue;
            };
            match kind {
                EntryKind::Unfit => self.skipped += 1,
                EntryKind::Folder => {
                    let floor = after.and_then(|after| after.strip_prefix(key.as_str()));
                    stack.extend(self.enter(key, "", floor)?);
                }
                EntryKind::File => match self.root.open_file(&key) {
                    Ok(file) => page.objects.push(Listed { key, stat: file.version.stat() }),
                    Err(Denial::Absent) => {}
                    Err(Denial::Unfit) => self.skipped += 1,
                    Err(Denial::Fault(error)) => self.fault(error)?,
                },
            }
            if page.objects.len() >= limit {
                if stack.iter().any(|frame| !frame.batch.is_empty() || frame.resume.is_some()) {
                    page.next = page.objects.last().map(|last| last.key.clone());
                }
                break;
            }
        }
        page.skipped = self.skipped;
        Ok(page)
    }

    /// The first frame of a folder, or none (and a count) if it cannot be read.
    fn enter(&mut self, folder: String, base: &str, floor: Option<&str>) -> io::Result<Option<Frame>> {
        let mut frame = Frame::new(folder, base);
        self.refill(&mut frame, floor.unwrap_or_default().as_bytes(), Keep::All)?;
        Ok(Some(frame).filter(|frame| !frame.batch.is_empty()))
    }

    /// Reads the frame's folder for its smallest entries after `floor`.
    fn refill(&mut self, frame: &mut Frame, floor: &[u8], keep: Keep) -> io::Result<()> {
        frame.batch.clear();
        let read = self
            .root
            .open_folder(&frame.folder)
            .and_then(|fd| self.smallest(fd, frame, floor, keep).map_err(|errno| Denial::Fault(errno.into())));
        match read {
            Ok(()) | Err(Denial::Absent) => Ok(()),
            Err(Denial::Unfit) => {
                self.skipped += u64::from(keep == Keep::All);
                Ok(())
            }
            Err(Denial::Fault(error)) => self.fault(error),
        }
    }

    fn smallest(
        &mut self,
        folder: std::os::fd::OwnedFd,
        frame: &mut Frame,
        floor: &[u8],
        keep: Keep,
    ) -> rustix::io::Result<()> {
        let mut smallest = BinaryHeap::with_capacity(self.batch + 1);
        let mut sort = Vec::with_capacity(256);
        let mut more = false;
        let mut dir = Dir::new(folder)?;
        while let Some(found) = dir.read() {
            let found = found?;
            let name = found.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            self.examined += 1;
            let mut file_type = found.file_type();
            if file_type == FileType::Unknown {
                match rustix::fs::statat(dir.fd()?, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => file_type = FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                }
            }
            sort.clear();
            sort.extend_from_slice(name.to_bytes());
            let kind = match file_type {
                FileType::RegularFile => EntryKind::File,
                FileType::Directory => EntryKind::Folder,
                _ => EntryKind::Unfit,
            };
            if kind == EntryKind::Folder {
                sort.push(b'/');
            } else if keep == Keep::Folders {
                continue;
            }
            let full = smallest.len() >= self.batch;
            let too_large = full && smallest.peek().is_some_and(|largest: &Entry| largest.sort <= sort);
            if !sort.starts_with(frame.base.as_bytes()) || !comes_after(&sort, kind, floor) {
                continue;
            }
            more |= full;
            if too_large {
                continue;
            }
            if full {
                smallest.pop();
            }
            smallest.push(Entry { sort: sort.clone(), kind });
        }
        frame.batch = smallest.into_sorted_vec().into();
        frame.resume = frame.batch.back().filter(|_| more).map(|last| {
            let mut resume = last.sort.clone();
            if last.kind == EntryKind::Folder {
                resume.push(b'/');
            }
            resume
        });
        Ok(())
    }

    /// Trouble with one entry is counted; trouble of the whole process ends the listing.
    fn fault(&mut self, error: io::Error) -> io::Result<()> {
        use rustix::io::Errno;
        match Errno::from_io_error(&error) {
            Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => Err(error),
            _ => {
                self.skipped += 1;
                Ok(())
            }
        }
    }
}

impl Frame {
    fn new(folder: String, base: &str) -> Self {
        Self { folder, base: base.to_owned(), batch: VecDeque::new(), resume: None }
    }

    /// The entry's key (a folder's ends in a slash), if it has a legal one.
    fn key(&self, entry: &Entry) -> Option<String> {
        let name = std::str::from_utf8(&entry.sort).ok()?;
        let legal = has_sound_segments(name.strip_suffix('/').unwrap_or(name))
            && self.folder.len() + name.len() <= MAX_KEY_BYTES;
        legal.then(|| format!("{}{name}", self.folder))
    }

    /// The cursor that stands where this folder would be read on, if it can be written as text.
    fn cursor(&self, resume: &[u8]) -> Option<String> {
        std::str::from_utf8(resume).ok().map(|resume| format!("{}{resume}", self.folder))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_after_a_cursor() {
        use EntryKind::{File, Folder};
        for (sort, kind, floor, expected) in [
            ("a", File, "", true),
            ("a", File, "a", false),
            ("b", File, "a", true),
            ("a", File, "a/b", false),
            ("a.txt", File, "a/b", false),
            ("a0", File, "a/b", true),
            ("a/", Folder, "a", true),
            ("a/", Folder, "a.txt", true),
            ("a/", Folder, "a/b", true),
            ("a/", Folder, "a//", false),
            ("a/", Folder, "a0", false),
            ("b/", Folder, "a//", true),
        ] {
            assert_eq!(comes_after(sort.as_bytes(), kind, floor.as_bytes()), expected, "{sort} after {floor}");
        }
    }

    #[test]
    fn a_page_keeps_only_what_it_needs_and_costs_the_same_everywhere() {
        let dir = tempfile::tempdir().expect("a scratch directory");
        for i in 0..2000 {
            std::fs::write(dir.path().join(format!("{i:04}")), "").expect("a file");
        }
        let root = Root::open(dir.path()).expect("a root");
        for floor in ["", "0500", "1989"] {
            let mut walk = Walk { batch: 11, ..Walk::new(&root) };
            let frame = walk.enter(String::new(), "", Some(floor)).expect("readable").expect("entries");
            let first = floor.parse().map_or(0, |last: usize| last + 1);
            let names: Vec<_> = frame.batch.iter().map(|entry| String::from_utf8_lossy(&entry.sort)).collect();
            let expected: Vec<_> = (first..2000).take(11).map(|i| format!("{i:04}")).collect();
            assert_eq!(names, expected);
            assert_eq!(frame.resume.is_some(), first + 11 < 2000);
            assert_eq!(walk.examined, 2000);
        }
    }

    #[test]
    fn a_page_of_many_entries_without_an_object_ends_early_and_comes_forward() {
        use std::os::unix::ffi::OsStrExt as _;
        let dir = tempfile::tempdir().expect("a scratch directory");
        for i in 0..60 {
            std::fs::create_dir(dir.path().join(format!("empty{i:02}"))).expect("a folder");
        }
        for i in 0..5 {
            std::os::unix::fs::symlink("x", dir.path().join(format!("link{i}"))).expect("a link");
        }
        let latin1 = std::ffi::OsStr::from_bytes(b"m\xe9");
        std::fs::write(dir.path().join(latin1), "").expect("a file");
        std::fs::write(dir.path().join("z"), "").expect("a file");
        let root = Root::open(dir.path()).expect("a root");
        let (mut after, mut skipped, mut pages, mut found) = (None, 0, 0, Vec::new());
        while pages < 100 {
            let page = {
                let walk = Walk { batch: 2, max_examined: 10, ..Walk::new(&root) };
                walk.objects("", after.as_deref(), 1).expect("a page")
            };
            pages += 1;
            skipped += page.skipped;
            found.extend(page.objects.into_iter().map(|object| object.key));
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        assert_eq!((found.as_slice(), skipped), (["z".to_owned()].as_slice(), 6));
        assert!((10..100).contains(&pages), "{pages} pages");
    }

    #[test]
    fn a_cursor_seen_from_the_folder_of_the_prefix() {
        assert_eq!(relative("t/", "t/a", None), Some(None));
        assert_eq!(relative("t/", "t/a", Some("t/a/b")), Some(Some("a/b")));
        assert_eq!(relative("t/", "t/a", Some("s")), Some(None));
        assert_eq!(relative("t/", "t/a", Some("u")), None);
    }
}
