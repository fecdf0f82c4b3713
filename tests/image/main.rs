//! The verdict on images, format by format: what is sound, what is refused and why, and that what
//! is called sound decodes whole in independent decoders. (WebP's tests stand beside its parts.)
#![allow(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "small numbers made by hand"
)]

mod apng;
mod fixtures;
mod gif;
mod jpeg;
mod memory;
mod pillow;
mod png;
mod png_changed;
