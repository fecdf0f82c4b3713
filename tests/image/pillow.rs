//! What is called sound, Pillow loads: every frame, in the size and number that the verdict says.
//!
//! Pillow shares no code with the decoders of the other tests, and is what most of those who take images
//! from others load them with.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use artifactd::artifact::image::verdict;
use serde_json::Value;

use super::jpeg;

struct Pillow {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Pillow {
    /// Starts it; answers the images that it makes, too.
    fn start() -> (Self, Vec<Vec<u8>>) {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let program = root.join("target/venv-images/bin/python");
        assert!(program.exists(), "{} is missing: make tools", program.display());
        let mut command = Command::new(program);
        command.arg(root.join("tests/image/pillow.py")).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let (input, output) = (child.stdin.take().expect("piped"), child.stdout.take().expect("piped"));
        let mut pillow = Self { child, input, output: BufReader::new(output) };
        let mut images = Vec::new();
        loop {
            let mut length = [0; 4];
            pillow.output.read_exact(&mut length).expect("a length");
            let mut image = vec![0; u32::from_be_bytes(length) as usize];
            if image.is_empty() {
                return (pillow, images);
            }
            pillow.output.read_exact(&mut image).expect("an image");
            images.push(image);
        }
    }

    fn load(&mut self, file: &[u8]) -> Value {
        let length = u32::try_from(file.len()).expect("small");
        self.input.write_all(&[&length.to_be_bytes(), file].concat()).expect("it reads");
        let mut line = String::new();
        self.output.read_line(&mut line).expect("an answer");
        serde_json::from_str(&line).expect("JSON")
    }

    /// Asserts that it loads what is sound.
    fn agrees(&mut self, what: &str, file: &[u8]) -> bool {
        let Ok(sound) = verdict(file) else { return false };
        let loaded = self.load(file);
        let side = |n: usize| loaded["size"][n].as_u64().unwrap_or(0);
        let (width, height) = (u64::from(sound.width), u64::from(sound.height));
        let is_whole = if sound.media_type == "image/gif" {
            // It makes the screen as large as a frame that lies partly outside of it, and looks for more
            // frames behind a byte that begins no block, where the verdict and browsers see the end.
            loaded["frames"].as_u64() >= Some(sound.frames.into()) && side(0) >= width && side(1) >= height
        } else {
            loaded["error"].is_null() && loaded["frames"] == sound.frames && (side(0), side(1)) == (width, height)
        };
        assert!(is_whole, "{what}: {loaded}, not {sound:?}: {}", file.escape_ascii());
        true
    }
}

impl Drop for Pillow {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn what_is_sound_it_loads_and_so_it_does_of_every_damaged_one() {
    let (mut pillow, images) = Pillow::start();
    assert_eq!(images.len(), 16);
    for (number, image) in images.iter().enumerate() {
        assert!(pillow.agrees("its own", image), "image {number} is refused: {:?}", verdict(image));
        for end in 0..image.len() {
            pillow.agrees(&format!("image {number}, cut at {end}"), &image[..end]);
        }
        for at in 0..image.len() {
            let old = image[at];
            for new in [0, 0xff, old ^ 1, old ^ 0x80, old.wrapping_add(1)] {
                let mut changed = image.clone();
                changed[at] = new;
                pillow.agrees(&format!("image {number}, {old:02x} at {at} is {new:02x}"), &changed);
            }
            let shorter = [&image[..at], &image[at + 1..]].concat();
            pillow.agrees(&format!("image {number}, without byte {at}"), &shorter);
        }
    }
}

#[test]
fn what_the_other_tests_make_it_loads() {
    let (mut pillow, _) = Pillow::start();
    use super::fixtures::{gif, png};
    let mut files = vec![png::file(&png::small()), png::file(&png::animated()), gif::small(), gif::animated()];
    files.extend(jpeg::build::samples().into_iter().map(|(_, file)| file));
    for file in files {
        assert!(pillow.agrees("made by a test", &file), "{:?}", verdict(&file));
    }
}
