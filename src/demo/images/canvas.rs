//! A picture to draw on.

use image::{Rgb, RgbImage};

use super::font;

pub(super) type Colour = [u8; 3];

/// Pixels, counted from the top left corner. What falls outside is not drawn.
pub(super) struct Canvas(pub(super) RgbImage);

impl Canvas {
    pub(super) fn new(width: u32, height: u32, colour: Colour) -> Self {
        Self(RgbImage::from_pixel(width, height, Rgb(colour)))
    }

    pub(super) fn rectangle(&mut self, x: u32, y: u32, width: u32, height: u32, colour: Colour) {
        for y in y..(y + height).min(self.0.height()) {
            for x in x..(x + width).min(self.0.width()) {
                self.0.put_pixel(x, y, Rgb(colour));
            }
        }
    }

    /// One line of text whose dots are squares of `dot` pixels.
    pub(super) fn text(&mut self, x: u32, y: u32, dot: u32, colour: Colour, text: &str) {
        let mut left = x;
        for c in text.chars() {
            for (row, bits) in (0..font::HEIGHT).zip(font::glyph(c)) {
                for column in (0..font::WIDTH).filter(|column| bits >> (font::WIDTH - 1 - column) & 1 == 1) {
                    self.rectangle(left + column * dot, y + row * dot, dot, dot, colour);
                }
            }
            left += (font::WIDTH + 1) * dot;
        }
    }

    /// Joins points of rising x by a line three pixels wide.
    pub(super) fn curve(&mut self, points: impl IntoIterator<Item = (u32, u32)>, colour: Colour) {
        let mut last: Option<(u32, u32)> = None;
        for (x, y) in points {
            let from = last.map_or(y, |(_, before)| before);
            let (top, bottom) = (from.min(y), from.max(y));
            self.rectangle(x, top.saturating_sub(1), 3, bottom - top + 3, colour);
            last = Some((x, y));
        }
    }
}
