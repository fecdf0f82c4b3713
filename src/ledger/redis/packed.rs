//! Numbers and texts in one string of bytes, as `struct` packs them in scripts: numbers are of eight bytes,
//! texts have their length before them, of one byte or of four; all of it is big-endian.

use super::reply::nonsense;
use crate::ledger::{MAX_AMOUNT, Unavailable};

pub(super) fn put_number(to: &mut Vec<u8>, number: u64) {
    to.extend_from_slice(&number.to_be_bytes());
}

/// A text of at most 255 bytes, in parts.
pub(super) fn put_short(to: &mut Vec<u8>, parts: &[&str]) {
    to.push(u8::try_from(length(parts)).expect("a few numbers and words"));
    put(to, parts);
}

/// A text in parts.
pub(super) fn put_long(to: &mut Vec<u8>, parts: &[&str]) {
    to.extend_from_slice(&u32::try_from(length(parts)).expect("much shorter than 4 GiB").to_be_bytes());
    put(to, parts);
}

fn length(parts: &[&str]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

fn put(to: &mut Vec<u8>, parts: &[&str]) {
    parts.iter().for_each(|part| to.extend_from_slice(part.as_bytes()));
}

/// Reads what a script packed; what is no such thing is nonsense.
#[derive(Debug)]
pub(super) struct Packed<'a>(pub(super) &'a [u8]);

impl<'a> Packed<'a> {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn take(&mut self, length: usize) -> Result<&'a [u8], Unavailable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or_else(|| nonsense("packed answer"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Unavailable> {
        Ok(self.take(N)?.try_into().expect("so many were taken"))
    }

    fn text(&mut self, length: usize) -> Result<&'a str, Unavailable> {
        str::from_utf8(self.take(length)?).map_err(|_| nonsense("text"))
    }

    /// An amount, a time or a number of something: none is above [`MAX_AMOUNT`].
    pub(super) fn number(&mut self) -> Result<u64, Unavailable> {
        let number = u64::from_be_bytes(self.bytes()?);
        if number > MAX_AMOUNT { Err(nonsense("amount")) } else { Ok(number) }
    }

    pub(super) fn byte(&mut self) -> Result<u8, Unavailable> {
        self.bytes::<1>().map(|[byte]| byte)
    }

    pub(super) fn short(&mut self) -> Result<&'a str, Unavailable> {
        let length = self.byte()?;
        self.text(length.into())
    }

    pub(super) fn long(&mut self) -> Result<&'a str, Unavailable> {
        let length = u32::from_be_bytes(self.bytes()?);
        self.text(usize::try_from(length).map_err(|_| nonsense("length"))?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_read() {
        let numbers = [0, 1, 255, u64::from(u32::MAX), 1 << 32, MAX_AMOUNT];
        let short = ["", "日本", &"x".repeat(255)];
        let long = ["", "é\0\t\"", &"y".repeat(70_000)];
        let mut packed = Vec::new();
        numbers.iter().for_each(|number| put_number(&mut packed, *number));
        short.iter().for_each(|text| put_short(&mut packed, &[text]));
        long.iter().for_each(|text| put_long(&mut packed, &[text, "", "and more"]));
        let mut read = Packed(&packed);
        assert!(numbers.iter().all(|number| read.number().unwrap() == *number));
        assert!(short.iter().all(|text| read.short().unwrap() == *text));
        assert!(long.iter().all(|text| read.long().unwrap() == [*text, "and more"].concat()));
        assert!(read.is_empty());
    }

    #[test]
    fn anything_else_is_nonsense() {
        assert!(Packed(&(MAX_AMOUNT + 1).to_be_bytes()).number().is_err());
        assert!(Packed(&u64::MAX.to_be_bytes()).number().is_err());
        assert!(Packed(&[0; 7]).number().is_err());
        assert!(Packed(&[]).byte().is_err() && Packed(&[]).short().is_err());
        assert!(Packed(&[3, b'a', b'b']).short().is_err());
        assert!(Packed(&[1, 0xff]).short().is_err());
        assert!(Packed(&[0, 0, 0, 2, b'a']).long().is_err() && Packed(&[0, 0, 0]).long().is_err());
        assert!(Packed(&[255; 9]).long().is_err());
    }
}
