//! The bytes of a ZIP file around the contents of its entries (PKWARE APPNOTE 6.3.10). Pure.
//!
//! Entries are stored, not compressed, so that the length of the whole is known before the first
//! byte. Their checksum is not: it stands behind the content, in a data descriptor, and once more in
//! the directory. Zip64 records are written only where a number needs them, as old readers do not
//! know them. Names are UTF-8 (general purpose bit 11); times are UTC, as DOS has them for old readers
//! and to the second for others (the extended timestamp of Info-ZIP, 0x5455).
//!
//! ```text
//! (local header, content, data descriptor)*  (directory entry)*  [Zip64 end, its locator]  end
//! ```

use std::time::SystemTime;

use jiff::Timestamp;
use jiff::tz::TimeZone;

const LOCAL: u32 = 0x0403_4b50;
const DESCRIPTOR: u32 = 0x0807_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END64: u32 = 0x0606_4b50;
const LOCATOR64: u32 = 0x0706_4b50;
const END: u32 = 0x0605_4b50;

/// Sizes and checksum stand behind the content (bit 3); the name is UTF-8 (bit 11).
const FLAGS: u16 = 1 << 3 | 1 << 11;
/// What a reader must know: 2.0, or 4.5 for Zip64.
const VERSION: u16 = 20;
const VERSION64: u16 = 45;
/// The upper byte of "version made by": Unix, whose permissions the attributes are.
const UNIX: u16 = 3 << 8;
/// A regular file that its owner may write and all may read.
const ATTRIBUTES: u32 = 0o100_644 << 16;

/// A 32-bit field that says: look into the Zip64 record.
const SEE64: u32 = u32::MAX;
/// A 16-bit field that says the same.
const SEE64_SHORT: u16 = u16::MAX;
const TIMESTAMP: u16 = 0x5455;
const ZIP64: u16 = 0x0001;

const LOCAL_BYTES: u64 = 30;
const CENTRAL_BYTES: u64 = 46;
const END_BYTES: u64 = 22;
const END64_BYTES: u64 = 56;
const LOCATOR64_BYTES: u64 = 20;
const TIMESTAMP_BYTES: u64 = 9;

/// A file of the archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry<'a> {
    /// The name, at most 65,535 bytes of it.
    pub name: &'a str,
    /// Bytes of content.
    pub size: u64,
    /// Last modification.
    pub modified: SystemTime,
}

/// Where everything comes to lie, entry by entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Layout {
    entries: u64,
    /// Where the next entry begins.
    offset: u64,
    /// The length of the directory so far.
    directory: u64,
}

impl Layout {
    /// Adds an entry; answers where it begins. `None` if the archive would exceed 2^64 bytes.
    pub fn add(&mut self, entry: &Entry<'_>) -> Option<u64> {
        let begins = self.offset;
        let name = entry.name.len() as u64;
        let large = u64::from(is_large(entry.size));
        let header = LOCAL_BYTES + name + TIMESTAMP_BYTES + 20 * large;
        self.offset = begins.checked_add(header + 16 + 8 * large)?.checked_add(entry.size)?;
        let extra64 = 16 * large + 8 * u64::from(is_large(begins));
        self.directory += CENTRAL_BYTES + name + TIMESTAMP_BYTES + if extra64 > 0 { 4 + extra64 } else { 0 };
        self.entries += 1;
        Some(begins)
    }

    /// How many entries there are.
    #[must_use]
    pub const fn entries(&self) -> u64 {
        self.entries
    }

    /// The length of the archive, bytes. `None` if it exceeds 2^64.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        let end = if self.needs64() { END64_BYTES + LOCATOR64_BYTES + END_BYTES } else { END_BYTES };
        self.offset.checked_add(self.directory)?.checked_add(end)
    }

    const fn needs64(&self) -> bool {
        self.entries >= SEE64_SHORT as u64 || is_large(self.offset) || is_large(self.directory)
    }

    /// Writes what follows the directory.
    pub fn end(&self, out: &mut Vec<u8>) {
        let Self { entries, offset, directory } = *self;
        if self.needs64() {
            out.extend(END64.to_le_bytes());
            out.extend((END64_BYTES - 12).to_le_bytes());
            out.extend((UNIX | VERSION64).to_le_bytes());
            out.extend(VERSION64.to_le_bytes());
            out.extend([0; 8]);
            for number in [entries, entries, directory, offset] {
                out.extend(number.to_le_bytes());
            }
            out.extend(LOCATOR64.to_le_bytes());
            out.extend([0; 4]);
            out.extend((offset + directory).to_le_bytes());
            out.extend(1_u32.to_le_bytes());
        }
        let short = u16::try_from(entries).unwrap_or(SEE64_SHORT).to_le_bytes();
        out.extend(END.to_le_bytes());
        out.extend([0; 4]);
        out.extend(short);
        out.extend(short);
        out.extend(or_see64(directory).to_le_bytes());
        out.extend(or_see64(offset).to_le_bytes());
        out.extend([0; 2]);
    }
}

impl Entry<'_> {
    /// Writes what stands before the content.
    pub fn local_header(&self, out: &mut Vec<u8>) {
        let large = is_large(self.size);
        out.extend(LOCAL.to_le_bytes());
        self.common(out, if large { VERSION64 } else { VERSION });
        // Checksum and sizes follow the content.
        out.extend([0; 4]);
        let size = if large { SEE64 } else { 0 };
        out.extend(size.to_le_bytes());
        out.extend(size.to_le_bytes());
        self.name_length(out);
        out.extend((if large { 29_u16 } else { 9 }).to_le_bytes());
        out.extend(self.name.as_bytes());
        self.timestamp(out);
        if large {
            out.extend(ZIP64.to_le_bytes());
            out.extend(16_u16.to_le_bytes());
            out.extend([0; 16]);
        }
    }

    /// Writes what stands behind the content.
    pub fn descriptor(&self, crc: u32, out: &mut Vec<u8>) {
        out.extend(DESCRIPTOR.to_le_bytes());
        out.extend(crc.to_le_bytes());
        for _ in 0..2 {
            match u32::try_from(self.size) {
                Ok(size) if !is_large(self.size) => out.extend(size.to_le_bytes()),
                _ => out.extend(self.size.to_le_bytes()),
            }
        }
    }

    /// Writes the directory's line about the entry, which begins at `offset`.
    pub fn directory_entry(&self, crc: u32, offset: u64, out: &mut Vec<u8>) {
        let mut extra64 = Vec::new();
        for number in [self.size, self.size, offset] {
            if is_large(number) {
                extra64.extend(number.to_le_bytes());
            }
        }
        let version = if extra64.is_empty() { VERSION } else { VERSION64 };
        out.extend(CENTRAL.to_le_bytes());
        out.extend((UNIX | version).to_le_bytes());
        self.common(out, version);
        out.extend(crc.to_le_bytes());
        out.extend(or_see64(self.size).to_le_bytes());
        out.extend(or_see64(self.size).to_le_bytes());
        self.name_length(out);
        let length64 = u16::try_from(extra64.len()).expect("three numbers at most");
        out.extend((if length64 > 0 { 9 + 4 + length64 } else { 9 }).to_le_bytes());
        // No comment, the first disk, no internal attributes.
        out.extend([0; 6]);
        out.extend(ATTRIBUTES.to_le_bytes());
        out.extend(or_see64(offset).to_le_bytes());
        out.extend(self.name.as_bytes());
        self.timestamp(out);
        if length64 > 0 {
            out.extend(ZIP64.to_le_bytes());
            out.extend(length64.to_le_bytes());
            out.extend(extra64);
        }
    }

    /// What both headers have: version needed, flags, method (stored), time and date.
    fn common(&self, out: &mut Vec<u8>, version: u16) {
        let (time, date) = dos_time(self.modified);
        for number in [version, FLAGS, 0, time, date] {
            out.extend(number.to_le_bytes());
        }
    }

    fn name_length(&self, out: &mut Vec<u8>) {
        let length = u16::try_from(self.name.len()).expect("a name is far shorter than 64 KiB");
        out.extend(length.to_le_bytes());
    }

    fn timestamp(&self, out: &mut Vec<u8>) {
        let seconds = Timestamp::try_from(self.modified).map_or(0, Timestamp::as_second);
        let bounded = i32::try_from(seconds.clamp(0, i64::from(i32::MAX))).unwrap_or(i32::MAX);
        out.extend(TIMESTAMP.to_le_bytes());
        out.extend(5_u16.to_le_bytes());
        // Bit 0: the modification time follows.
        out.push(1);
        out.extend(bounded.to_le_bytes());
    }
}

/// Whether a number needs a Zip64 record.
const fn is_large(number: u64) -> bool {
    number >= SEE64 as u64
}

fn or_see64(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(SEE64)
}

/// MS-DOS time and date, of even seconds from 1980 to 2107; what lies outside is cut to that.
fn dos_time(modified: SystemTime) -> (u16, u16) {
    let seconds = Timestamp::try_from(modified).unwrap_or(Timestamp::UNIX_EPOCH).as_second();
    let bounded = seconds.clamp(315_532_800, 4_354_819_199);
    let utc = TimeZone::UTC.to_datetime(Timestamp::from_second(bounded).unwrap_or(Timestamp::UNIX_EPOCH));
    let part = |number: i8| u16::try_from(number).unwrap_or(0);
    let year = u16::try_from(utc.year() - 1980).unwrap_or(0);
    (
        part(utc.hour()) << 11 | part(utc.minute()) << 5 | (part(utc.second()) / 2),
        year << 9 | part(utc.month()) << 5 | part(utc.day()),
    )
}

#[cfg(test)]
mod tests {
    use std::io::{Cursor, Read as _};
    use std::time::Duration;

    use super::*;

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    /// Everything but the contents, and how long the layout says that the whole is.
    fn skeleton(entries: &[Entry<'_>]) -> (u64, u64) {
        let (mut layout, mut out, mut contents) = (Layout::default(), Vec::new(), 0);
        let mut offsets = Vec::new();
        for entry in entries {
            let offset = layout.add(entry).expect("fits");
            assert_eq!(offset, out.len() as u64 + contents);
            offsets.push(offset);
            entry.local_header(&mut out);
            contents += entry.size;
            entry.descriptor(1, &mut out);
        }
        for (entry, offset) in entries.iter().zip(offsets) {
            entry.directory_entry(1, offset, &mut out);
        }
        layout.end(&mut out);
        (out.len() as u64 + contents, layout.length().expect("fits"))
    }

    #[test]
    fn the_length_is_known_in_advance() {
        const GIB: u64 = 1 << 30;
        let entry = |name, size| Entry { name, size, modified: at(0) };
        for entries in [
            vec![],
            vec![entry("a", 0)],
            vec![entry("a", 1), entry("日本/語.txt", 2)],
            vec![entry("just below", u64::from(u32::MAX) - 1)],
            vec![entry("just at", u64::from(u32::MAX)), entry("b", 1)],
            vec![entry("a", 5 * GIB), entry("behind 4 GiB", 0)],
            vec![entry("a", 3 * GIB), entry("b", 3 * GIB), entry("c", 3 * GIB)],
            vec![entry("n", 0); 65_534],
            vec![entry("n", 0); 65_535],
            vec![entry("n", 0); 70_000],
        ] {
            let (written, said) = skeleton(&entries);
            assert_eq!(written, said, "{} entries", entries.len());
        }
    }

    #[test]
    fn sizes_that_no_number_holds_are_refused() {
        let mut layout = Layout::default();
        let entry = Entry { name: "a", size: u64::MAX / 3, modified: at(0) };
        assert!(layout.add(&entry).is_some() && layout.add(&entry).is_some());
        assert_eq!(layout.add(&entry), None);
    }

    #[test]
    fn another_reader_finds_everything() {
        let contents: [(&str, &[u8]); 3] = [("a.txt", b"hello"), ("d/日本 é.bin", b"\0PK\x03\x04"), ("empty", b"")];
        let (mut layout, mut out, mut lines) = (Layout::default(), Vec::new(), Vec::new());
        for (name, content) in contents {
            let entry = Entry { name, size: content.len() as u64, modified: at(1_795_953_601) };
            let offset = layout.add(&entry).expect("fits");
            let crc = crc32fast::hash(content);
            entry.local_header(&mut out);
            out.extend(content);
            entry.descriptor(crc, &mut out);
            lines.push((entry, crc, offset));
        }
        for (entry, crc, offset) in &lines {
            entry.directory_entry(*crc, *offset, &mut out);
        }
        layout.end(&mut out);
        assert_eq!(Some(out.len() as u64), layout.length());
        let mut archive = zip::ZipArchive::new(Cursor::new(out)).expect("an archive");
        assert_eq!(archive.len(), contents.len());
        for (index, (name, content)) in contents.iter().enumerate() {
            let mut file = archive.by_index(index).expect("an entry");
            assert_eq!((&*file.name().expect("UTF-8"), file.unix_mode()), (*name, Some(0o100_644)));
            let time = file.last_modified().expect("a time");
            assert_eq!((time.year(), time.month(), time.day(), time.hour()), (2026, 11, 29, 12));
            let mut read = Vec::new();
            file.read_to_end(&mut read).expect("whole, by its checksum");
            assert_eq!(read, *content);
        }
    }

    #[test]
    fn times_before_and_beyond_dos() {
        assert_eq!(dos_time(at(0)), (0, 1 << 5 | 1));
        assert_eq!(dos_time(SystemTime::UNIX_EPOCH - Duration::from_secs(1)), (0, 1 << 5 | 1));
        assert_eq!(dos_time(at(1_795_953_601)), (12 << 11, 46 << 9 | 11 << 5 | 29));
        assert_eq!(dos_time(at(9_999_999_999)), (23 << 11 | 59 << 5 | 29, 127 << 9 | 12 << 5 | 31));
    }
}
