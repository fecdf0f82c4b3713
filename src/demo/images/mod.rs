//! Pictures: drawn, not stored. Integer arithmetic only, so that they are the same everywhere.

mod canvas;
mod font;

use std::io::Cursor;

use image::codecs::gif::{GifEncoder, Repeat};
use image::codecs::jpeg::JpegEncoder;
use image::{Delay, DynamicImage, Frame, ImageFormat, ImageResult, RgbImage};

use canvas::{Canvas, Colour};

const INK: Colour = [36, 41, 46];
const PAPER: Colour = [255, 255, 255];
const NIGHT: Colour = [22, 27, 34];
const GREY: Colour = [139, 148, 158];
const LIGHT: Colour = [201, 209, 217];
const GREEN: Colour = [63, 185, 80];
const RED: Colour = [248, 81, 73];
const BLUE: Colour = [31, 111, 235];
const ORANGE: Colour = [219, 109, 40];

/// A terminal after a run of tests, 760 by 420, PNG.
pub(super) fn terminal_png() -> ImageResult<Vec<u8>> {
    let mut canvas = Canvas::new(760, 420, NIGHT);
    canvas.rectangle(0, 0, 760, 34, [48, 54, 61]);
    for (x, colour) in [(14, RED), (38, ORANGE), (62, GREEN)] {
        canvas.rectangle(x, 11, 13, 13, colour);
    }
    canvas.text(280, 10, 2, GREY, "agent - sandbox:/app");
    let lines = [
        (GREEN, "$ git merge feature/parser"),
        (LIGHT, "Auto-merging src/parser.py"),
        (RED, "CONFLICT (content): src/parser.py"),
        (GREEN, "$ git commit -a --no-edit"),
        (LIGHT, "[main 4f2c9d1] Merge branch 'feature/parser'"),
        (GREEN, "$ pytest -q"),
        (LIGHT, "......................  [100%]"),
        (GREEN, "22 passed in 1.84s"),
        (GREEN, "$ _"),
    ];
    for (row, (colour, line)) in (0..).zip(lines) {
        canvas.text(18, 56 + 38 * row, 2, colour, line);
    }
    encode(canvas.0, ImageFormat::Png)
}

/// A plot of two curves, 800 by 500, PNG.
pub(super) fn plot_png() -> ImageResult<Vec<u8>> {
    encode(plot(400), ImageFormat::Png)
}

/// The same plot, JPEG.
pub(super) fn plot_jpeg() -> ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    JpegEncoder::new_with_quality(&mut bytes, 85).encode_image(&plot(400))?;
    Ok(bytes)
}

/// The plot growing from left to right, an endless GIF of 8 frames.
pub(super) fn plot_gif() -> ImageResult<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut encoder = GifEncoder::new_with_speed(&mut bytes, 30);
    encoder.set_repeat(Repeat::Infinite)?;
    for frame in 1..=8 {
        let picture = DynamicImage::ImageRgb8(plot(frame * 50)).thumbnail_exact(400, 250).into_rgba8();
        encoder.encode_frame(Frame::from_parts(picture, 0, 0, Delay::from_numer_denom_ms(200, 1)))?;
    }
    drop(encoder);
    Ok(bytes)
}

/// An attention map, 480 by 480, lossless WebP.
pub(super) fn heat_webp() -> ImageResult<Vec<u8>> {
    let mut canvas = Canvas::new(480, 480, PAPER);
    canvas.text(20, 14, 2, INK, "Attention, layer 3");
    for row in 0..24_u32 {
        for column in 0..24 {
            // Warm along the diagonal and in the first column, as attention maps are.
            let near = 255 - 40 * row.abs_diff(column).min(6) - 3 * (row * 7 + column * 13) % 11;
            let heat = if column == 0 { 200 } else { near };
            let heat = u8::try_from(heat.min(255)).unwrap_or(u8::MAX);
            canvas.rectangle(24 + column * 18, 48 + row * 17, 17, 16, [heat, heat / 3, 255 - heat]);
        }
    }
    encode(canvas.0, ImageFormat::WebP)
}

/// A time line too wide to be shown: 9000 by 120, PNG.
pub(super) fn wide_png() -> ImageResult<Vec<u8>> {
    let mut canvas = Canvas::new(9000, 120, PAPER);
    for second in 0..90 {
        let x = second * 100;
        canvas.rectangle(x, 100, 2, 20, INK);
        canvas.text(x + 6, 104, 1, INK, &format!("{second} s"));
        canvas.rectangle(
            x,
            20 + second * 37 % 70,
            30 + second * 53 % 60,
            10,
            [BLUE, GREEN, ORANGE][second as usize % 3],
        );
    }
    encode(canvas.0, ImageFormat::Png)
}

/// Axes, a legend, and the first `steps` (at most 400) of two curves.
fn plot(steps: u32) -> RgbImage {
    let mut canvas = Canvas::new(800, 500, PAPER);
    canvas.text(250, 18, 3, INK, "Training loss");
    for (row, label) in (0..).zip(["4.0", "3.0", "2.0", "1.0", "0.0"]) {
        let y = 70 + row * 90;
        canvas.rectangle(80, y, 680, 1, [225, 228, 232]);
        canvas.text(30, y - 6, 2, INK, label);
    }
    canvas.rectangle(80, 60, 2, 372, INK);
    canvas.rectangle(80, 430, 680, 2, INK);
    for (column, label) in (0..).zip(["0", "100", "200", "300", "400"]) {
        canvas.text(76 + column * 160, 442, 2, INK, label);
    }
    canvas.text(380, 470, 2, INK, "step");
    for (row, (colour, label)) in (0..).zip([(BLUE, "train"), (ORANGE, "validation")]) {
        canvas.rectangle(580, 84 + row * 26, 24, 8, colour);
        canvas.text(614, 82 + row * 26, 2, INK, label);
    }
    for (colour, floor, slope, swing) in [(BLUE, 300, 24, 9), (ORANGE, 250, 30, 5)] {
        // y falls from the top towards `floor` pixels below it, with a ripple.
        let y = |step: u32| 75 + floor - floor * slope / (slope + step) + step * 37 % swing;
        canvas.curve((0..steps).map(|step| (82 + step * 660 / 400, y(step))), colour);
    }
    canvas.0
}

fn encode(picture: RgbImage, format: ImageFormat) -> ImageResult<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format)?;
    Ok(bytes.into_inner())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_picture_is_what_it_says() {
        for (picture, format, size) in [
            (terminal_png(), ImageFormat::Png, (760, 420)),
            (plot_png(), ImageFormat::Png, (800, 500)),
            (plot_jpeg(), ImageFormat::Jpeg, (800, 500)),
            (plot_gif(), ImageFormat::Gif, (400, 250)),
            (heat_webp(), ImageFormat::WebP, (480, 480)),
            (wide_png(), ImageFormat::Png, (9000, 120)),
        ] {
            let bytes = picture.expect("drawn");
            assert_eq!(image::guess_format(&bytes).expect("known"), format);
            let picture = image::load_from_memory_with_format(&bytes, format).expect("decodes");
            assert_eq!((picture.width(), picture.height()), size);
            assert!(bytes.len() < 3 << 20, "small enough to be shown");
        }
    }
}
