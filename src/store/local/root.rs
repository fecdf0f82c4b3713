//! Opening beneath the root: the one place that touches paths.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use arc_swap::ArcSwap;
use rustix::fs::{FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::super::{ETag, Kept, Stat};

/// A file younger than this may be written again without its times telling.
const SETTLED_AFTER: Duration = Duration::from_secs(2);

/// What opening anything but a regular file is answered with, as the kernel does for sockets.
const IRREGULAR: Errno = Errno::NXIO;

/// For how long a path is taken to name what was opened by it.
pub(super) const LOOK_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// The directory that everything is resolved beneath. Where its path comes to name another one (it
/// was made anew, or something was mounted on it), that one is taken; where it names none, the
/// store is in trouble, and not empty.
#[derive(Debug)]
pub(super) struct Root {
    path: PathBuf,
    current: ArcSwap<Current>,
}

/// What the path named at the last look.
#[derive(Debug)]
struct Current {
    directory: Arc<OwnedFd>,
    identity: (u64, u64),
    looked: Instant,
}

/// The file systems (`f_type` of statfs(2)) on which a file's ctime tells at once that it, or what its name leads
/// to, became another: ext2 to ext4, XFS, Btrfs, tmpfs. An overlay leaves a file of a lower layer as it is when
/// the name goes to another one, and of a file on the network the kernel asks only now and then.
const TELLING: [u32; 4] = [0xef53, 0x5846_5342, 0x9123_683e, 0x0102_1994];

/// Why there is nothing to open.
#[derive(Debug)]
pub(super) enum Denial {
    /// Nothing has this path.
    Absent,
    /// Something has, but it is not served: a link, a special file, a folder where a file is asked
    /// for or the reverse, or the service may not read it.
    Unfit,
    /// The file system, or the process, is in trouble.
    Fault(io::Error),
}

impl Denial {
    fn of(errno: Errno) -> Self {
        match errno {
            Errno::NOENT | Errno::INVAL | Errno::NAMETOOLONG => Self::Absent,
            Errno::NOTDIR | Errno::ISDIR | Errno::LOOP | Errno::XDEV | Errno::ACCESS | Errno::PERM | Errno::NXIO => {
                Self::Unfit
            }
            errno => Self::Fault(errno.into()),
        }
    }
}

/// A regular file, open for reading, and the version it was then.
#[derive(Debug, Clone)]
pub(super) struct OpenFile {
    pub(super) file: Arc<File>,
    pub(super) version: Version,
}

impl OpenFile {
    /// Whether the file's times tell when its name comes to lead elsewhere.
    pub(super) fn tells(&self) -> bool {
        let system = rustix::fs::fstatfs(&self.file).map(|system| u32::try_from(system.f_type));
        system.is_ok_and(|kind| kind.is_ok_and(|kind| TELLING.contains(&kind)))
    }
}

/// What tells one state of a file from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    inode: u64,
    pub(super) size: u64,
    mtime: (i64, u64),
    ctime: (i64, u64),
}

impl Version {
    /// The version that `file` is now; `NXIO` if it is not a regular file.
    pub(super) fn of(file: impl AsFd) -> rustix::io::Result<Self> {
        let stat = rustix::fs::fstat(file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(IRREGULAR);
        }
        Ok(Self {
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).map_err(|_| Errno::OVERFLOW)?,
            mtime: (stat.st_mtime, stat.st_mtime_nsec),
            ctime: (stat.st_ctime, stat.st_ctime_nsec),
        })
    }

    /// Whether this is the version that `stat` was made of, be its validator still weak or not.
    pub(super) fn is(&self, stat: &Stat) -> bool {
        self.size == stat.size && self.opaque() == stat.etag.opaque()
    }

    /// The validator's text: four numbers in hexadecimal, written by hand since every look does it.
    fn opaque(&self) -> String {
        let nanos = |(seconds, nanos): (i64, u64)| i128::from(seconds) * 1_000_000_000 + i128::from(nanos);
        let numbers = [self.inode.into(), self.size.into(), nanos(self.mtime), nanos(self.ctime)];
        let mut text = String::with_capacity(64);
        for number in numbers.map(i128::cast_unsigned) {
            if !text.is_empty() {
                text.push('-');
            }
            for place in (0..=number.max(1).ilog2() / 4).rev() {
                let digit = usize::try_from((number >> (4 * place)) & 0xf).unwrap_or_default();
                text.push(char::from(b"0123456789abcdef"[digit]));
            }
        }
        text
    }

    #[expect(clippy::disallowed_methods, reason = "a file's age is told by the clock that its times are from")]
    pub(super) fn stat(&self) -> Stat {
        self.stat_at(SystemTime::now())
    }

    /// The validator is strong once the last change (ctime, which no one can set) is old enough; a
    /// change in the future, after a step of the clock, is not.
    fn stat_at(&self, now: SystemTime) -> Stat {
        let settled = now.duration_since(time(self.ctime)).is_ok_and(|age| age >= SETTLED_AFTER);
        let etag = if settled { ETag::strong(self.opaque()) } else { ETag::weak(self.opaque()) };
        Stat { size: self.size, etag, modified: time(self.mtime), kept: Kept::default() }
    }
}

fn time((seconds, nanos): (i64, u64)) -> SystemTime {
    let whole = Duration::from_secs(seconds.unsigned_abs());
    let base = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
    base.and_then(|base| base.checked_add(Duration::from_nanos(nanos))).unwrap_or(UNIX_EPOCH)
}

impl Current {
    fn open(path: &Path) -> io::Result<Self> {
        let looked = Instant::now();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        let stat = rustix::fs::fstat(&directory)?;
        Ok(Self { directory: Arc::new(directory), identity: (stat.st_dev, stat.st_ino), looked })
    }
}

impl Root {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let root = Self { path: path.to_owned(), current: ArcSwap::from_pointee(Current::open(path)?) };
        match root.open_folder("") {
            Ok(_) => Ok(root),
            Err(Denial::Fault(error)) if error.raw_os_error() == Some(Errno::NOSYS.raw_os_error()) => {
                Err(io::Error::new(io::ErrorKind::Unsupported, "a directory as store needs openat2 (Linux 5.6)"))
            }
            Err(Denial::Fault(error)) => Err(error),
            Err(_) => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Looks what the path names, if the last look is too old. May block.
    fn look(&self) -> Result<(), Denial> {
        let current = self.current.load();
        if current.looked.elapsed() < LOOK_AGAIN_AFTER {
            return Ok(());
        }
        let looked = Instant::now();
        let meta = std::fs::metadata(&self.path).map_err(Denial::Fault)?;
        let now = if (meta.dev(), meta.ino()) == current.identity {
            Current { directory: Arc::clone(&current.directory), identity: current.identity, looked }
        } else {
            tracing::warn!(path = %self.path.display(), "the store's path names another directory than before: it is taken");
            Current::open(&self.path).map_err(Denial::Fault)?
        };
        self.current.store(Arc::new(now));
        Ok(())
    }

    /// Opens the regular file `key`.
    pub(super) fn open_file(&self, key: &str) -> Result<OpenFile, Denial> {
        self.look()?;
        self.open_regular(key, ResolveFlags::empty()).map_err(Denial::of)
    }

    /// Opens the regular file `key` if the kernel has its path at hand, without waiting for a disk;
    /// `None` if it has not.
    pub(super) fn open_cached(&self, key: &str) -> Option<Result<OpenFile, Denial>> {
        if self.current.load().looked.elapsed() >= LOOK_AGAIN_AFTER {
            return None;
        }
        match self.open_regular(key, ResolveFlags::CACHED) {
            // Linux before 5.12 does not know how not to wait.
            Err(Errno::AGAIN | Errno::INTR | Errno::INVAL) => None,
            result => Some(result.map_err(Denial::of)),
        }
    }

    /// Opens the folder `key` (empty for the root, a closing slash allowed) to read its entries.
    pub(super) fn open_folder(&self, key: &str) -> Result<OwnedFd, Denial> {
        self.look()?;
        let path = if key.is_empty() { "." } else { key };
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK;
        resolve(&self.directory(), path, flags, ResolveFlags::empty()).map_err(Denial::of)
    }

    /// What a file is gets asked before it is opened, because opening a device may act on it. That it is what
    /// was opened, and has not been replaced meanwhile, is asked when its first bytes have been read and before
    /// any is handed out.
    fn open_regular(&self, key: &str, how: ResolveFlags) -> rustix::io::Result<OpenFile> {
        let directory = self.directory();
        let version = Version::of(resolve(&directory, key, OFlags::PATH, how)?)?;
        let file = resolve(&directory, key, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY, how)?;
        Ok(OpenFile { file: Arc::new(File::from(file)), version })
    }

    fn directory(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.current.load().directory)
    }
}

fn resolve(directory: &OwnedFd, path: &str, flags: OFlags, how: ResolveFlags) -> rustix::io::Result<OwnedFd> {
    let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let beneath = ResolveFlags::BENEATH | ResolveFlags::NO_SYMLINKS | ResolveFlags::NO_MAGICLINKS;
    loop {
        match rustix::fs::openat2(directory, path, flags, Mode::empty(), beneath | how) {
            Err(Errno::INTR | Errno::AGAIN) if how.is_empty() => {}
            result => return result,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn version(ctime: i64) -> Version {
        Version { inode: 255, size: 16, mtime: (1, 2), ctime: (ctime, 0) }
    }

    #[test]
    fn a_validator_is_weak_until_the_last_change_is_two_seconds_old() {
        let now = UNIX_EPOCH + Duration::from_secs(100);
        for (ctime, weak) in [(0, false), (98, false), (99, true), (100, true), (101, true)] {
            assert_eq!(version(ctime).stat_at(now).etag.is_weak(), weak, "{ctime}");
        }
    }

    #[test]
    fn a_validator_is_the_hexadecimal_text_of_its_numbers() {
        for (size, mtime, ctime, text) in [
            (16, (1, 2), (1, 0), "ff-10-3b9aca02-3b9aca00"),
            (0, (0, 0), (0, 1), "ff-0-0-1"),
            (
                u64::MAX,
                (-1, 999_999_999),
                (4_000_000_000, 0),
                "ff-ffffffffffffffff-ffffffffffffffffffffffffffffffff-3782dace9d900000",
            ),
        ] {
            let version = Version { inode: 255, size, mtime, ctime };
            assert_eq!(version.opaque(), text);
            let stat = version.stat_at(UNIX_EPOCH);
            assert!(version.is(&stat) && !Version { inode: 254, ..version }.is(&stat));
        }
    }

    #[test]
    fn times_before_1970() {
        assert_eq!(time((-1, 500_000_000)), UNIX_EPOCH - Duration::from_millis(500));
    }
}
